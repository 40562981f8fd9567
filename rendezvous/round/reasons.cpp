#include "rendezvous/round/reasons.hpp"

#include <algorithm>

#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/restart_pace.hpp"
#include "rendezvous/round/hosts.hpp"

namespace ddprun::round::reasons {
namespace {

using std::chrono::milliseconds;

// Why a coordinator has no nodes, while nodes that come back know of a round.
const std::string kAfterLoss = "the coordinator restarted or lost all connections";

[[nodiscard]] std::string number(long long value) {
  return std::to_string(value);
}

[[nodiscard]] std::string node_text(const NodeLost& node) {
  return node.ranks.empty() ? node.host : node.host + " (" + node.ranks + ")";
}

[[nodiscard]] std::string here_text(const Absence& absence) {
  std::string here = "connected: " + host_list(absence.hosts);
  if (absence.missing.empty()) return here;
  return here + "; missing: node rank" + (absence.missing.size() == 1 ? " " : "s ") +
         number_list(absence.missing);
}

/// Why ranks are not stopped although a node is missing.
[[nodiscard]] std::string kept_text(std::size_t missing, const protocol::Terms& terms) {
  const char* const who = missing == 1 ? "it is" : "they are";
  return std::string("; the round is kept until ") + who +
         " back or replaced: a round needs at least " + nodes_text(terms.nodes_min);
}

std::string quoted(const std::string& line) {
  return '"' + line + '"';
}

}  // namespace

std::string ranks_text(Rank base, int count) {
  if (count == 1) return "rank " + number(base.value());
  return "ranks " + number(base.value()) + "-" + number(base.value() + count - 1);
}

std::string nodes_text(int count) {
  return count_text(count, "node");
}

std::string all_here(int nodes) {
  return nodes == 1 ? "the only node joined" : "all " + nodes_text(nodes) + " joined";
}

std::string last_call_over(int nodes, const protocol::Terms& terms) {
  return nodes_text(nodes) + " joined within the last call of " +
         duration_text(std::min(terms.last_call_timeout, terms.join_timeout)) + " (maximum " +
         number(terms.nodes_max) + ")";
}

std::string remain(int nodes, const protocol::Terms& terms) {
  return nodes_text(nodes) + (nodes == 1 ? " remains" : " remain") + " (minimum " +
         number(terms.nodes_min) + ")";
}

std::string lost(const NodeLost& node) {
  return "lost " + node_text(node) + ": " + node.evidence;
}

std::string left(const NodeLost& node) {
  return node_text(node) + " left: " + node.evidence;
}

std::string ended_early(const NodeLost& node) {
  return node_text(node) + " ended its workers without a failure or a stop";
}

std::string silent(const protocol::Terms& terms) {
  return "no heartbeat for " + duration_text(terms.silence_max()) +
         " (--rdzv-conf keep_alive_interval=" + seconds_text(terms.keep_alive_interval) +
         ",keep_alive_max_attempt=" + number(terms.keep_alive_max_attempt) + ")";
}

std::string silent_for(Duration time) {
  return "no heartbeat for " + duration_text(std::chrono::round<std::chrono::seconds>(time));
}

std::string silent_nodes_awaited(const std::vector<std::string>& hosts,
                                 const protocol::Terms& terms) {
  return "no heartbeat from " + host_list(hosts) + " for " + duration_text(terms.silence_max()) +
         kept_text(hosts.size(), terms);
}

std::string back(const NodeLost& node, Duration silence, Round round) {
  const Duration rounded = silence / milliseconds(100) * milliseconds(100);
  return node_text(node) + " is back after " + duration_text(rounded) + "; round " +
         number(round.value()) + " continues";
}

std::string not_answering(Round round, Duration limit) {
  return "did not answer round " + number(round.value()) + " within " + duration_text(limit);
}

std::string joined(const std::vector<std::string>& hosts) {
  return host_list(hosts) + " joined";
}

std::string failed(const WorkerExit& exit) {
  if (exit.given_up) return exit.given_up->text;
  return "rank " + number(exit.worker.rank.value()) + " (" + exit.worker.host +
         ") failed: " + exit.status.text() +
         (exit.complaint ? after_text(exit.complaint->kind) : "");
}

std::string also_failed(const WorkerExit& other, const WorkerExit& first) {
  const bool one_host = other.worker.host == first.worker.host;  // of two, the clocks may differ
  std::string text = "rank " + number(other.worker.rank.value());
  if (!one_host) text += " (" + other.worker.host + ")";
  if (other.is_slow) {
    const auto before = first.when - other.when;
    const std::string order = before.count() < 0 ? " later" : " before";
    text += ": its last words";
    if (one_host) text += ", " + duration_text(std::chrono::abs(before)) + order + ",";
    return text + " were " + quoted(telling_line(other)) + "; it had not exited yet";
  }
  text += " failed, too";
  if (one_host && other.when > first.when) {
    text += ", " + duration_text(other.when - first.when) + " later";
  }
  text += ": " + other.status.text();
  return other.lines.empty() ? text : text + ", " + quoted(telling_line(other));
}

std::string restart(const WorkerExit& exit, RestartCount used, const protocol::Terms& terms,
                    Duration delay) {
  return failed(exit) + "; restart " + number(used.value()) + " of " + number(terms.max_restarts) +
         std::string(RestartPace::sentence(delay));
}

std::string round_of_one(Round round, RestartCount restarts, const protocol::Terms& terms,
                         Duration delay) {
  std::string text = "round " + number(round.value());
  if (restarts.value() == 0) return text;
  return "restart " + number(restarts.value()) + " of " + number(terms.max_restarts) + ", " + text +
         std::string(RestartPace::sentence(delay));
}

std::string no_restart_left(const protocol::Terms& terms) {
  if (terms.max_restarts == 0) return "restarts are off (--max-restarts)";
  if (terms.max_restarts == 1) return "the only restart is used";
  return "all " + number(terms.max_restarts) + " restarts are used";
}

std::string restarts_unused(RestartCount used, const protocol::Terms& terms) {
  return number(terms.max_restarts - used.value()) + " of " +
         count_text(terms.max_restarts, "restart") +
         " are left; without --min-uptime they are used";
}

std::string no_retry(const protocol::Terms& terms) {
  return "in the same way twice in a row within " + duration_text(*terms.min_uptime) +
         " of the start (--min-uptime=" + seconds_text(*terms.min_uptime) + ")";
}

std::string success(int workers, int nodes, RestartCount restarts) {
  return (workers == 1 ? "" : "all ") + count_text(workers, "rank") + " on " + nodes_text(nodes) +
         " exited with code 0; " + count_text(restarts.value(), "restart");
}

std::string left_too_few(const std::string& left, int nodes, const protocol::Terms& terms) {
  return left + "; " + remain(nodes, terms) + ", the run stops";
}

std::string left_with_coordinator(const std::string& left) {
  return left + "; it runs the coordinator, so the run stops";
}

std::string resigned(const std::string& left) {
  return left + "; it ran the coordinator, and another node does so from now on";
}

std::string stopped_everywhere(const NodeLost& node) {
  return "stopped on all nodes from " + node.host + ": " + node.evidence;
}

std::string without_node(int nodes, const protocol::Terms& terms) {
  if (nodes >= terms.nodes_min) return "the run continues on " + nodes_text(nodes);
  return "the run waits for nodes: " + remain(nodes, terms);
}

std::string continues_elsewhere(int nodes) {
  return "the run continues on " + nodes_text(nodes) +
         (nodes == 1 ? ", which becomes its coordinator"
                     : ", one of which becomes its coordinator");
}

std::string another_version(const std::string& host, const std::string& version,
                            const std::string& first) {
  const auto named = [](const std::string& one) {
    return one.empty() ? std::string("a version that does not tell its number") : "version " + one;
  };
  return host + " runs ddprun of " + named(version) + ", the first node " + named(first) +
         "; what one of them does not know is left out";
}

std::string waiting(const Absence& absence, const protocol::Terms& terms) {
  const int here = static_cast<int>(absence.hosts.size());
  const bool is_short = here < absence.needed;
  return (absence.why.empty() ? "" : absence.why + "; ") + "waiting for nodes: " + number(here) +
         " of " + (is_short ? "" : "at most ") +
         number(is_short ? absence.needed : terms.nodes_max) + "; " + here_text(absence);
}

std::string waiting_count(int here, const protocol::Terms& terms) {
  const int needed = terms.nodes_min;
  if (here >= needed) {
    return nodes_text(here) + " joined (" + number(terms.nodes_min) + ":" +
           number(terms.nodes_max) + "), last call for more";
  }
  return nodes_text(here) + " joined, waiting for " + number(needed - here) + " more";
}

std::string join_timeout(const Absence& absence, const protocol::Terms& terms) {
  const int here = static_cast<int>(absence.hosts.size());
  return (absence.why.empty() ? "" : absence.why + "; ") + "only " + number(here) +
         " of at least " + nodes_text(absence.needed) + " joined within " +
         duration_text(terms.join_timeout) + "; " + here_text(absence) +
         "; --rdzv-conf join_timeout=" + seconds_text(terms.join_timeout * 2) + " waits longer";
}

std::string spare(const RunId& run, const protocol::Terms& terms) {
  return "run " + run.value() + " has its maximum of " + nodes_text(terms.nodes_max) +
         "; this node waits as a spare";
}

std::string finishing(int succeeded, int nodes) {
  return "this node has finished; " + number(succeeded) + " of " + nodes_text(nodes) +
         " have, waiting for the others";
}

std::string newcomer_while_finishing(int succeeded, int nodes) {
  return number(succeeded) + " of " + nodes_text(nodes) +
         " have finished already; this node waits as a spare";
}

std::string not_this_agent(const std::string& host, const std::string& address) {
  return "refused a second agent at " + address + " with the id of " + host +
         ", which is connected and answers";
}

std::string comes_and_goes(const std::string& who, int visits, Duration pause) {
  const bool several = who.empty();
  return (several ? "nodes of several addresses have" : who + " has") + " joined and left " +
         number(visits) + " times; no round ends for " + (several ? "a new node" : "it") +
         " within " + duration_text(pause);
}

std::string held_back(const std::string& who, int visits, Duration left) {
  return (who.empty() ? "nodes of several addresses have" : who + " has") +
         " joined and left this run " + number(visits) + " times; this node joins in " +
         duration_text(left) +
         " at the soonest, so that the others are not started again each time";
}

std::string suspended(Duration late, Duration window) {
  const Duration figure = late < std::chrono::seconds(10) ? milliseconds(100) : milliseconds(1000);
  const Duration rounded = late / figure * figure;  // down: it is the least
  return "the coordinator was suspended for at least " + duration_text(rounded) + "; nodes have " +
         duration_text(window) + " to reconnect";
}

std::string awaiting_return(Round round) {
  return kAfterLoss + "; waiting for the nodes of round " + number(round.value());
}

std::string rebuilding(Round round, int here, int nodes) {
  return kAfterLoss + "; " + number(here) + " of " + nodes_text(nodes) + " of round " +
         number(round.value()) + " reconnected";
}

std::string claimed_awaited(const std::string& why, Round round, int missing,
                            const protocol::Terms& terms) {
  return why + "; waiting for " + nodes_text(missing) + " of round " + number(round.value()) +
         kept_text(static_cast<std::size_t>(missing), terms);
}

std::string rebuilt(Round round, int nodes) {
  return kAfterLoss + "; all " + nodes_text(nodes) + " of round " + number(round.value()) +
         " reconnected; the round continues";
}

std::string not_rebuilt(Round round, int missing, Duration limit) {
  return kAfterLoss + "; " + nodes_text(missing) + " of round " + number(round.value()) +
         " did not reconnect within " + duration_text(limit);
}

std::string none_reconnected(Round round, Duration limit) {
  const std::string which =
      round == Round(0) ? "an earlier round" : "round " + number(round.value());
  return kAfterLoss + "; no node of " + which + " reconnected within " + duration_text(limit);
}

std::string was_stopping(Round round) {
  return kAfterLoss + " while round " + number(round.value()) + " was being stopped";
}

std::string stray(Round round) {
  return "round " + number(round.value()) + " is over; the run continued without this node";
}

std::string over(const RunId& run, Duration ago, const protocol::Done& done) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(ago);
  return "run " + run.value() + " finished with code " + number(done.exit_code) + " " +
         duration_text(seconds) + " ago (" + done.text + "); nothing to do";
}

