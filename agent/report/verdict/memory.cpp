// Kills, and what the kernel's counters say about them.
#include <signal.h>

#include "agent/report/verdict/families.hpp"
#include "base/bytes_text.hpp"

namespace ddprun {

namespace {

constexpr const char* kMoreMemory =
    "fewer loader workers; ask for more memory (Slurm --mem, pod limits.memory); this is RAM, not "
    "GPU memory";
constexpr const char* kAskTheHost =
    "journalctl -k, sacct or kubectl describe pod: what else ends processes on that host";

bool moved(const Amount& before, const Amount& after) {
  return before && after && *after > *before;
}

/// Nothing was killed for memory in the worker's cgroup or below it.
bool ruled_out(const MemoryEvidence& memory) {
  if (memory.logged == 0) return true;
  const bool unmoved =
      memory.kills_before && memory.kills_after && *memory.kills_after == *memory.kills_before;
  return unmoved && (memory.kills_cover_subtree || !memory.host_kills_after ||
                     memory.host_kills_after == memory.host_kills_before);
}

bool reaches(const Amount& part, const Amount& whole, int percent) {
  return part && whole && *whole > 0 && *part >= *whole / 100 * percent;
}

bool was_nearly_gone(const MemoryEvidence& memory) {
  constexpr int kNearlyAll = 95;
  const bool host_is_full = memory.host_available && memory.host_total &&
                            *memory.host_available < *memory.host_total / 100 * 3;
  return reaches(memory.peak, memory.limit, kNearlyAll) ||
         reaches(memory.worker_peak, memory.limit, kNearlyAll) ||
         reaches(memory.worker_peak, memory.host_total, 80) || host_is_full;
}

std::string counter_text(const Amount& before, const Amount& after) {
  return " went " + std::to_string(*before) + " -> " + std::to_string(*after);
}

void add(std::string& text, const std::string& part) {
  text += (text.empty() ? "" : "; ") + part;
}

std::string counters_text(const MemoryEvidence& memory) {
  const bool known = memory.kills_before && memory.kills_after;
  if (moved(memory.kills_before, memory.kills_after)) {
    return "oom_kill counter of its cgroup" +
           counter_text(memory.kills_before, memory.kills_after) +
           (memory.logged == 0 ? ", and the host's log names another process" : "");
  }
  if (memory.logged != 0 && moved(memory.host_kills_before, memory.host_kills_after)) {
    return "oom_kill counter of the host" +
           counter_text(memory.host_kills_before, memory.host_kills_after) + " in this round" +
           (memory.logged == 1 ? ", and its log names this process" : "");
  }
  return known ? "oom_kill counter of its cgroup did not move" : "";
}

std::string likely_from(const MemoryEvidence& memory) {
  if (memory.left_processes.value_or(0) == 0 || !memory.left_resident) return {};
  return "data loading: " + std::to_string(*memory.left_processes) +
         (*memory.left_processes == 1 ? " process" : " processes") + " that it started held " +
         bytes_text(*memory.left_resident);
}

/// A process below the worker was killed, and the worker ended because of it.
bool names_a_kill(const WorkerExit& exit) {
  if (exit.status.by_signal()) return false;
  if (exit.status.code() == 128 + SIGKILL) return true;
  for (const char* text : {"killed by signal: Killed", "Killed", "exited unexpectedly",
                           "terminated abruptly", "died with <Signals.SIGKILL"}) {
    if (tells(exit, text)) return true;
  }
  return false;
}

Verdict out_of_memory(const WorkerExit& exit, std::string text) {
  Verdict verdict{"W-OOM", std::move(text)};
  verdict.evidence = memory_facts(exit);
  verdict.likely = likely_from(exit.evidence.memory);
  verdict.advice = kMoreMemory;
  return verdict;
}

}  // namespace

bool killed_for_memory(const Evidence& evidence) {
  return evidence.memory.logged == 1 ||
         moved(evidence.memory.kills_before, evidence.memory.kills_after);
}

std::vector<std::string> memory_facts(const WorkerExit& exit) {
  const MemoryEvidence& memory = exit.evidence.memory;
  std::string text = counters_text(memory);
  if (memory.limit) add(text, "limit " + bytes_text(*memory.limit));
  if (memory.limit && memory.peak) text += ", peak " + bytes_text(*memory.peak);
  if (memory.worker_peak) add(text, "this rank held " + bytes_text(*memory.worker_peak));
  std::vector<std::string> facts;
  if (!text.empty()) facts.push_back(text);
  if (!memory.limit && memory.host_available && memory.host_total) {
    facts.push_back("the host has " + bytes_text(*memory.host_available) + " of " +
                    bytes_text(*memory.host_total) + " of memory available");
  }
  return facts;
}

std::optional<Verdict> judge_kill(const WorkerExit& exit) {
  const MemoryEvidence& memory = exit.evidence.memory;
  const bool killed = exit.status.by_signal() && exit.status.signal() == SIGKILL;
  const bool was_another = killed && memory.logged == 0;
  if (killed_for_memory(exit.evidence) && !was_another) {
    if (killed) {
      return out_of_memory(exit, "was killed by the kernel because host memory ran out");
    }
    if (!names_a_kill(exit)) return std::nullopt;
    return out_of_memory(exit, ended_text(exit.status) +
                                   " after the kernel killed a process of it because host memory "
                                   "ran out");
  }
  if (!killed) return std::nullopt;
  Verdict verdict{"W-KILLED", "received SIGKILL, not sent by ddprun; sender unknown",
                  memory_facts(exit), "", kAskTheHost};
  if (ruled_out(memory)) {
    const bool host_is_full = was_nearly_gone(memory) && !reaches(memory.peak, memory.limit, 95);
    if (host_is_full) verdict.likely = "a guard of the host's memory (systemd-oomd, earlyoom)";
    return verdict;
  }
  if (moved(memory.host_kills_before, memory.host_kills_after) || was_nearly_gone(memory)) {
    verdict.code = "W-OOM";
    verdict.likely = "the kernel, because host memory ran out";
    if (const std::string what = likely_from(memory); !what.empty()) verdict.likely += "; " + what;
    verdict.advice = kMoreMemory;
  }
  return verdict;
}

}  // namespace ddprun
