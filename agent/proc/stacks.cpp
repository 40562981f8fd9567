#include "agent/proc/stacks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/program.hpp"
#include "agent/proc/spawn.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// What each tool may print; what is beyond is missing.
constexpr std::size_t kNativeBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kPythonBytesMax = 256 * 1024;
// Left for the end of a tool that is killed.
constexpr std::chrono::milliseconds kToolEnd{100};

std::string_view next_part(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The sentence behind a word of ddprun-stacks.
std::string missing_text(std::string_view word) {
  if (word == "denied") return "the kernel denies ptrace: no native stacks";
  if (word == "gone") return "it ended meanwhile";
  if (word == "late") return "not all native stacks were read in time";
  if (word == "unsupported") return "no native stacks on this processor";
  return "its native stacks could not be read";
}

ThreadStack* thread_of(std::vector<ThreadStack>& threads, int tid) {
  const auto known = std::find_if(threads.begin(), threads.end(),
                                  [tid](const ThreadStack& thread) { return thread.tid == tid; });
  if (known != threads.end()) return &*known;
  if (threads.size() >= kStackThreadsMax) return nullptr;
  threads.push_back({tid, {}, {}});
  return &threads.back();
}

void add_frame(ThreadStack* thread, std::string_view function, std::string_view where) {
  if (thread == nullptr || thread->frames.size() >= kStackFramesMax) return;
  thread->frames.push_back({std::string(function), std::string(where)});
}

// `Thread 4711 (idle): "MainThread"`.
std::optional<ThreadStack> python_thread(std::string_view line) {
  constexpr std::string_view kStart = "Thread ";
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  ThreadStack thread;
  thread.tid = number_of(next_part(line, ' ')).value_or(0);
  const auto open = line.find('"');
  const auto close = line.rfind('"');
  if (open != std::string_view::npos && close > open) {
    thread.name = line.substr(open + 1, close - open - 1);
  }
  return thread;
}

// `    step (pkg/train.py:310)`.
void add_python_frame(std::vector<ThreadStack>& threads, std::string_view line) {
  const auto open = line.rfind(" (");
  if (threads.empty() || open == std::string_view::npos || !line.ends_with(')')) return;
  std::string_view place = line.substr(open + 2, line.size() - open - 3);
  place.remove_prefix(place.rfind('/') + 1);
  line = line.substr(0, open);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  add_frame(&threads.back(), line, place);
}

/// A short program of ddprun's own, which is no worker.
struct Tool {
  std::string program;            // absolute path
  std::vector<std::string> argv;  // argv[0] included
  std::vector<std::string> environment;
};

struct Running {
  std::optional<Child> child;
  asio::posix::stream_descriptor output;
  asio::steady_timer limit;
};

bool start_tool(Running& running, const asio::any_io_executor& executor, const Tool& tool) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const Descriptor output(ends[1]);
  boost::system::error_code why;
  running.output.assign(ends[0], why);
  if (why) {
    ::close(ends[0]);
    return false;
  }
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (nowhere.number() < 0) return false;
  SpawnRequest request;
  request.program = tool.program;
  request.argv = tool.argv;
  request.environment = tool.environment;
  request.stdout_fd = output.number();
  request.stderr_fd = nowhere.number();
  auto child = spawn(executor, request);
  if (child) running.child.emplace(std::move(*child));
  return running.child.has_value();
}

/// Its own coroutine, because a process in the kernel's hands is not waited for.
asio::awaitable<void> reap_tool(std::shared_ptr<Running> running, Orphans& orphans) {
  const auto status = co_await running->child->wait();
  static_cast<void>(status);
  orphans.no_longer_except(running->child->pid());
}

/// Its standard output, at most `bytes_max` bytes, until it closes that or at `deadline`; then it
/// is killed, with all that it has started. What it writes to stderr is dropped. Empty when it
/// cannot be started. Cancelling leaves the process to its parent-death signal.
asio::awaitable<std::string> output_of(asio::any_io_executor executor, Orphans& orphans, Tool tool,
                                       std::size_t bytes_max, TimePoint deadline) {
  const auto running = std::make_shared<Running>(Running{
      {}, asio::posix::stream_descriptor(executor), asio::steady_timer(executor, deadline)});
  std::string text;
  if (!start_tool(*running, executor, tool)) co_return text;
  orphans.except(running->child->pid());
  asio::co_spawn(executor, reap_tool(running, orphans), asio::detached);
  running->limit.async_wait([running](const boost::system::error_code& why) {
    if (!why) running->output.close();
  });
  std::array<char, 16384> chunk{};
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (text.size() < bytes_max) {
    const auto [why, bytes] = co_await running->output.async_read_some(asio::buffer(chunk), token);
    if (why) break;
    text.append(chunk.data(), std::min(bytes, bytes_max - text.size()));
  }
  running->limit.cancel();
  running->child->signal_group(SIGKILL);
  co_return text;
}

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

std::map<int, NativeStacks> parse_native_stacks(std::string_view text) {
  std::map<int, NativeStacks> stacks;
  while (!text.empty()) {
    std::string_view line = next_part(text, '\n');
    const std::string_view kind = next_part(line, '\t');
    const auto pid = number_of(next_part(line, '\t'));
    if (!pid) continue;
    NativeStacks& process = stacks[*pid];
    if (kind == "E") process.missing = missing_text(line);
    if (kind != "F") continue;
    const auto tid = number_of(next_part(line, '\t'));
    const std::string_view function = next_part(line, '\t');
    if (tid) add_frame(thread_of(process.threads, *tid), function, line);
  }
  return stacks;
}

std::vector<ThreadStack> parse_python_stacks(std::string_view text) {
  std::vector<ThreadStack> threads;
  while (!text.empty()) {
    const std::string_view line = next_part(text, '\n');
    auto thread = python_thread(line);
    if (thread && threads.size() >= kStackThreadsMax) break;
    if (thread) threads.push_back(std::move(*thread));
    if (line.starts_with("    ")) add_python_frame(threads, line);
  }
  std::stable_partition(threads.begin(), threads.end(),
                        [](const ThreadStack& one) { return one.name == "MainThread"; });
  return threads;
}

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
