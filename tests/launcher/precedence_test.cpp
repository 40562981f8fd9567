// Command line, variable, scheduler, file, default: which of them counts, and what is said about
// those of a file that do not.
#include <fstream>

#include "tests/agent/command.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/launcher/schedulers/captured.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

std::string not_used(const std::string& by) {
  return " not used: " + by + " takes precedence over the file";
}

/// A file of options, and the launches of command lines that name it.
class Options {
 public:
  explicit Options(const std::string& content) { std::ofstream(path_) << content; }
  [[nodiscard]] Launch launch(Words words, const FakeMachine& machine = FakeMachine()) const {
    words.insert(words.begin(), "--config=" + path_);
    return launch_of(words, machine);
  }
  [[nodiscard]] std::string refusal(Words words, const FakeMachine& machine = FakeMachine()) const {
    words.insert(words.begin(), "--config=" + path_);
    return refusal_of(words, machine).sentence;
  }
  /// Of a line of it.
  [[nodiscard]] std::string note(const std::string& line, const std::string& why) const {
    return path_ + ":" + line + why;
  }

 private:
  TemporaryDirectory directory_;
  std::string path_ = directory_.file("run.toml");
};

FakeMachine under_slurm(const std::string& captured_file) {
  FakeMachine machine;
  machine.variables = captured(captured_file);
  return machine;
}

/// `notes` has each of `wanted` once.
void check_notes(const std::vector<std::string>& notes, const std::vector<std::string>& wanted) {
  for (const std::string& note : wanted) {
    CAPTURE(note, notes);
    CHECK(std::count(notes.begin(), notes.end(), note) == 1);
  }
}

}  // namespace

TEST_CASE("what a scheduler decides takes the place of a file's, with a note for each setting") {
  const Options options(
      "rdzv-backend = \"static\"\nrdzv-conf = \"is_host=0\"\nlocal-addr = \"127.0.0.1\"\n"
      "rdzv-id = \"file\"\nnnodes = 1\nnproc-per-node = 5\nrdzv-endpoint = \"far:1\"\n");
  FakeMachine machine = under_slurm("slurm-step-node0");
  machine.variables["SLURM_GPUS_ON_NODE"] = "3";
  const Launch launch = options.launch({"W"}, machine);
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->nodes_max == 2);
  CHECK(launch.config.rendezvous->master == MasterChoice::kRound);
  CHECK(launch.config.rendezvous->address.empty());
  CHECK(launch.config.run_id.value() == "9.0");
  CHECK(launch.config.workers.count == 3);
  REQUIRE(launch.coordinator);
  CHECK(launch.notes.size() == 9);
  std::vector<std::string> wanted;
  for (const char* setting :
       {"1: rdzv-backend=static", "2: rdzv-conf=is_host=0", "3: local-addr=127.0.0.1",
        "4: rdzv-id=file", "5: nnodes=1", "6: nproc-per-node=5", "7: rdzv-endpoint=far:1"}) {
    wanted.push_back(options.note(setting, not_used("Slurm step 9.0")));
  }
  check_notes(launch.notes, wanted);
  FakeMachine second = under_slurm("slurm-step-node1");
  CHECK(options.launch({"W"}, second).notes.empty());
}

TEST_CASE("an option of the command line is obeyed beside a scheduler, whatever the file says") {
  const Options options("standalone = true\nrdzv-conf = \"store_type=file\"\nrdzv-id = \"file\"\n");
  const Launch launch = options.launch(
      {"--rdzv-backend=c10d", "--rdzv-endpoint=far:7", "--rdzv-conf=join_timeout=5", "W"},
      under_slurm("slurm-step-node0"));
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->coordinator.host == "far");
  CHECK(launch.config.rendezvous->coordinator.port == 7);
  const Launch by_address = options.launch({"--rdzv-backend=c10d", "--rdzv-endpoint=far:7", "W"},
                                           under_slurm("slurm-step-node0"));
  REQUIRE(by_address.config.rendezvous);
  CHECK(by_address.config.rendezvous->coordinator.host == "far");
  const Launch named = options.launch({"--rdzv-id=mine", "W"}, under_slurm("slurm-step-node0"));
  CHECK(named.config.run_id.value() == "mine");
}

