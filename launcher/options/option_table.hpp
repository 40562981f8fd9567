// Every option of ddprun, once: the parser, the PET_* variables, --help and the refusals all read
// this table. Constant data without start-up cost.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

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
  kVersion,
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
enum class OptionGroup { kProgram, kRendezvous, kRestarts, kOutput, kOther };

struct OptionSpec {
  OptionId id = OptionId::kCount;
  std::string_view name = {};  // the dashed spelling without "--"
  char letter = 0;             // of the short form; 0: none
  OptionValue value = OptionValue::kText;
  OptionVariable variable = OptionVariable::kNone;
  OptionGroup group = OptionGroup::kOther;
  std::string_view metavar = {};   // what --help calls the value
  std::string_view preset = {};    // built-in default, as it would be typed; empty: none
  std::string_view choices = {};   // of kChoice and kChoiceAction, separated by commas
  std::string_view help = {};      // one or two sentences
  std::string_view fallback = {};  // a variable of torchrun's that counts where nothing is given
  std::string_view unset = {};     // what holds then, for `ddprun config`; empty: nothing
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
