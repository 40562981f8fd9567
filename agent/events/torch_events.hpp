// TorchEvents: the events that torchrun writes with --event-log-handler=console, with its fields
// (torch.distributed.elastic.events), for programs that read them. docs/TORCHRUN.md says which
// values differ. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/plan.hpp"
#include "agent/events/event.hpp"

namespace ddprun {

// An error file of a worker that --event-log-handler=console shows; of a larger one nothing.
inline constexpr std::size_t kTorchErrorBytesMax = 16 * 1024;

class TorchEvents {
 public:
  TorchEvents(const LaunchConfig& config, std::string host);

  /// Each line is one JSON object, without a newline.
  using Lines = std::vector<std::string>;
  /// A round was decided `took` after the one before had ended here, or after the start.
  [[nodiscard]] Lines round(const RoundFacts& facts, Duration took, WallTime now);
  /// Of events.jsonl.
  [[nodiscard]] Lines take(const RunEvent& event, WallTime now);

  struct End {
    bool succeeded = false;
    std::string text{};            // why not
    std::optional<Rank> failed{};  // the first, if it is of this node
    std::string error_json{};      // what that one wrote to its error file; empty: nothing
    Duration took{};
  };
  [[nodiscard]] Lines end(const End& end, WallTime now) const;

 private:
  struct Worker {
    int pid = 0;
    std::optional<int> exit_code{};  // as in Python: below 0 by a signal
    bool was_stopped = false;        // by ddprun
  };
  // What an event is about.
  struct Part {
    std::string state{};
    std::optional<LocalRank> worker{};  // none: the agent
    boost::json::value raw_error{};
    boost::json::value duration_ms{};
    bool failed = false;  // of a worker: its exit code and pid are named
    Duration took{};
  };

  [[nodiscard]] std::string line(const Part& part, WallTime now) const;
  [[nodiscard]] std::string details(const Part& part) const;
  [[nodiscard]] Part end_of(LocalRank rank, const Worker& worker, const End& end) const;

  std::string run_;
  std::string role_;
  std::string host_;
  std::string backend_;
  std::string entry_point_;
  RoundFacts facts_{};
  std::map<LocalRank, Worker> workers_{};  // of the last round
};

}  // namespace ddprun
