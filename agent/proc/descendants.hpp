// Descendants: what a worker had started and what still lives when it has ended, whatever process
// group or session it has made. The kernel knows where the worker had a cgroup of its own.
// Elsewhere, or when they have left it, they are the children of this process, a child subreaper,
// that are no workers, and what is below them; the mark in their environment tells whose they are,
// or else their session. Thread rule: the io_context's thread. Ownership: holds a pidfd for each
// process it watches; the destructor neither blocks nor kills.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {

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
  /// if it had one; a pass over /proc only where there is something, and not while other workers
  /// live on a kernel that lists no children: then it stays unknown until signal() or their end.
  /// What cannot be watched, because descriptors have run out, gets SIGKILL and counts as gone.
  /// kStay: the other workers outlive this round, so that their end is not waited for.
  enum class Others { kEnd, kStay };
  [[nodiscard]] bool look(Others others = Others::kEnd);
  /// Completes when nothing is left, without a poll. No deadline: the caller owns the order to end
  /// it.
  [[nodiscard]] boost::asio::awaitable<void> wait_until_gone();
  /// To all; what is forked meanwhile gets it as soon as it is seen, and SIGKILL is repeated until
  /// nothing new is seen.
  void signal(int signal_number);
  /// How many are watched, and the memory that they held when they were found.
  struct Held {
    int processes = 0;
    long long resident_bytes = 0;
  };
  [[nodiscard]] Held held() const;
  /// Those that live, the oldest first.
  [[nodiscard]] std::vector<ProcessEntry> living() const;
  /// How many of them got a signal from here.
  [[nodiscard]] int signalled() const { return static_cast<int>(signalled_.size()); }

 private:
  struct Member {
    boost::asio::posix::stream_descriptor end;
    ProcessEntry process;
  };
  using Processes = std::vector<ProcessEntry>;
  struct Seen {
    Processes living{};
    bool any_ended = false;
  };

  bool search();
  [[nodiscard]] std::optional<Processes> find() const;
  [[nodiscard]] std::optional<Processes> find_outside() const;
  [[nodiscard]] std::optional<Processes> find_in_leaf(const Cgroup& leaf) const;
  [[nodiscard]] std::optional<Seen> find_by_descent(int signal_on_sight) const;
  [[nodiscard]] bool has_left(const ProcessEntry& orphan) const;
  [[nodiscard]] bool watch(const ProcessEntry& process);
  [[nodiscard]] bool is_watched(const ProcessEntry& process) const;
  void forget_ended();
  void kill_all();
  [[nodiscard]] bool watch_all(const Processes& found, bool first);
  void send(Member& member, int signal_number);
  void count(const ProcessEntry& process) { signalled_.emplace(process.pid, process.started); }

  boost::asio::any_io_executor executor_;
  Orphans& orphans_;
  EndedWorker worker_;
  std::vector<std::unique_ptr<Member>> members_;
  std::set<std::pair<pid_t, unsigned long long>> signalled_;  // with their start
  bool unknown_ = false;
  bool looked_ = false;
};

}  // namespace ddprun
