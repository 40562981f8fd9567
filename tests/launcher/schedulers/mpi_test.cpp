// The variables of Open MPI's and MPICH's mpirun, as real runs had them.
#include "launcher/schedulers/placement.hpp"

#include "tests/launcher/schedulers/captured.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using Names = std::vector<std::string>;

TEST_CASE("mpirun on other hosts: the ranks are nodes, the first host follows from the daemons") {
  const Placement first = placed(captured("openmpi-far-rank0"));
  const Placement second = placed(captured("openmpi-far-rank1"));
  CHECK(first.nodes == 2);
  CHECK(first.index == 0);
  CHECK(second.index == 1);
  CHECK(first.hosts == Names{"nodea", "nodeb"});
  CHECK(second.hosts == first.hosts);
  CHECK(first.run_id == "mpi-" + captured("openmpi-far-rank0").at("PMIX_NAMESPACE"));
  CHECK(second.run_id == first.run_id);
  CHECK(second.port == first.port);
}

TEST_CASE("mpirun's own host may be the first node, which then knows itself only") {
  const Placement first = placed(captured("openmpi-here-rank0"));
  const Placement third = placed(captured("openmpi-here-rank2"));
  CHECK(first.nodes == 3);
  CHECK(first.hosts == Names{"192.0.2.2"});
  CHECK(third.index == 2);
  CHECK(third.hosts == Names{"head", "node01", "node02"});
  CHECK(third.run_id == first.run_id);
}

TEST_CASE("Open MPI 5 names the host of mpirun, which is the first node if it takes part") {
  const Placement first = placed(captured("openmpi5-here-rank0"));
  const Placement second = placed(captured("openmpi5-here-rank1"));
  CHECK(first.hosts == Names{"head"});
  CHECK(second.hosts == first.hosts);
  CHECK(second.nodes == 2);
  CHECK(second.index == 1);
  CHECK(second.run_id == "mpi-prterun-head-63-1");
  CHECK(second.port == first.port);
  CHECK(placed(captured("openmpi5-far-rank1")).hosts.empty());
  Environment environment = captured("openmpi5-here-rank1");
  environment["PMIX_NAMESPACE"] = "prterun-gpu-07.a-b-63@1";
  environment["PMIX_SERVER_URI41"] = "prterun-gpu-07.a-b-63@0.1;tcp4://127.0.0.1:40507";
  CHECK(placed(environment).hosts == Names{"gpu-07.a-b"});
  for (const std::string name : {"prterun-63@1", "prterun--63@1", "else", ""}) {
    environment["PMIX_NAMESPACE"] = name;
    CHECK(placed(environment).hosts.empty());
  }
}

TEST_CASE("ranks in another order than the daemons give no hosts") {
  Environment environment = captured("openmpi-here-rank2");
  environment["OMPI_COMM_WORLD_RANK"] = "0";
  CHECK(placed(environment).hosts.empty());
  environment = captured("openmpi-here-rank2");
  environment.erase("OMPI_MCA_orte_local_daemon_uri");
  CHECK(placed(environment).hosts.empty());
}

TEST_CASE("without a list that makes sense mpirun's own address stands for the first node") {
  Environment environment = captured("openmpi-here-rank2");
  for (const std::string list : {"head,node[2:1-", "head", "", "head;rm@0(3)"}) {
    environment["OMPI_MCA_orte_node_regex"] = list;
    CHECK(placed(environment).hosts == Names{"192.0.2.2"});
  }
  environment["OMPI_MCA_orte_hnp_uri"] = "1879179264.0";
  CHECK(placed(environment).hosts.empty());
  environment = captured("openmpi-far-rank1");
  environment["OMPI_MCA_orte_node_regex"] = "head";
  CHECK(placed(environment).hosts.empty());
}

TEST_CASE("one process of mpirun is a run of one node") {
  CHECK(placed(captured("openmpi-alone")).nodes == 1);
  CHECK(placed(captured("hydra-alone")).nodes == 1);
}

