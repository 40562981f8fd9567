// The command line as a whole: nothing is accepted and ignored, and help shows all.
#include <algorithm>
#include <sstream>

#include "launcher/commands/commands.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/option_table.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

/// A command line that shows that the option is not ignored: with it, the result differs from
/// `without`, or a wrong value is refused.
struct Effect {
  OptionId id;
  Words without;
  Words with;
};

Words certified(const std::string& cert, const std::string& key, const std::string& ca) {
  return {"--nnodes=2", "--rdzv-tls-cert=" + cert, "--rdzv-tls-key=" + key, "--rdzv-tls-ca=" + ca,
          "W"};
}

const std::vector<Effect>& effects() {
  static const std::vector<Effect> kEffects{
      {OptionId::kNnodes, {"W"}, {"--nnodes=2", "W"}},
      {OptionId::kRdzvConf, {"--nnodes=2", "W"}, {"--nnodes=2", "--rdzv-conf=timeout=7", "W"}},
      {OptionId::kRdzvSecretFile, {"--nnodes=2", "W"}, {"--nnodes=2", "--rdzv-secret-file=s", "W"}},
      {OptionId::kRdzvTlsCert, certified("c", "k", "a"), certified("C", "k", "a")},
      {OptionId::kRdzvTlsKey, certified("c", "k", "a"), certified("c", "K", "a")},
      {OptionId::kRdzvTlsCa, certified("c", "k", "a"), certified("c", "k", "A")},
      {OptionId::kNodeRank, {"--nnodes=2", "W"}, {"--nnodes=2", "--node-rank=1", "W"}},
      {OptionId::kHosts, {"W"}, {"--hosts=node-1,node-2", "W"}},
      {OptionId::kAllowDifferentCommands, {"W"}, {"--allow-different-commands", "W"}},
      {OptionId::kNprocPerNode, {"W"}, {"--nproc-per-node=2", "W"}},
      {OptionId::kModule, {"W"}, {"-m", "W"}},
      {OptionId::kNoPython, {"a.py"}, {"--no-python", "a.py"}},
      {OptionId::kRunPath, {"a.py"}, {"--run-path", "a.py"}},
      {OptionId::kRole, {"W"}, {"--role=r", "W"}},
      {OptionId::kVirtualLocalRank, {"W"}, {"--virtual-local-rank", "W"}},
      {OptionId::kCompat, {"--nproc-per-node=2", "W"}, {"--compat", "--nproc-per-node=2", "W"}},
      {OptionId::kStandalone,
       {"--rdzv-backend=c10d", "W"},
       {"--rdzv-backend=c10d", "--standalone", "W"}},
      {OptionId::kRdzvBackend, {"--rdzv-id=x", "W"}, {"--rdzv-id=x", "--rdzv-backend=c10d", "W"}},
      {OptionId::kRdzvEndpoint, {"W"}, {"--rdzv-endpoint=localhost:7", "W"}},
      {OptionId::kRdzvId,
       {"--rdzv-backend=c10d", "W"},
       {"--rdzv-backend=c10d", "--rdzv-id=x", "W"}},
      {OptionId::kMasterAddr,
       {"--master-port=7", "W"},
       {"--master-port=7", "--master-addr=node-1", "W"}},
      {OptionId::kMasterPort, {"W"}, {"--master-port=7", "W"}},
      {OptionId::kLocalAddr, {"W"}, {"--local-addr=node-1", "W"}},
      {OptionId::kStoreOpen, {"W"}, {"--store-open", "W"}},
      {OptionId::kMaxRestarts, {"W"}, {"--max-restarts=1", "W"}},
      {OptionId::kShutdownTimeout, {"W"}, {"--shutdown-timeout=1", "W"}},
      {OptionId::kStragglerTimeout, {"W"}, {"--straggler-timeout=1", "W"}},
      {OptionId::kFailureGrace, {"W"}, {"--failure-grace=2", "W"}},
      {OptionId::kFinishTimeout, {"W"}, {"--finish-timeout=30m", "W"}},
      {OptionId::kHangTimeout, {"W"}, {"--hang-timeout=600", "W"}},
      {OptionId::kRestart, {"W"}, {"--restart=failed", "W"}},
      {OptionId::kRejoinTimeout,
       {"--restart=failed", "W"},
       {"--restart=failed", "--rejoin-timeout=5", "W"}},
      {OptionId::kSpares, {"--restart=failed", "W"}, {"--restart=failed", "--spares=2", "W"}},
      {OptionId::kWarm, {"W"}, {"--warm", "--preload=json", "W"}},
      {OptionId::kPreload, {"--warm", "--preload=json", "W"}, {"--warm", "--preload=json,re", "W"}},
      {OptionId::kMinUptime, {"W"}, {"--min-uptime=60s", "W"}},
      {OptionId::kSignalsToHandle, {"W"}, {"--signals-to-handle=SIGUSR1", "W"}},
      {OptionId::kLogDir, {"W"}, {"--log-dir=d", "W"}},
      {OptionId::kLogMax, {"W"}, {"--log-max=4M", "W"}},
      {OptionId::kRedirects, {"W"}, {"-r1", "W"}},
      {OptionId::kTee, {"W"}, {"-t1", "W"}},
      {OptionId::kLogLinePrefixTemplate, {"W"}, {"--log-line-prefix-template=x", "W"}},
      {OptionId::kLocalRanksFilter, {"W"}, {"--local-ranks-filter=0", "W"}},
      {OptionId::kDuplicateStdoutFilters,
       {"-t3", "W"},
       {"-t3", "--duplicate-stdout-filters=a", "W"}},
      {OptionId::kDuplicateStderrFilters,
       {"-t3", "W"},
       {"-t3", "--duplicate-stderr-filters=a", "W"}},
      {OptionId::kConsole, {"W"}, {"--console=raw", "W"}},
      {OptionId::kQuiet, {"W"}, {"-q", "W"}},
      {OptionId::kVerbose, {"W"}, {"-v", "W"}},
      {OptionId::kHttp, {"W"}, {"--http=127.0.0.1:7", "W"}},
      {OptionId::kEventLogHandler, {"W"}, {"--event-log-handler=console", "W"}},
  };
  return kEffects;
}

