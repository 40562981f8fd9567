// Verdicts on exits with evidence: what is said, what is measured, what is guessed. One section for
// each family of agent/report/verdict.
#include "agent/report/verdict.hpp"

#include <signal.h>

#include "agent/report/quotation.hpp"
#include "agent/report/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1024} * 1024;
constexpr std::int64_t kGiB = 1024 * kMiB;

WorkerExit exit_of(ExitStatus status, const std::string& stderr_text = "", Evidence facts = {}) {
  WorkerExit exit;
  exit.worker = {Rank(5), LocalRank(5), 3381, "gpu-01"};
  exit.status = status;
  RawEvidence raw;
  raw.stderr_tail = stderr_text;
  raw.facts = std::move(facts);
  add_evidence(exit, raw);
  return exit;
}

WorkerExit killed(const MemoryEvidence& memory) {
  Evidence facts;
  facts.memory = memory;
  return exit_of(ExitStatus::signaled(SIGKILL), "", facts);
}

MemoryEvidence counted(std::int64_t before, std::int64_t after) {
  MemoryEvidence memory;
  memory.kills_before = before;
  memory.kills_after = after;
  return memory;
}

std::string traceback(const std::string& exception, const std::string& code = "x = f()") {
  return "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    " +
         code + "\n" + exception + "\n";
}

}  // namespace

TEST_CASE("a kill is the kernel's for certain when the counter of the worker's cgroup moved") {
  MemoryEvidence memory = counted(0, 1);
  memory.limit = 480 * kGiB;
  memory.peak = 480 * kGiB - 200 * kMiB;
  memory.worker_peak = 118 * kGiB;
  memory.left_processes = 64;
  memory.left_resident = 301 * kGiB;
  const Verdict verdict = judge(killed(memory));
  CHECK(verdict.code == "W-OOM");
  CHECK(verdict.text == kKilledByKernel);
  CHECK(verdict.evidence ==
        std::vector<std::string>{kCgroupKills + " went 0 -> 1; limit 480 GiB, peak "
                                                "479.8 GiB; this rank held 118 GiB"});
  CHECK(verdict.likely == "data loading: 64 processes that it started held 301 GiB");
}

TEST_CASE(
    "a kill is likely the kernel's when the host's counter moved, or memory was nearly gone") {
  MemoryEvidence memory;
  memory.host_kills_before = 3;
  memory.host_kills_after = 4;
  Verdict verdict = judge(killed(memory));
  CHECK(verdict.code == "W-OOM");
  CHECK(verdict.text == "received SIGKILL" + kSenderUnknown);
  CHECK(verdict.evidence.front() == kHostKills + "3 -> 4 in this round");
  CHECK_THAT(verdict.likely, ContainsSubstring("the kernel"));
  memory = {};
  memory.limit = 10 * kGiB;
  memory.peak = 10 * kGiB;
  CHECK(judge(killed(memory)).code == "W-OOM");
  memory.peak = 5 * kGiB;
  CHECK(judge(killed(memory)).code == "W-KILLED");
}

TEST_CASE("a full page cache does not make a kill the kernel's where its counter stands still") {
  MemoryEvidence memory = counted(7, 7);
  memory.limit = memory.peak = 10 * kGiB;  // a peak counts the cache of the files that were read
  const Verdict verdict = judge(killed(memory));
  CHECK(verdict.code == "W-KILLED");
  CHECK_THAT(verdict.evidence.front(), ContainsSubstring(kCgroupKills + " did not move"));
  CHECK(verdict.likely.empty());
}

TEST_CASE("a kill elsewhere on the host counts unless the worker's counter covers all it started") {
  MemoryEvidence memory = counted(7, 7);
  memory.host_kills_before = 3;
  memory.host_kills_after = 4;
  CHECK(judge(killed(memory)).code == "W-OOM");
  memory.kills_cover_subtree = true;
  CHECK(judge(killed(memory)).code == "W-KILLED");
}

