// The lines of console.hpp, as pure functions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "trainer/metrics/console.hpp"

namespace ddprun::trainer {
namespace {

constexpr int kBarMin = 8;
constexpr int kBarMax = 30;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 160> text{};
  const int length = std::snprintf(text.data(), text.size(), pattern, values...);
  return {text.data(), std::min(static_cast<std::size_t>(std::max(0, length)), text.size() - 1)};
}

unsigned long long wide(std::uint64_t value) {
  return value;
}

double done_part(const BarState& state) {
  if (state.total == 0) return 1;
  return std::min(1.0, static_cast<double>(state.step) / static_cast<double>(state.total));
}

std::string bar_of(double part, int cells) {
  const int full = static_cast<int>(part * cells);
  std::string bar(static_cast<std::size_t>(full), '=');
  if (full < cells) bar += ">" + std::string(static_cast<std::size_t>(cells - full - 1), ' ');
  return "[" + bar + "]";
}

}  // namespace

std::string clock_text(std::chrono::seconds duration) {
  const long long all = std::max<long long>(0, duration.count());
  if (all >= 3600) return format("%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  return format("%lld:%02lld", all / 60, all % 60);
}

std::string bar_line(const BarState& state, const BarClock& clock, int columns) {
  const std::string head =
      format("epoch %llu/%llu ", wide(std::min(state.epoch + 1, state.epochs)), wide(state.epochs));
  const std::string tail = format(" %llu/%llu %d%%", wide(state.step), wide(state.total),
                                  static_cast<int>(done_part(state) * 100));
  std::vector<std::string> details;
  if (state.images_per_second > 0) {
    details = {format("  loss %.3f", state.loss), format("  top1 %.1f%%", state.top1 * 100),
               format("  %.0f img/s", state.images_per_second)};
  }
  if (clock.left) details.push_back("  eta " + clock_text(*clock.left));
  details.push_back(format("  lr %.4f", state.lr));

  const auto fits = [columns](std::size_t length) {
    return length <= static_cast<std::size_t>(std::max(0, columns));
  };
  std::string line = tail;
  const std::size_t fixed = head.size() + kBarMin + 2;
  for (const auto& detail : details) {
    if (!fits(fixed + line.size() + detail.size())) break;
    line += detail;
  }
  if (!fits(fixed + line.size()))
    return (head + tail).substr(0, static_cast<std::size_t>(std::max(0, columns)));
  const int room = columns - static_cast<int>(head.size() + line.size()) - 2;
  return head + bar_of(done_part(state), std::clamp(room, kBarMin, kBarMax)) + line;
}

std::string plain_line(const MetricRow& row, std::uint64_t total_steps) {
  std::string line =
      format("%s step %llu/%llu epoch %.2f loss %.4f top1 %.2f%% top3 %.2f%% top5 %.2f%%",
             phase_name(row.phase).c_str(), wide(row.step), wide(total_steps), row.epoch,
             row.means.loss, row.means.top1 * 100, row.means.top3 * 100, row.means.top5 * 100);
  if (row.phase == Phase::kTrain) {
    line += format(" lr %.4f %.0f img/s", row.lr, row.images_per_second);
  }
  return line + format(" %.1f s", row.seconds);
}

}  // namespace ddprun::trainer