/// Options whose only possible value today is what ddprun does anyway; every other one is refused.
const std::vector<std::pair<OptionId, std::string>>& only_refusals() {
  static const std::vector<std::pair<OptionId, std::string>> kRefusals{
      {OptionId::kMonitorInterval, "0"},
      {OptionId::kStartMethod, "thread"},
      {OptionId::kLogsSpecs, "mine"},
  };
  return kRefusals;
}

long number_of(const std::optional<Duration>& limit) {
  return static_cast<long>(limit.value_or(Duration(-1)).count());
}

std::string fingerprint(const LaunchConfig& config) {
  std::string text = config.run_id.value() + "|" + config.workers.role + "|" +
                     std::to_string(config.workers.count);
  for (const auto& word : config.workers.command) text += "|" + word;
  for (const auto& device : config.workers.virtual_devices) text += "|device " + device;
  for (const int number : config.workers.threads) text += "|threads " + std::to_string(number);
  for (const int number : config.stopping.signals) text += "|signal " + std::to_string(number);
  for (const auto& filter : config.log.stdout_filters) text += "|out " + filter;
  for (const auto& filter : config.log.stderr_filters) text += "|err " + filter;
  if (config.rendezvous && config.rendezvous->secret) text += "|secret";
  if (config.rendezvous && config.rendezvous->certificates) {
    const Certificates& files = *config.rendezvous->certificates;
    text += "|certificates " + files.cert.path + " " + files.key.path + " " + files.ca.path;
  }
  if (config.log.console_ranks)
    text += "|ranks " + std::to_string(config.log.console_ranks->size());
  const std::vector<long> numbers{config.stopping.max_restarts,
                                  static_cast<long>(config.stopping.shutdown_timeout.count()),
                                  static_cast<long>(config.stopping.straggler_timeout.count()),
                                  static_cast<long>(config.stopping.failure_grace.count()),
                                  number_of(config.stopping.finish_timeout),
                                  number_of(config.stopping.hang_timeout),
                                  number_of(config.stopping.min_uptime),
                                  number_of(config.stopping.sleep_timeout),
                                  number_of(config.stopping.rejoin_timeout),
                                  config.stopping.spares,
                                  config.store.master_port,
                                  config.store.open ? 1 : 0,
                                  config.workers.commands_may_differ ? 1 : 0,
                                  static_cast<long>(config.log.redirects.all),
                                  static_cast<long>(config.log.tee.all),
                                  static_cast<long>(config.log.console),
                                  static_cast<long>(config.log.verbosity),
                                  static_cast<long>(config.log.bytes_max)};
  for (const long number : numbers) text += "|" + std::to_string(number);
  if (config.rendezvous) {
    text += "|nodes " + std::to_string(config.rendezvous->nodes_max) + "|node " +
            std::to_string(config.rendezvous->node_rank.value_or(-1)) + "|join " +
            std::to_string(config.rendezvous->join_timeout.count());
  }
  if (config.http) text += "|http " + config.http->address + std::to_string(config.http->port);
  if (config.torch_events) text += "|torch events";
  if (config.warm) text += "|warm " + std::to_string(config.warm->preload.size());
  return text + "|" + config.store.master_addr + "|" + config.log.dir + "|" +
         config.log.prefix_template;
}

}  // namespace

