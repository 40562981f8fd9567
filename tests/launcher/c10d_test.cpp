// The c10d backend over several nodes: the endpoint, the coordinator's node, the address of a node.
#include "tests/launcher/fake_machine.hpp"
#include "tests/support/secret.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using Need = CoordinatorPlan::Need;

namespace {

Words elastic(Words more) {
  Words words{"--nnodes=2", "--rdzv-backend=c10d"};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("W");
  return words;
}

Launch at(const std::string& endpoint, const FakeMachine& machine = FakeMachine()) {
  return launch_of(elastic({"--rdzv-endpoint=" + endpoint}), machine);
}

}  // namespace

TEST_CASE("the rendezvous is at the endpoint, on port 29400 unless it has one") {
  struct Line {
    std::string text;
    std::string host;
    int port;
  };
  for (const Line& line :
       {Line{"far", "far", 29400}, Line{"far:7", "far", 7}, Line{"10.0.0.9", "10.0.0.9", 29400},
        Line{"10.0.0.9:7", "10.0.0.9", 7}, Line{"[fd00::9]", "fd00::9", 29400},
        Line{"[fd00::9]:7", "fd00::9", 7}, Line{"fd00::9", "fd00::9", 29400}}) {
    INFO(line.text);
    const auto launch = at(line.text);
    REQUIRE(launch.config.rendezvous);
    CHECK(launch.config.rendezvous->coordinator.host == line.host);
    CHECK(launch.config.rendezvous->coordinator.port == line.port);
    CHECK(launch.config.rendezvous->master == MasterChoice::kRound);
    CHECK(launch.config.rendezvous->nodes_min == 2);
    CHECK(launch.config.rendezvous->nodes_max == 2);
    CHECK(launch.config.store.master_addr.empty());
    CHECK(launch.config.store.listen_addr.empty());
    CHECK_FALSE(launch.coordinator);
    CHECK(launch.notes.empty());
  }
}

TEST_CASE("an endpoint that is none of HOST, HOST:PORT or [V6]:PORT is refused") {
  for (const std::string bad :
       {":1", "a b:1", "h:", "h:x", "h:65536", "h:123456", "[::1", "[::1]x", "h:-1", "h/x:1",
        "29400", "999.1.1.1:7", "10.0.0:7", "h:7:8", "[fd00::zz]:7"}) {
    INFO(bad);
    for (const std::string nodes : {"1", "2"}) {
      CHECK_THAT(
          refusal_of({"--nnodes=" + nodes, "--rdzv-backend=c10d", "--rdzv-endpoint=" + bad, "W"})
              .sentence,
          ContainsSubstring("--rdzv-endpoint='" + bad + "'"));
    }
  }
}

TEST_CASE("a range of nodes is kept as it is given") {
  const auto launch =
      launch_of({"--nnodes=1:4", "--rdzv-backend=c10d", "--rdzv-endpoint=far", "--rdzv-id=x", "W"});
  CHECK(launch.config.rendezvous->nodes_min == 1);
  CHECK(launch.config.rendezvous->nodes_max == 4);
  CHECK(launch.config.run_id.value() == "x");
}

TEST_CASE(
    "the node whose address the endpoint is may run the coordinator, on the wildcard address") {
  const auto launch = at("node-1:7");
  REQUIRE(launch.coordinator);
  CHECK(launch.coordinator->need == Need::kMay);
  CHECK(launch.coordinator->bind.empty());
  CHECK(launch.coordinator->port == 7);
  CHECK(launch.config.rendezvous->coordinator.host == "node-1");
}

TEST_CASE("one endpoint is enough for c10d: several are refused, and told what names several") {
  const auto sentence = [](const Words& words) { return refusal_of(words).sentence; };
  const std::string nodes = "--nnodes=2";
  const std::string c10d = "--rdzv-backend=c10d";
  CHECK(sentence({nodes, c10d, "--rdzv-endpoint=far:7,near", "W"}) ==
        "--rdzv-endpoint=far:7,near: c10d has one endpoint, and if its node is lost another node "
        "of the run takes its place; several are the servers of --rdzv-backend=etcd-v3");
  CHECK(sentence({nodes, c10d, "--rdzv-endpoint=far,", "W"}) ==
        "--rdzv-endpoint=far,: an endpoint is empty");
  CHECK(sentence({nodes, "--rdzv-endpoint=a:1,b:2", "W"}).find("the static backend has one") !=
        std::string::npos);
}

