// What the events.jsonl files of a run's nodes say, node by node and round by round. Files may be
// torn, hostile or of nodes that were killed: what cannot be read is counted, never guessed. Clocks
// of different nodes are never compared. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::explain {

/// Milliseconds on the clock of one node, since its ddprun started.
using Moment = std::optional<double>;

struct Exit {
  double at = 0;
  int rank = 0;
  int exit_code = 0;
  int signal = 0;
  int sent_signal = 0;  // 0: it ended by itself
};

struct Failure {
  std::string code{};
  std::string text{};  // "ended with exit code 3"
  int rank = 0;
  int pid = 0;
  std::string host{};
  double at = 0;
  bool given_up = false;  // ddprun gave up all ranks of the node; then `rank` is any of them
};

/// What the ranks of a node reported of their steps in a round.
struct Steps {
  std::int64_t first = 0;  // that all of them have finished
  std::int64_t last = 0;
  double from = 0;  // when the first was
  double to = 0;
};

/// One round as one node saw it.
struct RoundRecord {
  std::string cause{};
  std::string text{};
  int restarts = 0;
  int node = 0;
  int nodes = 0;
  int first_rank = 0;
  int world_size = 0;
  Moment decided{};
  Moment first_started{};
  Moment all_running{};
  bool keeps = false;  // workers of an earlier round
  Moment recovered{};  // all workers have taken it, if it keeps some
  Moment stop_began{};
  Moment ended{};
  std::string state{};  // succeeded, failed, stopped; empty: the record breaks off
  int stopped = 0;
  int killed = 0;
  int descendants = 0;  // of workers, that were ended
  int still_alive = 0;  // after SIGKILL
  std::string survivors{};
  std::vector<Exit> exits{};
  std::optional<Failure> failure{};
  std::string ordered_stop{};    // why the coordinator stopped it
  Moment stop_ordered{};         // when this node heard of that
  std::optional<Steps> steps{};  // none: not reported, or the record breaks off
};

/// To ddprun, that ends this node's part.
struct StopSignal {
  std::string name{};
  int round = 0;  // the last that the node knew of then
};

struct NodeRecord {
  std::string path{};
  std::string run{};
  std::string host{};
  std::map<int, RoundRecord> rounds{};
  int nodes_max = 0;  // 0: not recorded
  std::vector<StopSignal> signals{};
  std::optional<Failure> verdict{};  // who failed first in the run; what the coordinator found
  std::optional<Failure> told{};     // the same, as it ended; `at`: since all ranks of its node ran
  int verdict_round = 0;
  std::string verdict_text{};  // empty: this node heard no verdict
  std::string verdict_also{};  // what it says of another rank; empty: nothing
  int verdict_code = 0;
  std::string let_go{};   // what the coordinator said of the run without this node
  std::string outcome{};  // of this node; empty: the record has no end
  int exit_code = 0;
  std::string end_text{};
  double last = 0;               // the last moment recorded
  std::string last_time{};       // the same, by the clock of the host
  std::uint64_t unreadable = 0;  // lines
  std::uint64_t missing = 0;     // by their numbers
  bool disk_full = false;        // now, where the file is; the caller says so
};

using Nodes = std::vector<NodeRecord>;

/// Beyond it nothing of a file is read.
inline constexpr std::size_t kFileBytesMax = 256 * 1024 * 1024;
/// A longer line counts as unreadable.
inline constexpr std::size_t kLineBytesMax = 1024 * 1024;

[[nodiscard]] NodeRecord read_record(const std::string& path, std::string_view text);

}  // namespace ddprun::explain
