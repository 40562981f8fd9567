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

/// The last line of the evidence; of ranks that were given up, why.
std::string telling_line(const WorkerExit& exit) {
  if (exit.given_up) return exit.given_up->text;
  return exit.lines.empty() ? "" : exit.lines.back();
}

}  // namespace

void RepeatedFailure::failed(const WorkerExit& exit, Round round, Duration lived, Duration soon) {
  const std::string line = telling_line(exit);
  const std::string pattern = without_numbers(line);
  const bool same = exit.status == status_ && pattern == pattern_;
  if (lived > soon || !same || exit.given_up.has_value() != given_up_) *this = RepeatedFailure();
  if (lived > soon) return;
  if (count_ == 0) {
    first_ = round;
    rank_ = exit.worker.rank;
    line_ = line.substr(0, kRepeatedLineBytesMax);
  }
  status_ = exit.status;
  given_up_ = exit.given_up.has_value();
  pattern_ = pattern;
  longest_ = std::max(longest_, lived);
  last_ = round;
  same_rank_ = same_rank_ && exit.worker.rank == rank_;
  ++count_;
}

// No rank ended when all were given up, and none is to blame.
std::string RepeatedFailure::what() const {
  if (given_up_) return line_;
  return (same_rank_ ? "rank " + std::to_string(rank_.value()) + ", " : "") + status_.text() +
         (line_.empty() ? "" : ", \"" + line_ + "\"");
}

std::string RepeatedFailure::sentence() const {
  if (count_ < 2) return {};
  const bool gaps = last_.value() - first_.value() + 1 != count_;  // rounds that ended otherwise
  return (gaps ? std::to_string(count_) + " of the rounds " : "rounds ") +
         std::to_string(first_.value()) + (count_ == 2 && !gaps ? " and " : " to ") +
         std::to_string(last_.value()) + " ended alike within " +
         duration_text(std::max<Duration>(longest_, std::chrono::milliseconds(1))) +
         " of their start: " + what();
}

}  // namespace ddprun::round
