#include "rendezvous/round/run.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace ddprun::round {

using namespace protocol;

Run::Run(RunOptions options) : options_(std::move(options)) {
  DDPRUN_ASSERT(!options_.run_id.value().empty());
  DDPRUN_ASSERT(!options_.author.empty());
}

Actions Run::step(const Event& event, TimePoint now) {
  now_ = std::max(now_, now);
  actions_.clear();
  ticked_ = std::holds_alternative<Tick>(event);
  extend_deadlines_after_stall();
  std::visit([this](const auto& one) { on(one); }, event);
  settle();
  stop_strays();
  announce_if_due();
  arm();
  return std::exchange(actions_, {});
}

void Run::on(const Received& received) {
  if (const auto* hello = std::get_if<Hello>(&received.message)) {
    return on_hello(received, *hello);
  }
  Agent* agent = roster_.by_link(received.link);
  if (agent == nullptr) {
    // An agent that was taken for lost may not know yet: it is not refused, it may say hello again.
    ++counters_.stale;
    return close(received.link);
  }
  roster_.heard(*agent, now_);
  if (std::holds_alternative<Beat>(received.message)) return send(agent->link, Beat{});
  if (const auto* report = std::get_if<Report>(&received.message))
    return on_report(*agent, *report);
  if (const auto* stopped = std::get_if<Stopped>(&received.message)) {
    return on_stopped(*agent, *stopped);
  }
  if (const auto* leave = std::get_if<Leave>(&received.message)) return on_leave(*agent, *leave);
  if (std::holds_alternative<Reconnecting>(received.message)) {
    close(agent->link);
    return roster_.unlink(*agent);
  }
  if (std::holds_alternative<Unknown>(received.message)) return;
  send(agent->link, Unknown{"an agent does not say this"});
}

void Run::on(const LinkLost& lost) {
  Agent* agent = roster_.by_link(lost.link);
  if (agent != nullptr) lose(*agent, lost.evidence, LinkEnd::kGone);
}

void Run::on(const Tick&) {
  if (!run_terms_) return;
  const Duration silence_max = terms().silence_max();
  const auto& silence = roster_.by_silence();
  while (!silence.empty() && now_ - silence.front()->heard >= silence_max) {
    Agent& longest = *silence.front();
    // An agent of this process was silent because the process was: a stall too short to notice
    // (extend_deadlines_after_stall) can still have been longer than the rest of its limit.
    if (longest.hello.runs_coordinator) {
      roster_.heard(longest, now_);
      continue;
    }
    lose(longest, reasons::silent(terms()), LinkEnd::kOpen);
  }
}

// The coordinator itself did not run. Agents may have given it up and be on their way back: they
// have the time that those of a coordinator that restarted have. A shorter lateness harms nobody:
// whoever is there has sent something, and that is read before a Tick.
void Run::extend_deadlines_after_stall() {
  if (!run_terms_ || !armed_ || roster_.empty()) return;
  const Duration late = now_ - *armed_;
  if (late <= terms().keep_alive_interval) return;
  for (Agent* agent : roster_.by_silence()) agent->heard = now_;
  const Duration window = terms().silence_max();
  for (auto* deadline : {&join_deadline_, &rebuild_deadline_, &answer_deadline_, &stop_deadline_}) {
    if (*deadline) *deadline = std::max(**deadline, now_ + window);
  }
  note(Level::kWarning, reasons::suspended(late, window));
}

void Run::on(const Shutdown& shutdown) {
  if (phase_ == Phase::kOver || phase_ == Phase::kStopping) return;
  if (answered_failure_) {
    failed_at_ = TimePoint{};
    return finish_failed(shutdown.reason);
  }
  finish(Done{shutdown.exit_code, shutdown.reason, "", std::nullopt});
}

void Run::settle() {
  if (phase_ == Phase::kRebuilding) settle_rebuilding();
  if (phase_ == Phase::kRunning) settle_running();
  if (phase_ == Phase::kForming) settle_forming();
  if (phase_ == Phase::kStopping && (roster_.active() == 0 || is_due(stop_deadline_))) conclude();
  if (phase_ != Phase::kOver || finished_) return;
  if (roster_.empty() || now_ >= *linger_deadline_) {
    finished_ = true;
    linger_deadline_.reset();
    actions_.emplace_back(Finish{verdict_->exit_code, verdict_->text});
  }
}

