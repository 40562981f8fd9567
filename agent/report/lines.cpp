#include "agent/report/lines.hpp"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "agent/config/launch_config.hpp"
#include "agent/report/quotation.hpp"
#include "agent/report/verdict.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/program_name.hpp"

namespace ddprun {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace {

// The line about a first failure waits so long for the stop of the other ranks: the report that
// follows says the same.
constexpr Duration kDeathLineDelay = std::chrono::milliseconds(500);

constexpr std::size_t kColumns = 80;

std::string nodes_text(const NodesFacts& nodes) {
  return count_text(nodes.min, nodes.max, "node") + ", coordinator " +
         printable(nodes.coordinator) +
         (nodes.at == NodesFacts::At::kThisNode ? " (this node)" : "");
}

std::string limits_text(const StartFacts& facts) {
  std::string text;
  if (facts.max_restarts != 0) text += "max restarts " + std::to_string(facts.max_restarts);
  if (facts.shutdown_timeout != kShutdownTimeoutDefault) {
    text += text.empty() ? "" : ", ";
    text += "shutdown timeout " + duration_text(facts.shutdown_timeout);
  }
  return text;
}

struct StartPart {
  const char* label;
  std::string text;
  bool below = false;
};

std::string claimant_text(const Claimant& claimant) {
  std::string text = "pid " + std::to_string(claimant.pid);
  if (claimant.below) text += " (started by rank " + std::to_string(claimant.below->value()) + ")";
  return text;
}

}  // namespace

// What is longer than a path or an address, which cannot be shortened, fits into 80 columns.
std::string start_line(const StartFacts& facts) {
  StartPart nodes{"nodes", facts.nodes ? nodes_text(*facts.nodes) : ""};
  StartPart limits{"limits", limits_text(facts)};
  StartPart logs{"logs", facts.log_dir.empty() ? "" : printable(facts.log_dir)};
  const auto first_line = [&] {
    std::string text = "ddprun " + facts.version + " run " + printable(facts.run.value()) + ": ";
    if (!nodes.below && !nodes.text.empty()) text += nodes.text + ", ";
    text += count_text(facts.workers, "rank") + (facts.nodes ? " here" : "");
    if (!limits.below && !limits.text.empty()) text += ", " + limits.text;
    if (!logs.below && !logs.text.empty()) text += ", logs " + logs.text;
    return text;
  };
  std::string text = first_line();
  for (StartPart* part : {&logs, &nodes, &limits}) {
    if (text.size() <= kColumns) break;
    part->below = !part->text.empty();
    text = first_line();
  }
  for (const StartPart* part : {&nodes, &limits, &logs}) {
    if (part->below) text += labelled(part->label, part->text);
  }
  return text;
}

std::string run_note(const std::string& text) {
  return note_line("RUN", text);
}

std::string restart_line(const std::string& text) {
  return note_line("RESTART", text);
}

namespace {

std::string given_up_line(const WorkerExit& exit, int others) {
  const Finding& why = *exit.given_up;
  std::string text = warning_line(why.code, why.text + "; stopping " + count_text(others, "rank"));
  for (const std::string& fact : why.evidence) text += labelled("evidence", fact);
  return exit.log.empty() ? text : text + labelled("log", exit.log);
}

}  // namespace

// The report comes after a short grace. A long one would leave the console silent.
Duration death_line_delay(Duration failure_grace) {
  const bool is_short = failure_grace <= kFailureGraceDefault;
  return kDeathLineDelay + (is_short ? failure_grace : Duration::zero());
}

std::string death_line(const WorkerExit& exit, int others, Duration spare) {
  if (exit.given_up) return given_up_line(exit, others);
  const Verdict verdict = judge_at_once(exit);
  std::string text = sentence_of(exit, verdict);
  if (others > 0 && spare > Duration::zero()) {
    text += "; waiting up to " + duration_text(spare) + " for " + count_text(others, "other rank") +
            " (--failure-grace)";
  } else if (others > 0) {
    text += "; stopping " + count_text(others, "other rank");
  }
  return warning_line(verdict.code, text);
}

std::string spawn_failure_text(Rank rank, const std::string& host, const Error& error) {
  std::string text = error.sentence;
  const bool of_command = error.kind == ErrorKind::kNotFound ||
                          error.kind == ErrorKind::kNoScript ||
                          error.kind == ErrorKind::kNotExecutable;
  if (of_command) {  // "cannot run PROGRAM: why"
    return text.insert(std::min(text.find(": "), text.size()), " on " + host);
  }
  return "rank " + std::to_string(rank.value()) + " on " + host + " cannot be started: " + text;
}

std::string stop_line(const ReceivedSignal& signal, int workers, Duration shutdown_timeout) {
  const std::string stopping = "stopping " + count_text(workers, "rank");
  const std::string received = received_text(signal);
  if (signal.number == SIGINT) {
    const std::string cause = signal.by_kernel ? "Ctrl-C" : received;
    return note_line("INT", stopping + " (" + cause + "); press Ctrl-C again to kill immediately");
  }
  if (signal.number == SIGHUP) {
    const std::string cause = signal.by_kernel ? "the terminal was closed (SIGHUP)"
                                               : received + ", as of a closed terminal";
    return error_line("HUP", cause + "; " + stopping) +
           labelled("try", "nohup or tmux (ddprun keeps nohup's setting)");
  }
  return note_line(
      "STOP", received + ", " + stopping + ", shutdown timeout " + duration_text(shutdown_timeout));
}

std::string pause_line(const ReceivedSignal& signal, const PauseFacts& facts) {
  const std::string cause = signal.by_kernel ? "Ctrl-Z" : received_text(signal);
  std::string text = cause + ": ";
  if (facts.ranks == 0) {
    text += program_name() + " is stopped; fg continues it";
  } else {
    text += count_text(facts.ranks, "rank") + (facts.ranks == 1 ? " is" : " are") +
            " stopped with " + program_name() + "; fg continues " +
            (facts.ranks == 1 ? "it" : "them");
  }
  if (facts.lost_after) {
    text += "; the other nodes lose this node after " + duration_text(*facts.lost_after);
  }
  return note_line("PAUSE", text);
}

std::string resume_line(Duration took) {
  return note_line("PAUSE", "continued after " + duration_text(took));
}

std::string countdown_line(Duration left, const std::vector<Rank>& running) {
  constexpr std::size_t kShown = 8;
  std::string text = duration_text(left) + " left: ";
  text += count_text(static_cast<long long>(running.size()), "rank") + " still running: ";
  for (std::size_t i = 0; i < running.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(running[i].value());
  }
  return note_line("STOP", text + (running.size() > kShown ? ", ..." : ""));
}

std::string stopped_line(int signal, const StopFacts& stop) {
  std::string text;
  const std::string after = " " + span_text("after", stop.took);
  if (stop.gone == 0 && stop.unkillable == 0) text += "no rank was running";
  if (stop.gone > 0) text += count_text(stop.gone, "rank") + " gone" + after;
  if (stop.killed > 0) text += ", " + std::to_string(stop.killed) + " needed SIGKILL";
  if (stop.unkillable > 0) {
    text += stop.gone > 0 ? ", " + std::to_string(stop.unkillable) + " still alive"
                          : count_text(stop.unkillable, "rank") + " still alive" + after;
  }
  return note_line("STOP", text + "; exit " + std::to_string(exit_code_of_signal(signal)));
}

namespace {

/// "rank 3", "ranks 0, 1 and 2", "ranks 0, 1, 2 and 13 more".
std::string ranks_text(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = ranks.size() <= kShown ? ranks.size() : kShown - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i > 0 && i + 1 == ranks.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(ranks[i].value());
  }
  return shown == ranks.size() ? text
                               : text + " and " + std::to_string(ranks.size() - shown) + " more";
}

}  // namespace