TEST_CASE("the kernel's log decides where its counters cannot") {
  MemoryEvidence memory;
  memory.host_kills_before = 3;
  memory.host_kills_after = 4;
  memory.logged = 1;
  CHECK(judge(killed(memory)).text == kKilledByKernel);
  memory.logged = 0;  // it killed something else
  CHECK(judge(killed(memory)).code == "W-KILLED");
  CHECK(judge(killed(memory)).likely.empty());
}

TEST_CASE("a kill is not the kernel's where its log says that it killed another process") {
  MemoryEvidence memory = counted(0, 1);
  memory.host_kills_before = 3;
  memory.host_kills_after = 4;
  memory.logged = 0;
  const Verdict verdict = judge(killed(memory));
  CHECK(verdict.code == "W-KILLED");
  CHECK(verdict.evidence.front() ==
        kCgroupKills + " went 0 -> 1, and the host's log names another process");
  memory.logged = 1;
  CHECK(judge(killed(memory)).code == "W-OOM");
}

TEST_CASE("without any evidence the sender of a SIGKILL is unknown, and nothing is guessed") {
  const Verdict verdict = judge(killed({}));
  CHECK(verdict.code == "W-KILLED");
  CHECK(verdict.text == "received SIGKILL" + kSenderUnknown);
  CHECK(verdict.evidence.empty());
  CHECK(verdict.likely.empty());
}

TEST_CASE("a SIGKILL that ddprun passed on is never the kernel's") {
  WorkerExit exit = killed(counted(0, 1));
  exit.passed_signal = SIGKILL;
  CHECK(judge(exit).code == "W-SIGNAL");
}

TEST_CASE("a worker whose child the kernel killed for memory is told so") {
  Evidence facts;
  facts.memory = counted(0, 1);
  const Verdict shell = judge(exit_of(ExitStatus::exited(137), "Killed\n", facts));
  CHECK(shell.code == "W-OOM");
  CHECK(shell.text ==
        "ended with exit code 137 after the kernel killed a process of it " + kOutOfMemory);
  const std::string loader =
      traceback("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.");
  CHECK(judge(exit_of(ExitStatus::exited(1), loader, facts)).code == "W-OOM");
  const Verdict other = judge(exit_of(ExitStatus::exited(1), traceback("KeyError: 3"), facts));
  CHECK(other.code == "W-EXIT");
  CHECK_FALSE(other.likely.empty());
}

TEST_CASE("a bus error with a full or small /dev/shm names it, and another one does not") {
  Evidence facts;
  facts.disks = {{"/dev/shm", 64 * kMiB, 0, std::nullopt}};
  Verdict verdict = judge(exit_of(ExitStatus::signaled(SIGBUS), "", facts));
  CHECK(verdict.code == "W-SIGBUS");
  CHECK(verdict.evidence ==
        std::vector<std::string>{"/dev/shm is 64 MiB and was 100 % full when the rank ended"});
  CHECK_THAT(verdict.likely, ContainsSubstring("/dev/shm"));
  CHECK_THAT(verdict.advice, ContainsSubstring("--shm-size"));
  facts.disks = {{"/dev/shm", 64 * kGiB, 60 * kGiB, std::nullopt}};
  verdict = judge(exit_of(ExitStatus::signaled(SIGBUS), "", facts));
  CHECK_THAT(verdict.likely, !ContainsSubstring("/dev/shm"));
}

TEST_CASE("a crash says where its core is, or that core dumps are off") {
  Evidence facts;
  facts.limits.known = true;
  facts.limits.core_bytes = 0;
  facts.core_pattern = "|/usr/lib/systemd/systemd-coredump %P";
  const auto crashed = [&facts](ExitStatus::Core core) {
    return judge(exit_of(ExitStatus::signaled(SIGSEGV, core), "", facts));
  };
  CHECK(crashed(ExitStatus::Core::kNone).evidence == std::vector<std::string>{kCoresAreOff});
  CHECK(crashed(ExitStatus::Core::kDumped).evidence ==
        std::vector<std::string>{"its core went to /usr/lib/systemd/systemd-coredump %P"});
  CHECK(crashed(ExitStatus::Core::kDumped).advice == "coredumpctl gdb 3381");
  facts.core_pattern = "core.%p";
  CHECK(crashed(ExitStatus::Core::kDumped).evidence ==
        std::vector<std::string>{
            "its core is in its working directory, named core.%p (core_pattern)"});
}

