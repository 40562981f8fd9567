#include "agent/workers/round_links.hpp"

#include <utility>

#include "agent/events/run_events.hpp"

namespace ddprun {

void RoundLinks::started(LocalRank rank, int pid) {
  if (const auto before = number_of(rank)) links_->remove(*before);  // it was started again
  numbers_.insert_or_assign(rank, links_->add(pid, worker_mark(facts_, rank), {this, rank}));
}

void RoundLinks::ended(LocalRank rank) {
  if (const auto number = number_of(rank)) links_->ended(*number);
}

void RoundLinks::running() {
  running_ = true;
  for (const auto& [rank, number] : numbers_) links_->look_again(number);
}

void RoundLinks::close() {
  for (const auto& [rank, number] : std::exchange(numbers_, {})) links_->remove(number);
}

bool RoundLinks::survives(LocalRank rank) const {
  const auto number = number_of(rank);
  return number && links_->is_survivor(*number);
}

std::optional<WorkerLinks::Number> RoundLinks::release(LocalRank rank) {
  const auto number = number_of(rank);
  if (!number) return std::nullopt;
  links_->move(*number, {});
  numbers_.erase(rank);
  return number;
}

void RoundLinks::adopt(LocalRank rank, WorkerLinks::Number worker) {
  numbers_.insert_or_assign(rank, worker);
  links_->move(worker, {this, rank});
}

bool RoundLinks::push(LocalRank rank, Environment variables) {
  const auto number = number_of(rank);
  return number && links_->push(*number, {facts_.round, std::move(variables)});
}

std::optional<worker_link::LastStep> RoundLinks::last_step(LocalRank rank) const {
  const auto number = number_of(rank);
  return number ? links_->last_step(*number) : std::nullopt;
}

bool RoundLinks::has_no_step_yet(LocalRank rank) const {
  const auto number = number_of(rank);
  return number && links_->is_linked(*number) && !links_->last_step(*number);
}

std::optional<WorkerLinks::Number> RoundLinks::number_of(LocalRank rank) const {
  const auto found = numbers_.find(rank);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

void RoundLinks::hear(LocalRank local, const worker_link::Report& report) {
  const Rank rank(facts_.first_rank.value() + local.value());
  if (std::holds_alternative<worker_link::Ready>(report)) {
    return events_.record(ready_event(facts_.round, rank));
  }
  if (const auto* written = std::get_if<worker_link::Checkpoint>(&report)) {
    return events_.record(checkpoint_event(facts_.round, rank, written->step, written->path));
  }
  if (const auto* section = std::get_if<worker_link::OpenSection>(&report)) {
    if (!running_) return;  // one that is still open then is seen
    events_.record(
        section_event(facts_.round, rank, section->name, section->lasts, section->limit));
  }
  const auto* joined = std::get_if<worker_link::Joined>(&report);
  if (joined == nullptr || joined->round == facts_.round) hear_(local, report);
}

bool RoundLinks::timer_expired(LocalRank local, const WorkerTimer& timer) {
  if (!running_) return false;
  const Rank rank(facts_.first_rank.value() + local.value());
  events_.record(timer_event(facts_.round, rank, timer));
  if (timer.signal > 0) end_at_timer_(local, timer);
  return true;
}

}  // namespace ddprun
