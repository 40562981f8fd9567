#include <map>
#include <string>

#include "tests/support/catch.hpp"
#include "worker_api/worker.hpp"

namespace {

using Variables = std::map<std::string, std::string>;

struct Reading {
  std::optional<ddprun::WorkerEnvironment> worker;
  std::string problem;
};

Reading read(const Variables& variables) {
  Reading reading;
  reading.worker = ddprun::read_worker_environment(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      reading.problem);
  return reading;
}

Variables second_of_two() {
  return {{"RANK", "1"},
          {"LOCAL_RANK", "1"},
          {"WORLD_SIZE", "2"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"GROUP_RANK", "0"},
          {"GROUP_WORLD_SIZE", "1"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "40001"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_MAX_RESTARTS", "3"},
          {"TORCHELASTIC_RUN_ID", "run-7"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

Reading with(const std::string& name, const std::string& value) {
  auto variables = second_of_two();
  variables[name] = value;
  return read(variables);
}

Reading without(const std::string& name) {
  auto variables = second_of_two();
  variables.erase(name);
  return read(variables);
}

}  // namespace

TEST_CASE("a worker without a launcher is rank 0 of 1") {
  const auto reading = read({});
  REQUIRE(reading.worker);
  CHECK_FALSE(reading.worker->launched);
  CHECK(reading.worker->rank == 0);
  CHECK(reading.worker->world_size == 1);
  CHECK(reading.worker->round == 1);
}

TEST_CASE("the worker sees what the launcher exported") {
  const auto reading = read(second_of_two());
  REQUIRE(reading.worker);
  CHECK(reading.problem.empty());
  CHECK(reading.worker->launched);
  CHECK(reading.worker->rank == 1);
  CHECK(reading.worker->local_rank == 1);
  CHECK(reading.worker->world_size == 2);
  CHECK(reading.worker->master_addr == "127.0.0.1");
  CHECK(reading.worker->master_port == 40001);
  CHECK(reading.worker->restart_count == 2);
  CHECK(reading.worker->max_restarts == 3);
  CHECK(reading.worker->run_id == "run-7");
  CHECK(reading.worker->use_agent_store);
}

TEST_CASE("the round follows the restart count unless the launcher sets it") {
  CHECK(read(second_of_two()).worker->round == 3);
  CHECK(with("DDPRUN_ROUND", "5").worker->round == 5);
}

TEST_CASE("the agent's store is used only if the variable is True") {
  CHECK_FALSE(with("TORCHELASTIC_USE_AGENT_STORE", "1").worker->use_agent_store);
  CHECK_FALSE(with("TORCHELASTIC_USE_AGENT_STORE", "False").worker->use_agent_store);
}

TEST_CASE("virtual local ranks are all 0") {
  CHECK(with("LOCAL_RANK", "0").worker->local_rank == 0);
}

TEST_CASE("a variable that contradicts another one is named in the sentence") {
  const auto [variable, value] = GENERATE(table<std::string, std::string>({
      {"RANK", "2"},
      {"RANK", "-1"},
      {"RANK", "one"},
      {"RANK", ""},
      {"RANK", "1x"},
      {"RANK", "99999999999999999999"},
      {"WORLD_SIZE", "0"},
      {"LOCAL_RANK", "2"},
      {"MASTER_PORT", "65536"},
      {"MASTER_PORT", "0"},
      {"MASTER_ADDR", ""},
      {"TORCHELASTIC_RESTART_COUNT", "many"},
  }));
  const auto reading = with(variable, value);
  CHECK_FALSE(reading.worker);
  CHECK_THAT(reading.problem, ContainsSubstring(variable));
}

TEST_CASE("an incomplete environment is refused, not guessed") {
  for (const std::string name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const auto reading = without(name);
    CHECK_FALSE(reading.worker);
    CHECK_THAT(reading.problem, ContainsSubstring(name + " is not set"));
  }
}

TEST_CASE("a single rank needs no rendezvous address") {
  const auto reading = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  REQUIRE(reading.worker);
  CHECK(reading.worker->launched);
}
