// The part of Membership that follows the coordinator to another node, or makes this one a
// candidate: docs/FAILOVER.md.
#include <algorithm>
#include <utility>

#include "base/address.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/client/membership/sense.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::client {

using namespace protocol;
using Step = CoordinatorSearch::Step;

/// The link is down, and a retry is due later.
void Membership::look_further(LinkLoss loss, bool had_it) {
  const bool was_candidate = search_.is_candidate();
  const bool refused = loss == LinkLoss::kRefused && !search_.is_away();
  if (refused && round_ && round_->of_coordinator) round_->author_ended = true;
  if (!search_.is_away()) has_ended_ = refused;
  turned_away_ = loss == LinkLoss::kEnded && !had_it && !search_.is_away();
  if (had_it) aside_.reset();
  // The run is over: no other node takes it on.
  if (round_ && round_->verdict) return await_last_word(loss);
  const Step step = search_.lost(loss, had_it);
  if (was_candidate) withdraw();
  go(step);
}

/// The coordinator had told how the run ends, and that is all there is to know if it is gone.
void Membership::await_last_word(LinkLoss loss) {
  const bool is_gone = loss != LinkLoss::kEnded;
  if (is_gone && group_.is_none()) end(known_end(End{}));
}

void Membership::go(Step step) {
  switch (step) {
    case Step::kSoon:
      reach_.attempts = 1;
      link_ = link::Down{now_ + soon()};
      return;
    case Step::kAgain:
    case Step::kStart:
      if (aside_) {  // the endpoint does not know
        where_ = std::exchange(aside_, std::nullopt);
        return;
      }
      // A node that turns a new one away coordinates the run no more, or not yet: the endpoint may
      // know. Of a round the end of its coordinator matters, and that is learned there.
      if (turned_away_ && !round_) aside_ = std::exchange(where_, std::nullopt);
      // Who has ended need not be asked again; the node of the endpoint may be back.
      if (!has_ended_) return;
      where_.reset();
      return;
    case Step::kLead: {
      options_.hello.runs_coordinator = true;
      coordinates_ = true;
      const bool ended = round_ && round_->author_ended;
      const std::string why =
          reach_.resigned.empty()
              ? "lost the coordinator " + options_.coordinator + ": " + reach_.cause
              : reach_.resigned;
      actions_.emplace_back(Coordinate{ended ? round_->start.stamp.author : "",
                                       why + "; " + options_.hello.host + " coordinates the run",
                                       round_ ? round_->start.succession.origin : ""});
      break;
    }
    case Step::kNow:
    case Step::kGo:
      break;
  }
  if (stores_.port() != 0) connect();
}

void Membership::withdraw() {
  options_.hello.runs_coordinator = false;
  coordinates_ = false;
  actions_.emplace_back(Withdraw{});
}

void Membership::on(const Abdicated& abdicated) {
  if (way_out_.is_decided() || !search_.is_candidate()) return;
  if (way_out_.is_leaving()) return stop_leaving();
  reach_.cause = abdicated.reason;
  drop_link(LinkEnd::kOpen);
  withdraw();
  go(search_.abdicated());
}

/// Who answers where this agent has looked coordinates the run.
void Membership::find_coordinator() {
  if (!search_.is_candidate()) options_.hello.runs_coordinator = false;
  move_to(search_.place());
  search_.found();
  reach_.loss_noted = false;
  if (round_) round_->of_coordinator = false;
  const std::string other =
      where_->host + " (" + options_.coordinator + ") coordinates the run now";
  const bool here = options_.hello.runs_coordinator;
  notices_.note(here ? "this node coordinates the run now" : other, actions_);
}

/// From now on it is looked for there; the one before it may be suspended, and learn that late.
void Membership::move_to(Place place) {
  std::erase(former_, place);
  if (where_ && *where_ != place) {
    std::erase(former_, *where_);
    former_.push_back(*where_);
    if (former_.size() > kSuccessorsMax) former_.erase(former_.begin());
  }
  options_.coordinator = host_and_port(place.address, place.port);
  where_ = std::move(place);
  aside_.reset();
}

void Membership::take(const Settled& settled) {
  if (round_ && round_->start.stamp == settled.stamp) round_->settled = true;
}

void Membership::take(const Resigned& resigned) {
  reach_.resigned = resigned.reason;
  if (round_ && resigned.cuts_short) round_->cut_short = true;
  if (!way_out_.is_staying()) return;  // the end of the link lets it go
  search_.resigned();
  lose_link("it has resigned", LinkEnd::kOpen, LinkLoss::kEnded);
}

void Membership::take(const Moved& moved) {
  if (way_out_.is_decided()) return;
  if (way_out_.is_leaving()) return stop_leaving();
  if (!can_be_host(moved.address)) return;
  if (coordinates_) withdraw();  // it listens here as before
  options_.hello.runs_coordinator = false;
  move_to({moved.address, moved.address, moved.port});
  search_.moved();
  if (round_) round_->of_coordinator = false;
  notices_.note("the run is coordinated by " + options_.coordinator, actions_);
  drop_link(LinkEnd::kOpen);
}

/// A host that does not answer is not waited for as long where others may coordinate.
Duration Membership::attempt_max() const {
  const Duration share = options_.hello.terms.silence_max() / 4;
  return search_.is_away() ? std::min(kConnectMax, share) : kConnectMax;
}

}  // namespace ddprun::client
