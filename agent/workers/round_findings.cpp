// What a round finds out about ranks that failed, hang or do not die: complaints, stacks, evidence.
#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <utility>

#include "agent/config/received_signal.hpp"
#include "agent/events/run_events.hpp"
#include "agent/output/tail.hpp"
#include "agent/proc/connections.hpp"
#include "agent/proc/descendants.hpp"
#include "agent/proc/process_facts.hpp"
#include "agent/proc/progress.hpp"
#include "agent/report/complaint.hpp"
#include "agent/report/lines.hpp"
#include "agent/report/quotation.hpp"
#include "agent/watch/stack_groups.hpp"
#include "agent/watch/watch_lines.hpp"
#include "agent/workers/round.hpp"
#include "base/ending.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "net/bugs.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// Processes of all ranks of the node that are looked at when one complains of others: about 30 ms.
constexpr std::size_t kLookedAtMax = 512;

// Of what a rank said last, to tell in a few lines why it ended: there may be 512 ranks.
constexpr std::size_t kTellingBytesMax = std::size_t{8} << 10;

// Claims of one round for which /proc is read.
constexpr int kClaimsMax = 64;

/// There may be 512 ranks: the streams of few have to be set in order.
bool has_traceback(WorkerOutput& output) {
  output.catch_up();
  const auto is_in = [&output](Stream stream) {
    return output.tail(stream).find("Traceback") != std::string::npos;
  };
  return is_in(Stream::kStderr) || is_in(Stream::kStdout);
}

bool lives(pid_t pid) {
  const auto process = find_process(pid);
  return process && !process->ended;
}

}  // namespace

void RoundRunner::act(const local::LookForComplaint& action) {
  const LocalRank rank = action.rank;
  const WorkerOutputPlan& plan = worker(rank).output_plan;
  if (!unseen_file(plan.err).empty() || !unseen_file(plan.out).empty()) {
    asio::co_spawn(executor_, look_into_log(shared_from_this(), rank), net::rethrow_bug);
    return;
  }
  complaint_found(rank, find_complaint(account(rank)));
}

void RoundRunner::complaint_found(LocalRank rank, std::optional<Complaint> complaint) {
  timed_out_ = timed_out_ || (complaint && complaint->kind == ComplaintKind::kCollective);
  look_at_survivors();
  feed(local::ComplaintFound{rank, std::move(complaint)});
}

// The others are not stopped before it is read: a disk that stalls is not waited for.
asio::awaitable<void> RoundRunner::look_into_log(std::shared_ptr<RoundRunner> self,
                                                 LocalRank rank) {
  Worker& failed = self->worker(rank);
  failed.output->catch_up();
  // Each stream is in its file, or has passed here.
  std::function<std::string()> look = [plan = failed.output_plan,
                                       err = failed.output->last_words().text,
                                       out = failed.output->tail(Stream::kStdout)] {
    const auto text = [](const StreamPlan& stream) {
      return tail_of_file(unseen_file(stream), kTailBytesMax, stream.before);
    };
    return account_of(err + text(plan.err), out + text(plan.out));
  };
  const TimePoint deadline = Clock::now() + kComplaintMax;
  const auto tail = co_await run_on<std::string>(self->inputs_.disk, std::move(look), deadline);
  self->complaint_found(rank, find_complaint(tail ? *tail : std::string()));
}

// After a time-out the ranks are where they hang, until they are stopped. Other complaints do not
// wait for stacks.
asio::awaitable<void> RoundRunner::save_stacks(std::shared_ptr<RoundRunner> self) {
  const SavedStacks saved = co_await self->dump_stacks("a rank reported a time-out");
  const StackDump dump = living(saved.dump);
  const bool told = !dump.ranks.empty() && !self->round_->over();
  if (told) {
    std::string note = note_line("STACKS", groups_text(group_stacks(dump)));
    for (const std::string& line : ended_children(saved.dump)) note += labelled("evidence", line);
    self->inputs_.logger.info(note + (saved.file.empty() ? "" : labelled("log", saved.file)));
  }
  self->watch_->keep(saved.dump);
  self->look_at_survivors();
  self->feed(local::HearingOver{});
}

void RoundRunner::act(const local::AskStacks& action) {
  answer(StacksAsked{abort_with_stacks(action.ranks)});
}

