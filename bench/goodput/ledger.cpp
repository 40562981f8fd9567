#include "bench/goodput/ledger.hpp"

#include <algorithm>
#include <numeric>

namespace ddprun::bench {
namespace {

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void Ledger::train(TimePoint now, double share) {
  if (recoveries_ > 0) mark(Phase::kFirstStep, now);
  for (std::size_t i = 0; i < phases_.size(); ++i) phases_[i] += pending_[i];
  pending_.fill(0);
  trains_ = true;
  share_ = share;
  since_ = now;
}

void Ledger::interrupt(TimePoint now, Duration lost) {
  if (trains_) {
    const double trained = seconds(now - since_);
    trained_ += trained * share_;
    degraded_ += trained * (1 - share_);
    trained_ -= seconds(lost) * share_;
    lost_ += seconds(lost) * share_;
    trains_ = false;
    ++recoveries_;
  } else {
    phases_[static_cast<std::size_t>(Phase::kBroken)] += seconds(now - since_);
    pending_.fill(0);
    ++broken_;
  }
  since_ = marked_ = now;
}

void Ledger::mark(Phase phase, TimePoint until) {
  if (trains_ || until <= marked_) return;
  pending_[static_cast<std::size_t>(phase)] += seconds(until - marked_);
  marked_ = until;
}

void Ledger::finish(TimePoint now) {
  if (!trains_) {
    for (std::size_t i = 0; i < phases_.size(); ++i) phases_[i] += pending_[i];
    phases_[static_cast<std::size_t>(Phase::kBroken)] += seconds(now - std::max(marked_, since_));
    return;
  }
  trained_ += seconds(now - since_) * share_;
  degraded_ += seconds(now - since_) * (1 - share_);
  trains_ = false;
}

double Ledger::recovery_seconds() const {
  return std::accumulate(phases_.begin(), phases_.end(), 0.0);
}

}  // namespace ddprun::bench
