// --verbose: each decision of the start with its reason.
#include "launcher/dry_run.hpp"

#include <algorithm>

#include "launcher/workers/config.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/support/secret.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

/// In a pipe.
Words told(Words words, const FakeMachine& machine = {}) {
  words.insert(words.begin(), "-v");
  auto launch = std::get<Launch>(value_of(configure(words, machine)));
  const std::string console = choose_console(launch.config, machine.environment(), false);
  return decisions(launch, machine.environment(), console);
}

bool has(const Words& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

}  // namespace

TEST_CASE("without options every decision has its default as the reason") {
  FakeMachine machine = with_variables({{"PATH", "/bin"}});
  const std::string logs =
      "logs: below /tmp (without --log-dir it is a temporary one, which is removed after success)";
  CHECK(told({"a.py"}, machine) ==
        Words{"workers: 1 (--nproc-per-node=1 by default)", "rendezvous: none (a single node)",
              "command: python3 (the one in PATH)", "devices: all (no variable hides any)",
              "OMP_NUM_THREADS: not set (one worker has the CPUs to itself)",
              "console: quoted (stdout and stderr are not one terminal)", logs});
}

TEST_CASE("each decision names the option or the variable that it comes from") {
  FakeMachine machine = with_variables({{"PET_NPROC_PER_NODE", "gpu"},
                                        {"CUDA_VISIBLE_DEVICES", "3,4"},
                                        {"PYTHON_EXEC", "/opt/python"},
                                        {"DDPRUN_CONSOLE", "prefix"},
                                        {"PET_MAX_RESTARTS", "3"}});
  machine.gpus = 2;
  const Words lines = told({"--log-dir=/logs", "a.py"}, machine);
  for (const std::string line :
       {"workers: 2 (--nproc-per-node=gpu from PET_NPROC_PER_NODE)",
        "command: /opt/python (from PYTHON_EXEC)", "devices: 3,4 (from the environment of ddprun)",
        "OMP_NUM_THREADS: 4 (a share of 8 CPUs)",
        "console: prefix (--console=prefix from DDPRUN_CONSOLE)",
        "logs: below /logs (--log-dir=/logs from the command line)",
        "max-restarts: 3 (from PET_MAX_RESTARTS)"}) {
    INFO(line);
    CHECK(has(lines, line));
  }
}

TEST_CASE("whether the links between nodes are protected is told, and by which secret") {
  FakeMachine machine;
  const Words clear = told({"--nnodes=2", "a.py"}, machine);
  CHECK(has(clear,
            "links: in clear text (neither --rdzv-secret-file, DDPRUN_SECRET nor "
            "~/.config/ddprun/secret)"));
  const Words by_file = told({"--nnodes=2", "--rdzv-secret-file=s", "a.py"}, machine);
  const std::string sealed = "links: encrypted, for nodes with the secret ";
  CHECK(has(by_file, sealed + "(--rdzv-secret-file=s from the command line)"));
  machine.secret = secret_of('a');
  CHECK(has(told({"--nnodes=2", "a.py"}, machine), sealed + "(from DDPRUN_SECRET)"));
  CHECK_FALSE(has(told({"a.py"}, machine), sealed + "(from DDPRUN_SECRET)"));
  machine.secret = nullptr;
  CHECK(has(told({"--nnodes=2", "--rdzv-tls-cert=c", "--rdzv-tls-key=k", "--rdzv-tls-ca=a", "a.py"},
                 machine),
            "links: encrypted, for nodes with a certificate of the CA (--rdzv-tls-cert=c from the "
            "command line)"));
}

TEST_CASE("the rendezvous names the coordinator, and what asked for several nodes") {
  const auto of = [](const std::string& coordinator, const std::string& why) {
    return "rendezvous: 2 nodes, coordinator " + coordinator + ", which this node may run (" + why +
           " from the command line)";
  };
  CHECK(has(told({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node-1:7", "W"}),
            of("node-1:7", "--nnodes=2")));
  CHECK(has(told({"--hosts=node-1,node-2", "W"}), of("node-1:29400", "--hosts=node-1,node-2")));
}

TEST_CASE("a setting that explains a decision is not listed again") {
  const Words lines = told({"--nproc-per-node=2", "--module", "--role=r", "W"});
  CHECK(lines.size() == 9);
  CHECK(has(lines, "module: on (from the command line)"));
  CHECK(has(lines, "role: r (from the command line)"));
}

TEST_CASE("without --verbose no setting is listed") {
  CHECK(std::get<Launch>(value_of(configure({"W"}, FakeMachine()))).settings.empty());
}