std::string signal_refusal(int signal, const std::vector<Rank>& ends) {
  return signal_name(signal) + " would end " + ranks_text(ends) + ", which " +
         (ends.size() == 1 ? "neither handles nor blocks" : "neither handle nor block") +
         " it; nothing was sent. --force sends it all the same";
}

std::string signal_text(const SignalFacts& facts) {
  const bool none = facts.ranks == 0;
  std::string text = signal_name(facts.signal);
  if (!facts.from.empty()) text += " from " + facts.from;
  if (!facts.host.empty()) text += " on " + facts.host;
  if (!none) text += "; passed to " + count_text(facts.ranks, "rank") + " here";
  if (none) text += facts.ends.empty() ? "; no rank here takes it" : "; passed to no rank here";
  const std::string ends =
      facts.ends.empty() ? "" : "; not to " + ranks_text(facts.ends) + ", which would end by it";
  if (facts.other_nodes == 0) return text + ends;
  const std::string others = count_text(facts.other_nodes, "other node");
  if (facts.others_reached) return text + (none ? ", passed to " : " and to ") + others + ends;
  return text + ", not to " + others + ": the coordinator is not connected" + ends;
}

std::string leaving_line(const ReceivedSignal& signal) {
  return note_line("STOP", received_text(signal) + ", leaving the run");
}