TEST_CASE(
    "every option has an effect, refuses all values but one, or is an action: none is accepted and "
    "ignored") {
  for (const auto& option : all_options()) {
    INFO(option.name);
    int places = 0;
    places += option.value == OptionValue::kAction ? 1 : 0;
    places += option.value == OptionValue::kChoiceAction ? 1 : 0;
    for (const auto& effect : effects()) places += effect.id == option.id ? 1 : 0;
    for (const auto& [id, value] : only_refusals()) places += id == option.id ? 1 : 0;
    places += option.id == OptionId::kUseEnv ? 1 : 0;  // its own test: it states what always holds
    for (const auto id : {OptionId::kNumaBinding, OptionId::kGpus, OptionId::kShareGpus}) {
      places += option.id == id ? 1 : 0;  // likewise: they need devices
    }
    places += option.id == OptionId::kStatus ? 1 : 0;  // its own: the agent has nothing of it
    places += option.id == OptionId::kConfig ? 1 : 0;  // its own test: it needs a file
    places += option.id == OptionId::kDryRun ? 1 : 0;  // dry_run_test.py
    places += option.id == OptionId::kJson ? 1 : 0;    // likewise
    places += option.id == OptionId::kDetach ? 1 : 0;  // main() does it: tests/control
    CHECK(places == 1);
  }
}

TEST_CASE("an option that works changes what will be done") {
  for (const auto& effect : effects()) {
    INFO(spec_of(effect.id).name);
    CHECK(fingerprint(config_of(effect.with)) != fingerprint(config_of(effect.without)));
  }
}

TEST_CASE("an option with one possible value refuses the others") {
  for (const auto& [id, value] : only_refusals()) {
    const std::string name = dashed(spec_of(id));
    CHECK_THAT(refusal_of({name + "=" + value, "W"}).sentence, ContainsSubstring(name));
  }
}

TEST_CASE("the layout of log files is the default one; another is a class of Python") {
  CHECK(fingerprint(config_of({"--logs-specs=default", "W"})) == fingerprint(config_of({"W"})));
  CHECK_THAT(refusal_of({"--logs-specs=mine", "W"}).sentence,
             ContainsSubstring("--logs-specs=mine names a Python class"));
}

TEST_CASE("nothing to run names the missing script and is a usage error") {
  for (const Words& words : {Words{}, Words{"--standalone"}, Words{"--"}}) {
    CHECK_THAT(refusal_of(words).sentence, ContainsSubstring("training_script"));
  }
}

TEST_CASE("an event handler writes to the console, is silent, or is unknown") {
  for (const std::string silent : {"null", "dynamic_rendezvous"}) {
    CHECK_FALSE(config_of({"--event-log-handler=" + silent, "W"}).torch_events);
  }
  CHECK(config_of({"--event-log-handler=console", "W"}).torch_events);
  const auto at_level = [](const std::string& level) {
    return config_of({"--event-log-handler=console", "W"}, with_variables({{"LOGLEVEL", level}}))
        .torch_events;
  };
  for (const std::string level : {"DEBUG", "INFO", ""}) CHECK(at_level(level));
  for (const std::string level : {"WARNING", "ERROR", "CRITICAL"}) CHECK_FALSE(at_level(level));
  CHECK(refusal_of({"--event-log-handler=zeus", "W"}).kind == ErrorKind::kUsage);
}

TEST_CASE("the flag --use-env asks for what ddprun always does") {
  CHECK(config_of({"--use-env", "a.py", "x"}).workers.command ==
        Words{"python3", "-u", "a.py", "x"});
  CHECK(config_of({"--use_env", "a.py"}).workers.command == config_of({"a.py"}).workers.command);
}

TEST_CASE("help and version win over everything before the script") {
  CHECK(std::get<ShowHelp>(*configure({"--nnodes=x", "-h"}, FakeMachine())).brief);
  CHECK(std::get<ShowHelp>(*configure({"-mh"}, FakeMachine())).brief);
  CHECK_FALSE(std::get<ShowHelp>(*configure({"--nnodes=x", "--help"}, FakeMachine())).brief);
  CHECK(std::holds_alternative<ShowVersion>(*configure({"--version", "W"}, FakeMachine())));
  const auto completion = value_of(configure({"--print-completion=fish", "W"}, FakeMachine()));
  CHECK(std::get<ShowCompletion>(completion).shell == "fish");
}