TEST_CASE(
    "the debugger gets the interpreter of a script, and no limit that is unlimited is raised") {
  const auto advice = [](const std::string& text, const LimitEvidence& limits) {
    Evidence facts;
    facts.limits = limits;
    return judge(exit_of(ExitStatus::signaled(SIGSEGV), text, facts)).advice;
  };
  LimitEvidence limits;
  limits.known = true;
  const std::string python = "Fatal Python error: Segmentation fault\n";
  CHECK(advice(python, limits) ==
        "run it in a debugger: --no-python gdb -batch -ex run -ex bt --args "
        "$(python3 -c 'import sys; print(sys.executable)') SCRIPT");
  limits.core_bytes = 0;
  CHECK_THAT(advice("", limits), ContainsSubstring("ulimit -c unlimited before ddprun") &&
                                     ContainsSubstring("--args PROGRAM"));
  limits.lowered = "c";
  CHECK_THAT(advice("", limits), !ContainsSubstring("ulimit"));
}

TEST_CASE("a crash quotes the stack of Python's fault handler from its beginning") {
  std::string text =
      "step 1\nterminate called after throwing an instance of 'std::runtime_error'\n"
      "  what():  boom\nFatal Python error: Aborted\n\n"
      "Current thread 0x1 (most recent call first):\n";
  for (int frame = 0; frame < 40; ++frame) text += "  File \"f" + std::to_string(frame) + "\"\n";
  const WorkerExit exit = exit_of(ExitStatus::signaled(SIGABRT), text);
  CHECK_THAT(exit.lines.front(), ContainsSubstring("terminate called"));
  CHECK(exit.lines.at(2) == "Fatal Python error: Aborted");
  CHECK(exit.lines.at(5) == "  File \"f0\"");
  CHECK(exit.lines.size() == 20);
  CHECK(exit.lines.back() == "... 26 lines left out ...");
  CHECK_THAT(judge(exit).evidence.front(),
             ContainsSubstring("Python stack from its fault handler"));
}

TEST_CASE("a crash of Python that shuts down after an exception is no cause") {
  const std::string traceback =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"train.py\", line 1, in "
      "<module>\n"
      "[rank1]: KeyError: 'labels'\n";
  const std::string crash =
      "terminate called without an active exception\nFatal Python error: Aborted\n\n"
      "Thread 0x1 (most recent call first):\n";
  const auto aborted = [](const std::string& text) {
    return exit_of(ExitStatus::signaled(SIGABRT), text);
  };
  const WorkerExit shut_down = aborted(traceback + crash + "  <no Python frame>\n");
  CHECK(shut_down.lines.front() == "[rank1]: Traceback (most recent call last):");
  CHECK(shut_down.lines.back() == "terminate called without an active exception");
  CHECK(judge(shut_down).code == "W-EXIT");
  CHECK_THAT(judge(shut_down).text, ContainsSubstring("SIGABRT"));
  const WorkerExit worked = aborted(traceback + crash + "  File \"train.py\", line 7 in step\n");
  CHECK(judge(worked).code == "W-CRASH");
  CHECK(judge(aborted(crash + "  <no Python frame>\n")).code == "W-CRASH");
  // Then its fault handler is silent.
  const auto crashed = [&](int signal, const std::string& after) {
    return judge(exit_of(ExitStatus::signaled(signal), traceback + after)).code;
  };
  CHECK(crashed(SIGSEGV, "") == "W-EXIT");
  CHECK(crashed(SIGABRT, "free(): double free detected in tcache 2\n") == "W-EXIT");
  CHECK(crashed(SIGABRT,
                "terminate called after throwing an instance of 'c10::Error'\n"
                "  what():  CUDA error: driver shutting down\n") == "W-EXIT");
  CHECK(crashed(SIGABRT, "epoch 2 begins\n") == "W-CRASH");
}

