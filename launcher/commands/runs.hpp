// The runs of this user on this machine, and how a command asks one. Blocks, each time at most
// control::kAnswerMax. Thread rule: the launcher's thread.
#pragma once

#include <sys/types.h>

#include <boost/json/object.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/control/request.hpp"
#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun::commands {

struct FoundRun {
  std::string socket;          // its path
  boost::json::object status;  // its answer; of one that does not answer, what it wrote before
  bool answered = false;       // within control::kAnswerMax
  /// The process that answers; 0: not known.
  [[nodiscard]] int agent() const;
  /// Whether its socket is gone.
  [[nodiscard]] bool has_ended() const;
};

/// Every ddprun that listens, in the order of their start; first those that do not answer.
[[nodiscard]] std::vector<FoundRun> find_runs(const Environment& environment);
/// `name`: a run id, the beginning of exactly one, or the pid of a ddprun. It may be one that does
/// not answer, also where only that one can be meant. Errors: kNotFound with what to try.
[[nodiscard]] Result<FoundRun> find_run(const std::string& name, const Environment& environment);
/// A request that was sent, and the connection that brings its answers.
struct Asked {
  std::string path;
  Result<Descriptor> socket;
};
[[nodiscard]] Asked send_to(const FoundRun& run, const control::Request& request);
struct Answer {
  enum class Kind { kDone, kRefused, kSilent };
  Kind kind = Kind::kSilent;
  std::string text{};            // its own, or why there is none
  boost::json::object object{};  // empty: silent
};
/// The next one, until `deadline`; none: until the connection ends.
using AnswerDeadline = std::optional<std::chrono::steady_clock::time_point>;
[[nodiscard]] Answer answer_of(const Asked& asked, const AnswerDeadline& deadline);
/// From now on.
[[nodiscard]] AnswerDeadline soon();

/// Members of an answer; 0, "" or an empty object where they are missing.
[[nodiscard]] std::int64_t number_in(const boost::json::object& object, const char* name);
[[nodiscard]] std::string text_in(const boost::json::object& object, const char* name);

// A run that does not answer: what is known of it all the same, and what to do. An answer that does
// not come says nothing of the run, whose ranks may hold their GPUs. Thread rule: the launcher's
// thread.

/// `why`: how its answer failed to come. `name`: what the user calls it.
[[nodiscard]] std::string silence_text(const FoundRun& run, const std::string& name,
                                       const std::string& why);
/// The same on standard error. Returns kCommandSilent.
int fail_silent(const FoundRun& run, const std::string& name, const std::string& why = "");

}  // namespace ddprun::commands
