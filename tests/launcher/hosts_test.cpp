// --hosts: one list for every node, in which each finds its position.
#include "launcher/rendezvous/plan.hpp"

#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Words hosts(const std::string& list, Words more = {}) {
  Words words{"--hosts=" + list};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("W");
  return words;
}

std::string refused(const std::string& list, const Words& more = {},
                    const FakeMachine& machine = FakeMachine()) {
  return refusal_of(hosts(list, more), machine).sentence;
}

/// A machine that counts what it is asked.
class CountingMachine : public FakeMachine {
 public:
  [[nodiscard]] Whereabouts locate(const std::string& host) const override {
    ++asked;
    return FakeMachine::locate(host);
  }
  mutable int asked = 0;
};

}  // namespace

TEST_CASE("the first host runs the coordinator and is node 0") {
  const auto launch = launch_of(hosts("node-1,b,c"));
  REQUIRE(launch.config.rendezvous);
  const auto& rendezvous = *launch.config.rendezvous;
  CHECK(rendezvous.nodes_min == 3);
  CHECK(rendezvous.nodes_max == 3);
  CHECK(rendezvous.master == MasterChoice::kRound);
  CHECK(rendezvous.node_rank == 0);
  CHECK(rendezvous.scheduler_index == 0);
  CHECK(rendezvous.coordinator.host == "127.0.0.1");
  CHECK(rendezvous.coordinator.port == 29400);
  REQUIRE(launch.coordinator);
  CHECK(launch.coordinator->need == CoordinatorPlan::Need::kMust);
  CHECK(launch.coordinator->bind.empty());
  CHECK(launch.coordinator->port == 29400);
}

TEST_CASE("another host finds its position and connects to the first one, on its port") {
  const auto launch = launch_of(hosts(" a:29401 , node-1,c"));
  CHECK(launch.config.rendezvous->node_rank == 1);
  CHECK(launch.config.rendezvous->scheduler_index == 1);
  CHECK(launch.config.rendezvous->coordinator.host == "a");
  CHECK(launch.config.rendezvous->coordinator.port == 29401);
  CHECK_FALSE(launch.coordinator);
}

TEST_CASE("every node knows where each would coordinate the run, and by what its list begins") {
  for (const std::string list : {"node-1,b,c:7", "b,node-1,c:7"}) {
    const RendezvousConfig rendezvous = *launch_of(hosts(list)).config.rendezvous;
    REQUIRE(rendezvous.hosts.size() == 3);
    CHECK(rendezvous.hosts[1].port == 29400);
    CHECK(rendezvous.hosts[2].port == 7);
    CHECK(rendezvous.list_begins == (list.starts_with("b") ? "b:29400" : "node-1:29400"));
    const bool is_first = rendezvous.node_rank == 0;
    CHECK(rendezvous.own_entry().has_value() != is_first);
  }
}

TEST_CASE("the variable DDPRUN_HOSTS is the same list") {
  const auto launch = launch_of({"W"}, with_variables({{"DDPRUN_HOSTS", "a,node-1"}}));
  CHECK(launch.config.rendezvous->node_rank == 1);
  CHECK(launch_of({"--standalone", "W"}, with_variables({{"DDPRUN_HOSTS", ""}}))
            .config.store.master_addr == "127.0.0.1");
}

TEST_CASE("an empty list of hosts is refused where it was typed, the variable is unset") {
  const FakeMachine unset = with_variables({{"DDPRUN_HOSTS", ""}});
  for (const Words& more : {Words{}, Words{"--nproc-per-node=2"}, Words{"--standalone"}}) {
    CHECK_THAT(refused("", more, unset), ContainsSubstring("--hosts='' names no host"));
  }
  CHECK_FALSE(launch_of({"W"}, unset).config.rendezvous);
}