TEST_CASE("several processes of mpirun on a node are refused, with what starts one on each") {
  for (const std::string name : {"openmpi-two-tasks", "hydra-two-tasks"}) {
    const std::string sentence = refused(captured(name));
    CHECK_THAT(sentence, ContainsSubstring("2" + kTimesOnANode));
    CHECK_THAT(sentence, ContainsSubstring("mpirun -N 1 ddprun"));
    CHECK_THAT(sentence, ContainsSubstring("mpiexec -ppn 1 ddprun"));
  }
}

TEST_CASE("inside Slurm mpirun identifies the task, although its daemons are Slurm's tasks") {
  const Placement first = placed(captured("openmpi-in-slurm-rank0"));
  const Placement second = placed(captured("openmpi-in-slurm-rank1"));
  CHECK(first.nodes == 2);
  CHECK(first.index == 0);
  CHECK(second.index == 1);
  CHECK(first.hosts == Names{"node01", "node02"});
  CHECK(second.hosts == first.hosts);
  const Placement hydra = placed(captured("hydra-in-slurm-rank1"));
  CHECK(hydra.index == 1);
  CHECK(hydra.hosts == first.hosts);
  CHECK(hydra.run_id == "mpi-" + captured("hydra-in-slurm-rank1").at("SLURM_JOB_ID"));
  CHECK(hydra.port == port_of_name(hydra.run_id));
}

TEST_CASE("Slurm's list names mpirun's hosts only where it is as long") {
  Environment environment = captured("hydra-in-slurm-rank1");
  environment["SLURM_JOB_NODELIST"] = "node[01-03]";
  CHECK(placed(environment).hosts.empty());
}

TEST_CASE("for one process of mpirun in a job of several nodes Slurm's variables count") {
  // The variables may be inherited from an outer shell.
  Environment environment = captured("slurm-step-node1");
  environment.merge(captured("openmpi-alone"));
  CHECK(placed(environment).job == "Slurm step 9.0");
  environment = captured("slurm-batch-script");
  environment.merge(captured("openmpi-alone"));
  CHECK_THAT(refused(environment), ContainsSubstring(kNotBySrun));
}

TEST_CASE("MPICH's mpiexec gives count and index, not the hosts") {
  const Placement placement = placed(captured("hydra-rank1"));
  CHECK(placement.nodes == 2);
  CHECK(placement.index == 1);
  CHECK(placement.hosts.empty());
  CHECK(placement.run_id.empty());
}

TEST_CASE("Slurm's own PMI is Slurm") {
  const Placement placement = placed(captured("slurm-pmi2"));
  CHECK(placement.job == "Slurm step 25.0");
  CHECK(placement.index == 1);
}

TEST_CASE("PMI without the number of tasks on this node could mean several on it") {
  const Environment bare{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK_THAT(refused(bare), ContainsSubstring("MPI_LOCALNRANKS"));
  Environment counted = bare;
  counted["PMI_LOCAL_SIZE"] = "1";
  CHECK(placed(counted).index == 1);
  counted["PMI_LOCAL_SIZE"] = "2";
  CHECK_THAT(refused(counted), ContainsSubstring("2" + kTimesOnANode));
}

TEST_CASE("invalid ranks and sizes are named") {
  Environment environment = captured("openmpi-far-rank1");
  environment["OMPI_COMM_WORLD_RANK"] = "2";
  CHECK_THAT(refused(environment), ContainsSubstring("OMPI_COMM_WORLD_RANK='2'"));
  environment = captured("openmpi-far-rank1");
  environment["OMPI_COMM_WORLD_SIZE"] = "two";
  CHECK_THAT(refused(environment), ContainsSubstring("OMPI_COMM_WORLD_SIZE='two'"));
  environment["OMPI_COMM_WORLD_SIZE"] = "0";
  CHECK_THAT(refused(environment), ContainsSubstring("OMPI_COMM_WORLD_SIZE='0'"));
}

TEST_CASE("a job's name becomes a run id that a folder may bear") {
  Environment environment = captured("openmpi-far-rank1");
  environment["PMIX_NAMESPACE"] = "prterun-head-123@1/x";
  CHECK(placed(environment).run_id == "mpi-prterun-head-123-1-x");
  CHECK(placed(environment).port >= kSchedulerPortFirst);
  CHECK(placed(environment).port <= kSchedulerPortLast);
}