std::string may_start_again(const RunId& run, Duration ago) {
  return "run " + run.value() + " succeeded " +
         duration_text(std::chrono::round<std::chrono::seconds>(ago)) + " ago and may start again";
}

std::string late(const std::string& over, int here, int needed, Duration waited) {
  return over + ": only " + number(here) + " of " + nodes_text(needed) + " joined within " +
         duration_text(waited) +
         " (--rdzv-conf last_call_timeout) to start it again; use a different --rdzv-id for a new "
         "run";
}

std::string others_unknown(Round round, int nodes) {
  return "all ranks of round " + number(round.value()) + " on " + nodes_text(nodes) +
         " exited with code 0; the other nodes did not reconnect";
}

std::string signal_passed(int signal, const std::string& host) {
  return signal_name(signal) + " received on " + host + ", passed to all nodes";
}

std::string signal_dropped(int signal, const std::string& host) {
  return signal_name(signal) + " received on " + host +
         " is not passed to other nodes: too many signals in short time";
}

std::string round_started(Round from, Round to, const std::string& why, int nodes,
                          WorldSize world) {
  const std::string step = from.value() == 0
                               ? "round " + number(to.value())
                               : "round " + number(from.value()) + " -> " + number(to.value());
  return step + ": " + why + "; " + count_text(world.value(), "rank") + " on " + nodes_text(nodes);
}

std::string no_majority(int here, int needed) {
  return nodes_text(here) + " of the last round " + (here == 1 ? "is" : "are") +
         " connected, and " + number(needed) +
         " are needed: the others may continue without this node; ddprun-rdzvd on another host, "
         "a third node or --rdzv-backend=etcd-v3 survive such a loss";
}

std::string no_majority_came(int here, Duration waited) {
  return "no majority of the nodes came to this one within " + duration_text(waited) + ": " +
         nodes_text(here);
}

}  // namespace ddprun::round::reasons
