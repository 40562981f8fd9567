#include "agent/config/plan.hpp"

#include "base/macros.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;

namespace {

LaunchConfig config() {
  LaunchConfig one;
  one.run_id = RunId("run-7");
  one.workers.role = "trainer";
  one.workers.count = 2;
  one.workers.command = {"/usr/bin/python3", "-u", "train.py", "--rank", "$local_rank"};
  one.stopping.max_restarts = 3;
  one.stopping.signals_text = "SIGTERM,SIGINT";
  return one;
}

RoundFacts facts() {
  RoundFacts one;
  one.nonce = "3e35e7dd";
  one.round = Round(2);
  one.restarts = RestartCount(1);
  one.world = WorldSize(2);
  one.role_world = WorldSize(2);
  one.master_addr = "127.0.0.1";
  one.master_port = 41207;
  return one;
}

WorkerPlan plan(const LaunchConfig& what, const Environment& inherited, int rank = 1) {
  return plan_worker(what, inherited, facts(), LocalRank(rank), "/tmp/x/error.json");
}

std::string macro(const std::string& text) {
  return substitute(text, {{"local_rank", "0"}});
}

}  // namespace

TEST_CASE(
    "started with an empty environment a worker has exactly torchrun's variables and the round") {
  const Environment expected{{"DDPRUN_ROUND", "2"},
                             {"DDPRUN_WORKER", "3e35e7dd/2/1"},
                             {"GROUP_RANK", "0"},
                             {"GROUP_WORLD_SIZE", "1"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "41207"},
                             {"RANK", "1"},
                             {"ROLE_NAME", "trainer"},
                             {"ROLE_RANK", "1"},
                             {"ROLE_WORLD_SIZE", "2"},
                             {"TORCHELASTIC_ERROR_FILE", "/tmp/x/error.json"},
                             {"TORCHELASTIC_MAX_RESTARTS", "3"},
                             {"TORCHELASTIC_RESTART_COUNT", "1"},
                             {"TORCHELASTIC_RUN_ID", "run-7"},
                             {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"PYTHONFAULTHANDLER", "1"},
                             {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                             {"WORLD_SIZE", "2"}};
  CHECK(plan(config(), {}).environment == expected);
}

TEST_CASE("below another ddprun a worker has the marks of both") {
  const Environment inherited{{"DDPRUN_WORKER", "aaaaaaaa/1/0"}};
  CHECK(plan(config(), inherited).environment.at("DDPRUN_WORKER") == "aaaaaaaa/1/0,3e35e7dd/2/1");
}

TEST_CASE("a ddprun inside of a worker gets neither the devices nor the file of the outer one") {
  const Environment inherited{
      {"DDPRUN_GPUS", "1,0"}, {"DDPRUN_SHARE_GPUS", "1"}, {"DDPRUN_CONFIG", "run.toml"}};
  const auto environment = plan(config(), inherited).environment;
  for (const auto& [name, value] : inherited) CHECK(environment.count(name) == 0);
}

TEST_CASE("a worker knows whether its own ddprun keeps survivors") {
  const Environment inherited{{"DDPRUN_SURVIVORS", "1"}};
  LaunchConfig kept = config();
  CHECK(plan(kept, inherited).environment.count("DDPRUN_SURVIVORS") == 0);
  kept.stopping.rejoin_timeout = std::chrono::seconds(60);
  CHECK(plan(kept, {}).environment.at("DDPRUN_SURVIVORS") == "1");
}

TEST_CASE("a worker gets the socket of its own agent, and never that of an outer one") {
  const Environment inherited{{"DDPRUN_WORKER_SOCKET", "@outer"}};
  CHECK(plan(config(), inherited).environment.count("DDPRUN_WORKER_SOCKET") == 0);
  RoundFacts linked = facts();
  linked.worker_socket = "@inner";
  const auto made = plan_worker(config(), inherited, linked, LocalRank(0), "");
  CHECK(made.environment.at("DDPRUN_WORKER_SOCKET") == "@inner");
}

TEST_CASE("a worker gets the pipe for timers of its own agent, else that of an outer launcher") {
  const Environment inherited{{"TORCHELASTIC_TIMER_FILE", "/tmp/outer"}};
  CHECK(plan(config(), inherited).environment.at("TORCHELASTIC_TIMER_FILE") == "/tmp/outer");
  RoundFacts timed = facts();
  timed.timer_pipe = "/tmp/inner";
  const auto made = plan_worker(config(), inherited, timed, LocalRank(0), "");
  CHECK(made.environment.at("TORCHELASTIC_TIMER_FILE") == "/tmp/inner");
}

TEST_CASE("on the second of two nodes ranks continue, and within another role they start at 0") {
  RoundFacts second = facts();
  second.world = WorldSize(5);
  second.groups = 2;
  second.group_rank = 1;
  second.first_rank = Rank(3);
  second.role_world = WorldSize(2);
  second.first_role_rank = 0;
  const auto planned = plan_worker(config(), {}, second, LocalRank(1), "");
  CHECK(planned.rank == Rank(4));
  const auto is = [&](const char* name) { return planned.environment.at(name); };
  CHECK(is("RANK") == "4");
  CHECK(is("WORLD_SIZE") == "5");
  CHECK(is("GROUP_RANK") == "1");
  CHECK(is("GROUP_WORLD_SIZE") == "2");
  CHECK(is("ROLE_RANK") == "1");
  CHECK(is("ROLE_WORLD_SIZE") == "2");
  CHECK(is("LOCAL_WORLD_SIZE") == "2");
}

TEST_CASE("any variable of the launcher reaches the workers") {
  const auto planned = plan(config(), {{"PET_ROLE", "x"}, {"HOME", "/h"}});
  CHECK(planned.environment.at("PET_ROLE") == "x");
  CHECK(planned.environment.at("HOME") == "/h");
}

TEST_CASE("the launcher's own RANK and error file do not shine through") {
  const auto planned = plan(config(), {{"RANK", "9"}, {"TORCHELASTIC_ERROR_FILE", "/outer"}});
  CHECK(planned.environment.at("RANK") == "1");
  CHECK(planned.environment.at("TORCHELASTIC_ERROR_FILE") == "/tmp/x/error.json");
}

TEST_CASE("values that the user may preset are kept") {
  LaunchConfig with_threads = config();
  with_threads.workers.threads = {4, 6};
  CHECK(plan(with_threads, {}).environment.at("OMP_NUM_THREADS") == "6");
  const auto planned = plan(with_threads, {{"OMP_NUM_THREADS", ""},
                                           {"PYTHONFAULTHANDLER", ""},
                                           {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}});
  CHECK(planned.environment.at("PYTHONFAULTHANDLER").empty());
  CHECK(planned.environment.at("OMP_NUM_THREADS").empty());
  CHECK(planned.environment.at("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "0");
}

TEST_CASE("where worker 0 has the store the text is False") {
  LaunchConfig own_store = config();
  own_store.store.host = StoreHost::kWorkerZero;
  CHECK(plan(own_store, {}).environment.at("TORCHELASTIC_USE_AGENT_STORE") == "False");
}

TEST_CASE("ranks of a later node are counted on") {
  RoundFacts second = facts();
  second.world = WorldSize(6);
  second.groups = 2;
  second.group_rank = 1;
  second.first_rank = Rank(4);
  const auto planned = plan_worker(config(), {}, second, LocalRank(1), "");
  CHECK(planned.rank == Rank(5));
  CHECK(planned.environment.at("RANK") == "5");
  CHECK(planned.environment.at("LOCAL_RANK") == "1");
  CHECK(planned.environment.at("WORLD_SIZE") == "6");
  CHECK(planned.environment.at("LOCAL_WORLD_SIZE") == "2");
  CHECK(planned.environment.at("GROUP_RANK") == "1");
  CHECK(planned.environment.at("GROUP_WORLD_SIZE") == "2");
}

TEST_CASE("a virtual local rank is 0 with one device, and the real one has a name of its own") {
  LaunchConfig virtual_ranks = config();
  virtual_ranks.workers.virtual_devices = {"5", "7"};
  const auto planned = plan(virtual_ranks, {{"CUDA_VISIBLE_DEVICES", "5,7"}});
  CHECK(planned.environment.at("LOCAL_RANK") == "0");
  CHECK(planned.environment.at("CUDA_VISIBLE_DEVICES") == "7");
  CHECK(planned.environment.at("DDPRUN_LOCAL_RANK") == "1");
  CHECK(planned.argv.back() == "1");
  CHECK_FALSE(planned.environment.contains("HIP_VISIBLE_DEVICES"));
  const auto rocm = plan(virtual_ranks, {{"HIP_VISIBLE_DEVICES", "5,7"}});
  CHECK(rocm.environment.at("HIP_VISIBLE_DEVICES") == "7");
  CHECK(rocm.environment.at("CUDA_VISIBLE_DEVICES") == "7");
}

TEST_CASE("all workers see the chosen devices, whatever was visible before") {
  LaunchConfig chosen = config();
  chosen.workers.gpus = {"4", "6"};
  const Environment inherited{{"CUDA_VISIBLE_DEVICES", "4,5,6"}};
  const auto planned = plan(chosen, inherited);
  CHECK(planned.environment.at("CUDA_VISIBLE_DEVICES") == "4,6");
  CHECK(planned.environment.at("LOCAL_RANK") == "1");
  CHECK(visible_devices_of_workers(chosen.workers, inherited) == "4,6");
  CHECK(visible_devices_of_workers(config().workers, inherited) == "4,5,6");
  CHECK_FALSE(visible_devices_of_workers(config().workers, {}));
}

TEST_CASE("arguments after the program know the local rank, the program itself does not") {
  LaunchConfig odd = config();
  odd.workers.command = {"$local_rank", "${local_rank}x", "a$$b"};
  CHECK(plan(odd, {}, 0).argv == std::vector<std::string>{"$local_rank", "0x", "a$b"});
}

TEST_CASE("macros are replaced exactly as Python's Template.safe_substitute does") {
  CHECK(macro("${local_rank}") == "0");
  CHECK(macro("$local_rank") == "0");
  CHECK(macro("${x}") == "${x}");
  CHECK(macro("a$$b") == "a$b");
  CHECK(macro("$local_rank_x") == "$local_rank_x");
  CHECK(macro("$") == "$");
  CHECK(macro("$$local_rank") == "$local_rank");
  CHECK(macro("$$$local_rank") == "$0");
  CHECK(macro("${local_rank") == "${local_rank");
  CHECK(macro("${}") == "${}");
  CHECK(macro("$LOCAL_RANK") == "$LOCAL_RANK");
  CHECK(macro("$local_rank-$local_rank.") == "0-0.");
  CHECK(macro("$5 ${ local_rank }") == "$5 ${ local_rank }");
  CHECK(macro("$local_rank\xc3\xa9") == "0\xc3\xa9");
  CHECK(macro("${local_rank$local_rank}") == "${local_rank0}");
}