std::string left_line(int signal) {
  return note_line("STOP", "left the run, no worker was running; exit " +
                               std::to_string(exit_code_of_signal(signal)));
}

std::string left_behind_text(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> different;
  for (const std::string& name : names) {
    const bool known = std::find(different.begin(), different.end(), name) != different.end();
    if (!known) different.push_back(name);
  }
  std::string text = names.size() < kLeftNamedMax ? "" : "at least ";
  text += std::to_string(names.size());
  text += names.size() == 1 ? " process (" : " processes (";
  for (std::size_t i = 0; i < different.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + quotable(different[i]);
  }
  return text + (different.size() > kShown ? ", ...)" : ")");
}

std::string left_behind_line(const LeftBehindFacts& facts) {
  const std::string text =
      who(facts.worker) + " left " + left_behind_text(facts.names) + " behind; ";
  const std::string timeout = duration_text(facts.timeout);
  if (facts.signal == 0) {
    const char* const they = facts.names.size() == 1 ? "it makes" : "they make";
    return note_line("LEFT", text + "waiting until " + they + " no progress for " + timeout +
                                 " (--straggler-timeout)");
  }
  if (facts.quiet) {
    return warning_line("LEFT", text + "sending " + signal_name(facts.signal) + " after " +
                                    timeout + " without progress (--straggler-timeout)");
  }
  return note_line("LEFT", text + "sending " + signal_name(facts.signal) + " " +
                               duration_text(facts.since_exit) + " after its exit");
}

namespace {

/// The labelled lines about what is stuck.
std::string stuck_text(const std::vector<StuckProcess>& processes) {
  constexpr std::size_t kShown = 4;
  std::string lines;
  bool gpu = false;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const StuckProcess& stuck = processes[i];
    gpu = gpu || !stuck.gpus.empty() || stuck.wait_channel.starts_with("nvidia");
    if (i >= kShown) continue;
    std::string text = "pid " + std::to_string(stuck.pid) + " (" + quotable(stuck.name) +
                       "): state " + quotable(std::string(1, stuck.state));
    if (!stuck.wait_channel.empty()) text += " in " + quotable(stuck.wait_channel);
    for (std::size_t at = 0; at < stuck.gpus.size(); ++at) {
      text += (at == 0 ? ", holds " : ", ") + quotable(stuck.gpus[at]);
    }
    lines += labelled("evidence", text);
  }
  if (gpu)
    lines += labelled("likely", "driver or fabric fault; only a reboot of the host frees it");
  return lines;
}

}  // namespace

std::string unkillable_line(const Unkillable& unkillable) {
  const std::string stuck = stuck_text(unkillable.processes);
  const std::string& left = unkillable.left_behind;
  const std::string worker = who(unkillable.worker);
  constexpr const char* kCode = "W-UNKILLABLE";
  if (left.empty()) {
    return error_line(kCode, worker + " is still alive after SIGKILL; giving up on it") + stuck;
  }
  return warning_line(kCode, left + " that " + worker +
                                 " left behind: still alive after SIGKILL; giving up on them") +
         stuck;
}

