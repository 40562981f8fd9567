// What the scheduler supplies to a command line, and what it leaves alone.
#include "launcher/schedulers/placement.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/launcher/schedulers/captured.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

FakeMachine under(Environment environment) {
  FakeMachine machine;
  machine.variables = std::move(environment);
  return machine;
}

FakeMachine under(const std::string& name) {
  return under(captured(name));
}

/// A run on this node alone, although a scheduler's variables are there.
void check_alone(const Words& words, const FakeMachine& machine) {
  CAPTURE(words);
  const Launch launch = launch_of(words, machine);
  CHECK(!launch.config.rendezvous);
  CHECK(!launch.coordinator);
}

FakeMachine first_node() {
  return under("slurm-step-node0");
}

FakeMachine second_node() {
  return under("slurm-step-node1");
}

const std::uint16_t kPort = slurm_port(9, 0);

}  // namespace

TEST_CASE("srun ddprun prog: the first node of the step runs the coordinator") {
  const Launch first = launch_of({"W"}, first_node());
  const Launch second = launch_of({"W"}, second_node());
  for (const Launch& launch : {first, second}) {
    REQUIRE(launch.config.rendezvous);
    CHECK(launch.config.run_id.value() == "9.0");
    CHECK(launch.config.workers.count == 1);
    CHECK(launch.config.rendezvous->nodes_min == 2);
    CHECK(launch.config.rendezvous->nodes_max == 2);
    CHECK(launch.config.rendezvous->coordinator.port == kPort);
    CHECK(launch.config.rendezvous->list_begins.empty());  // mpirun may name a host in two ways
    CHECK(launch.config.rendezvous->master == MasterChoice::kRound);
  }
  CHECK(first.config.rendezvous->scheduler_index == 0);
  CHECK(second.config.rendezvous->scheduler_index == 1);
  CHECK(second.config.rendezvous->coordinator.host == "node01");
  REQUIRE(first.coordinator);
  CHECK(first.coordinator->need == CoordinatorPlan::Need::kMust);
  CHECK(first.coordinator->port == kPort);
  CHECK(!second.coordinator);
  REQUIRE(first.notes.size() == 1);
  CHECK(first.notes[0] ==
        "Slurm step 9.0: 2 nodes (node[01-02]) rendezvous at node01:" + std::to_string(kPort));
  CHECK(second.notes.empty());
}

TEST_CASE("mpirun -N 1 ddprun prog: the same of mpirun's ranks") {
  const Launch second = launch_of({"W"}, under("openmpi-far-rank1"));
  REQUIRE(second.config.rendezvous);
  CHECK(second.config.rendezvous->nodes_max == 2);
  CHECK(second.config.rendezvous->scheduler_index == 1);
  CHECK(second.config.rendezvous->coordinator.host == "nodea");
  const Launch first = launch_of({"W"}, under("openmpi-here-rank0"));
  REQUIRE(first.coordinator);
  CHECK(first.config.rendezvous->nodes_max == 3);
  CHECK(first.coordinator->port == first.config.rendezvous->coordinator.port);
  check_alone({"W"}, under("openmpi-alone"));
  check_alone({"W"}, under("hydra-alone"));
  CHECK_THAT(refusal_of({"W"}, under("openmpi-two-tasks")).sentence,
             ContainsSubstring("mpirun -N 1 ddprun"));
}

TEST_CASE("hosts that mpirun does not list are required, and then its ranks number the nodes") {
  const FakeMachine machine = under("hydra-rank1");
  CHECK_THAT(refusal_of({"W"}, machine).sentence, ContainsSubstring("--rdzv-endpoint=HOST"));
  const Words elastic{"--rdzv-backend=c10d", "--rdzv-endpoint=far:7", "--rdzv-id=x", "W"};
  const Launch launch = launch_of(elastic, machine);
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->nodes_min == 2);
  CHECK(launch.config.rendezvous->node_rank == 1);
  CHECK(launch.config.rendezvous->coordinator.host == "far");
  CHECK(launch.config.rendezvous->coordinator.port == 7);
}

