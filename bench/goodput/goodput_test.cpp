// The simulation against closed forms and published figures.
#include <cmath>

#include "bench/goodput/presets.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::bench;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

// A few nodes with the rate of many: the share does not depend on their number, and the noise of
// two thousand failures is about 2 %.
ClusterOptions small(Duration mtbf, Duration recovery) {
  ClusterOptions options;
  options.nodes = 8;
  options.spares = 4;
  options.mtbf = mtbf;
  options.length = 2'000 * mtbf;
  options.repair = mtbf / 10;
  options.times.start = recovery;
  return options;
}

double recovery_share(const ClusterOptions& options) {
  Cluster cluster(options);
  cluster.run();
  return cluster.ledger().recovery_seconds() / cluster.length_seconds();
}

double in_minutes(Duration time) {
  return std::chrono::duration<double>(time).count() / 60;
}

bool close_to(double value, double expected, double tolerance) {
  return std::abs(value / expected - 1) < tolerance;
}

}  // namespace

TEST_CASE("recoveries cost T/(MTBF+T) if no failure strikes during one") {
  for (const int gpus : {16'384, 100'000, 131'072}) {
    for (const Duration recovery : {Duration(seconds(40)), Duration(seconds(5))}) {
      ClusterOptions options = small(mtbf_of(gpus), recovery);
      options.strikes = Strikes::kWhileTraining;
      const double expected =
          in_minutes(recovery) / (in_minutes(options.mtbf) + in_minutes(recovery));
      CAPTURE(gpus, in_minutes(recovery), expected);
      CHECK(close_to(recovery_share(options), expected, 0.06));
    }
  }
}

TEST_CASE("the published shares of 10 min and 3 min are reproduced") {
  const struct {
    int gpus;
    Duration recovery;
    double share;
  } figures[] = {{16'384, minutes(10), 0.051},  {16'384, minutes(3), 0.016},
                 {100'000, minutes(10), 0.248}, {100'000, minutes(3), 0.090},
                 {131'072, minutes(10), 0.301}, {131'072, minutes(3), 0.115}};
  for (const auto& figure : figures) {
    ClusterOptions options = small(mtbf_of(figure.gpus), figure.recovery);
    options.strikes = Strikes::kWhileTraining;
    CAPTURE(figure.gpus, figure.share);
    CHECK(close_to(recovery_share(options), figure.share, 0.06));
  }
}

TEST_CASE("recoveries cost 1-exp(-T/MTBF) if failures strike during recoveries too") {
  ClusterOptions options = small(minutes(23), minutes(10));
  options.lost_percent = 0;
  const double expected = 1 - std::exp(-10.0 / 23.0);
  CHECK(close_to(recovery_share(options), expected, 0.06));
}

// Failures during the detection of another one change nothing; those during a start begin again.
TEST_CASE("a round with a failure that is not noticed yet does not train") {
  ClusterOptions options = small(minutes(5), minutes(1));
  options.times.detect = minutes(1);
  options.lost_percent = 0;
  const double again = std::exp(1.0 / 5);
  const double recovery = again * 1 + (again - 1) * 5;
  CHECK(close_to(recovery_share(options), recovery / (recovery + 5), 0.06));
}

TEST_CASE("failures come at Llama 3's rate") {
  ClusterOptions options = small(mtbf_of(16'384), seconds(1));
  options.spares = 0;
  options.lost_percent = 0;
  options.length = hours(54 * 24) * 20;
  Cluster cluster(options);
  cluster.run();
  CHECK(close_to(cluster.failures() / 20.0, 419, 0.06));
}

TEST_CASE("a lost node without a spare is waited for, and with one is not") {
  ClusterOptions options = small(hours(10), seconds(1));
  options.length = hours(2'000);
  options.lost_percent = 100;
  options.repair = hours(1);
  options.spares = 0;
  Cluster without(options);
  without.run();
  CHECK(without.ledger().seconds_of(Phase::kAwaitNode) > 0.05 * without.length_seconds());
  options.spares = 4;
  Cluster with(options);
  with.run();
  CHECK(with.ledger().seconds_of(Phase::kAwaitNode) < 0.001 * with.length_seconds());
  CHECK(with.spares_used() > 100);
}

TEST_CASE("with MIN:MAX the others train on, and the node that returns costs a round") {
  ClusterOptions options = small(hours(10), seconds(1));
  options.length = hours(2'000);
  options.lost_percent = 100;
  options.repair = hours(1);
  options.spares = 0;
  options.nodes_min = 4;
  Cluster cluster(options);
  cluster.run();
  const Ledger& ledger = cluster.ledger();
  CHECK(ledger.seconds_of(Phase::kAwaitNode) < 0.001 * cluster.length_seconds());
  CHECK(ledger.degraded_seconds() > 0.005 * cluster.length_seconds());
  CHECK(ledger.recoveries() > cluster.failures() * 3 / 2);
}

TEST_CASE("half an interval between checkpoints is lost with each failure") {
  ClusterOptions options = small(hours(10), seconds(1));
  options.checkpoint = minutes(30);
  options.lost_percent = 0;
  Cluster cluster(options);
  cluster.run();
  const double each = cluster.ledger().lost_seconds() / cluster.ledger().recoveries();
  CHECK(close_to(each, 15 * 60, 0.06));
}

TEST_CASE("the whole time is accounted for") {
  ClusterOptions options = small(minutes(30), minutes(2));
  options.checkpoint = minutes(10);
  options.nodes_min = 6;
  Cluster cluster(options);
  cluster.run();
  const Ledger& ledger = cluster.ledger();
  const double sum = ledger.trained_seconds() + ledger.lost_seconds() + ledger.degraded_seconds() +
                     ledger.recovery_seconds();
  CHECK(close_to(sum, cluster.length_seconds(), 1e-6));
}

TEST_CASE("a recovery with a spare takes as long as it was measured") {
  ClusterOptions options = small(hours(3), seconds(0));
  const auto preset = preset_of("spare");
  REQUIRE(preset.has_value());
  options.times = preset->times;
  options.restart = preset->restart;
  Cluster cluster(options);
  cluster.run();
  const Ledger& ledger = cluster.ledger();
  CHECK(close_to(ledger.recovery_seconds() / ledger.recoveries(), 0.178, 0.02));
}

TEST_CASE("survivors that keep their process do not wait for imports of their own") {
  ClusterOptions options = small(hours(3), seconds(10));
  options.length = hours(3'000);
  options.lost_percent = 100;
  options.times.stop = seconds(2);
  Cluster all(options);
  all.run();
  options.restart = Restart::kFailed;
  Cluster failed(options);
  failed.run();
  const auto each = [](const Cluster& cluster) {
    return cluster.ledger().recovery_seconds() / cluster.ledger().recoveries();
  };
  CHECK(each(all) > 11.9);     // the survivors stop, then start
  CHECK(each(failed) < 10.5);  // they are free while the spare starts
}