TEST_CASE("an empty endpoint leaves the rendezvous to the scheduler") {
  const Launch launch = launch_of({"--rdzv-endpoint=", "W"}, under_slurm("slurm-step-node0"));
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->coordinator.host == "127.0.0.1");
  CHECK(launch.config.rendezvous->master == MasterChoice::kRound);
}

TEST_CASE("an option of a file that one of the command line excludes is left out with a note") {
  struct Case {
    std::string file;
    Words words;
    std::string setting;
    std::string by;
  };
  const std::vector<Case> cases{
      {"standalone = true", {"--nnodes=2"}, "standalone", "--nnodes=2"},
      {"nnodes = 2", {"--standalone"}, "nnodes=2", "--standalone"},
      {"node-rank = 1", {"--nnodes=1", "--master-port=7"}, "node-rank=1", "--nnodes=1"},
      {"rdzv-endpoint = \"no-such-host:1\"",
       {"--nnodes=1"},
       "rdzv-endpoint=no-such-host:1",
       "--nnodes=1"},
      {"standalone = true",
       {"--rdzv-endpoint=node-1:1", "--nnodes=1"},
       "standalone",
       "--rdzv-endpoint=node-1:1"},
      {"standalone = true", {"--hosts=node-1,far"}, "standalone", "--hosts=node-1,far"},
      {"hosts = [\"node-1\", \"far\"]", {"--standalone"}, "hosts=node-1,far", "--standalone"},
      {"hosts = \"node-1,far\"", {"--nnodes=1"}, "hosts=node-1,far", "--nnodes=1"},
      {"nnodes = 3", {"--hosts=node-1,far"}, "nnodes=3", "--hosts=node-1,far"},
      {"rdzv-endpoint = \"far\"", {"--hosts=node-1,b"}, "rdzv-endpoint=far", "--hosts=node-1,b"},
      {"master-port = 7", {"--hosts=node-1,b"}, "master-port=7", "--hosts=node-1,b"},
      {"rdzv-backend = \"static\"",
       {"--hosts=node-1,b"},
       "rdzv-backend=static",
       "--hosts=node-1,b"},
      {"hosts = \"node-1,far\"",
       {"--master-addr=node-1"},
       "hosts=node-1,far",
       "--master-addr=node-1"},
      {"rdzv-endpoint = \"node-1:5\"",
       {"--nnodes=2", "--master-addr=localhost"},
       "rdzv-endpoint=node-1:5",
       "--master-addr=localhost"},
      {"module = true", {"--no-python"}, "module", "--no-python"},
      {"no-python = true", {"-m"}, "no-python", "--module"},
      {"run-path = true", {"-m"}, "run-path", "--module"},
      {"quiet = true", {"-v"}, "quiet", "--verbose"},
      {"verbose = true", {"-q"}, "verbose", "--quiet"},
      {"spares = 1\nrestart = \"failed\"",
       {"--virtual-local-rank"},
       "spares=1",
       "--virtual-local-rank"},
      {"log-dir = \"/dev/null\"",
       {"-t3", "--duplicate-stdout-filters=x"},
       "log-dir=/dev/null",
       "--duplicate-stdout-filters=x"},
      {"duplicate-stderr-filters = [\"x\"]\ntee = 3",
       {"--log-dir=/dev/null"},
       "duplicate-stderr-filters=x",
       "--log-dir=/dev/null"},
  };
  for (const Case& each : cases) {
    const Options options(each.file + "\n");
    Words words = each.words;
    words.emplace_back("W");
    CAPTURE(each.file, words);
    check_notes(options.launch(words).notes,
                {options.note("1: " + each.setting, not_used(each.by))});
  }
}

