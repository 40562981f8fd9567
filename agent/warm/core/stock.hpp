// Stock: the template of one node and the workers that wait, forked ahead from it, in one seat per
// local rank. Decides when to fork, to ask, to give up and to start cold. Pure: takes an event and
// the time, returns what to do; no process, socket, clock or log.
//
//   template: none -> starting -> importing -> ready -> none (ended, or files changed: a new one)
//                         +-----------+----------+---> over (refused, for the rest of the run)
//   seat:     empty -> forking -> parked -> asked -> agreed -> empty (taken)
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/environment.hpp"

namespace ddprun::warm {

// The limits of agent/warm; what happens beyond each is cold starts.

// From the start of a template, or of the probe before it, to its first message.
inline constexpr std::chrono::seconds kHelloMax{10};
// For the imports.
inline constexpr std::chrono::minutes kImportMax{10};
// For the forks of the workers that wait.
inline constexpr std::chrono::seconds kForkMax{30};
// From the order to become a rank, or the answer of another one, to the answer; time in which a
// process was ready to run and got no processor does not count.
inline constexpr std::chrono::milliseconds kAnswerMax{500};
// It all counts after this.
inline constexpr std::chrono::seconds kAllAnswersMax{5};
// A look at the files of the modules that is older is no answer for a round.
inline constexpr std::chrono::seconds kLookMax{1};
// After all ranks run: until then the processors are theirs.
inline constexpr std::chrono::milliseconds kRefillAfter{250};
// Templates of one run: one that ended, or whose files changed, is replaced.
inline constexpr int kTemplatesMax = 5;
// What an interpreter can print before it imports the hook (unprivileged processes may have it).
inline constexpr int kEarlyBytes = 1 << 20;
// One message of a template; a longer one is malformed.
inline constexpr std::size_t kMessageBytesMax = 1024;
// Descriptors in one message (SCM_RIGHTS takes 253).
inline constexpr std::size_t kDescriptorsMax = 64;
// For processes to end at the end of the run.
inline constexpr std::chrono::seconds kEndMax{2};

struct Park {
  std::vector<int> seats;
  bool ahead = true;  // no round waits for them
};                    // the template forks one worker for each
struct Check {};      // the template looks whether the files of its modules are still the same
struct Ask {
  int seat = 0;
};  // the worker there becomes its rank, but does not begin
struct Drop {
  int seat = 0;
};                      // the worker there is killed
struct EndTemplate {};  // the template is killed
struct Begin {};        // the interpreter imports the hook: the template is started
struct Again {};        // another template is started at once
struct Note {
  std::string text;
};  // for the user: why workers start cold
using StockAction = std::variant<Park, Check, Ask, Drop, EndTemplate, Begin, Again, Note>;
using StockActions = std::vector<StockAction>;

enum class TemplateState { kNone, kStarting, kImporting, kReady, kOver };
enum class SeatState { kEmpty, kForking, kParked, kAsked, kAgreed };

class Stock {
 public:
  /// `ahead`: workers are forked before they are needed.
  explicit Stock(int seats, bool ahead = true)
      : seats_(static_cast<std::size_t>(seats)), ahead_(ahead) {}

  /// Whether a template may be started now.
  [[nodiscard]] bool wants_template() const;
  /// The interpreter, without the program, to see whether it imports the hook.
  [[nodiscard]] StockActions probe_started(int pid, TimePoint now);
  [[nodiscard]] StockActions template_started(int pid, TimePoint now);
  /// No worker to learn from is left; the next round may have a template.
  [[nodiscard]] StockActions put_off();
  /// For good.
  [[nodiscard]] StockActions refuse(const std::string& why);
  [[nodiscard]] StockActions message(std::string_view text, TimePoint now);
  /// Its link is closed.
  [[nodiscard]] StockActions template_ended();

  [[nodiscard]] StockActions parked(int seat, TimePoint now);
  [[nodiscard]] StockActions agreed(int seat, TimePoint now);
  /// Its link is closed, or it sent something else.
  [[nodiscard]] StockActions lost(int seat);

  /// A round will begin soon: the template looks at its files meanwhile.
  [[nodiscard]] StockActions look(TimePoint now);
  /// A round begins: the workers of these seats become ranks. Where none waits, one is forked.
  [[nodiscard]] StockActions ask(const std::vector<int>& seats, TimePoint now);
  /// Whether no answer is waited for.
  [[nodiscard]] bool answered() const;
  /// Whether that of the template is.
  [[nodiscard]] bool checking() const { return checking_; }
  /// Whether the seat's worker has agreed; it has left the seat then, and may begin.
  [[nodiscard]] bool take(int seat);
  /// The start of the round is over: those that were asked and not taken are of no use.
  [[nodiscard]] StockActions release();
  /// All workers run: empty seats are filled for the next round.
  [[nodiscard]] StockActions refill(TimePoint now);

  /// `starved`: how long, since ask(), one that has not answered was ready to run and got no
  /// processor.
  [[nodiscard]] StockActions tick(TimePoint now, Duration starved = Duration(0));
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  /// The template and those that wait were stopped for so long.
  void extend(Duration by);

  /// Whether nothing is to be waited for: every seat is filled, or will not be.
  [[nodiscard]] bool settled() const;
  [[nodiscard]] TemplateState state() const { return state_; }
  [[nodiscard]] SeatState seat(int seat) const { return at(seat).state; }
  /// Of what templates learn: the first module of each that the next ones leave out.
  [[nodiscard]] const std::vector<std::string>& cuts() const { return cuts_; }

 private:
  struct Seat {
    SeatState state = SeatState::kEmpty;
    bool wanted = false;  // to be asked as soon as it is parked
  };
  [[nodiscard]] Seat& at(int seat) { return seats_.at(static_cast<std::size_t>(seat)); }
  [[nodiscard]] const Seat& at(int seat) const { return seats_.at(static_cast<std::size_t>(seat)); }
  [[nodiscard]] bool any(SeatState state) const;
  [[nodiscard]] StockActions give_up(TemplateState next, const std::string& why);
  [[nodiscard]] StockActions spoilt(std::string_view text);
  [[nodiscard]] StockActions drop_silent();
  void answer_came(TimePoint now);
  void drop_all(StockActions& actions);

  std::vector<Seat> seats_;
  bool ahead_;
  std::vector<std::string> cuts_;
  TemplateState state_ = TemplateState::kNone;
  int templates_ = 0;  // started so far
  int pid_ = 0;        // of the template
  bool checking_ = false;
  std::optional<TimePoint> looked_at_;
  std::string changed_;                    // what a look found that no round has asked about yet
  std::optional<TimePoint> template_due_;  // for the next message of the template, or its forks
  std::optional<TimePoint> answers_due_;
  TimePoint answered_at_{};  // the last one, or the question
  TimePoint asked_at_{};
};

/// What a worker is started with.
struct Start {
  std::string program{};  // its path
  std::vector<std::string> argv{};
  Environment environment{};  // complete
  /// What a process inherits: "working directory" -> "/data", "umask" -> "0022".
  std::map<std::string, std::string> inherited{};
};

/// Whether a variable differs by design from rank to rank or from round to round: a template has
/// none of these.
[[nodiscard]] bool is_late(std::string_view name);

/// The environment that a worker and its template have in common.
[[nodiscard]] Environment common_environment(const Environment& environment);

/// What `wanted` has that a worker forked from `made` would not have: "OMP_NUM_THREADS", "the
/// working directory". Empty: nothing.
[[nodiscard]] std::string difference(const Start& made, const Start& wanted);

}  // namespace ddprun::warm
