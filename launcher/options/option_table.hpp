// Every option of ddprun, once: the parser, the PET_* variables, --config, --help, completions,
// `ddprun config` and the refusals all read this table. Its rows are
// launcher/request/*_options.cpp. Constant data.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprun {

enum class OptionId : std::size_t {
  kNnodes,
  kNprocPerNode,
  kModule,
  kNoPython,
  kRole,
  kVirtualLocalRank,
  kGpus,
  kShareGpus,
  kCompat,
  kUseEnv,
  kStandalone,
  kRdzvBackend,
  kRdzvEndpoint,
  kRdzvId,
  kRdzvConf,
  kRdzvSecretFile,
  kRdzvTlsCert,
  kRdzvTlsKey,
  kRdzvTlsCa,
  kNodeRank,
  kMasterAddr,
  kMasterPort,
  kLocalAddr,
  kStoreOpen,
  kStatus,
  kHosts,
  kAllowDifferentCommands,
  kMaxRestarts,
  kMonitorInterval,
  kShutdownTimeout,
  kFailureGrace,
  kStragglerTimeout,
  kMinUptime,
  kSignalsToHandle,
  kFinishTimeout,
  kHangTimeout,
  kRestart,
  kRejoinTimeout,
  kSpares,
  kWarm,
  kPreload,
  kLogDir,
  kLogMax,
  kRedirects,
  kTee,
  kLogLinePrefixTemplate,
  kLocalRanksFilter,
  kDuplicateStdoutFilters,
  kDuplicateStderrFilters,
  kConsole,
  kQuiet,
  kVerbose,
  kHttp,
  kEventLogHandler,
  kStartMethod,
  kRunPath,
  kLogsSpecs,
  kNumaBinding,
  kPrintCompletion,
  kDetach,
  kConfig,
  kDryRun,
  kJson,
  kHelp,
  kShowVersion,
  kCount,
};

inline constexpr std::size_t kOptionCount = static_cast<std::size_t>(OptionId::kCount);

/// What follows the option's name, and what its value must look like.
enum class OptionValue {
  kFlag,          // nothing
  kText,          // anything
  kOptional,      // anything after "=", or nothing, which is "on"
  kInteger,       // as Python's int() reads it
  kNumber,        // as Python's float() reads it
  kChoice,        // one of `choices`
  kAction,        // nothing; carried out immediately, the rest of the command line is not parsed
  kChoiceAction,  // the same with one of `choices`
};

/// Where the default may come from.
enum class OptionVariable {
  kNone,
  kPet,     // PET_<NAME>, as torchrun
  kDdprun,  // DDPRUN_<NAME>: options that torchrun does not have
};

/// The headings of --help, in its order.
enum class OptionGroup { kProgram, kRendezvous, kRestarts, kOutput, kOther, kCompatibility };

class Settings;
struct Given;    // launcher/request/rows.hpp
struct Request;  // launcher/request/request.hpp

/// Another option that excludes this one, always or under a condition.
struct Exclusion {
  OptionId by = OptionId::kCount;  // none
  bool (*when)(const Settings& settings) = nullptr;
};

struct OptionSpec {
  OptionId id = OptionId::kCount;
  std::string_view name = {};  // the dashed spelling without "--"
  char letter = 0;             // of the short form; 0: none
  OptionValue value = OptionValue::kText;
  OptionVariable variable = OptionVariable::kDdprun;
  OptionGroup group = OptionGroup::kOther;  // of all rows of a file
  std::string_view metavar = {};            // what --help calls the value
  std::string_view preset = {};             // built-in default, as it would be typed; empty: none
  std::string_view choices = {};            // of kChoice and kChoiceAction, separated by commas
  std::string_view help = {};               // one or two sentences
  std::string_view brief = {};     // for -h, which shows the options that most runs use; else empty
  std::string_view fallback = {};  // a variable of torchrun's that counts where nothing is given
  std::string_view unset = {};     // what holds then, for `ddprun config`; empty: nothing
  bool for_torchrun = false;       // of use to its command lines only: at the end of --help
  Exclusion yields_to[6] = {};  // where one is above the file of --config, that leaves this one out
  bool of_scheduler = false;    // likewise where a scheduler places the run
  /// What the value means: written into the request, or refused with a sentence that names it.
  Result<void> (*take)(const Given& given, Request& request) = nullptr;
};

/// All options, in the order of OptionId.
[[nodiscard]] std::span<const OptionSpec> all_options();
[[nodiscard]] const OptionSpec& spec_of(OptionId id);

/// "--nproc-per-node".
[[nodiscard]] std::string dashed(const OptionSpec& option);
/// "--nproc_per_node"; the same as dashed() for a name of one word.
[[nodiscard]] std::string underscored(const OptionSpec& option);
/// "PET_NPROC_PER_NODE"; empty for an option without a variable.
[[nodiscard]] std::string variable_name(const OptionSpec& option);

}  // namespace ddprun
