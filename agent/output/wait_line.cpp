#include "agent/output/wait_line.hpp"

#include <utility>

#include "agent/proc/process_table.hpp"

namespace ddprun {

namespace {

bool is_in_background(pid_t pid) {
  const auto process = find_process(pid);
  return process && process->foreground_group > 0 && process->group != process->foreground_group;
}

}  // namespace

void WaitLine::begin(Of of, std::function<Wait()> wait) {
  wait_ = std::move(wait);
  if (std::exchange(of_, of) == of) return;
  since_ = Clock::now();
  arm();
}

void WaitLine::end(Of of) {
  if (of_ != of) return;
  of_ = Of::kNothing;
  timer_.cancel();
  console_->erase_line();
}

void WaitLine::arm() {
  timer_.expires_at(next_drawing(since_, Clock::now()));
  timer_.async_wait([this](const boost::system::error_code& why) {
    if (why || of_ == Of::kNothing) return;
    draw();
    arm();
  });
}

void WaitLine::draw() {
  const std::string text = wait_text(wait_(), Clock::now());
  const std::string shown = cut_to_window(text, terminal_->columns());
  if (shown.empty() || is_in_background(user_)) return console_->erase_line();
  console_->draw_line(shown);
}

}  // namespace ddprun