TEST_CASE("the limit on CPU time is named, also where the kernel sends SIGKILL for it") {
  Evidence facts;
  facts.limits.known = true;
  facts.limits.cpu_seconds = 60;
  facts.limits.cpu_used = 60;
  for (const int signal : {SIGXCPU, SIGKILL}) {
    const Verdict verdict = judge(exit_of(ExitStatus::signaled(signal), "", facts));
    CHECK(verdict.code == "W-LIMIT");
    CHECK(verdict.evidence == std::vector<std::string>{kCpuLimit + "60 s, it used 60 s"});
  }
  facts.limits.cpu_seconds = 61;  // as the kernel leaves it
  CHECK(judge(exit_of(ExitStatus::signaled(SIGXCPU), "", facts)).evidence.front() ==
        kCpuLimit + "60 s, it used 60 s");
  facts.limits.cpu_used = 3;
  CHECK(judge(exit_of(ExitStatus::signaled(SIGKILL), "", facts)).code == "W-KILLED");
  facts.limits.file_bytes = 5 * kMiB;
  const Verdict size = judge(exit_of(ExitStatus::signaled(SIGXFSZ), "", facts));
  CHECK(size.evidence == std::vector<std::string>{kFileLimit + "5 MiB"});
}

TEST_CASE("a program, library or module that is missing blames the node, not a rank") {
  struct Case {
    int code;
    const char* text;
    const char* verdict;
  };
  for (const Case& missing : {
           Case{127, "sh: 1: train: not found\n", "EXEC"},
           Case{127, "bash: line 1: train: command not found\n", "EXEC"},
           Case{127, "env: 'python': No such file or directory\n", "EXEC"},
           Case{127,
                "./a: error while loading shared libraries: libcudart.so.12: cannot open shared "
                "object file: No such file or directory\n",
                "EXEC"},
           Case{126, "bash: ./a: /no/such: bad interpreter: No such file or directory\n", "EXEC"},
           Case{126, "sh: 1: ./a: Permission denied\n", "EXEC"},
           Case{2, "python3: can't open file '/t.py': [Errno 2] No such file or directory\n",
                "EXEC"},
           Case{1, "/usr/bin/python3: No module named nope\n", "EXEC"},
           Case{1,
                "/usr/bin/python3: Error while finding module specification for 'nope.train' "
                "(ModuleNotFoundError: No module named 'nope')\n",
                "EXEC"},
       }) {
    const WorkerExit exit = exit_of(ExitStatus::exited(missing.code), missing.text);
    const Verdict verdict = judge(exit);
    CAPTURE(missing.text);
    CHECK(verdict.code == missing.verdict);
    CHECK(verdict.subject == Verdict::Subject::kNode);
    const std::string sentence = sentence_of(exit, verdict);
    CHECK_THAT(sentence, ContainsSubstring("cannot run the command on gpu-01: "));
    CHECK(sentence.find("rank 5") == std::string::npos);
  }
  const WorkerExit import =
      exit_of(ExitStatus::exited(1), traceback("ModuleNotFoundError: No module named 'foo'"));
  CHECK(judge(import).code == "W-IMPORT");
  CHECK(judge(import).likely == "the Python that runs on gpu-01 does not have foo");
  const WorkerExit module =
      exit_of(ExitStatus::exited(1), "/usr/bin/python3: No module named nope.train\n");
  CHECK_THAT(judge(module).advice, ContainsSubstring("python -m nope.train"));
  CHECK(judge(exit_of(ExitStatus::exited(127), "done\n")).code == "W-EXIT");
}