TEST_CASE("a name that does not resolve yet is not an error: another node runs the coordinator") {
  FakeMachine machine;
  machine.unresolved.insert("pod-0.headless");
  const auto launch = at("pod-0.headless", machine);
  CHECK(launch.config.rendezvous->coordinator.host == "pod-0.headless");
  CHECK_FALSE(launch.coordinator);
  CHECK(launch_of({"--rdzv-backend=c10d", "--rdzv-endpoint=pod-0.headless", "W"}, machine)
            .config.rendezvous);
}

TEST_CASE("the node whose own name does not resolve yet may run the coordinator, over loopback") {
  FakeMachine machine;
  machine.name = "pod-0";
  machine.unresolved = {"pod-0", "pod-0.headless", "pod-1.headless"};
  for (const std::string own : {"pod-0", "POD-0.headless"}) {
    INFO(own);
    machine.unresolved.insert(own);
    const auto launch = at(own + ":7", machine);
    REQUIRE(launch.coordinator);
    CHECK(launch.coordinator->need == Need::kMay);
    CHECK(launch.coordinator->bind.empty());
    CHECK(launch.config.rendezvous->coordinator.host == "127.0.0.1");
  }
  CHECK_FALSE(at("pod-1.headless", machine).coordinator);
}

TEST_CASE("a wildcard endpoint is refused, unless is_host is set") {
  FakeMachine machine;
  for (const std::string every : {"0.0.0.0", "::"}) {
    machine.addresses[every] = every;
    CHECK_THAT(refusal_of(elastic({"--rdzv-endpoint=[" + every + "]:7"}), machine).sentence,
               ContainsSubstring(every + " is not an address other nodes can reach"));
  }
  const Words ordered = elastic({"--rdzv-endpoint=0.0.0.0:7", "--rdzv-conf=is_host=true"});
  CHECK(launch_of(ordered, machine).coordinator->need == Need::kMust);
}

TEST_CASE("the coordinator of several nodes listens on all addresses, whatever names it here") {
  FakeMachine machine;
  machine.addresses["127.0.0.5"] = "127.0.0.5";
  machine.addresses["::1"] = "::1";
  machine.addresses["gpu-01"] = "127.0.1.1";  // Debian's name of itself
  for (const std::string endpoint : {"localhost", "127.0.0.5:7", "[::1]:7", "::1", "gpu-01"}) {
    INFO(endpoint);
    const auto launch = at(endpoint, machine);
    REQUIRE(launch.coordinator);
    CHECK(launch.coordinator->need == Need::kMay);
    CHECK(launch.coordinator->bind.empty());
    CHECK(launch.config.store.listen_addr.empty());
    CHECK(launch.config.rendezvous->given_host.empty());
  }
}

TEST_CASE("the node of the endpoint's name may run the coordinator, whatever the name means here") {
  FakeMachine machine;
  machine.name = "gpu-01";
  const auto launch = at("gpu-01.cluster:7", machine);
  REQUIRE(launch.coordinator);
  CHECK(launch.coordinator->need == Need::kMay);
  CHECK(launch.config.rendezvous->coordinator.host == "127.0.0.1");
  CHECK(launch.config.rendezvous->given_host == "gpu-01.cluster");
}

TEST_CASE("without an endpoint all nodes are on this machine, with a note") {
  const auto launch = launch_of(elastic({}));
  CHECK(launch.config.rendezvous->coordinator.host == "localhost");
  CHECK(launch.config.rendezvous->coordinator.port == 29400);
  CHECK(launch.coordinator->bind.empty());
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("localhost:29400"));
  CHECK_THAT(launch.notes[0], ContainsSubstring("this machine"));
}

TEST_CASE(
    "other nodes are told an address that no interface has, or a name that is loopback here") {
  FakeMachine machine;
  machine.addresses["gpu-01"] = "127.0.1.1";
  const auto told = [&machine](const std::string& local) {
    const auto launch =
        launch_of(elastic({"--rdzv-endpoint=far", "--local-addr=" + local}), machine);
    CHECK(launch.config.store.listen_addr.empty());
    CHECK(launch.notes.size() == (local == "203.0.113.5" ? 1 : 0));
    return launch.config.rendezvous->address;
  };
  CHECK(told("gpu-01") == "gpu-01");
  CHECK(told("203.0.113.5") == "203.0.113.5");
  machine.addresses["0.0.0.0"] = "0.0.0.0";
  CHECK(told("0.0.0.0").empty());
  CHECK_THAT(refusal_of(elastic({"--rdzv-endpoint=far", "--local-addr=a b"})).sentence,
             ContainsSubstring("--local-addr=a b is not"));
}