std::string cleanup_line(const CleanupFacts& facts) {
  std::string text;
  if (facts.workers > 0) text += count_text(facts.workers, "worker") + " + ";
  text += count_text(facts.descendants, "descendant");
  if (facts.still_alive > 0) {
    text +=
        ", " + std::to_string(facts.still_alive) + " still alive " + span_text("after", facts.took);
  } else {
    text += " gone " + span_text("in", facts.took);
  }
  return note_line("CLEANUP", text);
}

std::string shared_names_line(const std::vector<std::string>& names, std::int64_t bytes) {
  constexpr std::size_t kNamedMax = 5;
  std::string named;
  for (std::size_t i = 0; i < std::min(names.size(), kNamedMax); ++i) {
    named += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kNamedMax) {
    named += " and " + std::to_string(names.size() - kNamedMax) + " more";
  }
  const bool one = names.size() == 1;
  return note_line("CLEANUP", count_text(static_cast<int>(names.size()), "file") +
                                  " appeared in /dev/shm during the run and " +
                                  (one ? "is" : "are") + " open in no process: " + named + " (" +
                                  bytes_text(bytes) + "); remove " + (one ? "it" : "them") +
                                  " unless another program keeps data there");
}

std::string done_line(const DoneFacts& facts) {
  std::string text = printable(facts.text);
  if (text.empty()) {
    text = (facts.workers == 1 ? "" : "all ") + count_text(facts.workers, "rank") +
           " exited with code 0; " + count_text(facts.restarts.value(), "restart");
  }
  if (facts.part == NodePart::kSpare) {
    text += "; this node was a spare: its workers never started";
  } else {
    text.insert(std::min(text.find(';'), text.size()), " after " + duration_text(facts.took));
  }
  return program_name() + ": done: " + text;
}

std::string own_workers_text(const Claimant& first, const Claimant& second, Started started) {
  const bool seen = first.below.has_value() || second.below.has_value();
  if (!seen || first.is_worker || second.is_worker) return {};
  const std::string seems =
      "rank 0 is two processes at once, " + claimant_text(first) + " and " + claimant_text(second) +
      ": the script seems to start its own workers, as torch.multiprocessing.spawn does, ";
  if (started.workers_here > 1) {
    return seems + "in each of the " + std::to_string(started.workers_here) +
           " that ddprun has started; use --nproc-per-node=1, or remove mp.spawn and take RANK and "
           "LOCAL_RANK from the environment";
  }
  if (started.nodes > 1) {
    return seems +
           "once on each node; remove mp.spawn, take RANK and LOCAL_RANK from the environment and "
           "let --nproc-per-node start the workers, or count rank and world_size over all nodes";
  }
  return seems +
         "without a RANK and WORLD_SIZE of their own; remove mp.spawn, take RANK and LOCAL_RANK "
         "from the environment and let --nproc-per-node start the workers, or pass rank and "
         "world_size to init_process_group";
}

std::string time_text(WallTime when) {
  const auto ms = duration_cast<milliseconds>(when.time_since_epoch()).count();
  const time_t seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03dZ", utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(ms % 1000));
  return text;
}

std::string who(const WorkerName& worker) {
  return "rank " + std::to_string(worker.rank.value()) + " (local " +
         std::to_string(worker.local_rank.value()) + ", pid " + std::to_string(worker.pid) +
         ") on " + printable(worker.host);
}

std::string steps_text(Rank rank, std::optional<std::int64_t> step,
                       const std::vector<std::int64_t>& others) {
  if (!step && others.empty()) return {};
  std::string text = "rank " + std::to_string(rank.value());
  text += step ? " last finished step " + std::to_string(*step) : " finished no step";
  if (others.empty()) return text;
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  text += ", others " + std::to_string(*least);
  return *least == *most ? text : text + " to " + std::to_string(*most);
}

std::string labelled(const std::string& label, const std::string& text) {
  return "\n  " + label + std::string(10 - label.size(), ' ') + printable(text);
}

}  // namespace ddprun