TEST_CASE("a secret of a file makes way for certificates of the command line, and the reverse") {
  const Words by_secret{"--nnodes=2", "--rdzv-secret-file=s", "W"};
  const Words by_files{"--nnodes=2", "--rdzv-tls-cert=c", "--rdzv-tls-key=k", "--rdzv-tls-ca=a",
                       "W"};
  const Launch with_files = Options("rdzv-secret-file = \"s\"\n").launch(by_files);
  CHECK_FALSE(with_files.config.rendezvous->secret);
  CHECK(with_files.config.rendezvous->certificates);
  const Options files("rdzv-tls-cert = \"c\"\nrdzv-tls-key = \"k\"\nrdzv-tls-ca = \"a\"\n");
  const Launch with_secret = files.launch(by_secret);
  CHECK(with_secret.config.rendezvous->secret);
  CHECK_FALSE(with_secret.config.rendezvous->certificates);
  const std::string why = not_used("--rdzv-secret-file=s");
  check_notes(with_secret.notes,
              {files.note("1: rdzv-tls-cert=c", why), files.note("2: rdzv-tls-key=k", why),
               files.note("3: rdzv-tls-ca=a", why)});
}

TEST_CASE("what a variable gives excludes an option of the file, too, and nothing else does") {
  const Options alone("standalone = true\n");
  const Launch launch = alone.launch({"W"}, with_variables({{"PET_NNODES", "2"}}));
  CHECK(launch.config.rendezvous);
  check_notes(launch.notes, {alone.note("1: standalone", not_used("PET_NNODES=2"))});
  CHECK(!alone.launch({"--nnodes=1", "W"}).config.rendezvous);
  CHECK(alone.launch({"--nnodes=1", "W"}).notes.empty());
  const Options both("standalone = true\nnnodes = 2\n");
  CHECK_THAT(both.refusal({"W"}), ContainsSubstring("standalone is one node, but"));
  CHECK_THAT(refusal_of({"--standalone", "W"}, with_variables({{"PET_NNODES", "2"}})).sentence,
             ContainsSubstring("--standalone is one node, but PET_NNODES=2"));
  const Options ranges("hosts = [\"node-1\", \"far\"]\n");
  CHECK(ranges.launch({"--nnodes=1:2", "W"}).config.rendezvous->nodes_min == 1);
}

TEST_CASE("an empty variable leaves the file's value where torchrun takes it for none") {
  const Options options("log-dir = \"/dev/null\"\nrole = \"file\"\nhang-timeout = 60\n");
  const auto config = [&options](const std::string& name) {
    return options.launch({"W"}, with_variables({{name, ""}})).config;
  };
  CHECK(config("PET_LOG_DIR").log.dir == "/dev/null");
  CHECK(config("PET_ROLE").workers.role.empty());  // a role of its own, as under torchrun
  CHECK(config("DDPRUN_HANG_TIMEOUT").stopping.hang_timeout == std::chrono::seconds(60));
  for (const char* ours : {"DDPRUN_SPARES", "DDPRUN_QUIET", "DDPRUN_CONSOLE", "DDPRUN_GPUS"}) {
    CHECK(config_of({"W"}, with_variables({{ours, ""}})).workers.count == 1);
  }
  for (const char* theirs : {"PET_NNODES", "PET_MAX_RESTARTS", "PET_STANDALONE", "PET_TEE",
                             "PET_SHUTDOWN_TIMEOUT", "PET_RDZV_BACKEND"}) {
    CAPTURE(theirs);
    CHECK_THAT(options.refusal({"W"}, with_variables({{theirs, ""}})), ContainsSubstring(theirs));
  }
}

TEST_CASE(
    "a switch that is off is a value, too: under a link called torchrun it keeps our threads") {
  const auto threads = [](const Words& words, const FakeMachine& machine) {
    const auto intent = value_of(configure(words, machine, Called::kTorchrun));
    return std::get<Launch>(intent).config.workers.threads;
  };
  const Words two{"--nproc-per-node=2", "W"};
  const std::vector<int> torchruns{1, 1};
  const std::vector<int> ours{4, 4};
  CHECK(threads(two, FakeMachine()) == torchruns);
  CHECK(threads(two, with_variables({{"DDPRUN_COMPAT", "0"}})) == ours);
  CHECK(threads(two, with_variables({{"DDPRUN_COMPAT", ""}})) == torchruns);
  const TemporaryDirectory directory;
  std::ofstream(directory.file("run.toml")) << "compat = false\n";
  CHECK(threads({"--config=" + directory.file("run.toml"), "--nproc-per-node=2", "W"},
                FakeMachine()) == ours);
}
