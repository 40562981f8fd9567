#include "agent/proc/descendants.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "base/pipe_end.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// A look at the children of this process misses those that fork and exit meanwhile. More looks than
// this at a time cost more than they find.
constexpr int kPassesMax = 30;
// Between two looks at a cgroup that has processes which are no descendants of this one.
constexpr std::chrono::milliseconds kLeafInterval{10};

/// The part of a worker's mark that all workers of one run of ddprun share.
std::string run_of(const std::string& mark) {
  return mark.substr(0, mark.find('/') + 1);
}

}  // namespace

Descendants::Descendants(asio::any_io_executor executor, Orphans& orphans, EndedWorker worker)
    : executor_(std::move(executor)), orphans_(orphans), worker_(std::move(worker)) {}

bool Descendants::look(Others others) {
  others_ = others;
  return search();
}

// A process of its cgroup that is no descendant of this one, because a parent between them is a
// subreaper, or none can be made: the kernel tells nothing of its end.
bool Descendants::search() {
  const bool populated = worker_.leaf && worker_.leaf->populated();
  if (populated && worker_.last_signal == SIGKILL) worker_.leaf->kill();
  const bool asks = others_ == Others::kStay || populated;
  adopt(asks ? Orphans::Pass::kAlways : Orphans::Pass::kWhereAlone);
  // Its group has its number as long as anything is in it.
  if (seen_ == Orphans::Seen::kNoProc) ::kill(-worker_.pid, SIGKILL);
  if (seen_ == Orphans::Seen::kNoProc) return false;
  if (worker_.last_signal == SIGKILL) kill_new();
  visit_some();
  const bool all_seen = seen_ == Orphans::Seen::kAll && to_visit_.empty();
  if (all_seen) group_had_signal_ = false;
  const bool any = any_lives() || !all_seen;
  only_in_leaf_ = !any && populated && !members().empty();
  return any || only_in_leaf_;
}

asio::awaitable<void> Descendants::wait_until_gone() {
  asio::steady_timer next(executor_);
  boost::system::error_code ignored;
  while (search()) {
    if (only_in_leaf_) {
      next.expires_after(kLeafInterval);
      co_await next.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    } else {
      co_await orphans_.wait_for_news();
    }
  }
}

void Descendants::adopt(Orphans::Pass pass) {
  seen_ = orphans_.look(pass);
  const auto& left = orphans_.left();
  const bool again = orphans_.no_child_excepted() || !any_lives();
  const std::set<Number> before = again ? std::exchange(unclear_, {}) : std::set<Number>();
  const bool any_new = !left.empty() && left.rbegin()->first > seen_up_to_;
  if (!any_new && before.empty()) return;
  const std::set<pid_t> in_cgroup = members();
  const auto ask = [&](Number orphan, const ProcessEntry& process) {
    const auto is_its = has_left(orphan, process, in_cgroup);
    if (!is_its) unclear_.insert(orphan);
    if (is_its.value_or(false)) claim(orphan, process);
  };
  for (const Number orphan : before) {
    const auto found = left.find(orphan);
    if (found != left.end()) ask(orphan, found->second);
  }
  for (auto next = left.upper_bound(seen_up_to_); next != left.end(); ++next) {
    ask(next->first, next->second);
    seen_up_to_ = next->first;
  }
}

// What its cgroup killed, and what was forked meanwhile: until nothing new is seen. A look is
// faster than a fork.
void Descendants::kill_new() {
  for (int pass = 0; pass < kPassesMax && seen_ != Orphans::Seen::kPart; ++pass) {
    const Number before = seen_up_to_;
    visit_some();
    orphans_.expect_more();
    adopt(Orphans::Pass::kAlways);
    if (seen_up_to_ == before) return;
  }
}

void Descendants::claim(Number orphan, const ProcessEntry& process) {
  its_.insert(orphan);
  if (worker_.last_signal == 0) return;
  greet(process);
  to_visit_.push_back({process.pid, process.parent});
}

// A process may have left the cgroup (`systemd-run --scope`, `cgexec`), the session, or both. None:
// it is any worker's.
std::optional<bool> Descendants::has_left(Number orphan, const ProcessEntry& process,
                                          const std::set<pid_t>& members) const {
  if (process.session == worker_.pid || members.count(process.pid) != 0) return true;
  const std::string& mark = orphans_.mark_of(orphan);
  const bool of_this_run = !worker_.mark.empty() && mark.find(run_of(worker_.mark)) != mark.npos;
  if (of_this_run) return (mark + ",").find(worker_.mark + ",") != mark.npos;
  if (orphans_.no_child_excepted()) return true;
  return std::nullopt;
}

bool Descendants::any_lives() {
  while (!its_.empty() && orphans_.left().count(*its_.begin()) == 0) its_.erase(its_.begin());
  return !its_.empty();
}

