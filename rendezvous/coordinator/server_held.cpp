// What waits: events, while another coordinator may act; a verdict, until it is recorded.
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

using namespace protocol;

namespace {

bool is_success(const round::Event& event) {
  const auto* received = std::get_if<round::Received>(&event);
  const auto* report = received ? std::get_if<Report>(&received->message) : nullptr;
  return report != nullptr && report->state == NodeState::kSucceeded;
}

bool is_leave(const round::Event& event) {
  const auto* received = std::get_if<round::Received>(&event);
  return received != nullptr && std::holds_alternative<Leave>(received->message);
}

}  // namespace

void Server::Impl::decide(const std::shared_ptr<RunEntry>& entry, const round::Event& event) {
  const bool had_round = entry->run.rounds().formed();
  if (entry->run.has_agents()) entry->had_agents = Clock::now();
  round::Actions actions = entry->run.step(event, Clock::now());
  if (options_.on_record && !tell_record(*entry)) {
    unsaid_ = Unsaid{entry, std::move(actions)};
    await_keeper();
    return options_.on_record(last_record_);
  }
  perform(*entry, std::move(actions));
  if (!had_round && entry->run.rounds().formed()) admit_members(*entry);
  keep_if_live(*entry);
  forget_if_unused(entry);
}

/// Whether the agents may hear what follows at once. A verdict is recorded first: no node that
/// heard it ends while another one, which did not, finds a run that lives.
bool Server::Impl::tell_record(const RunEntry& entry) {
  RunRecord record = entry.run.record();
  if (record == last_record_) return true;
  const bool is_verdict = record.over && record.over != last_record_.over;
  last_record_ = std::move(record);
  if (is_verdict && !acts_to_the_end_) return false;
  options_.on_record(last_record_);
  return true;
}

void Server::Impl::recorded(const RunRecord& record) {
  if (closed_ || !unsaid_ || record != last_record_) return;
  say("");
  if (may_act()) release();
  settle_all();
}

/// The verdict, with `more` about it.
void Server::Impl::say(const std::string& more) {
  Unsaid unsaid = std::move(*unsaid_);
  unsaid_.reset();
  for (round::Action& action : unsaid.actions) {
    auto* send = std::get_if<round::Send>(&action);
    auto* done = send != nullptr ? std::get_if<Done>(&send->message) : nullptr;
    if (done != nullptr) done->text += more;
  }
  perform(*unsaid.entry, std::move(unsaid.actions));
}

// For its agents it is there. To the run this looks as if its process had been stopped meanwhile.
void Server::Impl::hold(std::shared_ptr<RunEntry> entry, const round::Event& event) {
  if (std::holds_alternative<round::Tick>(event)) return;
  if (const auto* received = std::get_if<round::Received>(&event)) {
    Link* link = find(received->link.value());
    if (link == nullptr) return;
    const auto* beat = std::get_if<Beat>(&received->message);
    if (beat != nullptr && !beat->echo) send(*link, frame_of(Beat{}));
    if (held_.size() >= kHeldMax) return lose(*link, "it has too much to say meanwhile");
  }
  held_.push(std::move(entry), event);
  await_keeper();
  if (is_leave(event) && !may_act()) stop_asked_ = true;
  if (keeper_overdue_ || stop_asked_) end_without_keeper();
}

/// Nothing has to wait any more; what came is handled, in order.
void Server::Impl::release() {
  keeper_timer_.cancel();
  keeper_awaited_ = keeper_overdue_ = stop_asked_ = false;
  const auto all = held_.take();
  for (const auto& [entry, event] : all) step(entry, event);
}

void Server::Impl::resume() {
  if (closed_) return;
  std::vector<std::shared_ptr<RunEntry>> all;
  for (const auto& [name, entry] : runs_) all.push_back(entry);
  if (!unsaid_) release();
  settle_all();
  drain();
  for (const auto& entry : all) step(entry, round::Tick{});
  settle_all();
}

/// From the first event that waits.
void Server::Impl::await_keeper() {
  if (std::exchange(keeper_awaited_, true)) return;
  keeper_timer_.expires_after(options_.keeper_timeout);
  keeper_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->closed_) return;
    self->keeper_overdue_ = true;
    self->end_without_keeper();
    self->settle_all();
  });
}

// No other coordinator can have a round of these nodes: all members of the last one are connected
// here, and their ranks have exited with 0. So the verdict is known, even if another one may act.
void Server::Impl::end_without_keeper() {
  const std::string silence =
      options_.keeper + (keeper_overdue_
                             ? " has not answered for " + duration_text(options_.keeper_timeout) +
                                   " (--rdzv-conf coordinator_timeout)"
                             : " does not answer");
  const std::string more = "; " + silence + ", so it does not know that";
  if (!unsaid_) {
    std::vector<round::Received> reports;
    for (const auto& [entry, event] : held_.items()) {
      if (is_success(event)) reports.push_back(std::get<round::Received>(event));
    }
    const auto run = std::find_if(runs_.begin(), runs_.end(), [&reports](const auto& one) {
      return !one.second->finished_at && one.second->run.succeeds_with(reports);
    });
    if (run == runs_.end()) return;
    const std::shared_ptr<RunEntry> entry = run->second;
    auto rest = held_.take();
    std::erase_if(rest, [](const auto& item) { return is_success(item.second); });
    for (const round::Received& report : reports) {
      if (unsaid_) break;
      decide(entry, report);
    }
    held_.put_back(std::move(rest));
  }
  if (options_.log) options_.log->warn("{}", silence);
  acts_to_the_end_ = true;
  if (unsaid_) say(more);
  release();
}

}  // namespace ddprun::coordinator
