// A single node, and numbered nodes with a fixed address.
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {
const std::string kUuid = FakeMachine().random_id();
}

TEST_CASE("a plain run is standalone: a run id of its own, loopback, a port the kernel picks") {
  for (const Words& words : {Words{"W"}, Words{"--standalone", "W"}, Words{"--nnodes=1:1", "W"}}) {
    const auto launch = launch_of(words);
    CHECK(launch.config.run_id.value() == kUuid);
    CHECK(launch.config.store.master_addr == "127.0.0.1");
    CHECK(launch.config.store.listen_addr == "127.0.0.1");
    CHECK(launch.config.store.master_port == 0);
    CHECK(launch.config.store.host == StoreHost::kAgent);
    CHECK(launch.notes.empty());
  }
}

TEST_CASE("an implied standalone run names unused options in one line") {
  const auto launch = launch_of({"--rdzv-id=foo", "--master-addr=node-1", "W"});
  CHECK(launch.config.run_id.value() == kUuid);
  CHECK(launch.config.store.master_addr == "127.0.0.1");
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--rdzv-id and --master-addr not used"));
  CHECK_THAT(launch.notes[0], ContainsSubstring("--master-port"));
}

TEST_CASE("an explicit standalone run replaces given values, with a note") {
  const auto launch = launch_of({"--standalone", "--rdzv-id=foo", "--rdzv-backend=static",
                                 "--rdzv-endpoint=far:1", "--master-port=7", "W"});
  const auto plain = launch_of({"--standalone", "--rdzv-backend=c10d", "W"});
  CHECK(plain.notes.empty());
  CHECK_THAT(launch_of({"--standalone", "--rdzv-backend=etcd", "W"}).notes.at(0),
             ContainsSubstring("--rdzv-backend not used"));
  CHECK(launch.config.run_id.value() == kUuid);
  CHECK(launch.config.store.master_port == 0);
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(
      launch.notes[0],
      ContainsSubstring("--rdzv-backend, --rdzv-endpoint, --rdzv-id and --master-port not used"));
}

TEST_CASE("an empty run id, whose variable was unset in the shell, is a new one") {
  for (const Words& words : {Words{"--rdzv-id=", "--master-port=7", "W"},
                             Words{"--rdzv-id=", "--rdzv-backend=c10d", "W"},
                             Words{"--rdzv-id=", "--rdzv-backend=c10d", "--rdzv-endpoint=far", "W"},
                             Words{"--rdzv-id=", "--hosts=node-1", "W"}}) {
    const auto launch = launch_of(words);
    CHECK(launch.config.run_id.value() == kUuid);
    CHECK(launch.preview.run_id_is_new);
  }
}

TEST_CASE("blanks around an endpoint or a master address are cut") {
  const auto endpoint = config_of({"--rdzv-endpoint", " localhost:29512 ", "W"});
  CHECK(endpoint.store.master_addr == "localhost");
  CHECK(endpoint.store.master_port == 29512);
  CHECK(config_of({"--master-port=7", "--master-addr", "node-1 ", "W"}).store.master_addr ==
        "node-1");
}

TEST_CASE("a master port makes the run static again") {
  const auto config = config_of({"--master-port=29511", "W"});
  CHECK(config.run_id.value() == "none");
  CHECK(config.store.master_addr == "127.0.0.1");
  CHECK(config.store.master_port == 29511);
  CHECK(config_of({"--master-port=29511", "--rdzv-id=foo", "W"}).run_id.value() == "foo");
  CHECK(config_of({"W"}, with_variables({{"PET_MASTER_PORT", "29511"}})).store.master_port ==
        29511);
  const auto named = config_of({"--master-port=29511", "--master-addr=node-1", "W"});
  CHECK(named.store.master_addr == "node-1");
  CHECK(named.store.listen_addr == "10.0.0.1");
}

TEST_CASE("a static endpoint is the workers' address and port") {
  const auto config = config_of({"--rdzv-endpoint=localhost:29512", "W"});
  CHECK(config.store.master_addr == "localhost");
  CHECK(config.store.listen_addr == "127.0.0.1");
  CHECK(config.store.master_port == 29512);
  CHECK(config.run_id.value() == "none");
}

TEST_CASE("a static endpoint needs a port") {
  CHECK_THAT(refusal_of({"--rdzv-endpoint=localhost", "W"}).sentence,
             ContainsSubstring("--master-port"));
}

