// What the last lines of a worker's output name: one table from words to causes, and which of the
// lines can name the cause.

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>

#include "agent/report/quotation.hpp"
#include "agent/report/verdict/families.hpp"
#include "base/ending.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/program_name.hpp"

namespace ddprun {

namespace {

/// "KeyError: text": what programs raise about their own data, in which any words can stand.
bool is_about_data(std::string_view line) {
  constexpr std::array<std::string_view, 7> kNames = {"KeyError",  "ValueError", "AssertionError",
                                                      "TypeError", "IndexError", "AttributeError",
                                                      "NameError"};
  const std::string_view name = line.substr(0, line.find(':'));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// What is measured about a symptom and goes with it.
enum class Measure {
  kNothing,
  kDisks,
  kSharedMemory,
  kDescriptors,
  kProcesses,
  kFileSize,
  kMemory
};

struct Symptom {
  const char* text = "";  // in a line that can name the cause
  const char* code = "";
  const char* cause = "";  // follows "ended with exit code 1: "
  Measure measure = Measure::kNothing;
  const char* likely = "";
  const char* advice = "";
  const char* also = "";    // has to stand in that line, too
  const char* beside = "";  // has to stand somewhere in the lines that are quoted
};

constexpr const char* kGpuMemoryAdvice =
    "a smaller batch; nvidia-smi shows who else uses the GPU; this is GPU memory, not RAM";
// PyTorch itself says "might" and "possible".
constexpr const char* kShortMapping =
    "shared memory ran out, or a file that it had mapped became shorter";
constexpr const char* kLaunchBlocking = "CUDA_LAUNCH_BLOCKING=1 to see which call it was";
constexpr const char* kThreadAdvice =
    "ulimit -u, the pids limit of the container (docker run --pids-limit, pod limits), fewer "
    "loader "
    "workers or OMP_NUM_THREADS";

constexpr const char* kNoMoreProcesses = "no more threads or processes were allowed";

/// EAGAIN has other reasons, too: what was tried has to be there.
constexpr Symptom refused_process(const char* also, const char* beside = "") {
  return {"Resource temporarily unavailable",
          "W-LIMIT",
          kNoMoreProcesses,
          Measure::kProcesses,
          "",
          kThreadAdvice,
          also,
          beside};
}

// The first entry that a line contains counts, so the more special one stands first.
constexpr Symptom kSymptoms[] = {
    // Shared memory
    {"killed by signal: Bus error", "W-SHM", "a data-loader process died of SIGBUS",
     Measure::kSharedMemory, kShortMapping, kMoreSharedMemory},
    {"insufficient shared memory (shm)", "W-SHM", "a data-loader process died of SIGBUS",
     Measure::kSharedMemory, kShortMapping, kMoreSharedMemory},
    {"out of shared memory", "W-SHM", "shared memory ran out", Measure::kSharedMemory,
     kSharedByLoaders, kMoreSharedMemory},
    {"unable to allocate shared memory(shm)", "W-SHM", "shared memory ran out",
     Measure::kSharedMemory, "", kMoreSharedMemory},
    {"</torch_", "W-SHM", "shared memory ran out", Measure::kSharedMemory, "", kMoreSharedMemory,
     "No space left on device"},
    {"No space left on device: '/dev/shm", "W-SHM", "shared memory ran out", Measure::kSharedMemory,
     "", kMoreSharedMemory},
    {"No space left on device: '/psm_", "W-SHM", "shared memory ran out", Measure::kSharedMemory,
     "", kMoreSharedMemory},
    // Disks
    {"No space left on device", "W-DISK", "no space is left on a file system", Measure::kDisks, "",
     "df -h and df -i on that host; another --log-dir or TMPDIR if the full one is theirs"},
    {"Disk quota exceeded", "W-DISK", "a disk quota is used up", Measure::kDisks, "",
     "quota -s on that host"},
    {"basic_ios::clear: iostream error", "W-DISK", "a file could not be written", Measure::kDisks,
     "", "df -h and df -i on that host"},
    {"PytorchStreamWriter failed writing file", "W-DISK", "a file could not be written",
     Measure::kDisks, "", "df -h and df -i on that host"},
    {"Read-only file system", "W-DISK", "a file system cannot be written", Measure::kNothing,
     "it was mounted read-only, or turned so after an error", "dmesg and mount on that host"},
    {"Stale file handle", "W-DISK", "a file is gone from its network file system",
     Measure::kNothing, "", "ls and mount on that host; the server's log"},
    {"Input/output error", "W-DISK", "a file could not be read or written", Measure::kNothing,
     "its storage failed, or its terminal is gone", "dmesg and mount on that host"},
    // Collectives
    {"collective mismatch in your code", "W-COLLECTIVE", "the ranks disagree about a collective",
     Measure::kNothing,
     "they called different collectives, or with tensors of different sizes; the rank that noticed "
     "need not be the one that is wrong",
     "TORCH_DISTRIBUTED_DEBUG=DETAIL names the collective and the ranks that differ"},
    // Devices
    {"CUDA out of memory", "W-GPU", "GPU memory ran out", Measure::kNothing, "", kGpuMemoryAdvice},
    {"CUDA error: out of memory", "W-GPU", "GPU memory ran out", Measure::kNothing, "",
     kGpuMemoryAdvice},
    {"XPU out of memory", "W-GPU", "GPU memory ran out", Measure::kNothing, "", kGpuMemoryAdvice},
    // Host memory has other exceptions.
    {"torch.OutOfMemoryError", "W-GPU", "GPU memory ran out", Measure::kNothing, "",
     kGpuMemoryAdvice},
    {"cupy.cuda.memory.OutOfMemoryError", "W-GPU", "GPU memory ran out", Measure::kNothing, "",
     kGpuMemoryAdvice},
    {"cudaErrorMemoryAllocation", "W-GPU", "GPU memory ran out", Measure::kNothing, "",
     kGpuMemoryAdvice},
    {"HIP out of memory", "W-GPU", "GPU memory ran out", Measure::kNothing, "", kGpuMemoryAdvice},
    {"CUBLAS_STATUS_ALLOC_FAILED", "W-GPU", "cuBLAS got no GPU memory", Measure::kNothing,
     "GPU memory ran out", kGpuMemoryAdvice},
    {"uncorrectable ECC error", "W-GPU", "its GPU has a memory fault", Measure::kNothing,
     "broken hardware", "nvidia-smi -q -d ECC on that host; leave this GPU out until it is reset"},
    {"uncorrectable NVLink error", "W-GPU", "its NVLink has a fault", Measure::kNothing,
     "broken hardware", "nvidia-smi nvlink -e on that host"},
    {"NVRM: Xid", "W-GPU", "the driver reported a fault of its GPU", Measure::kNothing,
     "broken hardware or driver", "dmesg on that host; the number after Xid names the fault"},
    {"GPU has fallen off the bus", "W-GPU", "its GPU is gone from the bus", Measure::kNothing,
     "broken hardware", "reboot that host"},
    {"device-side assert triggered", "W-GPU", "an assertion failed in a GPU kernel",
     Measure::kNothing, "an index out of range, such as a label that the model does not have",
     kLaunchBlocking},
    {"illegal memory access", "W-GPU", "a GPU kernel accessed memory that is not its own",
     Measure::kNothing, "", kLaunchBlocking},
    {"misaligned address", "W-GPU", "a GPU kernel used a misaligned address", Measure::kNothing, "",
     kLaunchBlocking},
    {"unspecified launch failure", "W-GPU", "a GPU kernel failed", Measure::kNothing, "",
     kLaunchBlocking},
    {"no kernel image is available", "W-GPU", "its code was not built for this GPU",
     Measure::kNothing, "", "python -c 'import torch; print(torch.cuda.get_arch_list())'"},
    {"CUDA driver version is insufficient", "W-GPU", "the NVIDIA driver is too old",
     Measure::kNothing, "", "nvidia-smi on that host; a newer driver or an older CUDA build"},
    {"NVIDIA driver on your system is too old", "W-GPU", "the NVIDIA driver is too old",
     Measure::kNothing, "", "nvidia-smi on that host; a newer driver or an older CUDA build"},
    {"invalid device ordinal", "W-GPU", "it asked for a GPU that it cannot see", Measure::kNothing,
     "more ranks than visible GPUs", "--nproc-per-node=gpu; nvidia-smi -L; CUDA_VISIBLE_DEVICES"},
    {"no CUDA-capable device is detected", "W-GPU", "it sees no GPU", Measure::kNothing, "",
     "nvidia-smi -L on that host; CUDA_VISIBLE_DEVICES"},
    {"No CUDA GPUs are available", "W-GPU", "it sees no GPU", Measure::kNothing, "",
     "nvidia-smi -L on that host; CUDA_VISIBLE_DEVICES"},
    {"devices are busy or unavailable", "W-GPU", "its GPU is in use", Measure::kNothing,
     "another process has it, in exclusive mode", "nvidia-smi on that host"},
    {"system not yet initialized", "W-GPU", "the GPU fabric is not ready", Measure::kNothing,
     "the fabric manager does not run", "systemctl status nvidia-fabricmanager on that host"},
    {"NCCL WARN ", "W-NCCL", "NCCL failed", Measure::kNothing, "",
     "NCCL_DEBUG=INFO; NCCL_SOCKET_IFNAME to name the interface"},
    {"unhandled system error", "W-NCCL", "a system call of NCCL failed", Measure::kNothing,
     "network or shared memory of this host", "NCCL_DEBUG=INFO names the call"},
    {"unhandled cuda error", "W-NCCL", "a CUDA call of NCCL failed", Measure::kNothing, "",
     "NCCL_DEBUG=INFO names the call"},
    // Limits
    {"Too many open files in system", "W-LIMIT", "the host has no descriptor left",
     Measure::kNothing, "", "sysctl fs.file-max on that host"},
    {"Too many open files", "W-LIMIT", "it reached its limit on descriptors", Measure::kDescriptors,
     "",
     "ulimit -n 65536 before ddprun; torch.multiprocessing.set_sharing_strategy('file_system')"},
    {"File too large", "W-LIMIT", "a file reached its limit on file size", Measure::kFileSize, "",
     "ulimit -f unlimited before ddprun", "[Errno 27]"},
    {"File too large", "W-LIMIT", "a file reached its limit on file size", Measure::kFileSize, "",
     "ulimit -f unlimited before ddprun", "filesystem error"},
    {"can't start new thread", "W-LIMIT", kNoMoreProcesses, Measure::kProcesses, "", kThreadAdvice},
    {"pthread_create failed", "W-LIMIT", kNoMoreProcesses, Measure::kProcesses, "", kThreadAdvice},
    {"Thread creation failed", "W-LIMIT", kNoMoreProcesses, Measure::kProcesses, "", kThreadAdvice},
    {"Cannot fork", "W-LIMIT", "no more processes were allowed", Measure::kProcesses, "",
     kThreadAdvice},
    refused_process("fork: "),
    refused_process("pthread_create"),
    refused_process("thread: "),
    refused_process("", "os.fork("),
    refused_process("", "in _execute_child"),  // of Python's subprocess
    refused_process("", "/popen_fork.py\", line"),
    refused_process("", "'std::system_error'"),
    // Host memory
    {"DefaultCPUAllocator: ", "W-MEMORY", "an allocation of host memory failed", Measure::kMemory},
    {"std::bad_alloc", "W-MEMORY", "an allocation of host memory failed", Measure::kMemory},
    {"Cannot allocate memory", "W-MEMORY", "an allocation of host memory failed", Measure::kMemory},
    {"MemoryError", "W-MEMORY", "an allocation of host memory failed", Measure::kMemory},
};

std::vector<std::string> limit_fact(const char* what, const Amount& limit) {
  if (!limit) return {};
  return {"its limit on " + std::string(what) + " is " + std::to_string(*limit)};
}

std::vector<std::string> process_facts(const LimitEvidence& limits) {
  std::vector<std::string> facts = limit_fact("processes of this user", limits.processes);
  if (limits.cgroup_processes) {
    facts.push_back("its cgroup is limited to " + std::to_string(*limits.cgroup_processes) +
                    " threads and processes");
  }
  return facts;
}

std::vector<std::string> measured(const Symptom& symptom, const WorkerExit& exit) {
  const LimitEvidence& limits = exit.evidence.limits;
  switch (symptom.measure) {
    case Measure::kNothing:
      return {};
    case Measure::kDisks:
      return full_disks(exit.evidence);
    case Measure::kSharedMemory:
      return shared_memory_facts(exit.evidence);
    case Measure::kDescriptors:
      return limit_fact("descriptors", limits.descriptors);
    case Measure::kProcesses:
      return process_facts(limits);
    case Measure::kFileSize:
      if (!limits.file_bytes) return {};
      return {"its limit on file size is " + bytes_text(*limits.file_bytes)};
    case Measure::kMemory:
      return memory_facts(exit);
  }
  return {};
}

/// The letter by which ulimit knows it; 0: it has none.
char letter_of(Measure measure) {
  switch (measure) {
    case Measure::kDescriptors:
      return 'n';
    case Measure::kProcesses:
      return 'u';
    case Measure::kFileSize:
      return 'f';
    default:
      return 0;
  }
}

const Symptom* find_symptom(const WorkerExit& exit, bool is_certain) {
  for (const TellingLine& line : telling_lines(exit)) {
    if (line.is_certain != is_certain || is_about_data(line.text)) continue;
    for (const Symptom& symptom : kSymptoms) {
      const auto has = [&line](const char* text) {
        return line.text.find(text) != std::string_view::npos;
      };
      if (!has(symptom.text) || !has(symptom.also)) continue;
      if (*symptom.beside == '\0' || quotes(exit, symptom.beside)) return &symptom;
    }
  }
  return nullptr;
}

// Less than a block: nothing more can be written.
constexpr std::int64_t kFullBelow = 4096;

/// An allocation that a limit of the worker refused, while there may be memory.
void name_address_space(Verdict& verdict, const WorkerExit& exit) {
  const Amount& limit = exit.evidence.limits.address_space;
  if (verdict.code != "W-MEMORY" || !limit) return;
  verdict.code = "W-LIMIT";
  verdict.text = ended_text(exit.status) + ": it reached its limit on address space";
  verdict.evidence = {"its limit on address space is " + bytes_text(*limit)};
  verdict.advice = limit_advice(exit.evidence.limits, 'v', "ulimit -v unlimited before ddprun");
}

// Programs with large libraries map tens of gigabytes.
constexpr std::int64_t kSmallAddressSpace = std::int64_t{32} << 30;

/// The stack of a thread is address space, too, and a limit on that is the rarer one.
void name_limit_of_threads(Verdict& verdict, const Symptom& symptom, const WorkerExit& exit) {
  const Amount& limit = exit.evidence.limits.address_space;
  const std::string_view text = *symptom.also == '\0' ? symptom.text : symptom.also;
  const bool is_thread = text.find("thread") != text.npos || text.find("Thread") != text.npos;
  if (symptom.measure != Measure::kProcesses || !is_thread || !limit) return;
  const std::string& lowered = exit.evidence.limits.lowered;
  const bool has_set_it = lowered.find('v') != lowered.npos;
  const bool has_set_other = lowered.find('u') != lowered.npos;
  if (!has_set_it && (has_set_other || *limit > kSmallAddressSpace)) return;
  verdict.text = ended_text(exit.status) + ": no thread could be started";
  verdict.evidence.insert(verdict.evidence.begin(),
                          "its limit on address space is " + bytes_text(*limit));
  verdict.likely = "the limit on address space: the stack of a thread takes 8 MiB of it";
  verdict.advice = limit_advice(exit.evidence.limits, 'v', "ulimit -v unlimited before ddprun");
}

/// Whether its last words are complete: an exception, or that something failed.
bool said_why(const WorkerExit& exit) {
  const LineViews lines = views_of(exit.lines);
  if (const auto traceback = last_traceback(lines)) return traceback->exception < traceback->end;
  return !lines.empty() && reports_failure(lines.back());
}

/// A worker that could write no more to its own log file: of that its output says nothing.
std::optional<Verdict> judge_log_disk(const WorkerExit& exit) {
  if (exit.status.by_signal() || said_why(exit)) return std::nullopt;
  for (const DiskEvidence& disk : exit.evidence.disks) {
    if (!disk.has_streams || disk.bytes == 0 || disk.free_bytes >= kFullBelow) continue;
    return Verdict{"W-DISK",
                   ended_text(exit.status) + ": no space is left for its stdout and stderr",
                   full_disks(exit.evidence),
                   "it could not write its output, and what it said last is not in its log files",
                   "df -h on that host; another --log-dir"};
  }
  return std::nullopt;
}

// Without a traceback only the very last lines tell: earlier ones are often warnings.
constexpr std::size_t kLastLinesMax = 6;

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

/// Whether the worker survived what the line at this offset says.
bool went_on_after(std::string_view tail, std::size_t offset) {
  const auto at =
      std::count(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  const auto line = static_cast<std::size_t>(at);
  return sequel_of(split_lines(tail), line, line + 1, {}).went_on;
}

/// What torchrun's table says of its root cause: "rank 1 (local_rank: 1), exitcode 3 (pid: 42)".
std::string root_cause_of_torchrun(std::string_view tail) {
  const auto heading = tail.rfind("Root Cause (first observed failure)");
  if (heading == std::string_view::npos || went_on_after(tail, heading)) return {};
  std::string text;
  for (const std::string_view field : {"rank", "exitcode"}) {
    const auto at = tail.find("\n  " + std::string(field) + " ", heading);
    if (at == std::string_view::npos) return {};
    const std::string_view line = tail.substr(at + 1, tail.find('\n', at + 1) - at - 1);
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return {};
    text += (text.empty() ? "" : ", ") + std::string(field) + " " +
            std::string(trimmed(line.substr(colon + 2)));
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Empty if there is none, or the worker went on after it.
std::string last_line_with(std::string_view tail, std::string_view text) {
  const auto at = tail.rfind(text);
  if (at == std::string_view::npos || went_on_after(tail, at)) return {};
  const auto before = tail.rfind('\n', at);
  const auto begin = before == std::string_view::npos ? 0 : before + 1;
  return quotable(tail.substr(begin, tail.find('\n', at) - begin));
}

/// The headline of a ddprun inside the worker.
bool is_headline(std::string_view line) {
  const std::size_t prefix = own_error_prefix(line);
  return prefix > 0 && line.substr(prefix).starts_with("error [W-");
}

bool is_of_import(std::string_view line) {
  return line.starts_with("ImportError: ") || line.starts_with("ModuleNotFoundError: ");
}

/// The file and the function of a frame: `File "train.py"...in main`.
std::string place_of(std::string_view frame) {
  const auto at = frame.find(", in ");
  if (at == std::string_view::npos) return {};
  return std::string(frame.substr(0, frame.find("\", line "))) + std::string(frame.substr(at));
}

bool is_frame(std::string_view line) {
  return trimmed(line).starts_with("File \"");
}

/// Of a chain whose last exception was raised while another one was handled.
struct Handling {
  std::size_t link = 0;        // between the two tracebacks; 0: it is no such chain
  bool in_handler = false;     // the handler itself raised it, and called nothing
  bool is_about_data = false;  // the program's own: it need not follow from the other
};

Handling handling_in(const LineViews& lines, const Traceback& traceback) {
  Handling found;
  for (std::size_t at = traceback.begin; at < traceback.exception; ++at) {
    if (contains(lines[at], "During handling of the above exception")) found.link = at;
  }
  if (found.link == 0) return found;
  // The function that handled it shows its traceback from itself down.
  std::size_t first = found.link;
  while (first > traceback.begin && !is_traceback_heading(lines[first])) --first;
  while (first < found.link && !is_frame(without_rank(lines[first]))) ++first;
  std::size_t last = traceback.exception - 1;
  while (last > found.link && !is_frame(without_rank(lines[last]))) --last;
  found.in_handler = place_of(without_rank(lines[first])) == place_of(without_rank(lines[last]));
  found.is_about_data =
      traceback.exception < lines.size() && is_about_data(without_rank(lines[traceback.exception]));
  return found;
}

/// The exception of a traceback, and what follows it: an exit code other than 1, or a failure that
/// was reported after it, shows that it was caught; one of a thread ended no process.
std::vector<TellingLine> of_traceback(const WorkerExit& exit, const LineViews& lines,
                                      const Traceback& traceback, const Sequel& sequel) {
  const bool of_file = exit.source == EvidenceSource::kErrorFile;
  const bool is_last = of_file || sequel.lines.empty();
  const bool is_certain = is_last || (may_be_uncaught(exit.status) && !traceback.is_of_thread &&
                                      !reports_failure(lines[sequel.lines.back()]));
  std::vector<TellingLine> telling;
  if (!is_certain) telling.push_back({without_rank(lines[sequel.lines.back()]), true});
  const Handling handling = handling_in(lines, traceback);
  for (std::size_t at = traceback.begin; at < lines.size(); ++at) {
    const std::string_view line = without_gutter(without_rank(lines[at]));
    const bool tells = !is_noise(line) && !is_traceback_heading(line);
    if (!tells) continue;
    // A program that does without a module, or tries another way, fails for its own reasons later.
    const bool was_handled = at < handling.link && (handling.is_about_data ||
                                                    (is_of_import(line) && !handling.in_handler));
    telling.push_back({line, is_certain && !was_handled});
  }
  return telling;
}

/// Of the lines from `from` to before `end`, the last one first.
std::vector<TellingLine> of_last_lines(const LineViews& lines, std::size_t from, std::size_t end) {
  std::vector<TellingLine> telling;
  std::multiset<std::string> shapes;
  for (const std::string_view line : lines) shapes.insert(shape_of(line));
  std::string_view last;  // the first word of the last statement
  std::size_t statements = 0;
  for (std::size_t at = end; at > from && statements < kLastLinesMax; --at) {
    const std::string_view line = without_rank(lines[at - 1]);
    if (line.empty() || (contains(line, "Warning: ") && is_noise(line))) continue;
    const std::string_view word = line.substr(0, line.find(' '));
    telling.push_back({line, statements == 0 || word == last});
    if (is_noise(line)) continue;
    if (statements++ == 0) last = word;
    const std::string shape = shape_of(line);
    const bool is_step = contains(shape, "#") && shapes.count(shape) > 1;
    if (is_step || reports_failure(line)) break;
  }
  return telling;
}

}  // namespace

std::vector<std::string> full_disks(const Evidence& evidence) {
  std::vector<std::string> facts;
  constexpr std::int64_t kNothingLeft = 64 * 1024;
  for (const DiskEvidence& disk : evidence.disks) {
    if (disk.bytes > 0 && disk.free_bytes <= kNothingLeft) {
      facts.push_back(disk.path + " is full: " + bytes_text(disk.free_bytes) + " of " +
                      bytes_text(disk.bytes) + " free");
    } else if (disk.free_files == 0) {
      facts.push_back(disk.path + " can hold no more files (no inode is free)");
    }
  }
  return facts;
}

std::string guess_from_output(const WorkerExit& exit) {
  const Symptom* symptom = find_symptom(exit, false);
  if (symptom == nullptr) return {};
  return std::string(symptom->cause) + ": a line before the last one says so";
}

std::optional<Verdict> judge_output(const WorkerExit& exit) {
  if (exit.status.by_signal() && !exit.status.text().starts_with("SIGABRT")) return std::nullopt;
  const Symptom* symptom = find_symptom(exit, true);
  if (symptom == nullptr) return judge_log_disk(exit);
  Verdict verdict{symptom->code, ended_text(exit.status) + ": " + symptom->cause,
                  measured(*symptom, exit), symptom->likely, symptom->advice};
  if (symptom->measure == Measure::kDisks && verdict.evidence.empty()) {
    verdict.likely = "a file system that ddprun did not look at, or one that had room again";
  }
  if (const char letter = letter_of(symptom->measure)) {
    verdict.advice = limit_advice(exit.evidence.limits, letter, verdict.advice);
  }
  name_address_space(verdict, exit);
  name_limit_of_threads(verdict, *symptom, exit);
  if (!exit.evidence.telling_line.empty()) {
    verdict.evidence.push_back("earlier line: " + exit.evidence.telling_line);
  }
  return verdict;
}

std::vector<TellingLine> telling_lines(const WorkerExit& exit) {
  const LineViews lines = own_account(views_of(exit.lines));
  std::vector<TellingLine> telling;
  const auto traceback = last_traceback(lines);
  Sequel sequel;
  if (traceback) sequel = sequel_of(lines, traceback->begin, traceback->end, exit.status);
  if (traceback && !sequel.went_on) {
    telling = of_traceback(exit, lines, *traceback, sequel);
  } else {
    const auto fault = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
      return line.starts_with(kFaultReport);
    });
    const auto end = static_cast<std::size_t>(std::distance(lines.begin(), fault));
    const std::size_t from = traceback ? traceback->end : 0;
    telling = of_last_lines(lines, from, end == 0 || end < from ? lines.size() : end);
  }
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = without_rank(lines[at]);
    const bool crashed = exit.status.by_signal() && line.starts_with("  what():  ");
    const bool nested = is_headline(line) && !sequel_of(lines, at, at + 1, {}).went_on;
    if (crashed || nested) telling.push_back({line, true});
  }
  if (!exit.evidence.telling_line.empty()) telling.push_back({exit.evidence.telling_line, true});
  return telling;
}

bool tells(const WorkerExit& exit, std::string_view text) {
  const std::vector<TellingLine> telling = telling_lines(exit);
  return std::any_of(telling.begin(), telling.end(), [text](const TellingLine& line) {
    return line.is_certain && contains(line.text, text);
  });
}

bool quotes(const WorkerExit& exit, std::string_view text) {
  return std::any_of(exit.lines.begin(), exit.lines.end(),
                     [text](const std::string& line) { return contains(line, text); });
}

std::string find_telling_line(const std::string& tail, const std::vector<std::string>& quoted) {
  const auto is_quoted = [&quoted](const std::string& line) {
    return std::find(quoted.begin(), quoted.end(), line) != quoted.end();
  };
  if (const std::string rank = root_cause_of_torchrun(tail); !rank.empty()) {
    return "torchrun: " + quotable(rank);
  }
  for (const std::string_view name : kProgramNames) {
    const std::string inner = last_line_with(tail, std::string(name) + ": error [W-");
    if (!inner.empty()) return is_quoted(inner) ? "" : inner;
  }
  const bool about_nccl = std::any_of(quoted.begin(), quoted.end(), [](const std::string& line) {
    return contains(line, "NCCL") || contains(line, "nccl");
  });
  const std::string warning = about_nccl ? last_line_with(tail, "NCCL WARN ") : "";
  return is_quoted(warning) ? "" : warning;
}

}  // namespace ddprun