TEST_CASE("port 0 is refused where other nodes would have to guess it") {
  CHECK_THAT(refusal_of(elastic({"--rdzv-endpoint=node-1:0"})).sentence,
             ContainsSubstring("port 0"));
  CHECK_THAT(refusal_of({"--rdzv-backend=c10d", "--rdzv-endpoint=far:0", "W"}).sentence,
             ContainsSubstring("port 0"));
}

TEST_CASE("one node joins the coordinator of another machine, or one that it does not run itself") {
  const auto far = launch_of({"--rdzv-backend=c10d", "--rdzv-endpoint=far", "W"});
  REQUIRE(far.config.rendezvous);
  CHECK(far.config.rendezvous->nodes_max == 1);
  CHECK_FALSE(far.coordinator);
  const auto own = launch_of(
      {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "--rdzv-conf=is_host=false", "W"});
  REQUIRE(own.config.rendezvous);
  CHECK_FALSE(own.coordinator);
}

TEST_CASE("a name that means loopback does no harm to a single node") {
  FakeMachine machine;
  machine.addresses["gpu-01"] = "127.0.1.1";
  const auto launch = launch_of(
      {"--rdzv-backend=c10d", "--rdzv-endpoint=gpu-01", "--rdzv-conf=is_host=false", "W"}, machine);
  CHECK(launch.config.rendezvous->coordinator.host == "gpu-01");
}

TEST_CASE("with --local-addr the coordinator listens on that address, if all nodes are given it") {
  const auto bind_of = [](const std::string& endpoint, const std::string& local) {
    FakeMachine machine;
    machine.addresses["10.0.0.1"] = "10.0.0.1";
    machine.addresses["10.8.0.1"] = "10.8.0.1";
    const auto launch =
        launch_of(elastic({"--rdzv-endpoint=" + endpoint, "--local-addr=" + local}), machine);
    CHECK(launch.config.store.listen_addr == (local == "node-1" ? "10.0.0.1" : local));
    return launch.coordinator.value().bind;
  };
  CHECK(bind_of("10.0.0.1:7", "10.0.0.1") == "10.0.0.1");
  CHECK(bind_of("10.0.0.1:7", "node-1") == "10.0.0.1");
  CHECK(bind_of("10.0.0.1:7", "10.8.0.1").empty());
  CHECK(bind_of("node-1:7", "10.0.0.1").empty());  // a name may be another address elsewhere
}

TEST_CASE("the address that a node sends is a literal of this machine") {
  const auto launch = launch_of(elastic({"--rdzv-endpoint=far", "--local-addr=node-1"}));
  CHECK(launch.config.rendezvous->address == "10.0.0.1");
  CHECK(launch.config.store.listen_addr == "10.0.0.1");
}

TEST_CASE("the flag --node-rank orders the first round only if it is given") {
  CHECK_FALSE(at("far").config.rendezvous->node_rank);
  const Words words = elastic({"--rdzv-endpoint=far", "--node-rank=1"});
  CHECK(launch_of(words).config.rendezvous->node_rank == 1);
  CHECK(at("far", with_variables({{"PET_NODE_RANK", "0"}})).config.rendezvous->node_rank == 0);
  const auto spare = launch_of(elastic({"--rdzv-endpoint=far", "--node-rank=2"}));
  CHECK_FALSE(spare.config.rendezvous->node_rank);
  CHECK_THAT(spare.notes.at(0), ContainsSubstring("spare"));
  CHECK_THAT(refusal_of(elastic({"--rdzv-endpoint=far", "--node-rank", "-1"})).sentence,
             ContainsSubstring("--node-rank=-1"));
}

TEST_CASE("options of the static backend cost one line") {
  const auto launch =
      launch_of(elastic({"--rdzv-endpoint=far", "--master-addr=far", "--master-port=7"}));
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--master-addr and --master-port not used"));
}

TEST_CASE("sharing the store can be turned off over several nodes too") {
  const FakeMachine off = with_variables({{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}});
  CHECK(at("far").config.store.host == StoreHost::kAgent);
  CHECK(at("far", off).config.store.host == StoreHost::kWorkerZero);
}

