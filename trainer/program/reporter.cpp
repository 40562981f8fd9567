#include "trainer/program/reporter.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace ddprun::trainer {

namespace {

std::int64_t unix_time_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

ConsoleOptions console_options(std::uint64_t total_steps) {
  const char* term = std::getenv("TERM");
  auto options =
      console_for(STDOUT_FILENO, term != nullptr ? std::optional<std::string>(term) : std::nullopt);
  options.total_steps = total_steps;
  return options;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (const int rank : ranks) text += (rank == ranks.front() ? "" : ", ") + std::to_string(rank);
  return text;
}

std::string percent(double fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", fraction * 100.0);
  return text.data();
}

}  // namespace

std::string grouped(std::int64_t number) {
  auto digits = std::to_string(number);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

std::string model_sentence(const TrainerOptions& options, const RunFacts& facts) {
  return "ResNet-18 width " + std::to_string(options.width) + ": " + grouped(facts.parameters) +
         " parameters, " + facts.precision +
         (options.memory == Memory::kChannelsLast ? ", channels_last" : ", contiguous") +
         ", torch " + facts.torch;
}

std::string plan_sentence(const TrainerOptions& options, const RunFacts& facts) {
  const auto ranks = std::to_string(facts.world) + (facts.world == 1 ? " rank" : " ranks");
  const auto threads =
      std::to_string(facts.threads) + (facts.threads == 1 ? " thread" : " threads");
  return ranks + " on " + facts.device + " (" + facts.collectives + ", " + threads +
         " each), global batch " + std::to_string(options.batch_size) + ", " +
         std::to_string(facts.total_steps) + " steps, seed " + std::to_string(options.seed);
}

std::string recovered_sentence(std::uint64_t step, int ranks, int source,
                               const std::optional<RecoveryTimes>& times) {
  auto sentence = "recovered: " + std::to_string(ranks) +
                  (ranks == 1 ? " rank continues" : " ranks continue") + " at step " +
                  std::to_string(step) + " with the state of rank " + std::to_string(source);
  if (!times) return sentence;
  const auto text = [](RecoveryTimes::Time time) {
    return std::to_string(std::llround(time.count())) + " ms";
  };
  return sentence + " (left " + text(times->left) + ", round " + text(times->waited) + ", group " +
         text(times->joined) + ", state " + text(times->agreed) + ")";
}

std::string healed_sentence(const std::vector<int>& ranks, std::uint64_t step) {
  return ranks_text(ranks) + " held other weights than the majority at step " +
         std::to_string(step) + ": replaced by the majority's";
}

std::string tie_sentence(const std::vector<int>& ranks, std::uint64_t step) {
  return ranks_text(ranks) + " and rank 0 hold different weights at step " + std::to_string(step) +
         ", and no majority holds the same: stopped; the last checkpoint is older";
}

std::string checkpoints_sentence(const CheckpointCosts& costs) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(),
                "checkpoints: %d saved; training waited %.3f s, %.3f s of processor time beside it",
                costs.saved, costs.waited.count(), costs.beside.count());
  return text.data();
}

std::string final_sentence(std::uint64_t step, const Means& test) {
  return "final: step " + std::to_string(step) + ", test accuracy " + percent(test.top1) +
         " (top-3 " + percent(test.top3) + ", top-5 " + percent(test.top5) + ")";
}

Reporter::Reporter(const TrainerOptions& options, const RunFacts& facts, std::uint64_t resumed_step)
    : console_(console_options(facts.total_steps)),
      files_(MetricsOptions{options.model_dir, resumed_step, unix_time_us(), host_name()}) {}

void Reporter::progress(const BarState& state) {
  console_.progress(state, std::chrono::steady_clock::now());
}

void Reporter::row(const MetricRow& row) {
  auto stamped = row;
  stamped.unix_time_us = unix_time_us();
  const auto trouble = files_.write(stamped);
  console_.row(stamped);
  if (!trouble.empty()) console_.say(trouble);
}

}  // namespace ddprun::trainer
