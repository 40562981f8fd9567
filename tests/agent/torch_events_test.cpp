// torchrun's events, as programs that read them expect them.
#include "agent/events/torch_events.hpp"

#include <signal.h>

#include <boost/json/parse.hpp>

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace json = boost::json;

namespace {

const WallTime kEventTime{1700000000123ms};

LaunchConfig torch_config() {
  LaunchConfig config;
  config.run_id = RunId("foo");
  config.workers.role = "trainer";
  config.workers.count = 2;
  config.workers.command = {"/usr/bin/python3", "-u", "train.py"};
  return config;
}

RoundFacts third_and_fourth_rank() {
  RoundFacts facts;
  facts.round = Round(2);
  facts.restarts = RestartCount(1);
  facts.groups = 2;
  facts.group_rank = 1;
  facts.first_rank = Rank(2);
  facts.first_role_rank = 1;
  facts.role_world = WorldSize(3);
  return facts;
}

RunEvent started_event(int local_rank, int pid) {
  return {"worker_started", Round(2), {{"local_rank", local_rank}, {"pid", pid}}};
}

RunEvent exited_event(int local_rank, int exit_code, int signal, int sent_signal) {
  return {"worker_exited",
          Round(2),
          {{"local_rank", local_rank},
           {"exit_code", exit_code},
           {"signal", signal},
           {"sent_signal", sent_signal}}};
}

TorchEvents begun_events() {
  TorchEvents events(torch_config(), "gpu-02");
  CHECK(events.round(third_and_fourth_rank(), 250ms, kEventTime).size() == 2);
  CHECK(events.take(started_event(0, 901), kEventTime).size() == 1);
  CHECK(events.take(started_event(1, 902), kEventTime).size() == 1);
  return events;
}

json::object metadata_of(const std::string& line) {
  return json::parse(line).at("metadata").as_object();
}

json::object details_of(const std::string& line) {
  return json::parse(std::string(metadata_of(line).at("metadata").as_string())).as_object();
}

std::string state_of(const std::string& line) {
  return std::string(metadata_of(line).at("state").as_string());
}

}  // namespace

TEST_CASE("an event of a worker has torch's fields in torch's order") {
  TorchEvents events(torch_config(), "gpu-02");
  const auto round = events.round(third_and_fourth_rank(), 250ms, kEventTime);
  REQUIRE(round.size() == 2);
  CHECK(state_of(round[0]) == "RENDEZVOUS");
  CHECK(metadata_of(round[0]).at("duration_ms").as_double() == 250.0);
  CHECK(state_of(round[1]) == "ASSIGN_WORKER_RANKS");
  const auto start = events.take(started_event(1, 902), kEventTime);
  REQUIRE(start.size() == 1);
  CHECK(start[0] ==
        R"({"name":"torchelastic.worker.status.START","source":"WORKER",)"
        R"("timestamp":1700000000123,"metadata":{"run_id":"foo","global_rank":3,"group_rank":1,)"
        R"("worker_id":"902","role":"trainer","hostname":"gpu-02","state":"START",)"
        R"("total_run_time":0,"rdzv_backend":"c10d","raw_error":null,)"
        R"("metadata":"{\"group_world_size\":2,\"entry_point\":\"python3\",\"local_rank\":[1],)"
        R"(\"role_rank\":[2],\"role_world_size\":[3],\"exit_code\":[null],\"worker_pid\":[null]}",)"
        R"("agent_restarts":1,"duration_ms":null}})");
}

TEST_CASE("the end of a run that succeeds is that of each worker and of the agent") {
  TorchEvents events = begun_events();
  CHECK(events.take(exited_event(0, 0, 0, 0), kEventTime).empty());
  CHECK(events.take(exited_event(1, 0, 0, 0), kEventTime).empty());
  TorchEvents::End end{true};
  end.took = 90s;
  const auto lines = events.end(end, kEventTime);
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) CHECK(state_of(line) == "SUCCEEDED");
  CHECK(json::parse(lines[2]).at("source") == "AGENT");
  CHECK(metadata_of(lines[2]).at("total_run_time").as_int64() == 90);
  CHECK(details_of(lines[0]).at("exit_code").as_array()[0].is_null());
}

TEST_CASE("a worker that failed is told with its code and what it recorded, others are not") {
  TorchEvents events = begun_events();
  CHECK(events.take(exited_event(1, 0, SIGKILL, 0), kEventTime).empty());
  CHECK(events.take(exited_event(0, 0, SIGTERM, SIGTERM), kEventTime).empty());
  TorchEvents::End end{false, "rank 3 was killed"};
  end.failed = Rank(3);
  end.error_json = R"({"message": "needle"})";
  const auto lines = events.end(end, kEventTime);
  REQUIRE(lines.size() == 3);
  CHECK(state_of(lines[0]) == "TERMINATED");
  CHECK(metadata_of(lines[0]).at("raw_error").is_null());
  CHECK(state_of(lines[1]) == "FAILED");
  CHECK(metadata_of(lines[1]).at("raw_error") == R"({"message":"needle"})");
  CHECK(details_of(lines[1]).at("exit_code").as_array()[0] == -SIGKILL);
  CHECK(details_of(lines[1]).at("worker_pid").as_array()[0] == 902);
  CHECK(state_of(lines[2]) == "FAILED");
  CHECK(metadata_of(lines[2]).at("raw_error") == "rank 3 was killed");
}

TEST_CASE("an error file that is missing, torn or too large is torch's mark for none") {
  TorchEvents events = begun_events();
  CHECK(events.take(exited_event(1, 3, 0, 0), kEventTime).empty());
  for (const std::string& record :
       {std::string(), std::string("{\"message\": "),
        "{\"message\": \"" + std::string(kTorchErrorBytesMax, 'x') + "\"}"}) {
    TorchEvents::End end{false, "rank 3 failed"};
    end.failed = Rank(3);
    end.error_json = record;
    const auto raw = metadata_of(events.end(end, kEventTime)[1]).at("raw_error");
    CHECK(json::parse(std::string(raw.as_string())).at("message") == "<NONE>");
  }
}

TEST_CASE("hostile texts cannot forge a line of torch's events") {
  LaunchConfig config = torch_config();
  config.workers.role = "a\n{\"b\"}\xff";
  TorchEvents events(config, "gpu-02");
  const auto lines = events.round(third_and_fourth_rank(), 0ms, kEventTime);
  for (const std::string& line : lines) {
    CHECK(line.find('\n') == std::string::npos);
    CHECK(metadata_of(line).size() == 13);
  }
}

TEST_CASE("the backend is that of the same command line under torchrun") {
  const auto backend_of = [](const LaunchConfig& config) {
    TorchEvents events(config, "h");
    const auto line = events.round(RoundFacts(), 0ms, kEventTime).front();
    return std::string(metadata_of(line).at("rdzv_backend").as_string());
  };
  LaunchConfig config = torch_config();
  CHECK(backend_of(config) == "c10d");
  config.store.master_port = 29500;
  CHECK(backend_of(config) == "static");
  config.rendezvous.emplace();
  CHECK(backend_of(config) == "c10d");
  config.rendezvous->master = MasterChoice::kFixed;
  CHECK(backend_of(config) == "static");
}
