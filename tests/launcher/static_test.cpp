// The static backend over several nodes: numbered nodes, a fixed address, node rank 0 there.
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

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
