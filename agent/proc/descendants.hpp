// Descendants: what a worker had started and what still lives when it has ended, whatever process
// group or session it has made. They are the children of this process, a child subreaper, that are
// no workers (orphans.hpp), and what is below them; their session, the worker's cgroup or the mark
// in their environment tells whose they are. Nothing of a worker is left when no child of this
// process is its orphan. Thread rule: the io_context's thread. Ownership: a list of pids that
// no other part reaps; the destructor neither blocks nor kills.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {

// Processes that a worker left whose memory is evidence of a failure.
inline constexpr std::size_t kHeldProcessesMax = 256;

/// A worker that has ended and was reaped.
struct EndedWorker {
  pid_t pid = 0;
  std::string mark{};            // in the variable DDPRUN_WORKER of what it started
  std::optional<Cgroup> leaf{};  // that it was started in, with nothing else in it
  int last_signal = 0;           // that its process group got; 0: none
};

class Descendants {
 public:
  /// After Orphans::no_longer_except() of this worker.
  Descendants(boost::asio::any_io_executor executor, Orphans& orphans, EndedWorker worker);

  /// Whether anything but zombies is left, or may be. What is left and was not in the worker's
  /// process group gets the last signal now. Costs a few system calls and one file of the cgroup,
  /// if it had one, and some for each process that is left; on a kernel that lists no children a
  /// pass over /proc, but not while other workers live: then it stays unknown until signal() or
  /// their end. Without /proc what is in its process group gets SIGKILL, and counts as gone. kStay:
  /// the other workers outlive this round, so that their end is not waited for.
  enum class Others { kEnd, kStay };
  [[nodiscard]] bool look(Others others = Others::kEnd);
  /// Completes when nothing is left, without a poll. No deadline: the caller owns the order to end
  /// it.
  [[nodiscard]] boost::asio::awaitable<void> wait_until_gone();
  /// To all; what is forked meanwhile gets it as soon as it is seen, and SIGKILL is repeated until
  /// nothing new is seen. Where they are many, some get it in the next turns, while
  /// wait_until_gone() waits.
  void signal(int signal_number);
  /// SIGKILL to those that are there now, but for processes that end with their pipe.
  void kill_but_pipe_ends();
  /// How many are left, at most kHeldProcessesMax, and the memory that they hold.
  struct Held {
    int processes = 0;
    long long resident_bytes = 0;
  };
  [[nodiscard]] Held held() const;
  /// Those that live, at most `limit`, the oldest first.
  [[nodiscard]] std::vector<ProcessEntry> living(std::size_t limit) const;
  /// How many of them got a signal from here.
  [[nodiscard]] int signalled() const { return static_cast<int>(signalled_.size()); }

 private:
  using Number = Orphans::Number;
  /// Gets the last signal, and so does what is below it.
  struct Visit {
    pid_t pid;
    pid_t parent;
  };

  bool search();
  void adopt(Orphans::Pass pass);
  void kill_new();
  void claim(Number orphan, const ProcessEntry& process);
  [[nodiscard]] std::optional<bool> has_left(Number orphan, const ProcessEntry& process,
                                             const std::set<pid_t>& members) const;
  [[nodiscard]] bool any_lives();
  void greet(const ProcessEntry& process);
  void send(pid_t process, int signal_number);
  void signal_cgroup(int signal_number);
  void visit_some();
  [[nodiscard]] std::set<pid_t> members() const;
  [[nodiscard]] std::vector<ProcessEntry> find(std::size_t limit) const;

  boost::asio::any_io_executor executor_;
  Orphans& orphans_;
  EndedWorker worker_;
  Others others_ = Others::kEnd;
  Orphans::Seen seen_ = Orphans::Seen::kAll;
  Number seen_up_to_ = 0;       // these orphans were asked for their worker
  std::set<Number> its_{};      // those that are its; the first one lives, or all are asked
  std::set<Number> unclear_{};  // nothing told yet whose they are
  std::deque<Visit> to_visit_{};
  std::map<pid_t, int> signalled_{};  // with the last signal that each got from here
  bool group_had_signal_ = true;      // the last one, when it was sent to the worker
  std::set<pid_t> had_with_group_{};  // that one
  bool only_in_leaf_ = false;         // no orphan is left, but a process of its cgroup
};

/// Whether nothing else lives in the cgroup of a process, or without one, among its children and in
/// its session among the orphans. What has left them is not found. False where the kernel lists no
/// children.
[[nodiscard]] bool is_alone(pid_t process, const std::optional<Cgroup>& leaf, Orphans& orphans);

}  // namespace ddprun