// A process that was in the worker's group when a signal came has had it.
void Descendants::greet(const ProcessEntry& process) {
  const bool has_it = group_had_signal_ && process.group == worker_.pid;
  if (has_it) had_with_group_.insert(process.pid);
  const bool again = !has_it && had_with_group_.count(process.pid) != 0;
  if (!has_it && (!again || worker_.last_signal == SIGKILL)) send(process.pid, worker_.last_signal);
}

// It is our child that was not reaped, or was below one a moment ago: its pid is its own.
void Descendants::send(pid_t process, int signal_number) {
  const auto known = signalled_.find(process);
  const bool had_it = known != signalled_.end() && known->second == signal_number;
  if (had_it && signal_number != SIGKILL) return;
  signalled_[process] = signal_number;
  ::kill(process, signal_number);
}

void Descendants::visit_some() {
  while (!to_visit_.empty() && orphans_.spend()) {
    const Visit visit = to_visit_.front();
    to_visit_.pop_front();
    const auto process = find_process(visit.pid);
    if (!process || process->ended || process->parent != visit.parent) continue;
    greet(*process);
    // A stopped process takes a signal when it continues.
    if (process->state == 'T') ::kill(visit.pid, SIGCONT);
    for (const pid_t child : children_of(visit.pid)) to_visit_.push_back({child, visit.pid});
  }
}

// One that forks meanwhile escapes, until signal() follows.
void Descendants::kill_but_pipe_ends() {
  search();
  for (const ProcessEntry& process : find(kHeldProcessesMax)) {
    if (!ends_with_its_pipe(process.pid, process.parent)) send(process.pid, SIGKILL);
  }
}

void Descendants::signal(int signal_number) {
  adopt(Orphans::Pass::kAlways);
  group_had_signal_ = false;
  had_with_group_.clear();
  worker_.last_signal = signal_number;
  to_visit_.clear();
  const auto& left = orphans_.left();
  for (const Number orphan : its_) {
    const auto found = left.find(orphan);
    if (found != left.end()) claim(orphan, found->second);
  }
  if (worker_.leaf && (signal_number == SIGKILL || its_.empty())) signal_cgroup(signal_number);
  if (signal_number == SIGKILL) kill_new();
  visit_some();
  orphans_.wake();
}

// SIGKILL is atomic there: a fork cannot escape it.
void Descendants::signal_cgroup(int signal_number) {
  for (const pid_t member : members()) {
    if (signal_number == SIGKILL) signalled_[member] = SIGKILL;
    if (signal_number != SIGKILL && member > 0) send(member, signal_number);
  }
  if (signal_number == SIGKILL) worker_.leaf->kill();
}

std::set<pid_t> Descendants::members() const {
  if (!worker_.leaf) return {};
  const std::vector<pid_t> all = worker_.leaf->members();
  return {all.begin(), all.end()};
}

Descendants::Held Descendants::held() const {
  Held held;
  for (const ProcessEntry& process : find(kHeldProcessesMax)) {
    ++held.processes;
    held.resident_bytes += process.resident_bytes;
  }
  return held;
}

std::vector<ProcessEntry> Descendants::living(std::size_t limit) const {
  std::vector<ProcessEntry> processes = find(limit);
  // Pids start again at a low number when the highest is reached, so they tell no order.
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto& one, const auto& other) { return one.started < other.started; });
  return processes;
}

std::vector<ProcessEntry> Descendants::find(std::size_t limit) const {
  if (seen_ != Orphans::Seen::kAll) static_cast<void>(orphans_.look(Orphans::Pass::kAlways));
  const std::set<pid_t> in_cgroup = members();
  std::vector<pid_t> roots;
  for (const auto& [orphan, process] : orphans_.left()) {
    const bool is_its =
        its_.count(orphan) != 0 || has_left(orphan, process, in_cgroup).value_or(false);
    if (is_its) roots.push_back(process.pid);
  }
  if (roots.empty()) roots.assign(in_cgroup.begin(), in_cgroup.end());
  return processes_below(roots, limit);
}

// The kernel lists no zombie in a cgroup.
bool is_alone(pid_t process, const std::optional<Cgroup>& leaf, Orphans& orphans) {
  if (leaf) {
    const std::vector<pid_t> members = leaf->members();
    return std::all_of(members.begin(), members.end(),
                       [process](pid_t member) { return member == process; });
  }
  if (orphans.look() != Orphans::Seen::kAll) return false;
  const auto lives = [](pid_t child) {
    const auto entry = find_process(child);
    return entry && !entry->ended;
  };
  const std::vector<pid_t> children = children_of(process);
  if (std::any_of(children.begin(), children.end(), lives)) return false;
  const auto& left = orphans.left();
  return std::none_of(left.begin(), left.end(),
                      [process](const auto& orphan) { return orphan.second.session == process; });
}

}  // namespace ddprun
