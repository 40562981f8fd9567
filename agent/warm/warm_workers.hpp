// WarmWorkers: the processes behind a Stock: a template that has imported what the program imports,
// and workers forked ahead from it that wait to become the ranks of the next round
// (docs/RECOVERY.md). Never needed for correctness: whatever is unusual, workers start cold. Thread
// rule: the io_context's thread. Ownership: shared, because links and timers refer to it; what it
// holds outlives end().
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/proc/cgroup.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/warm/core/stock.hpp"
#include "agent/warm/hook.hpp"
#include "agent/warm/link.hpp"
#include "agent/warm/processes.hpp"

namespace ddprun::warm {

struct WarmInputs {
  const WarmConfig& config;
  int workers = 1;
  Orphans& orphans;
  std::optional<Cgroup> cgroup;  // of the run
  std::optional<rlimit> descriptor_limit;
  /// Why workers start cold; `again`: it was said before.
  std::function<void(const std::string& text, bool again)> note;
  /// A template has imported so many modules.
  std::function<void(int modules)> ready;
};

/// Where a template can learn what the program imports.
struct Teacher {
  int pid = 0;                     // of local rank 0, which runs
  std::function<bool()> is_early;  // it is known not to have taken a step so far
};

/// A worker of a round, in its seat; without a program: none is to be started there.
struct Wanted {
  Start start{};
  int stdout_fd = -1;  // stay the caller's
  int stderr_fd = -1;
};

class WarmWorkers : public std::enable_shared_from_this<WarmWorkers> {
 public:
  WarmWorkers(boost::asio::any_io_executor executor, WarmInputs inputs);

  /// A round is being stopped; another one may follow.
  void look() { perform(stock_.look(Clock::now())); }
  /// A round begins, with a worker for each seat. `answered` is called once, later, when it is
  /// known which of them take() has: at the latest after kAnswerMax, but with --warm=first the
  /// imports are waited for.
  void ask(std::vector<Wanted> wanted, std::function<void()> answered);
  /// `answered` is not called any more, and what was asked is given up.
  void release();
  /// The worker of this seat, which begins now; none: it has to be started cold.
  [[nodiscard]] std::optional<Child> take(int seat);
  /// All workers of the round run, one of which was started as `first`: the template is made for
  /// its like; without a program, as in the round before.
  void round_runs(Start first, Teacher teacher);
  /// All workers run, and no other round will come.
  void retire();
  /// Stops the template and those that wait as long as this process is stopped.
  void stop_groups() { pause_groups(true); }
  /// Continues them. What they were waited for has the time again in which they were stopped.
  void continue_groups(Duration stopped);
  /// Why the workers of the last round started cold, as far as that is known.
  [[nodiscard]] const std::string& why_cold() const { return why_cold_; }
  /// Ends all processes; completes when they have ended, or after kEndMax.
  [[nodiscard]] boost::asio::awaitable<void> end();

 private:
  struct Seat {
    std::unique_ptr<Link> link{};
    std::shared_ptr<Child> child{};  // none: it has not said yet who it is
    Processor before{};              // when it began to wait
  };

  void begin_template(const Start& first);
  void begin_template_later();
  [[nodiscard]] Result<void> start_interpreter(const std::vector<std::string>& argv,
                                               HookOrder order, Descriptors& passed);
  [[nodiscard]] Result<void> name_modules(HookOrder& order, Descriptors& passed) const;
  void take_message(const std::optional<std::string>& text);
  void take_answer(int seat, const std::optional<std::string>& text);
  [[nodiscard]] bool adopt(int seat, const std::string& text);
  void perform(const StockActions& actions);
  void act(const Park& action);
  void act(const Check&);
  void act(const Ask& action);
  void act(const Drop& action);
  void act(const EndTemplate&);
  void act(const Begin&);
  void act(const Again&);
  void act(const Note& action);
  void ask_now();
  void tell_if_answered();
  [[nodiscard]] Duration starved() const;
  void arm();
  void pause_groups(bool on);
  void kill(const std::shared_ptr<Child>& child);
  void bury(std::shared_ptr<Child> child);
  [[nodiscard]] static boost::asio::awaitable<void> wait_for(std::shared_ptr<WarmWorkers> self,
                                                             std::shared_ptr<Child> child);
  [[nodiscard]] std::optional<Cgroup> make_leaf();

  boost::asio::any_io_executor executor_;
  WarmInputs inputs_;
  Stock stock_;
  Start first_;
  Start made_;  // what the template was started with
  Teacher teacher_;
  std::unique_ptr<Link> template_link_;
  std::shared_ptr<Child> template_;
  std::vector<Seat> seats_;
  std::vector<Wanted> wanted_;  // while answers are waited for
  std::function<void()> answered_;
  bool waits_for_imports_ = false;
  bool asked_ = false;
  TimePoint asked_at_{};
  Processor template_before_{};       // when it was asked
  boost::asio::steady_timer due_;     // of the stock
  boost::asio::steady_timer refill_;  // of it
  boost::asio::steady_timer start_;   // of the template
  boost::asio::steady_timer ended_;   // never expires: cancelled when the last process is gone
  std::set<std::string> noted_;
  std::string why_cold_;
  int processes_ = 0;
  int leaves_ = 0;
  bool over_ = false;
};

}  // namespace ddprun::warm
