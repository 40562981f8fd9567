// The metrics of a run, from its events.
#include "agent/events/metrics.hpp"

#include <sstream>

#include "tests/support/catch.hpp"

using namespace ddprun;
using std::chrono::milliseconds;

namespace {

struct Run {
  void at(int ms, const char* name, int round = 1, boost::json::object fields = {}) {
    metrics.take({name, Round(round), std::move(fields)}, milliseconds(ms));
  }
  void round(int ms, int number) {
    at(ms, "round", number, {{"restarts", number - 1}, {"nodes", 2}, {"world_size", 4}});
  }
  [[nodiscard]] bool has(int now, const std::string& line) const {
    MetricsFacts facts;
    facts.run = "a\"b\n\\";
    facts.age = milliseconds(now);
    const std::string text = "\n" + metrics.text(facts);
    return text.find("\n" + line + "\n") != std::string::npos;
  }
  RunMetrics metrics;
};

Run restarted() {
  Run run;
  run.round(10, 1);
  run.at(15, "worker_started");
  run.at(16, "worker_started");
  run.at(16, "all_running");
  run.at(1016, "worker_exited");
  run.at(1017, "stop_began");
  run.at(1018, "first_failure");
  run.round(1020, 2);
  run.at(1060, "worker_exited");
  run.at(1067, "round_ended");
  run.at(1070, "worker_started", 2);
  run.at(1072, "worker_started", 2);
  run.at(1072, "all_running", 2);
  return run;
}

}  // namespace

TEST_CASE("metrics have the last step of each rank that reports one") {
  MetricsFacts facts;
  CHECK(RunMetrics().text(facts).find("last_step") == std::string::npos);
  facts.steps = {{Rank(4), 1041}, {Rank(5), 1042}};
  CHECK(RunMetrics().text(facts).find("ddprun_last_step{rank=\"4\"} 1041\n"
                                      "ddprun_last_step{rank=\"5\"} 1042\n") != std::string::npos);
}

TEST_CASE("metrics count rounds, restarts, workers and the time in which all of them ran") {
  const Run run = restarted();
  for (const char* line :
       {"ddprun_round 2", "ddprun_rounds_total 2", "ddprun_restarts_total 1", "ddprun_nodes 2",
        "ddprun_world_size 4", "ddprun_workers_running 2", "ddprun_workers_started_total 4",
        "ddprun_failures_total 1", "ddprun_all_workers_running 1",
        "ddprun_all_workers_running_seconds_total 1.928000", "ddprun_age_seconds 2.000000"}) {
    INFO(line);
    CHECK(run.has(2000, line));
  }
}

TEST_CASE("metrics have what each phase of a recovery took") {
  const Run run = restarted();
  for (const char* line : {"ddprun_recovery_seconds_sum{phase=\"stop\"} 0.050000",
                           "ddprun_recovery_seconds_count{phase=\"stop\"} 1",
                           "ddprun_recovery_seconds_sum{phase=\"rendezvous\"} 0.000000",
                           "ddprun_recovery_seconds_sum{phase=\"start\"} 0.008000",
                           "ddprun_recovery_seconds_count{phase=\"start\"} 2",
                           "ddprun_recovery_seconds_sum{phase=\"spawn\"} 0.003000"}) {
    INFO(line);
    CHECK(run.has(2000, line));
  }
}

TEST_CASE("metrics are Prometheus text: each family has its type, no label breaks a line") {
  std::istringstream lines(restarted().metrics.text({"0.1", "a\"b\n\\", "host"}));
  std::string typed;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    if (line.starts_with("# TYPE ")) typed = line.substr(7, line.rfind(' ') - 7);
    CHECK((line.starts_with("# ") || line.starts_with(typed)));
  }
  Run run;
  CHECK(run.has(0, R"(ddprun_info{version="",run="a\"b\\n\\",host=""} 1)"));
}