TEST_CASE("values sent to other nodes have the link's bounds") {
  const std::string long_name(256, 'x');
  const auto with = [](const std::string& option) {
    return refusal_of(elastic({"--rdzv-endpoint=far", option})).sentence;
  };
  CHECK_THAT(with("--rdzv-id=" + long_name), ContainsSubstring("255 bytes"));
  CHECK_THAT(with("--role=" + long_name), ContainsSubstring("255 bytes"));
  CHECK_THAT(with("--rdzv-id="), ContainsSubstring("empty --rdzv-id"));
  CHECK_THAT(with("--max-restarts=1000001"), ContainsSubstring("1000000"));
  CHECK_THAT(with("--rdzv-id=a\x1b"), ContainsSubstring("has control characters"));
  CHECK(launch_of(elastic({"--rdzv-endpoint=far", "--rdzv-id=" + std::string(255, 'x'), "--role="}))
            .config.workers.role.empty());
}

TEST_CASE("the secret is that of the file, else that of the variable, and a single node has none") {
  FakeMachine machine;
  machine.secrets["f"] = secret_of('f');
  CHECK(at("far", machine).config.rendezvous->secret == nullptr);
  machine.secret = secret_of('v');
  CHECK(at("far", machine).config.rendezvous->secret == machine.secret);
  const auto by_file = launch_of(elastic({"--rdzv-secret-file=f"}), machine);
  CHECK(by_file.config.rendezvous->secret == machine.secrets["f"]);
  const auto static_run = launch_of({"--nnodes=2", "--rdzv-secret-file=f", "W"}, machine);
  CHECK(static_run.config.rendezvous->secret == machine.secrets["f"]);
  const auto alone = launch_of({"--rdzv-secret-file=f", "W"}, machine);
  CHECK(alone.notes == Words{"--rdzv-secret-file=f not used: " + kNoLinkToProtect});
}

TEST_CASE("a secret at home is taken where nothing else is said, and off takes none") {
  FakeMachine machine;
  machine.secrets["f"] = secret_of('f');
  machine.home_secret = secret_of('h');
  machine.variables["HOME"] = "/home/user";
  const auto at_home = at("far", machine);
  CHECK(at_home.config.rendezvous->secret == machine.home_secret);
  CHECK(at_home.config.rendezvous->secret_from == "/home/user/.config/ddprun/secret");
  const auto off = launch_of(elastic({"--rdzv-secret-file=off"}), machine);
  CHECK(off.config.rendezvous->secret == nullptr);
  CHECK(off.config.rendezvous->secret_from == "--rdzv-secret-file=off");
  const auto by_file = launch_of(elastic({"--rdzv-secret-file=f"}), machine);
  CHECK(by_file.config.rendezvous->secret == machine.secrets["f"]);
  const auto certified =
      launch_of(elastic({"--rdzv-tls-cert=c", "--rdzv-tls-key=k", "--rdzv-tls-ca=a"}), machine);
  CHECK(certified.config.rendezvous->secret == nullptr);
  machine.secret = secret_of('v');
  CHECK(at("far", machine).config.rendezvous->secret == machine.secret);
  CHECK(launch_of({"W"}, machine).notes.empty());
}

TEST_CASE("a secret that was meant to be there and is not is refused, not left out") {
  FakeMachine machine;
  machine.secret = std::make_shared<Secret>();  // DDPRUN_SECRET=
  CHECK_THAT(refusal_of(elastic({}), machine).sentence, ContainsSubstring("this one has 0"));
  machine.secret = secret_of('v');
  CHECK_THAT(refusal_of(elastic({"--rdzv-secret-file="}), machine).sentence,
             ContainsSubstring("--rdzv-secret-file='' names no file"));
  CHECK_THAT(refusal_of(elastic({"--rdzv-secret-file=none"}), machine).sentence,
             ContainsSubstring("--rdzv-secret-file=none: cannot read it"));
}

TEST_CASE(
    "who reads the status page of a coordinator in this process is a word, local by default") {
  using Access = coordinator::StatusAccess;
  CHECK(at("far").status == Access::kLocal);
  CHECK(launch_of(elastic({"--status=all"})).status == Access::kAll);
  const auto off = with_variables({{"DDPRUN_STATUS", "off"}});
  CHECK(launch_of(elastic({}), off).status == Access::kOff);
  CHECK_THAT(refusal_of(elastic({"--status=everyone"})).sentence,
             ContainsSubstring("--status") && ContainsSubstring("off"));
  CHECK(launch_of({"--status=all", "W"}).notes ==
        Words{"--status=all not used: a single node runs no coordinator"});
}
