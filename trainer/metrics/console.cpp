#include "trainer/metrics/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace ddprun::trainer {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

ConsoleOptions console_for(int descriptor, const std::optional<std::string>& term) {
  ConsoleOptions options;
  options.descriptor = descriptor;
  if (::isatty(descriptor) != 1 || !term || term->empty() || *term == "dumb") return options;
  options.kind = ConsoleOptions::Kind::kTerminal;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.columns = size.ws_col;
  return options;
}

Console::Console(const ConsoleOptions& options) : options_(options) {}

void Console::progress(const BarState& state, Time now) {
  if (options_.kind == ConsoleOptions::Kind::kPlain) return;
  const BarClock clock = clock_at(state, now);
  const bool last = state.step >= state.total;
  if (drawn_at_ && now - *drawn_at_ < kRedrawInterval && !last) return;
  drawn_at_ = now;
  // Leave the last column free: some terminals wrap when it is written.
  const std::string line = bar_line(state, clock, options_.columns - 1);
  if (line == bar_) return;
  bar_ = line;
  write(kEraseLine + bar_);
}

BarClock Console::clock_at(const BarState& state, Time now) {
  if (!first_ || state.step < first_->step) first_ = Seen{now, state.step};
  const std::uint64_t done = state.step - first_->step;
  if (done == 0 || state.total < state.step) return {};
  const std::chrono::duration<double> spent = now - first_->at;
  const auto left =
      spent * (static_cast<double>(state.total - state.step) / static_cast<double>(done));
  return {std::chrono::duration_cast<std::chrono::seconds>(left)};
}

void Console::row(const MetricRow& row) {
  if (options_.kind == ConsoleOptions::Kind::kTerminal && row.phase == Phase::kTrain) return;
  say(plain_line(row, options_.total_steps));
}

void Console::say(const std::string& sentence) {
  if (bar_.empty()) {
    write(sentence + "\n");
  } else {
    write(kEraseLine + sentence + "\n" + bar_);
  }
}

void Console::finish() {
  if (bar_.empty()) return;
  bar_.clear();
  write("\n");
}

void Console::write(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(options_.descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // the console is closed: training continues
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ddprun::trainer
