// Verdicts from the last lines of output, and what must not make one.
#include <signal.h>

#include "agent/report/report.hpp"
#include "agent/report/verdict.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

std::string raised(const std::string& exception, const std::string& code = "x = f()") {
  return "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    " +
         code + "\n" + exception + "\n";
}

Verdict verdict_on(const std::string& text, const Evidence& facts = {}) {
  WorkerExit exit;
  exit.worker.host = "gpu-01";
  RawEvidence raw;
  raw.stderr_tail = text;
  raw.facts = facts;
  add_evidence(exit, raw);
  return judge(exit);
}

}  // namespace

TEST_CASE("the exception of a traceback names disk, limit, memory or device") {
  const std::pair<const char*, const char*> kCases[] = {
      {"OSError: [Errno 28] No space left on device: '/data/x'", "W-DISK"},
      {"OSError: [Errno 122] Disk quota exceeded", "W-DISK"},
      {"OSError: [Errno 30] Read-only file system: 'x'", "W-DISK"},
      {"OSError: [Errno 116] Stale file handle: 'x'", "W-DISK"},
      {"OSError: [Errno 5] Input/output error", "W-DISK"},
      {"OSError: [Errno 24] Too many open files: 'x'", "W-LIMIT"},
      {"OSError: [Errno 27] File too large", "W-LIMIT"},
      {"RuntimeError: can't start new thread", "W-LIMIT"},
      {"MemoryError", "W-MEMORY"},
      {"OSError: [Errno 12] Cannot allocate memory", "W-MEMORY"},
      {"RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory", "W-MEMORY"},
      {"RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)", "W-SHM"},
      {"RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible "
       "that dataloader's workers are out of shared memory.",
       "W-SHM"},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "W-GPU"},
      {"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
       "memory)",
       "W-GPU"},
      {"torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB", "W-GPU"},
      {"MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/rmm/include/rmm/mr/device/"
       "cuda_memory_resource.hpp:62: cudaErrorMemoryAllocation out of memory",
       "W-GPU"},
      {"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes", "W-GPU"},
      {"java.lang.OutOfMemoryError: Java heap space", "W-MEMORY"},
      {"RuntimeError: basic_ios::clear: iostream error", "W-DISK"},
      {"RuntimeError: CUDA error: device-side assert triggered", "W-GPU"},
      {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "W-GPU"},
      {"RuntimeError: CUDA error: no kernel image is available for execution on the device",
       "W-GPU"},
      {"RuntimeError: CUDA error: invalid device ordinal", "W-GPU"},
      {"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
       "W-NCCL"},
      {"KeyError: 'labels'", "W-EXIT"},
  };
  for (const auto& [exception, code] : kCases) {
    CAPTURE(exception);
    CHECK(verdict_on(raised(exception)).code == code);
    CHECK(verdict_on("[rank3]: " + raised("[rank3]: " + std::string(exception))).code == code);
  }
}

TEST_CASE("source code that mentions a cause is not one, nor is a warning before the traceback") {
  CHECK(verdict_on(raised("ValueError: no", "raise OSError('No space left on device')")).code ==
        "W-EXIT");
  CHECK(verdict_on("WARNING: CUDA out of memory, retrying\n" + raised("KeyError: 1")).code ==
        "W-EXIT");
}

TEST_CASE("without a traceback only the last lines tell") {
  CHECK(verdict_on("write failed: No space left on device\n").code == "W-DISK");
  std::string text = "a.log: No space left on device, going on\n";
  for (int step = 0; step < 10; ++step) text += "step " + std::to_string(step) + "\n";
  CHECK(verdict_on(text).code == "W-EXIT");
}

TEST_CASE("the first exception of a chain names the cause") {
  const Verdict verdict = verdict_on(raised("OSError: [Errno 28] No space left on device") + "\n" +
                                     kDuringHandling + "\n\n" + raised("MemoryError"));
  CHECK(verdict.code == "W-DISK");
}

TEST_CASE("a checkpoint that PyTorch could not write is told by its first exception") {
  Evidence facts;
  facts.disks = {{"/work", 1 << 20, 0, 5}};
  const Verdict verdict = verdict_on(
      raised("RuntimeError: basic_ios::clear: iostream error") + "\n" + kDuringHandling + "\n\n" +
          raised("RuntimeError: [enforce fail at inline_container.cc:672] . unexpected "
                 "pos 704 vs 598"),
      facts);
  CHECK(verdict.code == "W-DISK");
  CHECK(verdict.evidence.front() == "/work is full: 0 B of 1 MiB free");
}

