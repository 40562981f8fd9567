// What the events.jsonl files of a run's nodes say, node by node and round by round. Files may be
// torn, hostile or of nodes that were killed: what cannot be read is counted, never guessed. Clocks
// of different nodes are never compared. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// What the records of a run's nodes tell together: who failed in a round and why it ended, and how
// the run did.

/// As this node saw the round; null: it did not.
[[nodiscard]] const RoundRecord* round_of(const NodeRecord& node, int round);
[[nodiscard]] std::set<int> rounds_of(const Nodes& nodes);
/// The record that one of its nodes has of the round; null: none has.
[[nodiscard]] const RoundRecord* any_record(const Nodes& nodes, int round);
[[nodiscard]] std::string text_of(const Failure& failure);
/// The text tells who failed and how. Ranks that were given up have not failed: none of them is
/// named.
[[nodiscard]] std::string failure_text(const Failure& failure);
/// The coordinator's finding about all ranks of a round, with the rank that failed first: it may be
/// a witness of the cause. Null: the first failure is the cause.
[[nodiscard]] const Failure* finding_in(const Nodes& nodes, int round);
/// The failures that the nodes saw in a round; first the one that a finding or else `reason` names.
[[nodiscard]] std::vector<Failure> failures_in(const Nodes& nodes, int round,
                                               const std::string& reason);
/// 0: it was in none.
[[nodiscard]] int last_round_of(const NodeRecord& node);
/// A node that heard how the run ended; null: none did, and the run may continue.
[[nodiscard]] const NodeRecord* with_verdict(const Nodes& nodes);
/// Whether the nodes of the last round have all ended, each with a record: the run has, too.
[[nodiscard]] bool all_have_ended(const Nodes& nodes, int last);
/// Why a round ended, in the words of the coordinator; empty: no node recorded it. How a node that
/// leaves ends says nothing of the run.
[[nodiscard]] std::string reason_after(const Nodes& nodes, int round);

}  // namespace ddprun::explain