TEST_CASE("hosts separated by blanks or newlines are refused with the commas they need") {
  for (const std::string list : {"a b", "a\nb", "a\tb", "a,b c", "a\nb\n"}) {
    INFO(list);
    CHECK_THAT(refused(list), ContainsSubstring("--hosts: commas separate the hosts"));
  }
  CHECK(launch_of(hosts("node-1, b,\nc\n")).config.rendezvous->nodes_max == 3);
}

TEST_CASE("a node is found by its addresses, v4 and v6, and by its name with or without domain") {
  FakeMachine machine;
  machine.addresses["10.0.0.1"] = "10.0.0.1";
  machine.addresses["fd00::1"] = "fd00::1";
  machine.addresses["alias"] = "10.0.0.1";
  for (const std::string own :
       {"10.0.0.1", "[fd00::1]:7", "fd00::1", "alias", "node-1", "NODE-1.cluster"}) {
    INFO(own);
    CHECK(launch_of(hosts("a," + own + ",c"), machine).config.rendezvous->node_rank == 1);
  }
  machine.name = "node-1.cluster";
  CHECK(launch_of(hosts("a,node-1"), machine).config.rendezvous->node_rank == 1);
  machine.addresses.erase("node-1");
  CHECK_THAT(refused("a,node-1.other", {}, machine), ContainsSubstring("is none of"));
}

TEST_CASE("a list with this machine's name avoids the lookup of the others") {
  CountingMachine machine;
  std::string list = "node-1";
  for (int i = 2; i <= 100; ++i) list += ",node-" + std::to_string(i);
  const auto intent = configure(hosts(list), machine);
  REQUIRE(intent.has_value());
  CHECK(machine.asked <= 2);
}

TEST_CASE("a host that is named twice is refused, unless the ports differ") {
  CHECK_THAT(refused("a,node-1,A"), ContainsSubstring("names A twice (nodes 0 and 2)"));
  CHECK_THAT(refused("a,node-1,a:29400"), ContainsSubstring("a:29400 twice"));
  CHECK(launch_of(hosts("a:29400,node-1,a:29401")).config.rendezvous->node_rank == 1);
}

TEST_CASE("a machine that is not in the list is refused with its name and the list") {
  FakeMachine machine;
  machine.name = "gpu-07";
  machine.unresolved.insert("b");
  const std::string sentence = refused("a,b", {}, machine);
  CHECK_THAT(sentence, ContainsSubstring("this machine (gpu-07) is none of a (node 0) and b (node "
                                         "1, unknown here); add it to the list"));
  std::string many = "h0";
  for (int i = 1; i < 20; ++i) many += ",h" + std::to_string(i);
  CHECK_THAT(refused(many, {}, machine), ContainsSubstring("h7 (node 7) and 12 more"));
}

TEST_CASE("a machine that is in the list twice needs --node-rank") {
  const std::string two = "localhost:29401,localhost:29402";
  CHECK_THAT(refused(two), ContainsSubstring("localhost:29401 (node 0) and localhost:29402"));
  CHECK_THAT(refused(two), ContainsSubstring("--node-rank"));
  CHECK_THAT(refused("node-1,10.0.0.9,localhost"), ContainsSubstring("localhost (node 2)"));
  const auto second = launch_of(hosts(two, {"--node-rank=1"}));
  CHECK(second.config.rendezvous->node_rank == 1);
  CHECK(second.config.rendezvous->coordinator.port == 29401);
  CHECK_FALSE(second.coordinator);
  const auto first = launch_of(hosts(two, {"--node-rank=0"}));
  REQUIRE(first.coordinator);
  CHECK(first.coordinator->bind.empty());
  CHECK(first.coordinator->port == 29401);
  CHECK_THAT(refused(two, {"--node-rank=2"}), ContainsSubstring("have the ranks 0 to 1"));
}

TEST_CASE("the rank of a node is accepted if its address cannot confirm it") {
  CHECK(launch_of(hosts("a,b", {"--node-rank=1"})).config.rendezvous->node_rank == 1);
}

