// The requests of the control socket: one JSON object on one line, answered by one. Pure. Input may
// be hostile: size, nesting and types are checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprun::control {

// One request, a line of JSON; a longer one is refused and the connection closed.
inline constexpr std::size_t kRequestBytesMax = 4096;
// A client reads so much of an answer; a longer one is an error.
inline constexpr std::size_t kAnswerBytesMax = 64 * 1024 * 1024;
// How long a client waits for the answer of one ddprun.
inline constexpr std::chrono::seconds kAnswerMax{3};

enum class Command { kStatus, kSignal, kStop, kStacks };

struct Request {
  Command command = Command::kStatus;
  int signal = 0;          // of kSignal, like the next
  bool force = false;      // also where ranks would end by it
  bool all_nodes = false;  // of kStop: the run ends on every node
  bool waits = false;      // of kStop: a second answer says how it ended here
};

/// The line without its end. Errors: kUsage with what is wrong.
[[nodiscard]] Result<Request> parse_request(std::string_view line);
/// The line with its end.
[[nodiscard]] std::string encode(const Request& request);

/// What became of a run when its ddprun here has ended.
struct Outcome {
  bool run_ended = false;  // on every node; else this node alone has left it, as far as is known
  std::string text{};
};
/// `{"ok":true,"run_ended":...,"text":...}`
[[nodiscard]] std::string encode(const Outcome& outcome);
/// `{"ok":true,"text":...}`
[[nodiscard]] std::string encode_done(std::string_view text);
/// `{"ok":false,"text":...}`
[[nodiscard]] std::string encode_refused(std::string_view sentence);

}  // namespace ddprun::control