std::vector<LocalRank> RoundRunner::abort_with_stacks(const std::vector<LocalRank>& ranks) {
  std::vector<LocalRank> aborted;
  std::vector<Rank> named;
  for (const LocalRank rank : ranks) {
    const Worker& target = worker(rank);
    const bool reachable = target.child && !round_->has_exited(rank);
    if (!reachable || watch_->has_python_of(target.child->pid())) continue;
    if (!abort_with_python_stacks(target.child->pid())) continue;
    aborted.push_back(rank);
    named.push_back(target.plan.rank);
  }
  if (aborted.empty()) return aborted;
  const std::string log = log_of(worker(aborted.front()).output_plan.err);
  inputs_.logger.info(note_line("STACKS", asked_text(named)) +
                      (log.empty() ? "" : labelled("log", log)));
  return aborted;
}

void RoundRunner::act(const local::ArmHearing& action) {
  if (timed_out_) {
    asio::co_spawn(executor_, save_stacks(shared_from_this()), net::rethrow_bug);
    return;
  }
  hearing_timer_.expires_at(action.deadline);
  hearing_timer_.async_wait([self = shared_from_this()](const auto& why) {
    if (why) return;
    self->look_at_survivors();
    self->feed(local::HearingOver{});
  });
}

void RoundRunner::act(const local::Look&) {
  feed(local::Looked{look_at_ranks(),
                     inputs_.store_waits ? inputs_.store_waits() : std::vector<StoreWait>()});
}

// The process that does the work, where the worker itself only waits for it.
std::vector<RankFacts> RoundRunner::look_at_ranks() {
  std::vector<RankFacts> ranks;
  const std::size_t share = std::max<std::size_t>(kLookedAtMax / workers_.size(), 1);
  const StoreLinks store(inputs_.facts.master_port);
  for (const auto& looked_at : workers_) {
    RankFacts& facts = ranks.emplace_back();
    facts.rank = looked_at->plan.rank;
    facts.local_rank = LocalRank(static_cast<int>(ranks.size()) - 1);
    if (!looked_at->child) continue;
    facts.pid = looked_at->child->pid();
    if (round_->has_exited(facts.local_rank)) continue;
    const auto processes = processes_below({facts.pid}, std::min(share, kProcessesOfRankMax));
    const std::vector<pid_t> working = working_processes(facts.pid, processes);
    const ProcessStacks process = read_process(working.front());
    if (process.state != '?') facts.state.assign(1, process.state);
    if (process.system_call != "running") facts.waits_in = process.system_call;
    facts.channel = process.wait_channel;
    if (working.front() == facts.pid) add_cpu(*looked_at, facts);
    if (!processes.empty()) facts.store = store.of(pids_of(processes));
    const std::string tail = account(facts.local_rank);
    facts.complaint = find_complaint(tail);
    facts.raised = facts.complaint ? facts.complaint->before : last_exception(tail);
    if (!facts.complaint && facts.raised.empty()) facts.raised = last_exception_in_thread(tail);
    if (const auto written = looked_at->output->last_written()) {
      facts.silent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *written);
    }
  }
  return ranks;
}

// Later: the store is still busy with the request by which it was seen.
void RoundRunner::rank_claimed(Round round, const RankClaims& claims) {
  if (round != inputs_.facts.round || !own_workers_.empty()) return;
  if (++claims_ > kClaimsMax) return;
  asio::post(executor_, [self = shared_from_this(), claims] { self->look_at_claims(claims); });
}

void RoundRunner::look_at_claims(const RankClaims& claims) {
  if (!own_workers_.empty() || round_->over()) return;
  Claimant first{static_cast<int>(claims.first)};
  Claimant second{static_cast<int>(claims.second)};
  // A process that it has left behind may hold the connection of one that has ended.
  const bool is_local = inputs_.facts.groups == 1;
  if (is_local && (!lives(first.pid) || !lives(second.pid))) return;
  for (const auto& planned : workers_) {
    if (!planned->child) continue;
    const pid_t leader = planned->child->pid();
    const auto processes = processes_below({leader}, kProcessesOfRankMax);
    const std::vector<pid_t> all = pids_of(processes);
    for (Claimant* claimant : {&first, &second}) {
      if (std::find(all.begin(), all.end(), claimant->pid) == all.end()) continue;
      claimant->below = planned->plan.rank;
      // A worker may be a shell, or another program, that waits for the one that trains.
      const std::vector<pid_t> working = working_processes(leader, processes);
      const bool stands_for_it = working == std::vector<pid_t>{claimant->pid};
      claimant->is_worker = claimant->pid == leader || stands_for_it;
    }
  }
  own_workers_ =
      own_workers_text(first, second, {inputs_.config.workers.count, inputs_.facts.groups});
  if (own_workers_.empty()) return;
  inputs_.events.record(own_workers_event(inputs_.facts.round, own_workers_));
  inputs_.logger.warn(warning_line("SPAWN", own_workers_));
}