std::optional<TimePoint> Run::next_deadline() const {
  std::optional<TimePoint> next;
  const auto take = [&next](const std::optional<TimePoint>& one) {
    if (one && (!next || *one < *next)) next = one;
  };
  // What is due was settled in this step already, or waits for a Tick.
  const auto take_later = [&](const std::optional<TimePoint>& one) {
    if (one && *one > now_) take(one);
  };
  for (const auto* one : {&last_call_, &restart_at_, &linger_deadline_, &announce_at_})
    take_later(*one);
  for (const auto* one :
       {&join_deadline_, &rebuild_deadline_, &answer_deadline_, &stop_deadline_}) {
    if (!ticked_) take(*one);
    take_later(*one);
  }
  if (!roster_.empty() && !finished_) {
    take(roster_.by_silence().front()->heard + terms().silence_max());
  }
  return next;
}

// A later deadline than the armed one is not worth a system call: the early Tick moves it.
void Run::arm() {
  const std::optional<TimePoint> next = next_deadline();
  if (!next) {
    armed_.reset();
    return;
  }
  if (armed_ && *armed_ > now_ && *armed_ <= *next) return;
  armed_ = next;
  actions_.emplace_back(ArmTimer{*next});
}

void Run::send(LinkId link, Message message) {
  if (link != kNoLink) actions_.emplace_back(Send{link, std::move(message)});
}

void Run::close(LinkId link) {
  if (link != kNoLink) actions_.emplace_back(Close{link});
}

void Run::note(Level level, std::string text) {
  actions_.emplace_back(Note{level, std::move(text)});
}

void Run::announce_if_due() {
  const bool waits = phase_ == Phase::kRebuilding || (phase_ == Phase::kForming && !restart_at_);
  if (!waits) announce_at_.reset();
  if (!announce_at_ || now_ < *announce_at_) return;
  announce_at_.reset();
  announced_at_ = now_;
  Waiting waiting;
  waiting.here = roster_.size();
  waiting.nodes_min = terms().nodes_min;
  waiting.nodes_max = terms().nodes_max;
  waiting.round = Round(highest_);
  waiting.text = phase_ == Phase::kForming ? reasons::waiting(absence(), terms()) : why_;
  using protocol::WaitEnd;
  auto until = join_deadline_;
  if (phase_ == Phase::kRebuilding) {
    until = rebuild_deadline_;
    waiting.then = WaitEnd::kOthersAreLost;
  } else if (last_call_) {
    until = last_call_;
    waiting.then = WaitEnd::kRoundStarts;
  }
  if (until) waiting.left = std::chrono::duration_cast<Milliseconds>(*until - now_);
  for (const Agent* agent : roster_.by_silence()) send(agent->link, waiting);
  note(Level::kInfo, waiting.text);
}

bool Run::is_member(const Agent& agent) const {
  if (!round_lives() || !(agent.last == last_)) return false;
  const auto place = static_cast<std::size_t>(agent.group_rank);
  return agent.group_rank >= 0 && place < members_.size() && members_[place] == &agent;
}

bool Run::starts_new_run(const Hello& hello, TimePoint now) const {
  return over() && !hello.claim && now - hello.age > over_at_;
}

std::optional<Ended> Run::success() const {
  if (may_be_late()) return options_.succeeded;
  if (!over() || verdict_->exit_code != 0) return std::nullopt;
  return Ended{*verdict_, over_at_, static_cast<int>(members_.size())};
}

Status Run::status(TimePoint now) const {
  Status status;
  status.run_id = options_.run_id;
  status.phase = phase_;
  status.why = why_;
  status.round = last_;
  status.restarts = restarts_;
  status.counters = counters_;
  if (run_terms_) status.terms = run_terms_->terms;
  if (phase_ == Phase::kForming && !roster_.empty() && !restart_at_) {
    const reasons::Absence absent = absence();
    status.missing = absent.missing;
    status.why = reasons::waiting(absent, terms());
  }
  std::vector<const Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  const auto place = [this](const Agent* agent) {
    return std::pair(is_member(*agent) ? agent->group_rank : 1 << 30, agent->arrival);
  };
  std::sort(agents.begin(), agents.end(),
            [&](const Agent* left, const Agent* right) { return place(left) < place(right); });
  for (const Agent* agent : agents) {
    NodeStatus node;
    node.host = agent->host();
    node.address = agent->peer.address;
    node.group_rank = is_member(*agent) ? agent->group_rank : -1;
    node.rank_base = agent->placement.rank_base;
    node.workers = agent->hello.local_world_size;
    node.state = agent->state;
    node.silent = now - agent->heard;
    status.nodes.push_back(std::move(node));
  }
  return status;
}

}  // namespace ddprun::round