TEST_CASE("a launcher inside the worker is quoted, and the rank that it names is named") {
  const std::string table =
      "Traceback (most recent call last):\n  File \"torchrun\", line 8\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
      "====\nf.py FAILED\n----\nFailures:\n  <NO_OTHER_FAILURES>\n----\n"
      "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-02_03:04:05\n"
      "  host      : node7\n  rank      : 1 (local_rank: 1)\n  exitcode  : 3 (pid: 4243) \n"
      "  error_file: <N/A>\n  traceback : To enable traceback see: ...\n====\n";
  const WorkerExit exit = exit_of(ExitStatus::exited(1), table);
  const Verdict verdict = judge(exit);
  CHECK(verdict.code == "W-NESTED");
  CHECK(verdict.text ==
        "ended with exit code 1; it runs torchrun, which blames its rank 1 "
        "(local_rank: 1), exitcode 3 (pid: 4243)");
  CHECK_THAT(exit.lines.front(), ContainsSubstring("Root Cause"));
  const std::string inner =
      "ddprun: error [W-EXIT] rank 1 (local 1, pid 7) on vm ended with exit code 3, first failure "
      "of the run";
  const WorkerExit nested =
      exit_of(ExitStatus::exited(3),
              "x\n" + inner + "\n  when      now\n            | " + traceback("KeyError: 1") +
                  "  others    1\n  try       2\n  next      3\n  log       4\n" +
                  "ddprun: note [CLEANUP] 5\n");
  CHECK(nested.lines.front() == inner);
  CHECK_THAT(judge(nested).text,
             ContainsSubstring("ended with exit code 3; it runs ddprun, which says: "
                               "error [W-EXIT] rank 1"));
  CHECK(judge(nested).text.ends_with("on vm ended with exit code 3"));
}

TEST_CASE("a ddprun inside the worker is quoted under whatever name it was called by") {
  for (const std::string name : {"torchrun", "ddprun-launch"}) {
    const std::string inner = name + ": error [W-EXIT] rank 1 on vm ended with exit code 3";
    const WorkerExit nested = exit_of(ExitStatus::exited(3), "x\n" + inner + "\n  when      now\n");
    CHECK(nested.lines.front() == inner);
    CHECK(judge(nested).text ==
          "ended with exit code 3; it runs ddprun, which says: error [W-EXIT] rank 1 on vm ended "
          "with exit code 3");
  }
}

TEST_CASE("a worker that SIGINT interrupted, which ddprun passed on, is told so") {
  WorkerExit exit = exit_of(ExitStatus::exited(1), traceback("KeyboardInterrupt"));
  CHECK(judge(exit).code == "W-EXIT");
  exit.passed_signal = SIGINT;
  CHECK(judge(exit).text == "ended with exit code 1 on SIGINT" + kPassedOn);
  WorkerExit shell = exit_of(ExitStatus::exited(130));
  shell.passed_signal = SIGINT;
  CHECK(judge(shell).code == "W-SIGNAL");
}

TEST_CASE("a broken pipe is that of a closed stdout, where that is closed") {
  Evidence facts;
  facts.stdout_closed = true;
  const ExitStatus broken = ExitStatus::signaled(SIGPIPE);
  CHECK(judge(exit_of(broken, "", facts)).text == "died of SIGPIPE" + kStdoutClosed);
  CHECK(judge(exit_of(ExitStatus::exited(141), "", facts)).text ==
        "ended with exit code 141" + kStdoutClosed);
  const std::string raised = traceback("BrokenPipeError: [Errno 32] Broken pipe");
  CHECK(judge(exit_of(ExitStatus::exited(1), raised, facts)).text ==
        "ended with exit code 1" + kStdoutClosed);
  CHECK(judge(exit_of(ExitStatus::exited(1), traceback("KeyError: 1"), facts)).text ==
        "ended with exit code 1");
  CHECK(judge(exit_of(broken)).text == "died of SIGPIPE");
  CHECK_THAT(judge(exit_of(broken)).likely, ContainsSubstring("that the other end had closed"));
}

TEST_CASE("an exit code of a shell tells which signal its program died of, as a guess") {
  const Verdict verdict = judge(exit_of(ExitStatus::exited(139)));
  CHECK(verdict.code == "W-EXIT");
  CHECK(verdict.likely ==
        "128 + SIGSEGV: a shell or wrapper, whose program died of it, or a "
        "program that handled it");
  CHECK(judge(exit_of(ExitStatus::exited(128))).likely.empty());
}