TEST_CASE("what a handler did without is not why the program failed in it") {
  const auto chain = [](const std::string& first, const std::string& then) {
    return raised(first) + "\n" + kDuringHandling + "\n\n" + then;
  };
  const std::string missing = "ModuleNotFoundError: No module named 'apex_not_there'";
  const std::string heading = "Traceback (most recent call last):\n";
  const std::string deeper = heading + "  File \"train.py\", line 9, in <module>\n    main()\n" +
                             "  File \"train.py\", line 4, in main\n    x = f()\n";
  CHECK(verdict_on(chain(missing, deeper + "KeyError: 'learning_rate'\n")).code == "W-EXIT");
  CHECK(verdict_on(chain(missing, deeper + "RuntimeError: no data\n")).code == "W-EXIT");
  // The handler itself says what is missing, and what was raised from an exception follows from it.
  CHECK(verdict_on(chain(missing, raised("RuntimeError: model X needs apex"))).code == "W-IMPORT");
  CHECK(verdict_on(raised(missing) + "\n" + kDirectCause + "\n\n" + deeper +
                   "RuntimeError: model X needs apex\n")
            .code == "W-IMPORT");
  const Verdict other = verdict_on(chain("FileNotFoundError: cache miss: Input/output error",
                                         raised("ValueError: n_heads must divide d_model")));
  CHECK(other.code == "W-EXIT");
  CHECK_THAT(other.likely, ContainsSubstring("a file could not be read or written"));
}

TEST_CASE("a full disk is named with its size, and one that has room is not") {
  Evidence facts;
  facts.disks = {{"/data", 1024 * 1024, 0, 7},
                 {"/tmp", 1024 * 1024, 1024 * 1024, 0},
                 {"/logs", 1024 * 1024, 512 * 1024, 9}};
  const std::string text = raised("OSError: [Errno 28] No space left on device");
  CHECK(verdict_on(text, facts).evidence ==
        std::vector<std::string>{"/data is full: 0 B of 1 MiB free",
                                 "/tmp can hold no more files (no inode is free)"});
  CHECK_FALSE(verdict_on(text).likely.empty());
}

TEST_CASE("a worker that could not write to its own log file failed because that disk is full") {
  Evidence facts;
  facts.disks = {{"/logs", 1024 * 1024, 0, 7, true}};
  const std::string cut = "Traceback (most recent call last):\n  File \"t.py\", line 3, in ma";
  for (const std::string& text : {std::string(), cut, std::string("step 3\n")}) {
    const Verdict verdict = verdict_on(text, facts);
    CHECK(verdict.code == "W-DISK");
    CHECK(verdict.evidence == std::vector<std::string>{"/logs is full: 0 B of 1 MiB free"});
  }
  CHECK(verdict_on(raised("KeyError: 7"), facts).code == "W-EXIT");  // its last words are there
  CHECK(verdict_on("ERROR: no checkpoint\n", facts).code == "W-EXIT");
  facts.disks.front().free_bytes = 4096;
  CHECK(verdict_on(cut, facts).code == "W-EXIT");
  facts.disks = {{"/logs", 1024 * 1024, 0, 7, false}};
  CHECK(verdict_on(cut, facts).code == "W-EXIT");
}

TEST_CASE("a limit that the program has set itself is not to be raised before ddprun") {
  Evidence facts;
  facts.limits.known = true;
  facts.limits.address_space = 1024 * 1024;
  CHECK(verdict_on(raised("MemoryError"), facts).advice == "ulimit -v unlimited before ddprun");
  facts.limits.lowered = "cv";
  CHECK_THAT(verdict_on(raised("MemoryError"), facts).advice, ContainsSubstring(kLimitSet + "v"));
  facts.limits.lowered = "nu";
  CHECK_THAT(verdict_on(raised("OSError: [Errno 24] Too many open files"), facts).advice,
             ContainsSubstring(kLimitSet + "n"));
  CHECK_THAT(verdict_on(raised("RuntimeError: can't start new thread"), facts).advice,
             ContainsSubstring(kLimitSet + "u"));
}

