// The runs of this user on this machine, and how a command asks one. Blocks, each time at most
// control::kAnswerMax. Thread rule: the launcher's thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "agent/control/request.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun::commands {

struct FoundRun {
  std::string socket;          // its path
  boost::json::object status;  // its answer; empty: it did not answer
  [[nodiscard]] bool answered() const { return !status.empty(); }
};

/// Every ddprun that listens, in the order of their start; first those that do not answer.
[[nodiscard]] std::vector<FoundRun> find_runs(const Environment& environment);
/// `name`: a run id, the beginning of exactly one, or the pid of a ddprun. Errors: kNotFound with
/// what to try.
[[nodiscard]] Result<FoundRun> find_run(const std::string& name, const Environment& environment);

/// The answer's text. Errors: kSystem when it does not answer, or refuses.
[[nodiscard]] Result<std::string> ask(const FoundRun& run, const control::Request& request);

/// Members of an answer; 0, "" or an empty object where they are missing.
[[nodiscard]] std::int64_t number_in(const boost::json::object& object, const char* name);
[[nodiscard]] std::string text_in(const boost::json::object& object, const char* name);

}  // namespace ddprun::commands