TEST_CASE("c10d on one node keeps the run id and lets the kernel pick the port") {
  const auto launch =
      launch_of({"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", "--rdzv_id", "X",
                 "--nnodes", "1", "--nproc_per_node", "2", "--tee", "3", "--role", "", "W"});
  CHECK(launch.config.run_id.value() == "X");
  CHECK(launch.config.store.master_port == 0);
  CHECK(launch.config.workers.role.empty());
  CHECK(launch.config.workers.count == 2);
  CHECK(launch.config.log.tee.all == Streams::kBoth);
  CHECK(launch.notes.empty());
  CHECK(config_of({"--rdzv-backend=c10d", "W"}).run_id.value() == "none");
}

TEST_CASE("a single node notes that it does not use a c10d endpoint with a port") {
  const auto launch = launch_of({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "W"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--rdzv-endpoint=localhost:29400 not used"));
}

TEST_CASE("the workers of one node meet at loopback if the given address is not this machine's") {
  const FakeMachine variable = with_variables({{"PET_MASTER_ADDR", "far"}});
  for (const Launch& launch :
       {launch_of({"--master-port=1", "--master-addr=far", "W"}),
        launch_of({"--master-port=1", "W"}, variable), launch_of({"--rdzv-endpoint=far:1", "W"}),
        launch_of({"--standalone", "--local-addr=far", "W"})}) {
    CHECK(launch.config.store.master_addr == "127.0.0.1");
    CHECK(launch.config.store.listen_addr == "127.0.0.1");
    REQUIRE(launch.notes.size() == 1);
    CHECK(launch.notes[0] ==
          "far is not an address of this machine: the workers of its one node use 127.0.0.1");
  }
}

TEST_CASE("a host without 127.0.0.1 uses its other loopback address") {
  FakeMachine machine;
  machine.addresses = {{"localhost", "::1"}};
  CHECK(config_of({"W"}, machine).store.master_addr == "::1");
  CHECK(config_of({"W"}, machine).store.listen_addr == "::1");
}

TEST_CASE("a node's number without a number of nodes costs one line") {
  const auto launch = launch_of({"--node-rank=1", "W"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--node-rank=1 not used"));
  CHECK_THAT(launch.notes[0], ContainsSubstring("--nnodes"));
}

TEST_CASE("the option --local-addr is the workers' MASTER_ADDR, except with a fixed address") {
  const auto config = config_of({"--standalone", "--local-addr=node-1", "W"});
  CHECK(config.store.master_addr == "node-1");
  CHECK(config.store.listen_addr == "10.0.0.1");
  const auto fixed = launch_of({"--master-port=7", "--local-addr=node-1", "W"});
  CHECK(fixed.config.store.master_addr == "127.0.0.1");
  REQUIRE(fixed.notes.size() == 1);
  CHECK_THAT(fixed.notes[0], ContainsSubstring("--local-addr not used"));
}

TEST_CASE("sharing the store can be turned off with c10d, as in torchrun") {
  const FakeMachine off = with_variables({{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}});
  CHECK(config_of({"W"}, off).store.host == StoreHost::kWorkerZero);
  CHECK(config_of({"--rdzv-backend=c10d", "W"}, off).store.host == StoreHost::kWorkerZero);
  CHECK(config_of({"--master-port=7", "W"}, off).store.host == StoreHost::kAgent);
}

TEST_CASE("a number of nodes is N or MIN:MAX with 0 < MIN <= MAX") {
  for (const std::string bad :
       {"2:1", "0", "1:2:3", "x", "", "1:", ":1", "-1", "1.5", "65537", "1:99999999999"}) {
    CHECK_THAT(refusal_of({"--nnodes=" + bad, "W"}).sentence,
               ContainsSubstring("--nnodes='" + bad + "'"));
  }
  CHECK_THAT(refusal_of({"W"}, with_variables({{"PET_NNODES", ""}})).sentence,
             ContainsSubstring("PET_NNODES=''"));
}

TEST_CASE(
    "the flag --standalone with two nodes is refused at once instead of waiting for the second") {
  const auto error = refusal_of({"--standalone", "--nnodes=2", "W"});
  CHECK(error.kind == ErrorKind::kUsage);
  CHECK_THAT(error.sentence, ContainsSubstring("--standalone is one node, but --nnodes=2"));
}

TEST_CASE("a backend that is not there is refused with what takes its place") {
  for (const char* etcd : {"--rdzv-backend=etcd", "--rdzv-backend=etcd-v2"}) {
    CHECK_THAT(refusal_of({etcd, "W"}).sentence, ContainsSubstring("--rdzv-backend=etcd-v3"));
  }
  CHECK_THAT(refusal_of({"--rdzv-backend=zeus", "W"}).sentence,
             ContainsSubstring("not one of static, c10d"));
}

TEST_CASE("a port outside 0..65535 and a second node's rank are refused") {
  CHECK_THAT(refusal_of({"--master-port=65536", "W"}).sentence, ContainsSubstring("0 to 65535"));
  CHECK_THAT(refusal_of({"--master-port", "-1", "W"}).sentence, ContainsSubstring("0 to 65535"));
  CHECK_THAT(refusal_of({"--master-port=7", "--node-rank=1", "W"}).sentence,
             ContainsSubstring("--node-rank=1"));
}

namespace {

const std::string kNoHost = " is not a host's name or address";

Words fixed(Words more) {
  Words words{"--nnodes=2"};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("W");
  return words;
}

}  // namespace

TEST_CASE("node rank 0 must run the coordinator at the master address, which all workers get") {
  const auto launch =
      launch_of(fixed({"--node-rank=0", "--master-addr=node-1", "--master-port=7"}));
  CHECK(launch.config.store.master_addr == "node-1");
  CHECK(launch.config.store.master_port == 7);
  CHECK(launch.config.run_id.value() == "none");
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->master == MasterChoice::kFixed);
  CHECK(launch.config.rendezvous->node_rank == 0);
  CHECK(launch.config.rendezvous->nodes_min == 2);
  CHECK(launch.config.rendezvous->coordinator.host == "node-1");
  CHECK(launch.config.rendezvous->coordinator.port == 7);
  REQUIRE(launch.coordinator);
  CHECK(launch.coordinator->need == CoordinatorPlan::Need::kMust);
  CHECK(launch.coordinator->bind.empty());
  CHECK(launch.coordinator->port == 7);
  CHECK(launch.notes.empty());
}

TEST_CASE("other nodes never run the coordinator, wherever the master address is") {
  for (const std::string master : {"far", "node-1", "127.0.0.1"}) {
    INFO(master);
    const auto launch = launch_of(fixed({"--node-rank=1", "--master-addr=" + master}));
    CHECK_FALSE(launch.coordinator);
    CHECK(launch.config.rendezvous->node_rank == 1);
    CHECK(launch.config.rendezvous->coordinator.port == 29500);
  }
}

TEST_CASE("an endpoint stands for master address and port") {
  const auto launch = launch_of(fixed({"--node-rank=1", "--rdzv-endpoint=[fd00::9]:7"}));
  CHECK(launch.config.store.master_addr == "fd00::9");
  CHECK(launch.config.store.master_port == 7);
  CHECK(launch.config.rendezvous->coordinator.host == "fd00::9");
  CHECK_THAT(refusal_of(fixed({"--rdzv-endpoint=far"})).sentence, ContainsSubstring("has no port"));
}

TEST_CASE("torchrun's variables number the nodes") {
  const FakeMachine machine = with_variables({{"PET_NNODES", "3"},
                                              {"PET_NODE_RANK", "2"},
                                              {"PET_MASTER_ADDR", "far"},
                                              {"PET_MASTER_PORT", "7"}});
  const auto launch = launch_of({"W"}, machine);
  CHECK(launch.config.rendezvous->nodes_max == 3);
  CHECK(launch.config.rendezvous->node_rank == 2);
  CHECK(launch.config.store.master_port == 7);
}

TEST_CASE("node rank 0 coordinates under any address, and needs none of it itself") {
  FakeMachine machine;
  machine.unresolved.insert("pod-0.headless");
  for (const std::string master : {"far", "203.0.113.5", "pod-0.headless"}) {
    INFO(master);
    const auto root = launch_of(fixed({"--master-addr=" + master, "--master-port=7"}), machine);
    REQUIRE(root.coordinator);
    CHECK(root.coordinator->need == CoordinatorPlan::Need::kMust);
    CHECK(root.coordinator->bind.empty());
    CHECK(root.config.store.master_addr == "127.0.0.1");
    CHECK(root.config.rendezvous->coordinator.host == "127.0.0.1");
    CHECK(root.config.rendezvous->given_host == master);
    const auto other = launch_of(fixed({"--node-rank=1", "--master-addr=" + master}), machine);
    CHECK(other.config.store.master_addr == master);
    CHECK(other.config.rendezvous->given_host.empty());
  }
}

TEST_CASE("a node's number is below the number of nodes") {
  for (const std::string bad : {"-1", "2"}) {
    CHECK_THAT(refusal_of(fixed({"--node-rank", bad, "--master-addr=far"})).sentence,
               ContainsSubstring("the 2 nodes of --nnodes=2 have the ranks 0 to 1"));
  }
}

TEST_CASE("a range of nodes starts with all of them, as in torchrun, and a note says so") {
  const Launch launch = launch_of({"--nnodes=1:2", "--master-addr=node-1", "W"});
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->nodes_min == 2);
  CHECK(launch.config.rendezvous->nodes_max == 2);
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--nnodes=1:2") &&
                                  ContainsSubstring("all 2 nodes") &&
                                  ContainsSubstring("--rdzv-backend=c10d"));
}

TEST_CASE("a master port that the kernel chooses is refused") {
  CHECK_THAT(refusal_of(fixed({"--master-port=0", "--master-addr=node-1"})).sentence,
             ContainsSubstring("pass --master-port"));
  CHECK_THAT(refusal_of(fixed({"--master-port=65536"})).sentence, ContainsSubstring("0 to 65535"));
}

TEST_CASE("a master address is a host without a port, which has an option of its own") {
  CHECK_THAT(
      refusal_of(fixed({"--master-addr=node-1:7"})).sentence,
      ContainsSubstring("--master-addr=node-1:7" + kNoHost + ": the port goes into --master-port"));
  for (const std::string bad : {"a b", "999.1.1.1", "h:1:2"}) {
    CHECK_THAT(refusal_of(fixed({"--master-addr=" + bad})).sentence, ContainsSubstring(kNoHost));
  }
  FakeMachine machine;
  machine.addresses["fd00::1"] = "fd00::1";
  CHECK(launch_of(fixed({"--master-addr=[fd00::1]"}), machine).config.store.master_addr ==
        "fd00::1");
}

TEST_CASE("an endpoint takes precedence over a master address, with a note") {
  const auto launch = launch_of(fixed({"--rdzv-endpoint=node-1:7", "--master-addr=far"}));
  CHECK(launch.config.store.master_addr == "node-1");
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--master-addr not used: --rdzv-endpoint gives"));
}

TEST_CASE("a master name that means loopback here may be an address elsewhere") {
  FakeMachine machine;
  machine.addresses["gpu-01"] = "127.0.1.1";
  const auto root = launch_of(fixed({"--node-rank=0", "--master-addr=gpu-01"}), machine);
  CHECK(root.coordinator->bind.empty());
  CHECK(root.config.store.master_addr == "gpu-01");
  CHECK(root.config.rendezvous->given_host.empty());
  CHECK_FALSE(launch_of(fixed({"--node-rank=1", "--master-addr=gpu-01"}), machine).coordinator);
}

TEST_CASE("a link-local address without its interface is refused for that alone") {
  for (const std::string option : {"--master-addr=fe80::1", "--rdzv-endpoint=[fe80::1]:7"}) {
    CHECK_THAT(refusal_of(fixed({option})).sentence,
               ContainsSubstring("fe80::1 is a link-local address, which needs its interface: "
                                 "fe80::1%eth0, for example"));
  }
  const auto launch = launch_of(fixed({"--node-rank=1", "--master-addr=fe80::1%eth0"}));
  CHECK(launch.config.store.master_addr == "fe80::1%eth0");
  for (const std::string bad : {"fe80::1%", "10.0.0.1%eth0", "fe80::1%e th"}) {
    CHECK_THAT(refusal_of(fixed({"--master-addr=" + bad})).sentence, ContainsSubstring(kNoHost));
  }
}

TEST_CASE("without a master address all nodes are on this machine, with a note") {
  const auto launch = launch_of(fixed({}));
  CHECK(launch.config.store.master_addr == "127.0.0.1");
  CHECK(launch.coordinator->bind.empty());
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("this machine"));
}

TEST_CASE("options that a fixed address excludes cost one line") {
  const auto launch = launch_of(
      fixed({"--master-addr=node-1", "--local-addr=node-1", "--rdzv-conf=is_host=false"}));
  REQUIRE(launch.notes.size() == 2);
  CHECK_THAT(launch.notes[0], ContainsSubstring("is_host not used"));
  CHECK_THAT(launch.notes[1], ContainsSubstring("--local-addr not used"));
}