TEST_CASE("a limit comes with its value") {
  Evidence facts;
  facts.limits.descriptors = 256;
  facts.limits.processes = 20;
  facts.limits.cgroup_processes = 64;
  facts.limits.address_space = 1024 * 1024;
  CHECK(verdict_on(raised("OSError: [Errno 24] Too many open files"), facts).evidence ==
        std::vector<std::string>{"its limit on descriptors is 256"});
  const Verdict thread = verdict_on(raised("RuntimeError: can't start new thread"), facts);
  CHECK(thread.evidence.size() == 3);
  CHECK(thread.evidence[1] == "its limit on processes of this user is 20");
  CHECK(thread.evidence[2] == "its cgroup is limited to 64 threads and processes");
  CHECK_THAT(thread.text, !ContainsSubstring("processes"));
  CHECK_THAT(thread.likely, ContainsSubstring("address space"));
  const Verdict fork = verdict_on(raised("OSError: Cannot fork"), facts);
  CHECK_THAT(fork.text, ContainsSubstring("no more processes were allowed"));
  const Verdict memory = verdict_on(raised("MemoryError"), facts);
  CHECK(memory.code == "W-LIMIT");
  CHECK(memory.evidence == std::vector<std::string>{"its limit on address space is 1 MiB"});
  CHECK(thread.evidence[0] == memory.evidence[0]);
}

TEST_CASE("a fork that failed is a limit, a socket that would block is not") {
  const std::string error = "BlockingIOError: [Errno 11] Resource temporarily unavailable";
  CHECK(verdict_on(raised(error, "pid = os.fork()")).code == "W-LIMIT");
  CHECK(
      verdict_on(raised(error, "x()\n  File \"subprocess.py\", line 9, in _execute_child")).code ==
      "W-LIMIT");
  CHECK(verdict_on(raised(error, "sock.recv(1)")).code == "W-EXIT");
  CHECK(verdict_on(raised(error, "open('/data/thread/forks.h5')")).code == "W-EXIT");
  CHECK(verdict_on(raised("OSError: HTTP 413: File too large")).code == "W-EXIT");
}

TEST_CASE("of shared memory of torch the error of the system decides") {
  const std::string opening = "RuntimeError: unable to open shared memory object </torch_1_2_3>: ";
  CHECK(verdict_on(raised(opening + "No space left on device (28)")).code == "W-SHM");
  CHECK(verdict_on(raised(opening + "Too many open files (24)")).code == "W-LIMIT");
  CHECK(verdict_on(raised(opening + "Cannot allocate memory (12)")).code == "W-MEMORY");
  CHECK(verdict_on(raised(opening + "Permission denied (13)")).code == "W-EXIT");
}

TEST_CASE("ranks that disagree about a collective are told so, whichever of them crashes") {
  WorkerExit exit;
  exit.status = ExitStatus::signaled(SIGABRT);
  RawEvidence raw;
  raw.stderr_tail =
      "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
      "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4. Received "
      "data size doesn't match expected size. Is there a distributed collective mis"
      "match in your code?\nFatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
      "  File \"a.py\", line 1 in f\n  File \"a.py\", line 2 in g\n  File \"a.py\", line 3 in h\n";
  add_evidence(exit, raw);
  const Verdict verdict = judge(exit);
  CHECK(verdict.code == "W-COLLECTIVE");
  CHECK(verdict.text == "died of SIGABRT: " + kRanksDisagree);
  CHECK_THAT(verdict.likely, ContainsSubstring("different sizes"));
}

TEST_CASE("NCCL's own warning is quoted where only its error is in the traceback") {
  const std::string warning = "gpu-01:7:9 [0] transport/net_ib.cc:1 NCCL WARN Call to ibv_x failed";
  const Verdict verdict = verdict_on(
      warning + "\nstep\n" + raised("DistBackendError: NCCL error, unhandled system error"));
  CHECK(verdict.code == "W-NCCL");
  CHECK(verdict.evidence == std::vector<std::string>{"earlier line: " + warning});
}

TEST_CASE("words in what a program raises about its own data name no cause") {
  for (const std::string line :
       {"KeyError: \"recipe 'retry_on: CUDA out of memory' is not defined\"",
        "AssertionError: unexpected text: '[Errno 28] No space left on device'",
        "ValueError: --oom-policy must be one of 'Cannot allocate memory', 'kill'"}) {
    CAPTURE(line);
    CHECK(verdict_on(raised(line)).code == "W-EXIT");
  }
}

TEST_CASE("a data loader that died of SIGBUS is told so, and both causes that it may have") {
  const Verdict verdict = verdict_on(
      raised("RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is "
             "possible that dataloader's workers are out of shared memory."));
  CHECK_THAT(verdict.text, ContainsSubstring("a data-loader process died of SIGBUS"));
  CHECK_THAT(verdict.likely, ContainsSubstring("became shorter"));
}
