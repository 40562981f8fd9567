// bench_goodput: weeks of training on thousands of nodes, with failures at a published rate; see
// docs/internals/GOODPUT.md.
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/goodput/presets.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::bench;

constexpr int kGpusPerNode = 8;

struct Arguments {
  int gpus = 16'384;
  double days = 54;
  double mtbf_min = 0;
  double repair_h = 24;
  double checkpoint_s = 0;
  int spares = 16;
  int nodes_min = 0;
  int lost_percent = 78;
  std::uint64_t seed = 1;
  bool while_training = false;
  std::string times = "warm";
  std::string restart;
  double goal = 0;
};

Duration of_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

std::string preset_list() {
  std::string text = "Times of a recovery; the options below change single ones:";
  for (const Preset& preset : presets()) {
    text += "\n" + std::string(preset.name) + ": " + std::string(preset.source);
  }
  return text;
}

void add_times(CLI::App& app, Times& given) {
  const auto phase = [&app](const char* name, Duration& time, const char* help) {
    app.add_option_function<double>(
        name, [&time](double value) { time = of_seconds(value); }, help);
  };
  phase("--detect", given.detect, "Seconds until a failure is noticed.");
  phase("--per-node", given.per_node, "Seconds of the coordinator to send one node its round.");
  phase("--stop", given.stop, "Seconds until old ranks have ended, or survivors are free.");
  phase("--start", given.start, "Seconds until new ranks have imported what they need.");
  phase("--rebuild", given.rebuild, "Seconds to build the process groups.");
  phase("--transfer", given.transfer, "Seconds to transfer the state.");
  phase("--first-step", given.first_step, "Seconds of the first step.");
}

ClusterOptions cluster_options(const Arguments& arguments, const Times& given) {
  const auto preset = preset_of(arguments.times);
  if (!preset) throw CLI::ValidationError("--times", "no such times: " + arguments.times);
  ClusterOptions options;
  options.nodes = (arguments.gpus + kGpusPerNode - 1) / kGpusPerNode;
  options.nodes_min = arguments.nodes_min;
  options.spares = arguments.spares;
  options.mtbf = arguments.mtbf_min > 0 ? of_seconds(60 * arguments.mtbf_min)
                                        : mtbf_of(options.nodes * kGpusPerNode);
  options.length = of_seconds(arguments.days * 24 * 3600);
  options.repair = of_seconds(arguments.repair_h * 3600);
  options.lost_percent = arguments.lost_percent;
  options.checkpoint = of_seconds(arguments.checkpoint_s);
  options.restart = preset->restart;
  if (!arguments.restart.empty()) {
    options.restart = arguments.restart == "failed" ? Restart::kFailed : Restart::kAll;
  }
  options.strikes = arguments.while_training ? Strikes::kWhileTraining : Strikes::kAlways;
  options.times = preset->times;
  options.seed = arguments.seed;
  const Duration none(-1);
  Times& times = options.times;
  const auto take = [none](Duration& time, Duration value) {
    if (value != none) time = value;
  };
  take(times.detect, given.detect);
  take(times.per_node, given.per_node);
  take(times.stop, given.stop);
  take(times.start, given.start);
  take(times.rebuild, given.rebuild);
  take(times.transfer, given.transfer);
  take(times.first_step, given.first_step);
  return options;
}

void print(const ClusterOptions& options, const Cluster& cluster) {
  const Ledger& ledger = cluster.ledger();
  const double length = cluster.length_seconds();
  const auto percent = [length](double seconds) { return 100 * seconds / length; };
  const double mtbf = std::chrono::duration<double>(options.mtbf).count();
  std::printf("%d nodes, %d GPUs, %d spare nodes; a failure every %.1f min; %.1f days\n",
              options.nodes, options.nodes * kGpusPerNode, options.spares, mtbf / 60,
              length / 86400);
  std::printf("failures %d (nodes lost %d), interruptions of training %d, of a recovery %d\n",
              cluster.failures(), cluster.nodes_lost(), ledger.recoveries(),
              ledger.interrupted_recoveries());
  std::printf("rounds %d, places taken by spare or returned nodes %d\n\n", cluster.rounds(),
              cluster.spares_used());
  std::printf("%-26s %12s %12s\n", "", "each, s", "of all time");
  const int each = std::max(1, ledger.recoveries());
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    const double time = ledger.seconds_of(static_cast<Phase>(i));
    if (time > 0) {
      std::printf("%-26s %12.4f %10.4f %%\n", std::string(kPhaseNames[i]).c_str(), time / each,
                  percent(time));
    }
  }
  const double recovery = ledger.recovery_seconds();
  const double mean = recovery / each;
  std::printf("%-26s %12.4f %10.4f %%\n", "recovery", mean, percent(recovery));
  std::printf("%-26s %12s %10.4f %%\n", "  closed form T/(MTBF+T)", "", 100 * mean / (mtbf + mean));
  std::printf("%-26s %12.4f %10.4f %%\n", "work lost", ledger.lost_seconds() / each,
              percent(ledger.lost_seconds()));
  std::printf("%-26s %12s %10.4f %%\n", "nodes missing", "", percent(ledger.degraded_seconds()));
  std::printf("%-26s %12s %10.4f %%\n", "effective training time", "",
              percent(ledger.trained_seconds()));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  const Duration none(-1);
  Times given{none, none, none, none, none, none, none, none};
  CLI::App app("Effective training time by simulation, with the real coordinator and members.");
  app.add_option("--gpus", arguments.gpus, "GPUs that train, 8 per node.")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  app.add_option("--days", arguments.days, "Simulated days.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--mtbf", arguments.mtbf_min,
                 "Minutes between failures; 0: Llama 3's rate per GPU.")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--spares", arguments.spares, "Spare nodes.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--min-nodes", arguments.nodes_min, "MIN of MIN:MAX; 0: all nodes are needed.")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repair", arguments.repair_h, "Hours until a lost node is back.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--lost-nodes", arguments.lost_percent,
                 "Percent of the failures that take the node; of the others, a process.")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--checkpoint", arguments.checkpoint_s,
                 "Seconds between checkpoints; 0: no work is lost.")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--restart", arguments.restart, "Which ranks start again.")
      ->check(CLI::IsMember({"all", "failed"}));
  app.add_flag("--only-while-training", arguments.while_training,
               "No failure strikes during a recovery, as the closed form has it.");
  app.add_option("--seed", arguments.seed)->capture_default_str();
  app.add_option("--times", arguments.times, preset_list())->capture_default_str();
  app.add_option("--goal", arguments.goal,
                 "Exit with 1 if recoveries take more than this percentage of the time.");
  add_times(app, given);
  try {
    app.parse(argc, argv);
    const ClusterOptions options = cluster_options(arguments, given);
    Cluster cluster(options);
    cluster.run();
    print(options, cluster);
    const double share = 100 * cluster.ledger().recovery_seconds() / cluster.length_seconds();
    if (arguments.goal <= 0) return 0;
    std::printf("goal: recovery <= %.2f %%: %s\n", arguments.goal,
                share <= arguments.goal ? "reached" : "missed");
    return share <= arguments.goal ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_goodput: %s\n", error.what());
    return 1;
  }
}
