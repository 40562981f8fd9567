// The console output of rank 0: a progress bar on a terminal, otherwise plain lines without control
// characters. The lines are pure functions; Console decides where and how often they are written.
// One thread. A closed console is not an error: training continues.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/metrics/metric_row.hpp"

namespace ddprun::trainer {

struct BarState {
  std::uint64_t step = 0;   // committed
  std::uint64_t total = 0;  // of the run
  std::uint64_t epoch = 0;  // from 0
  std::uint64_t epochs = 0;
  double loss = 0;  // recent
  double top1 = 0;
  double images_per_second = 0;  // 0 before the first row, when loss and top1 are unknown as well
  double lr = 0;
};

/// Absent until it can be estimated.
struct BarClock {
  std::optional<std::chrono::seconds> left;
};

/// One line of at most `columns` characters, without a line feed: "epoch 1/2 [=====>    ] 120/390
/// 31%  loss 1.532  top1 45.1%  1203 img/s  eta 0:12". If it does not fit, the bar shrinks first,
/// then details are dropped from the right.
[[nodiscard]] std::string bar_line(const BarState& state, const BarClock& clock, int columns);
/// "train step 120/390 epoch 0.31 loss 1.532 top1 45.1% …", for logs.
[[nodiscard]] std::string plain_line(const MetricRow& row, std::uint64_t total_steps);
/// "0:07", "12:34", "1:02:03".
[[nodiscard]] std::string clock_text(std::chrono::seconds duration);

struct ConsoleOptions {
  int descriptor = 1;
  enum class Kind { kTerminal, kPlain } kind = Kind::kPlain;
  int columns = 80;
  std::uint64_t total_steps = 0;
};
/// Inspects the descriptor: a terminal gets the bar unless TERM is "dumb" or not set.
[[nodiscard]] ConsoleOptions console_for(int descriptor, const std::optional<std::string>& term);

class Console {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Console(const ConsoleOptions& options);

  /// Redraws the bar on a terminal, at most 10 times per second.
  void progress(const BarState& state, Time now);
  /// Prints a row: as a plain line; on a terminal only test rows, above the bar.
  void row(const MetricRow& row);
  /// Prints a sentence, above the bar.
  void say(const std::string& sentence);
  /// Ends the bar with a line feed, so that further output starts on a new line.
  void finish();

 private:
  void write(const std::string& text);

  [[nodiscard]] BarClock clock_at(const BarState& state, Time now);

  struct Seen {
    Time at;
    std::uint64_t step;
  };
  ConsoleOptions options_;
  std::string bar_;  // as displayed; empty if none
  std::optional<Time> drawn_at_;
  std::optional<Seen> first_;  // baseline for the remaining time
};

}  // namespace ddprun::trainer