// One small file of /proc for each worker: what a rank used shortly before it fails or is blamed.
void RoundRunner::sample_cpu() {
  cpu_timer_.expires_after(kCpuSampleInterval);
  cpu_timer_.async_wait([self = weak_from_this()](const boost::system::error_code& why) {
    const auto runner = why ? nullptr : self.lock();
    if (!runner) return;
    for (const LocalRank rank : runner->round_->group().running()) {
      Worker& running = runner->worker(rank);
      running.cpu_before = running.cpu_seen;
      running.cpu_seen = {Clock::now(), cpu_of(running.child->pid())};
    }
    runner->sample_cpu();
  });
}

// Over the last one to two intervals, or since its start.
void RoundRunner::add_cpu(const Worker& worker, RankFacts& facts) const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const Duration used = cpu_of(worker.child->pid()) - worker.cpu_before.used;
  facts.cpu = std::max(duration_cast<milliseconds>(used), milliseconds(0));
  facts.watched = duration_cast<milliseconds>(Clock::now() - worker.cpu_before.at);
}

// Of the processes of each rank together: one may continue what another has begun.
std::vector<RankProgress> RoundRunner::progress_of_left() const {
  std::vector<RankProgress> all;
  if (round_->group().state() != GroupState::kStraggling) return all;
  for (const LocalRank rank : round_->group().leaving()) {
    std::vector<pid_t> processes;
    const auto& descendants = worker(rank).descendants;
    if (!descendants) continue;
    for (const ProcessEntry& process : descendants->living(kHeldProcessesMax)) {
      processes.push_back(process.pid);
    }
    all.push_back(progress_of(processes));
  }
  return all;
}

void RoundRunner::act(const local::ReadRaised& action) {
  local::RaisedFound found;
  for (const LocalRank rank : action.ranks) found.ranks.emplace_back(rank, raised(rank));
  feed(std::move(found));
}

// Of a round that succeeded nothing is said.
std::vector<LocalRound::AtEnd> RoundRunner::ends() {
  const WorkerGroup& group = round_->group();
  const bool speaks = group.outcome() != GroupState::kSucceeded;
  std::vector<LocalRound::AtEnd> all;
  for (const LocalRank rank : local_ranks()) {
    LocalRound::AtEnd& end = all.emplace_back();
    if (!worker(rank).child) continue;
    end.worker = name_of(rank);
    end.descendants = descendants_ended(rank);
    using Life = WorkerRecord::Life;
    const Life life = group.worker(rank).life;
    if (life == Life::kLeaving) end.left = left_behind(rank);
    if (life == Life::kRunning || !end.left.empty()) end.stuck = stuck(rank);
    if (!speaks || !round_->has_exited(rank)) continue;
    end.line = likeness(rank);
    end.raised = raised(rank);
  }
  return all;
}

local::Raised RoundRunner::raised(LocalRank rank) {
  auto& output = worker(rank).output;
  if (!output || !has_traceback(*output)) return {};
  const std::string words = account(rank);
  const TimePoint at = output->last_written().value_or(Clock::now());
  if (auto complaint = find_complaint(words)) {
    std::string before = complaint->before;
    return {std::move(before), at, std::move(complaint)};
  }
  return {last_exception(words), at};
}

std::vector<RankException> RoundRunner::exceptions() {
  std::vector<RankException> exceptions;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const LocalRank rank(static_cast<int>(i));
    if (!worker(rank).output || !has_traceback(*worker(rank).output)) continue;
    const std::string words = account(rank);
    std::string said = last_exception(words);
    if (said.empty()) said = last_exception_in_thread(words);
    if (!said.empty()) exceptions.push_back({name_of(rank), std::move(said)});
  }
  return exceptions;
}

std::string RoundRunner::account(LocalRank rank) {
  WorkerOutput& output = *worker(rank).output;
  output.catch_up();
  return account_of(output.last_words().text, output.tail(Stream::kStdout));
}

std::optional<std::string> RoundRunner::likeness(LocalRank rank) {
  const auto& output = worker(rank).output;
  if (!output) return std::nullopt;
  std::string text = account(rank);
  text.erase(0, text.size() - std::min(text.size(), kTellingBytesMax));
  const std::string likeness = quotable(likeness_of(split_lines(text)));
  if (likeness.empty() && !output->sees_stderr()) return std::nullopt;
  return likeness;
}