TEST_CASE("variables of torchrun reach every kind of option") {
  const FakeMachine machine = with_variables({{"PET_LOG_DIR", "/l"},
                                              {"PET_REDIRECTS", "3"},
                                              {"PET_TEE", "1"},
                                              {"PET_ROLE", "r"},
                                              {"PET_NO_PYTHON", "1"},
                                              {"PET_NPROC_PER_NODE", "2"}});
  const auto config = config_of({"W.py"}, machine);
  CHECK(config.log.dir == "/l");
  CHECK(config.log.redirects.all == Streams::kBoth);
  CHECK(config.log.tee.all == Streams::kStdout);
  CHECK(config.workers.role == "r");
  CHECK(config.workers.command == Words{"W.py"});
  CHECK(config.workers.count == 2);
}

TEST_CASE("the timers of workers are on if their variable is 1, as with torchrun") {
  const auto pipe = [](const std::string& enabled) {
    return config_of({"W"}, with_variables({{"TORCHELASTIC_ENABLE_FILE_TIMER", enabled},
                                            {"TORCHELASTIC_TIMER_FILE", "/tmp/t"}}))
        .timer_pipe;
  };
  CHECK(pipe("1") == "/tmp/t");
  for (const std::string off : {"", "0", "true"}) CHECK_FALSE(pipe(off));
  const auto chosen = with_variables({{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"}});
  CHECK(config_of({"W"}, chosen).timer_pipe == "");
  CHECK_FALSE(config_of({"W"}).timer_pipe);
}

TEST_CASE("the time-out for uninterruptible sleep is a number of seconds above 0, or off") {
  const auto limit = [](const std::string& value) {
    const auto set = with_variables({{"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", value}});
    return config_of({"W"}, set).stopping.sleep_timeout;
  };
  CHECK_FALSE(config_of({"W"}).stopping.sleep_timeout);
  for (const std::string off : {"", "0", "-1", "abc", "5m", "nan", "inf"}) CHECK_FALSE(limit(off));
  CHECK(limit("2.5") == std::chrono::milliseconds(2500));
  CHECK(limit(" 1e1 ") == std::chrono::seconds(10));
  CHECK(limit("1e-300") == Duration(1));
  CHECK(limit("1e300") == std::chrono::hours(24 * 365 * 10));
}

TEST_CASE("help lists every option in both spellings, with its variable") {
  const std::string text = help_text(80, all_commands());
  for (const auto& option : all_options()) {
    CHECK_THAT(text, ContainsSubstring(dashed(option)));
    CHECK_THAT(text, ContainsSubstring(underscored(option)));
    CHECK_THAT(text, ContainsSubstring(variable_name(option)));
  }
}

TEST_CASE("help fits the terminal, however narrow") {
  for (const std::size_t columns : {std::size_t{40}, std::size_t{80}, std::size_t{100}}) {
    std::istringstream lines(help_text(columns, all_commands()) + brief_help_text(columns));
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= columns);
    }
  }
}

TEST_CASE("the brief help shows the 14 options that most runs use on one screen") {
  const std::string text = brief_help_text(80);
  CHECK(std::count(text.begin(), text.end(), '\n') < 24);
  std::istringstream lines(text);
  int options = 0;
  for (std::string line; std::getline(lines, line);) options += line.starts_with("  -") ? 1 : 0;
  CHECK(options == 14);
  CHECK_THAT(text, ContainsSubstring("\n  --max-restarts N"));
  CHECK_THAT(text, ContainsSubstring("--help shows all"));
}

TEST_CASE("what only command lines of torchrun need is at the end of help") {
  const std::string text = help_text(80, all_commands());
  const auto heading = text.find("\nFor command lines of torchrun:\n");
  REQUIRE(heading != std::string::npos);
  for (const auto& option : all_options()) {
    INFO(option.name);
    const auto entry = text.find("--" + std::string(option.name) + ",");
    if (entry != std::string::npos) CHECK((entry > heading) == option.for_torchrun);
  }
  CHECK(text.find("  --start-method") > heading);
}

TEST_CASE("a word longer than the line is broken rather than sticking out") {
  CHECK(wrapped("ab abcdefgh x", 2, 6) == "  ab\n  abcd\n  efgh\n  x\n");
  CHECK(wrapped("a b c", 0, 3) == "a b\nc\n");
}