TEST_CASE("a worker runs for each GPU that the scheduler gave, unless the count is given") {
  const Launch launch = launch_of({"W"}, under("slurm-gpus-per-node"));
  CHECK(launch.config.workers.count == 2);
  REQUIRE(launch.notes.size() == 2);
  CHECK_THAT(launch.notes[1], ContainsSubstring("2 workers on this node, one for each GPU"));
  CHECK(launch_of({"W"}, under("slurm-gpus-per-task")).config.workers.count == 3);
  CHECK(launch_of({"--nproc-per-node=1", "W"}, under("slurm-gpus-per-node")).config.workers.count ==
        1);
  Environment variables = captured("slurm-gpus-per-node");
  variables["PET_NPROC_PER_NODE"] = "7";
  CHECK(launch_of({"W"}, under(variables)).config.workers.count == 7);
  Environment one_node = captured("slurm-step-of-one-node");
  one_node["SLURM_GPUS_ON_NODE"] = "4";
  CHECK(launch_of({"W"}, under(one_node)).config.workers.count == 4);
  CHECK(launch_of({"--standalone", "W"}, under(one_node)).config.workers.count == 1);
}

TEST_CASE("a run that the options describe completely ignores the scheduler") {
  for (const FakeMachine& machine :
       {first_node(), second_node(), under("slurm-batch-script"), under("slurm-three-tasks-node0"),
        under("openmpi-two-tasks")}) {
    check_alone({"--standalone", "W"}, machine);
    check_alone({"--nnodes=1", "W"}, machine);
    check_alone({"--nnodes=1", "--master-port=29511", "W"}, machine);
    const Launch elastic = launch_of(
        {"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=far", "--rdzv-id=x", "W"}, machine);
    CHECK(elastic.config.rendezvous->nodes_min == 3);
    CHECK(elastic.config.rendezvous->coordinator.host == "far");
    CHECK(elastic.config.run_id.value() == "x");
    CHECK(!elastic.config.rendezvous->scheduler_index);
    const Launch listed = launch_of({"--hosts=far,node-1", "W"}, machine);
    CHECK(listed.config.rendezvous->coordinator.host == "far");
    const Launch numbered =
        launch_of({"--nnodes=3", "--node-rank=2", "--master-addr=far", "W"}, machine);
    CHECK(numbered.config.rendezvous->node_rank == 2);
  }
  Environment variables = captured("slurm-batch-script");
  variables["PET_STANDALONE"] = "1";
  check_alone({"W"}, under(variables));
}

TEST_CASE(
    "a batch script, a shell of salloc or several tasks never become worlds of one by mistake") {
  for (const std::string name :
       {"slurm-batch-script", "slurm-salloc-shell", "slurm-interactive-step",
        "slurm-batch-from-a-step", "slurm-three-tasks-node1", "slurm-het-batch-script"}) {
    CAPTURE(name);
    CHECK_THAT(refusal_of({"W"}, under(name)).sentence, ContainsSubstring("srun --"));
    CHECK_THAT(refusal_of({"--rdzv-endpoint=far:7", "W"}, under(name)).sentence,
               ContainsSubstring("srun --"));
  }
  check_alone({"W"}, under("slurm-batch-script-of-one-node"));
  check_alone({"W"}, under("slurm-step-of-one-node"));
}

TEST_CASE("a command in a shell of srun --pty runs on its node") {
  FakeMachine machine = under("slurm-pty-shell-of-three-tasks");
  CHECK_THAT(refusal_of({"W"}, machine).sentence, ContainsSubstring("3" + kTimesOnANode));
  machine.in_shell = true;
  check_alone({"W"}, machine);
  machine.variables["SLURM_GPUS_ON_NODE"] = "2";
  CHECK(launch_of({"W"}, machine).config.workers.count == 2);
}

TEST_CASE("a run may need fewer nodes than the step has (--nnodes), not another number") {
  const Launch launch = launch_of({"--nnodes=1:2", "W"}, second_node());
  CHECK(launch.config.rendezvous->nodes_min == 1);
  CHECK(launch.config.rendezvous->nodes_max == 2);
  CHECK(launch.config.rendezvous->scheduler_index == 1);
  CHECK(launch_of({"--nnodes=2", "W"}, second_node()).config.rendezvous->nodes_min == 2);
  const std::string sentence = refusal_of({"--nnodes=3", "W"}, second_node()).sentence;
  CHECK_THAT(sentence, ContainsSubstring("--nnodes=3, but Slurm step 9.0 has 2 nodes"));
}

