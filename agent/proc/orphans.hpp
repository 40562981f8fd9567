// Orphans: processes left behind by workers, which become children of this process: it is their
// child subreaper. This knows each of them, reads its facts once, and reaps it when it ends. Its
// work grows with what workers left, not with the machine, and has a share of each turn of the
// event loop. Thread rule: the io_context's thread. Ownership: must outlive its users.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "agent/proc/process_table.hpp"

namespace ddprun {

// Processes that workers left and that are looked at for the first time, or get a signal with what
// is below them, in one turn of the event loop: about 5 ms. The others have theirs in the next one.
inline constexpr int kOrphansPerTurn = 256;

class Orphans {
 public:
  /// Makes this process a child subreaper.
  explicit Orphans(boost::asio::any_io_executor executor);
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  /// Excludes a child whose status is collected elsewhere: it is no orphan. Call before the event
  /// loop runs again after the child was started: a child that is not excluded counts as left
  /// behind by a worker, and is ended with its round.
  void except(pid_t child) {
    forget(child);
    standing_.erase(child);
    own_.insert(child);
  }
  /// The same for a child that may outlive all workers of a round.
  void except_standing(pid_t child) {
    forget(child);
    standing_.insert(child);
  }
  /// The status has been collected; the pid may be reused by an orphan.
  void no_longer_except(pid_t child);
  [[nodiscard]] bool is_excepted(pid_t child) const {
    return own_.count(child) != 0 || standing_.count(child) != 0;
  }
  /// Whether all children are orphans, but for the standing ones.
  [[nodiscard]] bool no_child_excepted() const { return own_.empty(); }

  /// Reaps orphans when SIGCHLD arrives, until cancelled.
  [[nodiscard]] boost::asio::awaitable<void> reap();

  /// In the order in which orphans were seen; no number is used twice.
  using Number = std::uint64_t;
  /// kPart: the share of this turn is used up; wake() follows in the next one. kUnknown: the kernel
  /// lists no children, and while some are excepted a pass over /proc is not worth it. kNoProc:
  /// there is no /proc, which alone tells.
  enum class Seen { kAll, kPart, kUnknown, kNoProc };
  enum class Pass { kWhereAlone, kAlways };
  /// Takes up the orphans that are new, and reaps those that have ended. Costs a few system calls
  /// where there are none.
  [[nodiscard]] Seen look(Pass pass = Pass::kWhereAlone);
  /// The next look() of this turn reads the children again.
  void expect_more() { looked_.reset(); }
  /// Whether the share of this turn has something left for one more process; it is used then. Else
  /// wake() follows in the next turn.
  [[nodiscard]] bool spend();
  /// Those that have not been reaped, as they were when they were first seen.
  [[nodiscard]] const std::map<Number, ProcessEntry>& left() const { return left_; }
  /// The mark in its environment (DDPRUN_WORKER). Read until it is there once.
  [[nodiscard]] const std::string& mark_of(Number orphan);

  /// Completes when orphans have ended or no child but the standing ones is excepted any more, or
  /// at wake().
  [[nodiscard]] boost::asio::awaitable<void> wait_for_news();
  void wake() { news_.cancel(); }

 private:
  void reap_ended();
  bool reap_if_ended(pid_t child);
  [[nodiscard]] Seen find_new();
  bool take(pid_t child);
  void forget(pid_t child);
  void begin_share();
  void end_share();

  boost::asio::any_io_executor executor_;
  int children_;  // the kernel's list, open because descriptors may run out; -1: there is none
  boost::asio::signal_set ended_;
  boost::asio::steady_timer news_;  // never expires
  std::set<pid_t> own_;
  std::set<pid_t> standing_;
  std::map<Number, ProcessEntry> left_;
  std::unordered_map<pid_t, Number> numbers_;
  std::unordered_map<Number, std::string> marks_;
  Number last_number_ = 0;
  bool sharing_ = false;          // until the next turn
  int spent_ = 0;                 // in this turn
  std::optional<Seen> looked_{};  // in this turn, and nothing has ended since
};

}  // namespace ddprun
