#include "agent/workers/round_evidence.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "agent/node/local_round.hpp"
#include "agent/output/tail.hpp"
#include "agent/proc/files.hpp"
#include "base/limits.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

const std::string kSharedMemory = "/dev/shm";

RawEvidence look_into_files(const RoundEvidence::Sources& from,
                            const std::optional<MemoryBaseline>& baseline) {
  RawEvidence raw;
  raw.error_json = read_file(from.error_file);
  raw.stderr_tail = tail_of_file(unseen_file(from.plan.err), kTailBytesMax, from.plan.err.before);
  raw.stdout_tail = tail_of_file(unseen_file(from.plan.out), kTailBytesMax, from.plan.out.before);
  raw.facts = from.facts;
  raw.facts.core_pattern = read_core_pattern();
  MemoryEvidence& memory = raw.facts.memory;
  const bool killed = from.status.by_signal() && from.status.signal() == SIGKILL;
  if (killed && memory.host_kills_after != memory.host_kills_before) {
    memory.logged = read_kernel_log(from.pid);  // here it holds up no stop
  }
  if (baseline) raw.facts.limits.cgroup_processes = read_process_limit(*baseline);
  return raw;
}

bool is_unseen(Route route) {
  return route == Route::kInherit || route == Route::kDiscard;
}

/// Whether what reads the console has ended, as in `ddprun ... | head`.
bool is_closed_console(const StreamPlan& plan, int descriptor) {
  pollfd console = {descriptor, 0, 0};
  return plan.route == Route::kInherit && ::poll(&console, 1, 0) == 1;  // an error or a hang-up
}

/// Whether file systems are worth a look: one that stalls would hold up the log files.
bool complains_of_a_disk(const ExitStatus& status, const std::string& output) {
  if (status.by_signal()) return status.signal() == SIGBUS;
  for (const char* text :
       {"No space left", "quota", "Errno 28", "PytorchStreamWriter", "iostream error"}) {
    if (output.find(text) != std::string::npos) return true;
  }
  return false;
}

/// Whether the worker writes a stream to its log file itself: then it fails where that is full.
bool writes_files(const WorkerOutputPlan& plan) {
  return !unseen_file(plan.out).empty() || !unseen_file(plan.err).empty();
}

/// Whether ddprun could not write all of a log file.
bool has_lost(const StreamPlan& plan) {
  return plan.log && plan.log->has_lost();
}

std::vector<std::string> disks_of(const RawEvidence& raw, const RoundEvidence::Sources& from,
                                  const std::string& tmpdir) {
  std::vector<std::string> paths;
  if (writes_files(from.plan)) paths.push_back(from.log_directory);
  if (!complains_of_a_disk(from.status, raw.stderr_tail + raw.stdout_tail)) return paths;
  const std::vector<std::string> quoted = quoted_paths(raw.stderr_tail);
  paths.insert(paths.end(), quoted.begin(), quoted.end());
  std::error_code unknown;
  paths.push_back(std::filesystem::current_path(unknown).string());
  paths.push_back(from.log_directory);
  paths.push_back(tmpdir);
  return paths;
}

}  // namespace

RoundEvidence::RoundEvidence(DiskThread disk, const Environment& environment,
                             const std::optional<rlimit>& descriptor_limit)
    : disk_(std::move(disk)),
      tmpdir_(value_or(environment, "TMPDIR", "/tmp")),
      descriptor_limit_(descriptor_limit),
      baseline_(std::make_shared<std::optional<MemoryBaseline>>()) {}

void RoundEvidence::begin() {
  const auto read = std::make_shared<MemoryBaseline>();
  disk_.post([read] { *read = read_memory_baseline(); },
             [read, baseline = baseline_] { baseline->emplace(std::move(*read)); });
}

LimitEvidence RoundEvidence::compared(LimitEvidence worker) const {
  LimitEvidence given = read_limits(::getpid());
  if (descriptor_limit_) {
    const bool limited = descriptor_limit_->rlim_cur != RLIM_INFINITY;
    given.descriptors = limited ? Amount(descriptor_limit_->rlim_cur) : Amount();
  }
  worker.lowered = lowered_limits(worker, given);
  return worker;
}

Evidence RoundEvidence::measure_exiting(const Child& failed, const WorkerOutputPlan& plan) const {
  Evidence facts;
  if (*baseline_)
    facts.memory = read_memory(**baseline_, failed.leaf() ? failed.leaf()->path() : "");
  facts.limits = compared(read_limits(failed.pid()));
  facts.disks = read_disks({kSharedMemory});
  facts.stdout_closed = is_closed_console(plan.out, STDOUT_FILENO);
  return facts;
}

Evidence RoundEvidence::measure(const Child& failed, const WorkerOutputPlan& plan,
                                const Descendants& left) const {
  Evidence facts = measure_exiting(failed, plan);
  facts.memory.worker_peak = failed.resident_peak();
  const Descendants::Held held = left.held();
  facts.memory.left_processes = held.processes;
  facts.memory.left_resident = held.resident_bytes;
  facts.limits = compared(failed.limits());
  return facts;
}

asio::awaitable<RawEvidence> RoundEvidence::look(Sources sources) {
  const TimePoint deadline = Clock::now() + kEvidenceMax;
  const auto from = std::make_shared<Sources>(std::move(sources));
  std::function<RawEvidence()> look = [from, baseline = *baseline_] {
    return look_into_files(*from, baseline);
  };
  auto found = co_await run_on<RawEvidence>(disk_, std::move(look), deadline);
  RawEvidence raw;
  raw.facts = from->facts;
  raw.files_read = found.has_value();
  if (found) raw = std::move(*found);
  raw.stderr_tail = from->stderr_tail + raw.stderr_tail;  // one of them has it
  raw.stdout_tail = from->stdout_tail + raw.stdout_tail;
  const StreamPlan& out = from->plan.out;
  raw.stdout_unseen = is_unseen(out.route) && !from->of_both;
  raw.stderr_has_both = from->of_both;
  raw.stderr_unseen = is_unseen(from->plan.err.route);
  raw.stdout_log = has_lost(out) ? "" : log_of(out);
  raw.stderr_lost = has_lost(from->plan.err);
  raw.error_file = from->error_file;
  const std::vector<std::string> paths = disks_of(raw, *from, tmpdir_);
  if (paths.empty()) co_return raw;
  std::function<std::vector<DiskEvidence>()> ask = [paths] { return read_disks(paths); };
  auto disks = co_await run_on<std::vector<DiskEvidence>>(disk_, std::move(ask), deadline);
  for (DiskEvidence& disk : disks.value_or(std::vector<DiskEvidence>())) {
    disk.has_streams = writes_files(from->plan) && disk.path == from->log_directory;
    raw.facts.disks.push_back(std::move(disk));
  }
  co_return raw;
}

}  // namespace ddprun