TEST_CASE("the option --node-rank may repeat the scheduler's rank, not contradict it") {
  CHECK(launch_of({"--node-rank=1", "W"}, second_node()).config.rendezvous->scheduler_index == 1);
  CHECK_THAT(refusal_of({"--node-rank=0", "W"}, second_node()).sentence,
             ContainsSubstring("this is node 1 of Slurm step 9.0"));
}

TEST_CASE("an address on the command line is the rendezvous of the scheduler's nodes") {
  const Launch elastic =
      launch_of({"--rdzv-backend=c10d", "--rdzv-endpoint=far:7", "W"}, second_node());
  CHECK(elastic.config.rendezvous->nodes_min == 2);
  CHECK(elastic.config.rendezvous->coordinator.host == "far");
  CHECK(elastic.config.run_id.value() == "9.0");
  const Launch fixed = launch_of({"--master-addr=far", "--master-port=7", "W"}, second_node());
  CHECK(fixed.config.rendezvous->master == MasterChoice::kFixed);
  CHECK(fixed.config.rendezvous->node_rank == 1);
  CHECK(fixed.config.store.master_addr == "far");
  CHECK(fixed.config.store.master_port == 7);
}

TEST_CASE("a static run takes the first of the scheduler's nodes for its address") {
  const Launch launch = launch_of({"--master-port=29511", "W"}, second_node());
  CHECK(launch.config.store.master_addr == "node01");
  CHECK(launch.config.store.master_port == 29511);
  CHECK(launch.config.rendezvous->node_rank == 1);
  const Launch named = launch_of({"--rdzv-backend=static", "W"}, second_node());
  CHECK(named.config.store.master_addr == "node01");
  CHECK(named.config.store.master_port == kPort);
  CHECK(named.config.rendezvous->nodes_max == 2);
}

TEST_CASE("a full static line without --node-rank gets the scheduler's number") {
  const Words line{"--nnodes=2", "--master-addr=far", "--master-port=7", "W"};
  CHECK(launch_of(line, second_node()).config.rendezvous->node_rank == 1);
  Words other = line;
  other[0] = "--nnodes=3";  // another run than the step
  CHECK(launch_of(other, second_node()).config.rendezvous->node_rank == 0);  // as under torchrun
}

TEST_CASE("a ddprun started by a worker ignores the scheduler's variables") {
  Environment environment = captured("slurm-step-node1");
  environment["TORCHELASTIC_RUN_ID"] = "9.0";
  const Launch launch = launch_of({"W"}, under(environment));
  CHECK(!launch.config.rendezvous);
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("this is a worker of run 9.0"));
  CHECK(launch_of({"--standalone", "W"}, under(environment)).notes.empty());
  Environment alone = captured("slurm-step-of-one-node");
  alone["TORCHELASTIC_RUN_ID"] = "9.0";
  CHECK(launch_of({"W"}, under(alone)).notes.empty());
  CHECK(launch_of({"W"}, under(Environment{{"TORCHELASTIC_RUN_ID", "9.0"}})).notes.empty());
}

TEST_CASE("other options are combined with the scheduler's nodes") {
  const Launch launch = launch_of({"--rdzv-id=mine", "--rdzv-conf=join_timeout=90s",
                                   "--nproc-per-node=3", "--max-restarts=2", "W"},
                                  second_node());
  CHECK(launch.config.run_id.value() == "mine");
  CHECK(launch.config.workers.count == 3);
  CHECK(launch.config.rendezvous->join_timeout == std::chrono::seconds(90));
  CHECK(launch.config.rendezvous->scheduler_index == 1);
}

TEST_CASE("a mistake in a value that the scheduler supplied names the scheduler") {
  Environment environment = captured("slurm-gpus-per-node");
  environment.erase("CUDA_VISIBLE_DEVICES");
  environment["SLURM_GPUS_ON_NODE"] = "5000";
  CHECK_THAT(refusal_of({"W"}, under(environment)).sentence,
             ContainsSubstring("Slurm step") && ContainsSubstring("--nproc-per-node='5000'"));
}

TEST_CASE("a first node whose name means loopback on another one is tried all the same") {
  FakeMachine machine = second_node();
  machine.addresses["node01"] = "127.0.1.1";
  CHECK(launch_of({"W"}, machine).config.rendezvous->coordinator.host == "node01");
  FakeMachine first = first_node();
  first.addresses["node01"] = "127.0.1.1";
  CHECK(launch_of({"W"}, first).coordinator);
}