void RoundRunner::hear(LocalRank rank, const worker_link::Report& report) {
  if (const auto* section = std::get_if<worker_link::OpenSection>(&report)) {
    return watch_->end_section(name_of(rank), {section->name, section->lasts, section->limit});
  }
  if (!inputs_.config.stopping.rejoin_timeout) return;
  if (std::holds_alternative<worker_link::Joined>(report)) joined(rank);
  if (std::holds_alternative<worker_link::Exits>(report)) exits(rank);
  if (!std::holds_alternative<worker_link::Survives>(report)) return;
  feed(local::Survives{rank});
  tell_spares();
}

// Where a restart follows there may be no report, or much before it.
void RoundRunner::act(const local::LogFailure& action) {
  const WorkerExit& first = action.first;
  if (first.given_up || !inputs_.facts.may_be_last) {
    return inputs_.logger.warn(death_line(first, action.others));
  }
  unsaid_failure_ = first;
  death_line_timer_.expires_after(death_line_delay(inputs_.config.stopping.failure_grace));
  death_line_timer_.async_wait([self = weak_from_this()](const auto& why) {
    const auto runner = why ? nullptr : self.lock();
    if (!runner || !runner->unsaid_failure_) return;
    const WorkerGroup& group = runner->round_->group();
    const auto until = group.spared_until();
    const Duration spare = until ? *until - Clock::now() : Duration(0);
    const auto running = static_cast<int>(group.running().size());
    runner->inputs_.logger.warn(death_line(*runner->unsaid_failure_, running, spare));
    runner->unsaid_failure_.reset();
  });
}

void RoundRunner::act(const local::LogLeftBehind& action) {
  LeftBehindFacts facts;
  facts.names = left_behind(action.rank);
  if (facts.names.empty()) return;  // gone by now
  facts.worker = name_of(action.rank);
  facts.signal = action.signal;
  facts.quiet = action.quiet;
  facts.since_exit = action.since_exit;
  facts.timeout = inputs_.config.stopping.straggler_timeout;
  const std::string line = left_behind_line(facts);
  return facts.quiet ? inputs_.logger.warn(line) : inputs_.logger.info(line);
}

int RoundRunner::pause(bool on) {
  int running = 0;
  for (const LocalRank rank : local_ranks()) {
    if (!worker(rank).child || round_->has_exited(rank)) continue;
    worker(rank).child->pause_group(on);
    ++running;
  }
  return running;
}

void RoundRunner::act(const local::LookForEvidence& action) {
  asio::co_spawn(executor_, look_into_files(shared_from_this(), action.rank), net::rethrow_bug);
}

asio::awaitable<void> RoundRunner::look_into_files(std::shared_ptr<RoundRunner> self,
                                                   LocalRank first) {
  const Worker& failed = self->worker(first);
  RoundEvidence::Sources sources;
  sources.error_file = failed.error_file;
  sources.plan = failed.output_plan;
  sources.stdout_tail = failed.output->tail(Stream::kStdout);
  WorkerOutput::LastWords words = failed.output->last_words();
  sources.stderr_tail = std::move(words.text);
  sources.of_both = words.of_both;
  sources.log_directory = self->log_directory();
  sources.facts = failed.facts;
  sources.pid = failed.child->pid();
  sources.status = *self->round_->group().worker(first).status;
  auto raw = co_await self->evidence_.look(std::move(sources));
  self->feed(local::EvidenceFound{std::move(raw)});
}

// The lines may be of an error file, whose text Python prints to stderr, too.
bool RoundRunner::is_shown(const WorkerExit& failed) const {
  if (failed.lines.empty() || failed.given_up) return false;
  const Worker& its = worker(failed.worker.local_rank);
  const Route route = its.output_plan.err.route;
  const bool shown = route == Route::kPass || route == Route::kLabel || route == Route::kTee;
  if (!its.output || !shown) return false;
  return its.output->tail(Stream::kStderr).find(failed.lines.back()) != std::string::npos;
}

std::vector<StuckProcess> RoundRunner::stuck(LocalRank rank) const {
  constexpr std::size_t kShown = 16;
  const Worker& target = worker(rank);
  std::vector<pid_t> pids;
  if (target.descendants) {
    for (const ProcessEntry& process : target.descendants->living(kShown)) {
      pids.push_back(process.pid);
    }
  } else {
    pids.push_back(target.child->pid());
  }
  std::vector<StuckProcess> stuck;
  for (std::size_t i = 0; i < pids.size() && i < kShown; ++i) {
    const ProcessStacks process = read_process(pids[i]);
    stuck.push_back(
        {process.pid, process.name, process.state, process.wait_channel, gpus_held_by(pids[i])});
  }
  return stuck;
}

}  // namespace ddprun
