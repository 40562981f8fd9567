#include "agent/proc/stacks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/proc/stack_text.hpp"
#include "agent/proc/tool.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// What each tool may print; what is beyond is missing.
constexpr std::size_t kNativeBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kPythonBytesMax = 256 * 1024;
// Left for the end of a tool that is killed.
constexpr std::chrono::milliseconds kToolEnd{100};

struct Process {
  ProcessStacks stacks{};
  bool python = false;
};
struct Job {
  std::vector<RankStacks> ranks{};  // without processes
  std::vector<std::vector<Process>> processes{};
};

std::vector<Process> read_rank(pid_t leader, const std::vector<ProcessEntry>& all) {
  std::vector<Process> processes;
  for (const pid_t pid : working_processes(leader, all)) {
    processes.push_back({read_process(pid), runs_python(pid)});
  }
  return processes;
}

Job read_all(const std::vector<WorkerName>& workers) {
  Job job;
  const std::vector<ProcessEntry> all = list_processes().value_or(std::vector<ProcessEntry>());
  for (const WorkerName& worker : workers) {
    job.ranks.push_back({worker, {}, ended_children_of(worker.pid, all)});
    job.processes.push_back(read_rank(worker.pid, all));
  }
  return job;
}

std::vector<Process*> traceable(Job& job) {
  std::vector<Process*> found;
  for (auto& of_rank : job.processes) {
    for (Process& process : of_rank) {
      if (can_be_traced(process.stacks)) found.push_back(&process);
    }
  }
  return found;
}

asio::awaitable<void> add_native(const asio::any_io_executor& executor, Orphans& orphans,
                                 const StackTools& tools, Job& job, TimePoint deadline) {
  const std::vector<Process*> targets = traceable(job);
  if (targets.empty()) co_return;
  if (tools.unwinder.empty()) {
    for (Process* target : targets)
      target->stacks.missing = "no native stacks: ddprun-stacks is missing";
    co_return;
  }
  const TimePoint until = deadline - kToolEnd;
  const std::chrono::duration<double> limit = until - Clock::now();
  if (limit.count() <= 0) co_return;
  Tool tool{tools.unwinder, {"ddprun-stacks", std::to_string(limit.count())}, tools.environment};
  for (const Process* target : targets) tool.argv.push_back(std::to_string(target->stacks.pid));
  const std::string text =
      co_await output_of(executor, orphans, std::move(tool), kNativeBytesMax, until);
  auto stacks = parse_native_stacks(text);
  for (Process* target : targets) {
    NativeStacks& found = stacks[target->stacks.pid];
    target->stacks.native = std::move(found.threads);
    target->stacks.missing = std::move(found.missing);
    const bool none = target->stacks.native.empty() && target->stacks.missing.empty();
    if (none) target->stacks.missing = "no native stacks: ddprun-stacks gave none in time";
  }
}

/// py-spy takes a process each, and a good part of a second: as many at once as there are
/// processors.
struct PythonQueue {
  PythonQueue(const asio::any_io_executor& on, TimePoint until) : executor(on), done(on, until) {}
  asio::any_io_executor executor;
  asio::steady_timer done;  // cancelled when the last lane has ended
  TimePoint deadline{};
  std::deque<int> waiting{};
  std::vector<std::pair<int, std::vector<ThreadStack>>> found{};
  int lanes = 0;
};

asio::awaitable<void> run_lane(std::shared_ptr<PythonQueue> queue, Orphans& orphans,
                               StackTools tools) {
  while (!queue->waiting.empty() && Clock::now() < queue->deadline) {
    const int pid = queue->waiting.front();
    queue->waiting.pop_front();
    Tool tool{tools.py_spy, {"py-spy", "dump", "--pid", std::to_string(pid)}, tools.environment};
    const std::string text = co_await output_of(queue->executor, orphans, std::move(tool),
                                                kPythonBytesMax, queue->deadline);
    queue->found.emplace_back(pid, parse_python_stacks(text));
  }
  if (--queue->lanes == 0) queue->done.cancel();
}

std::deque<int> pythons_of(Job& job) {
  std::deque<int> pids;
  for (const Process* process : traceable(job)) {
    if (process->python) pids.push_back(process->stacks.pid);
  }
  return pids;
}

void store_python(Job& job, PythonQueue& queue, const StackTools& tools) {
  for (Process* process : traceable(job)) {
    if (!process->python) continue;
    for (auto& [pid, threads] : queue.found) {
      if (pid == process->stacks.pid) process->stacks.python = std::move(threads);
    }
    std::string& missing = process->stacks.missing;
    if (!process->stacks.python.empty() || !missing.empty()) continue;
    missing = tools.py_spy.empty() ? "no Python stacks: py-spy is not in PATH"
                                   : "no Python stacks: py-spy gave none in time";
  }
}

asio::awaitable<void> add_python(const asio::any_io_executor& executor, Orphans& orphans,
                                 const StackTools& tools, Job& job, TimePoint deadline) {
  const auto queue = std::make_shared<PythonQueue>(executor, deadline);
  queue->deadline = deadline;
  if (!tools.py_spy.empty()) queue->waiting = pythons_of(job);
  const long processors = std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 2L, 8L);
  queue->lanes = std::min(static_cast<int>(processors), static_cast<int>(queue->waiting.size()));
  for (int lane = queue->lanes; lane > 0; --lane) {
    asio::co_spawn(executor, run_lane(queue, orphans, tools), asio::detached);
  }
  if (queue->lanes > 0) {
    const auto [why] = co_await queue->done.async_wait(asio::as_tuple(asio::use_awaitable));
    static_cast<void>(why);  // all were read, or the deadline
  }
  store_python(job, *queue, tools);
}

}  // namespace

StackTools find_stack_tools(const Environment& environment) {
  StackTools tools;
  tools.environment = to_block(environment);
  std::array<char, 4096> self{};
  const ssize_t bytes = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string program(self.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  const std::string beside = program.substr(0, program.rfind('/') + 1) + "ddprun-stacks";
  if (::access(beside.c_str(), X_OK) == 0) tools.unwinder = beside;
  const auto py_spy = find_program("py-spy", value_or(environment, "PATH", ""));
  if (py_spy) tools.py_spy = *py_spy;
  return tools;
}

asio::awaitable<StackDump> dump_stacks(asio::any_io_executor executor, DiskThread disk,
                                       Orphans& orphans, StackTools tools,
                                       std::vector<WorkerName> workers, TimePoint deadline) {
  const TimePoint began = Clock::now();
  StackDump dump;
  std::function<Job()> read = [workers] { return read_all(workers); };
  const TimePoint read_until = began + (deadline - began) / 2;
  auto job = co_await run_on<Job>(disk, std::move(read), read_until);
  if (!job) {  // a process in execve, or a disk before it in the queue
    for (const WorkerName& worker : workers) dump.ranks.push_back({worker, {}});
    co_return dump;
  }
  // Half of the time is Python's, where there is any.
  const bool python = !tools.py_spy.empty() && !pythons_of(*job).empty();
  const TimePoint native_until = python ? read_until : deadline;
  co_await add_native(executor, orphans, tools, *job, native_until);
  co_await add_python(executor, orphans, tools, *job, deadline);
  dump.ranks = std::move(job->ranks);
  for (std::size_t at = 0; at < dump.ranks.size(); ++at) {
    for (Process& process : job->processes[at]) {
      dump.ranks[at].processes.push_back(std::move(process.stacks));
    }
  }
  dump.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  co_return dump;
}

}  // namespace ddprun
