#include "rendezvous/round/repeated_failure.hpp"

#include <algorithm>
#include <cctype>

#include "base/duration_text.hpp"

namespace ddprun::round {

namespace {

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

/// Process ids, ports, addresses and times differ from round to round.
std::string without_numbers(const std::string& line) {
  std::string text;
  for (const char letter : line) {
    const bool continues_number = is_digit(letter) && !text.empty() && text.back() == '0';
    if (!continues_number) text += is_digit(letter) ? '0' : letter;
  }
  return text;
}

}  // namespace

void RepeatedFailure::failed(const WorkerExit& exit, Round round, Duration lived, Duration soon) {
  const std::string line = exit.lines.empty() ? "" : exit.lines.back();
  const std::string pattern = without_numbers(line);
  if (lived > soon || exit.status != status_ || pattern != pattern_) *this = RepeatedFailure();
  if (lived > soon) return;
  if (count_ == 0) {
    first_ = round;
    rank_ = exit.worker.rank;
    line_ = line.substr(0, kRepeatedLineBytesMax);
  }
  status_ = exit.status;
  pattern_ = pattern;
  longest_ = std::max(longest_, lived);
  last_ = round;
  same_rank_ = same_rank_ && exit.worker.rank == rank_;
  ++count_;
}

std::string RepeatedFailure::sentence() const {
  if (count_ < 2) return {};
  const bool gaps = last_.value() - first_.value() + 1 != count_;  // rounds that ended otherwise
  return (gaps ? std::to_string(count_) + " of the rounds " : "rounds ") +
         std::to_string(first_.value()) + (count_ == 2 && !gaps ? " and " : " to ") +
         std::to_string(last_.value()) + " ended alike within " +
         duration_text(std::max<Duration>(longest_, std::chrono::milliseconds(1))) +
         " of their start: " + (same_rank_ ? "rank " + std::to_string(rank_.value()) + ", " : "") +
         status_.text() + (line_.empty() ? "" : ", \"" + line_ + "\"");
}

}  // namespace ddprun::round
