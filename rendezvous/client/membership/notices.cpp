#include "rendezvous/client/membership/notices.hpp"

#include <algorithm>
#include <utility>

#include "base/format.hpp"

namespace ddprun::client {

namespace {

[[nodiscard]] std::string line_of(const Wait& wait, TimePoint now) {
  if (!wait.until || *wait.until <= now) return wait.text;
  const auto left = std::chrono::ceil<std::chrono::seconds>(*wait.until - now);
  const std::string option = wait.option.empty() ? "" : " (--rdzv-conf " + wait.option + ")";
  return wait.text + "; " + wait.end + " in " + duration_text(left) + option;
}

}  // namespace

void Notices::note(std::string text, Actions& actions) {
  if (text.empty() || text == last_) return;
  last_ = text;
  actions.emplace_back(Note{std::move(text)});
}

void Notices::wait_for(Wait wait, TimePoint now, Actions& actions) {
  if (!since_) since_ = now;
  present_ = wait;
  wait_ = std::move(wait);
  note_wait_if_due(now, actions);
}

// Also once if the reasons why the coordinator is unreachable alternate.
void Notices::note_wait_if_due(TimePoint now, Actions& actions) {
  const auto deadline = due();
  if (!deadline || now < *deadline) return;
  const Wait wait = *std::exchange(wait_, std::nullopt);
  const bool noted = std::find(noted_.begin(), noted_.end(), wait.text) != noted_.end();
  if (noted || wait.text == last_) return;
  last_ = wait.text;
  noted_.push_back(wait.text);
  actions.emplace_back(Note{line_of(wait, now)});
}

std::optional<TimePoint> Notices::due() const {
  if (!wait_ || !since_) return std::nullopt;
  return *since_ + kQuietMax;
}

std::string Notices::present(TimePoint now) const {
  return present_ ? line_of(*present_, now) : "";
}

void Notices::end_wait() {
  wait_.reset();
  present_.reset();
}

void Notices::end_waiting() {
  since_.reset();
  end_wait();
}

}  // namespace ddprun::client