TEST_CASE("the first host's name may mean loopback, and its own agent does not use it") {
  FakeMachine machine;
  machine.name = "gpu-01";
  machine.addresses["gpu-01"] = "127.0.1.1";
  const auto root = launch_of(hosts("gpu-01,gpu-02"), machine);
  CHECK(root.config.rendezvous->coordinator.host == "127.0.0.1");
  CHECK(root.config.rendezvous->given_host == "gpu-01");
  CHECK(root.coordinator->bind.empty());
  machine.name = "gpu-02";
  machine.addresses["gpu-02"] = "10.0.0.2";
  CHECK(launch_of(hosts("gpu-01,gpu-02"), machine).config.rendezvous->coordinator.host == "gpu-01");
}

TEST_CASE("the list is the number of nodes; a lower MIN may be given") {
  CHECK(launch_of(hosts("node-1,b,c", {"--nnodes=3"})).config.rendezvous->nodes_min == 3);
  const auto elastic = launch_of(hosts("node-1,b,c", {"--nnodes=1:3"}));
  CHECK(elastic.config.rendezvous->nodes_min == 1);
  CHECK_THAT(refused("node-1,b,c", {"--nnodes=2"}), ContainsSubstring("names 3 nodes"));
  CHECK_THAT(refused("node-1,b,c", {"--nnodes=2"}), ContainsSubstring("--nnodes=2"));
}

TEST_CASE("a second address of the rendezvous contradicts the list") {
  for (const std::string other : {"--standalone", "--rdzv-endpoint=a", "--master-addr=a",
                                  "--master-port=7", "--rdzv-backend=static"}) {
    INFO(other);
    const std::string name = other.substr(0, other.find('='));
    CHECK_THAT(refused("node-1,b", {other}), ContainsSubstring(name));
    CHECK_THAT(refused("node-1,b", {other}), ContainsSubstring("--hosts"));
  }
  CHECK(
      launch_of(hosts("node-1,b", {"--rdzv-backend=c10d", "--rdzv-id=x"})).config.run_id.value() ==
      "x");
}

TEST_CASE("a list of one host is a single node") {
  const auto launch = launch_of(hosts("node-1", {"--rdzv-id=x"}));
  CHECK_FALSE(launch.config.rendezvous);
  CHECK(launch.config.run_id.value() == "x");
  CHECK_THAT(refused("a"), ContainsSubstring("is none of a"));
}

TEST_CASE("entries that are not hosts are refused") {
  for (const std::string bad : {"a,,node-1", ",node-1", "node-1,", "a b,node-1", "a:x,node-1"}) {
    INFO(bad);
    CHECK_THAT(refused(bad), ContainsSubstring("--hosts"));
  }
  CHECK_THAT(refused("node-1:0,b"), ContainsSubstring("port 0"));
}

TEST_CASE("the list decides which node runs the coordinator") {
  const auto launch = launch_of(hosts("node-1,b", {"--rdzv-conf=is_host=false"}));
  CHECK(launch.coordinator);
  CHECK_THAT(launch.notes.at(0), ContainsSubstring("is_host not used: the first of --hosts"));
}

TEST_CASE("a plan by a list looks no address up") {
  const CountingMachine machine;
  const auto line = value_of(scan({"--rdzv-id=7.0", "W"}));
  const auto settings = value_of(Settings::merge(line, {}));
  const auto request = value_of(parse_request(settings, line.program, {}));
  const HostList list{{{"n1", 12345}, {"n2", {}}}, 1, {2, 2}, "SLURM_JOB_NODELIST"};
  const auto plan = value_of(plan_host_list(list, request, machine));
  CHECK(plan.run_id.value() == "7.0");
  CHECK(plan.rendezvous->coordinator.host == "n1");
  CHECK(plan.rendezvous->coordinator.port == 12345);
  CHECK(plan.rendezvous->scheduler_index == 1);
  CHECK(machine.asked == 0);
}
