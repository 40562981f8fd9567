// What a run decides, and what waits: events, while another coordinator may act; a verdict, until
// it is recorded.
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "base/format.hpp"
#include "rendezvous/coordinator/live_runs.hpp"
#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

using namespace protocol;

namespace {

// Events that are kept while this coordinator may not act; links that bring more are closed.
constexpr std::size_t kHeldMax = 65'536;
// Number of log lines of a run on the status page; older ones are dropped.
constexpr std::size_t kNotesMax = 8;

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

// By value: its last link may be closed during the call.
void Server::Impl::step(std::shared_ptr<RunEntry> entry, const round::Event& event) {
  if (is_held()) return hold(std::move(entry), event);
  decide(entry, event);
}

void Server::Impl::decide(const std::shared_ptr<RunEntry>& entry, const round::Event& event) {
  const bool had_round = entry->run.rounds().formed();
  if (entry->run.has_agents()) entry->had_agents = Clock::now();
  round::Actions actions = entry->run.step(event, Clock::now());
  if (options_.seat.on_record && !tell_record(*entry)) {
    unsaid_ = Unsaid{entry, std::move(actions)};
    await_keeper();
    return options_.seat.on_record(last_record_);
  }
  perform(*entry, std::move(actions));
  if (!had_round && entry->run.rounds().formed() && options_.peers) {
    // Of a round that nodes brought, and that was not sent to them.
    links_.for_each([&](Link& link) {
      if (link.run == entry) admit_to_store(link);
    });
  }
  keep_if_live(*entry);
  forget_if_unused(entry);
}

void Server::Impl::perform(RunEntry& entry, round::Actions actions) {
  for (round::Action& action : actions) {
    if (auto* one = std::get_if<round::Send>(&action)) {
      Link* link = links_.find(one->link.value());
      if (link == nullptr) continue;
      admit_to_store(*link);
      links_.send(*link, std::move(one->message));
    } else if (const auto* closing = std::get_if<round::Close>(&action)) {
      Link* link = links_.find(closing->link.value());
      if (link != nullptr) links_.close(*link);
    } else if (const auto* timer = std::get_if<round::ArmTimer>(&action)) {
      arm_run(entry, timer->deadline);
    } else if (const auto* said = std::get_if<round::Note>(&action)) {
      note(entry, *said);
    } else if (const auto* abdicated = std::get_if<round::Abdicate>(&action)) {
      if (options_.seat.on_abdicate) options_.seat.on_abdicate(abdicated->reason);
    } else if (std::holds_alternative<round::Resign>(action)) {
      resign(entry);
    } else {
      finish_run(entry);
    }
  }
}

void Server::Impl::arm_run(RunEntry& entry, TimePoint deadline) {
  entry.timer.expires_at(deadline);
  entry.timer.async_wait([self = shared_from_this(), waiting = entry.weak_from_this()](
                             const boost::system::error_code& error) {
    if (error || self->closed_) return;
    self->drain();
    const std::shared_ptr<RunEntry> run = waiting.lock();
    if (self->closed_ || run == nullptr) return;
    self->step(run, round::Tick{});
    self->settle_all();
  });
}

void Server::Impl::note(RunEntry& entry, const round::Note& note) {
  if (entry.notes.size() >= kNotesMax) entry.notes.pop_front();
  const TimePoint now = Clock::now();
  entry.notes.push_back({now, note.text});
  if (!options_.log || !entry.quota.try_take(now) || !quota_.try_take(now)) return;
  const bool warns = note.level == round::Level::kWarning;
  const std::string which = options_.only_run ? "" : " run_id=" + entry.id.value();
  const std::size_t omitted = entry.quota.take_omitted() + quota_.take_omitted();
  if (omitted > 0) options_.log->warn("omitted {} lines{}: too many in short time", omitted, which);
  const std::string& text = note.in_log.empty() ? note.text : note.in_log;
  options_.log->log(warns ? spdlog::level::warn : spdlog::level::info, "{}{}", text, which);
}

/// After each decision. The lineage is that of the author of its round, which may be another one
/// than the next round's: what its members can show.
void Server::Impl::keep_if_live(RunEntry& entry) {
  if (options_.live_runs == nullptr || entry.finished_at || !entry.run.rounds().formed()) return;
  const std::string_view lineage = round::lineage_of(entry.run.rounds().last().author);
  if (lineage.empty() || lineage == entry.kept) return;
  entry.kept = lineage;
  options_.live_runs->keep(entry.id, entry.kept);
}

// All its agents have left before it had a round: nothing is to be known of it, and the next agent
// brings its own terms. The agent that hosts a coordinator has one run, and comes back to it.
void Server::Impl::forget_if_unused(const std::shared_ptr<RunEntry>& entry) {
  if (options_.only_run || entry->finished_at || !entry->run.is_unused()) return;
  const auto found = runs_.find(entry->id.value());
  if (found == runs_.end() || found->second != entry) return;
  finish_run(*entry);
  runs_.erase(found);
}

// Agents that are still connected had time to disconnect.
void Server::Impl::finish_run(RunEntry& entry) {
  if (entry.finished_at) return;  // forgotten, with the loss of a link still to be handled
  entry.finished_at = Clock::now();
  if (!entry.kept.empty()) options_.live_runs->forget(entry.id, entry.kept);
  entry.timer.cancel();
  --unfinished_;
  const auto founder = founders_.find(entry.founder);
  if (founder != founders_.end() && --founder->second == 0) founders_.erase(founder);
  links_.for_each([&](Link& link) {
    if (link.run.get() != &entry) return;
    links_.flush(link);
    links_.mark_closed(link);
  });
}

bool Server::Impl::is_ending() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const auto& one) {
    const round::Phase phase = one.second->run.phase();
    return !one.second->finished_at &&
           (phase == round::Phase::kStopping || phase == round::Phase::kOver);
  });
}

/// Whether the agents may hear what follows at once. A verdict is recorded first: no node that
/// heard it ends while another one, which did not, finds a run that lives.
bool Server::Impl::tell_record(const RunEntry& entry) {
  RunRecord record = entry.run.record();
  if (record == last_record_) return true;
  const bool is_verdict = record.over && record.over != last_record_.over;
  last_record_ = std::move(record);
  if (is_verdict && !acts_to_the_end_) return false;
  options_.seat.on_record(last_record_);
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
    Link* link = links_.find(received->link.value());
    if (link == nullptr) return;
    const auto* beat = std::get_if<Beat>(&received->message);
    if (beat != nullptr && !beat->echo) links_.send(*link, Beat{});
    if (held_.size() >= kHeldMax) return links_.lose(*link, "it has too much to say meanwhile");
  }
  held_.push(std::move(entry), event);
  await_keeper();
  if (is_leave(event) && !may_act()) stop_asked_ = true;
  if (keeper_overdue_ || stop_asked_) end_without_keeper();
}

/// Nothing has to wait any more; what came is handled, in order.
void Server::Impl::release() {
  keeper_due_.reset();
  keeper_overdue_ = stop_asked_ = false;
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
  if (!keeper_due_ && !keeper_overdue_) keeper_due_ = Clock::now() + options_.seat.keeper_timeout;
}

// No other coordinator can have a round of these nodes: all members of the last one are connected
// here, and their ranks have exited with 0. So the verdict is known, even if another one may act.
void Server::Impl::end_without_keeper() {
  const std::string silence =
      options_.seat.keeper +
      (keeper_overdue_ ? " has not answered for " + duration_text(options_.seat.keeper_timeout) +
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
