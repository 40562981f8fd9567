// Lists of hosts, and placements from variables of Slurm.
#include <set>

#include "launcher/schedulers/placement.hpp"
#include "tests/launcher/outcome.hpp"
#include "tests/launcher/schedulers/captured.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

using Names = std::vector<std::string>;

namespace {

Names expanded(const std::string& text) {
  return value_of(expand_hostlist(text));
}

}  // namespace

TEST_CASE("a list of hosts is written out as scontrol show hostnames does") {
  CHECK(expanded("x") == Names{"x"});
  CHECK(expanded("login.cluster,gpu_1") == Names{"login.cluster", "gpu_1"});
  CHECK(expanded("n[1-3,07-09],gpu-a[0-1]b[2-3],x") == Names{"n1", "n2", "n3", "n07", "n08", "n09",
                                                             "gpu-a0b2", "gpu-a0b3", "gpu-a1b2",
                                                             "gpu-a1b3", "x"});
  CHECK(expanded("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(expanded("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expanded("n[98-0101]") == Names{"n98", "n99", "n100", "n101"});
  CHECK(expanded("n[0009-10]") == Names{"n0009", "n0010"});
  CHECK(expanded("rack[1-2]-[03,05]-ib") ==
        Names{"rack1-03-ib", "rack1-05-ib", "rack2-03-ib", "rack2-05-ib"});
  CHECK(expanded("[1-2]n") == Names{"1n", "2n"});
}

TEST_CASE("the order of a list is kept, and so is a repeated host") {
  CHECK(expanded("b,a[2,1],b") == Names{"b", "a2", "a1", "b"});
}

TEST_CASE("what is not a list of hosts is refused with the text in the sentence") {
  for (const std::string text : {"",           ",",        "a,",
                                 ",a",         "a,,b",     "n[1-2",
                                 "n]1",        "n[]",      "n[3-1]",
                                 "n[a-c]",     "n[1-]",    "n[-1]",
                                 "n[1,]",      "n[0x1]",   "n[1-3:2]",
                                 "n[[1-2],5]", "a b",      "n[ 1]",
                                 "h;rm",       "n[1-2-3]", "n[99999999999999999999]"}) {
    CAPTURE(text);
    const auto names = expand_hostlist(text);
    REQUIRE(!names);
    CHECK_THAT(names.error().sentence, ContainsSubstring("'" + text + "'"));
  }
}

TEST_CASE("a list has bounds, whatever its text promises") {
  CHECK(expanded("n[1-65536]").size() == kHostlistMax);
  CHECK(!expand_hostlist("n[1-65537]"));
  CHECK(!expand_hostlist("n[1-65536],x"));
  CHECK(!expand_hostlist("n[0-999999999999999999]"));
  CHECK(!expand_hostlist("n[1-256][1-257]"));
  CHECK(!expand_hostlist("a[1-9]b[1-9]c[1-9]d[1-9]e[1-9]f[1-9]g[1-9]h[1-9]"));
  CHECK(expanded(std::string(255, 'n')).size() == 1);
  CHECK(!expand_hostlist(std::string(256, 'n')));
  CHECK(!expand_hostlist(std::string(254, 'n') + "[1-10]"));
  const auto endless = expand_hostlist(std::string(100'000, '['));
  REQUIRE(!endless);
  CHECK(endless.error().sentence.size() < 400);
}

TEST_CASE("Open MPI's list of nodes is brought to Slurm's form") {
  CHECK(hostlist_of_node_regex("head,nodea,nodeb@0(3)") == "head,nodea,nodeb");
  CHECK(hostlist_of_node_regex("head,node[2:1-3],gpu-a[1:7]@0(5)") == "head,node[01-03],gpu-a[7]");
  CHECK(hostlist_of_node_regex("node[1:8-9],node[2:10],node[2:11]-ib,x[1:9]y01z") ==
        "node[8-9],node[10],node[11]-ib,x[9]y01z");
  CHECK(hostlist_of_node_regex("node[3:7,9-12]") == "node[007,009-012]");
  CHECK(hostlist_of_node_regex("node[7") == "node[7");
  CHECK(hostlist_of_node_regex("node[x:7]") == "node[x:7]");
  CHECK(hostlist_of_node_regex("node[99999:7]") == "node[99999:7]");
  CHECK(hostlist_of_node_regex("").empty());
}

namespace {

bool is_unplaced(const Environment& environment) {
  return !value_of(find_placement(environment, Parent::kScheduler)).has_value();
}

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  REQUIRE(environment.erase(name) == 1);
  return environment;
}

}  // namespace

TEST_CASE("no scheduler's variables: no placement") {
  CHECK(is_unplaced({}));
  CHECK(is_unplaced({{"SLURM_CONF", "/etc/slurm/slurm.conf"}}));
  CHECK(is_unplaced({{"SLURM_JOB_ID", ""}}));
}

TEST_CASE("the tasks of a step know count, index, hosts and one name of the run") {
  const Placement first = placed(captured("slurm-step-node0"));
  const Placement second = placed(captured("slurm-step-node1"));
  CHECK(first.job == "Slurm step 9.0");
  CHECK(first.nodes == 2);
  CHECK(second.nodes == 2);
  CHECK(first.index == 0);
  CHECK(second.index == 1);
  CHECK(first.hosts == Names{"node01", "node02"});
  CHECK(second.hosts == first.hosts);
  CHECK(first.run_id == "9.0");
  CHECK(second.run_id == first.run_id);
  CHECK(second.port == first.port);
  CHECK(first.list == "node[01-02]");
}

TEST_CASE("a step of one node in a job of several is a run of one node") {
  const Placement placement = placed(captured("slurm-step-of-one-node"));
  CHECK(placement.nodes == 1);
  CHECK(placement.index == 0);
}

TEST_CASE("a step of an array task or of several components is a step like another") {
  const Placement task = placed(captured("slurm-array-step"));
  CHECK(task.nodes == 2);
  CHECK(task.index == 1);
  CHECK(task.run_id == captured("slurm-array-step").at("SLURM_JOB_ID") + ".0");
  const Placement component = placed(captured("slurm-het-step"));
  CHECK(component.nodes == 2);
  CHECK(component.index == 1);
  CHECK(component.hosts == Names{"node01", "node02"});
}

TEST_CASE("several tasks on any node are refused on every node, with what does start one each") {
  for (const std::string name : {"slurm-three-tasks-node0", "slurm-three-tasks-node1"}) {
    const std::string sentence = refused(captured(name));
    CHECK_THAT(sentence, ContainsSubstring("2 times on a node"));
    CHECK_THAT(sentence, ContainsSubstring("srun --ntasks=2 --ntasks-per-node=1 ddprun"));
    CHECK_THAT(sentence, ContainsSubstring("--nproc-per-node"));
  }
  // srun ignores --ntasks-per-node=1 alone in such a job; with --ntasks it does not.
  CHECK_THAT(refused(captured("slurm-ntasks-per-node-ignored")),
             ContainsSubstring("3" + kTimesOnANode));
  CHECK(placed(captured("slurm-remedy")).nodes == 2);
}

TEST_CASE("several tasks on a step's only node are refused too") {
  Environment environment = captured("slurm-step-of-one-node");
  environment["SLURM_STEP_TASKS_PER_NODE"] = "4";
  CHECK_THAT(refused(environment), ContainsSubstring("--ntasks=1 --ntasks-per-node=1"));
}

TEST_CASE("a ddprun of several nodes that srun did not start is no world of one by mistake") {
  for (const std::string name :
       {"slurm-batch-script", "slurm-salloc-shell", "slurm-interactive-step",
        "slurm-gpus-batch-script", "slurm-batch-from-a-step"}) {
    CAPTURE(name);
    const std::string sentence = refused(captured(name));
    CHECK_THAT(sentence, ContainsSubstring("of 2 nodes (node[01-02])"));
    CHECK_THAT(sentence, ContainsSubstring("srun --ntasks=2 --ntasks-per-node=1 ddprun"));
    CHECK_THAT(sentence, ContainsSubstring("--standalone"));
  }
  CHECK_THAT(refused(captured("slurm-het-batch-script")),
             ContainsSubstring("srun --het-group=0-1 --ntasks-per-node=1 ddprun"));
}

TEST_CASE("a shell of srun --pty is on its node only, whatever its step was given") {
  const Environment shell = captured("slurm-pty-shell-of-three-tasks");
  const Placement placement = placed(shell, Parent::kShell);
  CHECK(placement.nodes == 1);
  CHECK(placement.job == "Slurm step 1.0");
  const std::string sentence = refused(captured("slurm-pty-shell-of-two-nodes"), Parent::kShell);
  CHECK_THAT(sentence,
             ContainsSubstring("a shell of Slurm step 2.0 on one of 2 nodes (node[01-02])"));
  CHECK_THAT(sentence, ContainsSubstring("srun --overlap --ntasks=2 --ntasks-per-node=1 ddprun"));
  CHECK_THAT(sentence, ContainsSubstring("--standalone"));
}

TEST_CASE("a step that was started from a shell of srun --pty inherits its variable, not more") {
  // So does `srun --pty ddprun prog`, which is a step like any other.
  const Environment step = captured("slurm-step-from-a-pty-shell");
  CHECK_THAT(refused(step), ContainsSubstring("2" + kTimesOnANode));
  CHECK(placed(captured("slurm-pty-shell-of-two-nodes")).nodes == 2);
}

TEST_CASE("each refusal for a scheduler's variables names the way to one node all the same") {
  Environment broken = captured("slurm-step-node1");
  broken["SLURM_STEP_NUM_NODES"] = "many";
  for (const Environment& environment :
       {broken, captured("slurm-three-tasks-node0"), captured("slurm-batch-script"),
        captured("slurm-het-batch-script"), captured("openmpi-two-tasks"),
        captured("hydra-two-tasks"), Environment{{"OMPI_COMM_WORLD_SIZE", "x"}},
        Environment{{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}}) {
    CHECK_THAT(refused(environment), ContainsSubstring(kStandaloneHere));
  }
}

TEST_CASE("in a batch script of one node nothing is different") {
  CHECK(is_unplaced(captured("slurm-batch-script-of-one-node")));
}

TEST_CASE("a step's variables that another job left behind are not this job's") {
  // The counts agree, the nodes do not.
  Environment environment = captured("slurm-batch-from-a-step");
  environment["SLURM_STEP_NUM_NODES"] = "2";
  environment["SLURM_STEP_NODELIST"] = "node[07-08]";
  CHECK_THAT(refused(environment), ContainsSubstring("srun did not start this ddprun"));
}

TEST_CASE("older names of Slurm's variables are read too") {
  Environment environment = captured("slurm-step-node1");
  environment.erase("SLURM_JOB_ID");
  environment.erase("SLURM_STEP_ID");
  CHECK(placed(environment).run_id == "9.0");
}

TEST_CASE("a node's name is worth more than its number, which may follow another order") {
  Environment environment = captured("slurm-step-node0");
  environment["SLURM_STEP_NODELIST"] = "node02,node01";
  const Placement placement = placed(environment);
  CHECK(placement.index == 1);
  CHECK(placement.hosts.front() == "node02");
  CHECK(placed(with(environment, "SLURMD_NODENAME", "elsewhere")).index == 0);
}

TEST_CASE("an invalid variable of a step is named, with what to give instead") {
  const Environment step = captured("slurm-step-node1");
  for (const std::string name : {"SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST", "SLURM_NODEID"}) {
    for (const std::string value : {"", "x[", "7"}) {
      Environment broken = with(step, name, value);
      broken.erase("SLURM_NNODES");
      broken["SLURMD_NODENAME"] = "elsewhere";
      if (name == "SLURM_STEP_NODELIST") broken["SLURM_JOB_NODELIST"] = value;
      CAPTURE(name, value);
      const std::string sentence = refused(broken);
      CHECK_THAT(sentence, ContainsSubstring(name == "SLURM_STEP_NUM_NODES" && value == "7"
                                                 ? "SLURM_STEP_NODELIST"
                                                 : name + "='" + value + "'"));
      CHECK_THAT(sentence, ContainsSubstring("--rdzv-endpoint"));
    }
  }
  CHECK_THAT(refused(without(step, "SLURM_STEP_NUM_NODES")),
             ContainsSubstring("SLURM_STEP_NUM_NODES"));
}

TEST_CASE("tasks per node are read in Slurm's short form") {
  CHECK(most_tasks_per_node("1") == 1);
  CHECK(most_tasks_per_node("1(x2)") == 1);
  CHECK(most_tasks_per_node("2,1") == 2);
  CHECK(most_tasks_per_node("1(x3),4(x2),2") == 4);
  for (const std::string text : {"", ",", "1,", "x", "1(x", "1(x)", "1(2)", "-1"}) {
    CAPTURE(text);
    CHECK(!most_tasks_per_node(text));
  }
}

TEST_CASE("steps that may share a node have ports of their own") {
  std::set<std::uint16_t> ports;
  for (std::uint64_t step = 0; step < 61; ++step) ports.insert(slurm_port(123456, step));
  CHECK(ports.size() == 61);
  ports.clear();
  for (std::uint64_t job = 0; job < kSchedulerPortCount; ++job) {
    ports.insert(slurm_port(9'000'000 + job, 0));
  }
  CHECK(ports.size() == kSchedulerPortCount);
  CHECK(*ports.begin() == kSchedulerPortFirst);
  CHECK(*ports.rbegin() == kSchedulerPortLast);
}

TEST_CASE("GPUs count where the scheduler gave them, as a worker would see them") {
  using ddprun::allocated_gpus;
  CHECK(allocated_gpus(captured("slurm-gpus-per-node")) == 2);
  CHECK(allocated_gpus(captured("slurm-gpus-per-task")) == 3);
  CHECK(!allocated_gpus(captured("slurm-step-node0")));
  CHECK(!allocated_gpus({{"CUDA_VISIBLE_DEVICES", "0,1"}}));
  CHECK(allocated_gpus({{"SLURM_GPUS_ON_NODE", "8"}}) == 8);
  CHECK(allocated_gpus({{"SLURM_GPUS_ON_NODE", "8"}, {"CUDA_VISIBLE_DEVICES", "3"}}) == 1);
  CHECK(!allocated_gpus({{"SLURM_GPUS_ON_NODE", "8"}, {"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}));
  CHECK(!allocated_gpus({{"SLURM_GPUS_ON_NODE", "0"}}));
  CHECK(!allocated_gpus({{"SLURM_GPUS_ON_NODE", "many"}}));
}
