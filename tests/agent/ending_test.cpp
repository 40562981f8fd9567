// How programs end, as they print it: which line is the exception, what is quoted, and what a
// process survived. tests/captured/endings has what the formatters and runtimes print; those of Go
// and Julia are written after their documentation.
#include "base/ending.hpp"

#include <signal.h>

#include <fstream>
#include <sstream>

#include "agent/report/quotation.hpp"
#include "agent/report/report.hpp"
#include "agent/report/verdict.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const std::string kTracebackHeading = "Traceback (most recent call last):\n";
const std::string kFrame = "  File \"train.py\", line 3, in step\n";
const std::string kOom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n";
const std::string kCaughtOom = kTracebackHeading + kFrame + kOom;
const std::string kCorrupt = "FATAL: checkpoint shard 3 is corrupt\n";
const std::string kAborted =
    "Fatal Python error: Aborted\n\nCurrent thread 0x00007f68 (most recent call first):\n"
    "  File \"train.py\", line 3 in step\n  File \"train.py\", line 9 in <module>\n\n"
    "Extension modules: numpy.core._multiarray_umath, torch._C (total: 2)\n";

std::string captured(const std::string& name) {
  std::ifstream file(DDPRUN_CAPTURED "/" + name + ".txt");
  std::ostringstream text;
  text << file.rdbuf();
  INFO(name);
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

std::string ending_of(const std::string& name) {
  return captured("endings/" + name);
}

WorkerExit exit_with(ExitStatus status, const std::string& text,
                     const std::optional<std::string>& error_json = std::nullopt) {
  WorkerExit exit;
  exit.status = status;
  RawEvidence raw;
  raw.stderr_tail = text;
  raw.error_json = error_json;
  add_evidence(exit, raw);
  return exit;
}

Verdict verdict_on(int code, const std::string& text) {
  return judge(exit_with(ExitStatus::exited(code), text));
}

std::string report_on(const WorkerExit& exit, Shown shown) {
  RunFailure failure;
  failure.first = exit;
  failure.round = Round(1);
  return failure_report(failure, "", {}, shown);
}

std::string steps(int from, int to) {
  std::string text;
  for (int step = from; step < to; ++step) {
    text += "step " + std::to_string(step) + ": loss 0." + std::to_string(step * 37) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("the exception of a traceback is found in whatever form that is printed") {
  const std::string nan = "ValueError: learning rate is nan at step 7";
  for (const char* form :
       {"rich", "rich-locals", "loguru", "ipython", "papermill", "hydra", "better-exceptions"}) {
    CAPTURE(form);
    const WorkerExit exit = exit_with(ExitStatus::exited(1), ending_of(form));
    CHECK(exception_of(exit.lines) == std::vector<std::string>{nan});
    CHECK_THAT(report_on(exit, Shown::kYes),
               ContainsSubstring(kTracebackIsAbove + "\n            | " + nan + "\n  exit"));
    const WorkerExit marked = exit_with(ExitStatus::exited(1), ending_of(form) + "\n");
    CHECK_THAT(report_on(marked, Shown::kNo), ContainsSubstring("| " + nan + "\n"));
  }
}

TEST_CASE("of an exception of several lines its first and last ones are quoted, and the gap") {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "ValueError: 3 settings are wrong:\n  lr: not above 0\n  epochs: missing\n";
  const WorkerExit exit = exit_with(ExitStatus::exited(1), traceback);
  CHECK_THAT(report_on(exit, Shown::kYes), ContainsSubstring("| ValueError: 3 settings are wrong:\n"
                                                             "            |   lr: not above 0\n"
                                                             "            |   epochs: missing\n"));
  std::string many = traceback;
  for (int i = 0; i < 20; ++i) many += "  setting " + std::to_string(i) + ": unknown\n";
  CHECK_THAT(report_on(exit_with(ExitStatus::exited(1), many), Shown::kYes),
             ContainsSubstring("| ... 17 lines left out ...\n"
                               "            |   setting 18: unknown\n"
                               "            |   setting 19: unknown\n"));
  const std::string of_torch =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "RuntimeError: Error(s) in loading state_dict for Linear:\n"
      "\tsize mismatch for weight: [8, 4] from checkpoint, [2, 4] in the model.\n";
  CHECK_THAT(report_on(exit_with(ExitStatus::exited(1), of_torch), Shown::kYes),
             ContainsSubstring("|\tsize mismatch for weight") ||
                 ContainsSubstring("| \tsize mismatch for weight"));
  const std::string of_pydantic =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "pydantic_core.ValidationError: 1 validation error for Model\nlr\n"
      "  Input should be a valid number\n";
  CHECK_THAT(report_on(exit_with(ExitStatus::exited(1), of_pydantic), Shown::kYes),
             ContainsSubstring("| lr\n            |   Input should be a valid number\n"));
}

TEST_CASE("a gap in what is quoted counts the lines of the gaps within it") {
  std::vector<std::string> lines(30, "==1== at 0x1");
  lines[0] = "Fatal Python error: Aborted";
  lines[5] = "... 70 lines left out ...";
  const auto first = fitted(lines, 4);
  REQUIRE(first.size() == 4);
  CHECK(first.back() == "... 96 lines left out ...");
}

TEST_CASE(
    "an exception that was logged with its traceback was caught, and none that is slow to exit") {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "ModuleNotFoundError: No module named 'apex'\n";
  CHECK(last_exception("step 1\n" + traceback) == "ModuleNotFoundError: No module named 'apex'");
  for (const std::string record : {"ERROR:root:no fused kernels", "12:00 - WARNING - no kernels",
                                   "[2026-01-02 03:04:05,678][train][ERROR] no kernels"}) {
    CAPTURE(record);
    CHECK(last_exception(record + "\n" + traceback).empty());
  }
}

TEST_CASE("the exception that ended a thread is told as one in a thread") {
  const std::string text = "step 4\n" + captured("asides/thread");
  CHECK(last_exception(text).empty());
  CHECK(last_exception_in_thread(text) == "in a thread: MemoryError: Cannot allocate memory");
  CHECK(last_exception_in_thread(text + "step 5\n").empty());
  CHECK(last_exception_in_thread(kCaughtOom).empty());
}

TEST_CASE("of several exceptions none is called the exception, and all are quoted") {
  const std::pair<const char*, std::vector<const char*>> kForms[] = {
      {"rich-chain",
       {"ValueError: learning rate is nan at step 7", "RuntimeError: training failed"}},
      {"rich-logging", {"ValueError: learning rate is nan at"}},
      {"exception-group", {"| OSError: [Errno 28] No space left on device"}}};
  for (const auto& [form, exceptions] : kForms) {
    CAPTURE(form);
    const WorkerExit exit = exit_with(ExitStatus::exited(1), ending_of(form));
    CHECK(exception_of(exit.lines).empty());
    const std::string report = report_on(exit, Shown::kYes);
    CHECK_THAT(report, ContainsSubstring(kLastLines));
    for (const char* exception : exceptions) CHECK_THAT(report, ContainsSubstring(exception));
  }
}

TEST_CASE("a member of an exception group names the cause") {
  CHECK(judge(exit_with(ExitStatus::exited(1), ending_of("exception-group"))).code == "W-DISK");
}

TEST_CASE("a message before a long stack trace is quoted, and a long run of lines folded") {
  const std::pair<const char*, const char*> kRuntimes[] = {
      {"rust", "index out of bounds: the len is 1 but the index is 7"},
      {"java", "IllegalStateException: learning rate is nan at step 7"},
      {"node", "TypeError: learning rate is nan at step 7"},
      {"go", "panic: runtime error: index out of range [7] with length 1"},
      {"julia", "ERROR: LoadError: BoundsError"},
      {"perl", "learning rate is nan at step 7 at -e line 1."},
      {"asan", "ERROR: AddressSanitizer: heap-buffer-overflow"}};
  for (const auto& [runtime, message] : kRuntimes) {
    const WorkerExit exit = exit_with(ExitStatus::exited(2), ending_of(runtime));
    CAPTURE(runtime);
    CHECK(exit.lines.size() <= 20);
    CHECK_THAT(report_on(exit, Shown::kNo), ContainsSubstring(message));
  }
  CHECK_THAT(report_on(exit_with(ExitStatus::exited(1), ending_of("asan")), Shown::kNo),
             ContainsSubstring("| SUMMARY: AddressSanitizer: heap-buffer-overflow"));
  CHECK(quotable_lines("cannot read shard 7\n" + steps(0, 40) + "end\n") ==
        std::vector<std::string>{"cannot read shard 7", "step 0: loss 0.0", "step 1: loss 0.37",
                                 "... 36 lines left out ...", "step 38: loss 0.1406",
                                 "step 39: loss 0.1443", "end"});
}

TEST_CASE("what a library says before an abort is quoted before the fault handler's report") {
  for (const char* message :
       {"double free or corruption (!prev)",
        "python: loader.cpp:42: int f(): Assertion `n > 0' "
        "failed.",
        "free(): invalid pointer", "corrupted size vs. prev_size",
        "*** stack smashing detected ***: terminated", "LLVM ERROR: out of memory",
        "OMP: Error #15: Initializing libA.so, but found libB.so already initialized.",
        "Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so.",
        "F1128 10:00:00.000000    42 loader.cpp:42] Check failed: n > 0 (0 vs. 0) ",
        "/usr/include/c++/12/bits/stl_vector.h:1123: Assertion '__n < this->size()' failed.",
        "tcmalloc: large alloc failed"}) {
    CAPTURE(message);
    const std::string text = steps(0, 50) + message + "\n" + kAborted;
    const WorkerExit exit = exit_with(ExitStatus::signaled(SIGABRT), text);
    const std::string report = report_on(exit, Shown::kNo);
    CHECK_THAT(report, ContainsSubstring("| " + std::string(message) + "\n            | Fatal Py"));
    CHECK_THAT(report, ContainsSubstring("line 3 in step"));
    CHECK(judge(exit).code == "W-CRASH");
  }
  std::string stack = "F1128 10:00:00 42 loader.cpp:42] Check failed: n > 0\n";
  stack += "*** Check failure stack trace: ***\n";
  for (int frame = 0; frame < 30; ++frame) {
    stack +=
        "    @     0x7f68000" + std::to_string(1000 + frame) + "  google::LogMessage::Fail()\n";
  }
  CHECK_THAT(report_on(exit_with(ExitStatus::signaled(SIGABRT), stack + kAborted), Shown::kNo),
             ContainsSubstring("Check failed: n > 0\n") && ContainsSubstring("line 3 in step"));
}

TEST_CASE("an exception that the worker caught is not the cause of its end") {
  const std::pair<int, std::string> kEnds[] = {
      {3, kCaughtOom + "batch halved to 16\n" + kCorrupt},
      {3, kCaughtOom + "batch halved to 16\ngiving up\n"},
      {1, kCaughtOom + "batch halved to 16\n" + kCorrupt},
      {1, steps(0, 3) + kCaughtOom + steps(3, 6)},
      {1, steps(0, 3) + kCaughtOom + steps(3, 90) + "the disk is slow\n"},
      {3, "WARNING: CUDA out of memory, halving the batch\nstep 1\nstep 2\n" + kCorrupt},
      {3, "ModuleNotFoundError: No module named 'apex'\nwithout apex\n" + kCorrupt},
      {3, "Killed\nloader started again\n" + kCorrupt},
      {1, steps(0, 3) +
              "ddprun: error [W-EXIT] rank 1 on vm ended with exit code 3\n  when  now\n" +
              steps(3, 6)}};
  for (const auto& [code, text] : kEnds) {
    CAPTURE(code, text);
    Evidence killed;
    killed.memory.kills_before = 0;
    killed.memory.kills_after = 1;
    WorkerExit exit = exit_with(ExitStatus::exited(code), text);
    CHECK(judge(exit).code == "W-EXIT");
    CHECK_THAT(judge(exit).likely, !ContainsSubstring("memory"));
    exit.evidence = killed;
    CHECK(judge(exit).code == "W-EXIT");
    CHECK_THAT(report_on(exit, Shown::kYes), !ContainsSubstring(kTracebackIsAbove));
  }
}

TEST_CASE("steps of a new form behind an exception show that the worker survived it") {
  const std::string logged = "2026-01-02 10:51:07,101 ERROR batch 64 does not fit, trying 32\n";
  const std::string at_module = kTracebackHeading + "  File \"train.py\", line 3, in <module>\n";
  for (const std::string& caught :
       {logged + kCaughtOom, logged + at_module + kOom, at_module + kOom}) {
    for (const std::string& last : {std::string(), std::string("loss is nan, stopping\n")}) {
      CAPTURE(caught, last);
      CHECK(verdict_on(1, caught + steps(0, 60) + last).code == "W-EXIT");
      CHECK(verdict_on(1, caught + steps(0, 3) + last).code == "W-EXIT");
    }
    CHECK(verdict_on(1, caught + "saving shard 1\nsaving shard 2\nsaving shard 3\n").code ==
          "W-GPU");
    CHECK(verdict_on(1, caught + "12:00:01 gone\n12:00:02 gone\n12:00:03 gone\n").code == "W-GPU");
  }
}

TEST_CASE("a thread that repeats its line while Python shuts down takes no exception back") {
  const std::string beats = "rss 500 MB\nrss 501 MB\nrss 502 MB\n";
  const std::string more = "rss 503 MB\nrss 504 MB\nrss 505 MB\n";
  const std::string uncaught =
      kTracebackHeading + "  File \"train.py\", line 3, in <module>\n" + kOom;
  CHECK(verdict_on(1, beats + uncaught + more).code == "W-GPU");
  CHECK(verdict_on(1, beats + uncaught + more + "loss is nan, stopping\n").code == "W-EXIT");
  CHECK(verdict_on(1, beats + kCaughtOom + more).code == "W-EXIT");
}

TEST_CASE("two ends are alike if the last word behind their exception is, too") {
  const auto likeness = [](const std::string& text) { return likeness_of(split_lines(text)); };
  CHECK(likeness(kCaughtOom) == kOom.substr(0, kOom.size() - 1));
  CHECK(likeness(kCaughtOom + "shard 17 is truncated\n") !=
        likeness(kCaughtOom + "loss is nan at step 3\n"));
  CHECK(likeness(steps(0, 3) + kCaughtOom + "step 9: loss 0.9\n") == likeness(kCaughtOom));
  CHECK(likeness(steps(0, 3) + kCaughtOom + steps(3, 6) + "no labels\n") == "no labels");
}

TEST_CASE("a crash of Python's code after an exception that it survived is its own cause") {
  const std::string fault =
      "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f68 (most recent call "
      "first):\n  File \"train.py\", line 31 in step\n";
  const WorkerExit exit = exit_with(ExitStatus::signaled(SIGSEGV), kCaughtOom + fault);
  CHECK(judge(exit).code == "W-CRASH");
  CHECK(telling_line(exit) == "Fatal Python error: Segmentation fault");
  const std::string report = report_on(exit, Shown::kYes);
  CHECK_THAT(report, !ContainsSubstring(kTracebackIsAbove));
  CHECK_THAT(report, ContainsSubstring("|   File \"train.py\", line 31 in step\n"));
  const WorkerExit killed = exit_with(ExitStatus::signaled(SIGKILL), kCaughtOom);
  CHECK_THAT(report_on(killed, Shown::kYes), !ContainsSubstring(kTracebackIsAbove));
}

TEST_CASE("the exception of a process that torch.multiprocessing started decides") {
  const std::string text = kTracebackHeading +
                           "  File \"train.py\", line 30, in <module>\n"
                           "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
                           "-- Process 1 terminated with the following error:\n" +
                           kTracebackHeading +
                           "  File \"/site-packages/torch/multiprocessing/spawn.py\", line 90, in "
                           "_wrap\n    fn(i, *args)\n  File \"train.py\", line 9, in work\n"
                           "OSError: [Errno 28] No space left on device\n";
  const WorkerExit exit = exit_with(ExitStatus::exited(1), text);
  CHECK(judge(exit).code == "W-DISK");
  CHECK(telling_line(exit) == "OSError: [Errno 28] No space left on device");
  CHECK_THAT(report_on(exit, Shown::kYes), ContainsSubstring("| OSError: [Errno 28]"));
}

TEST_CASE("an exception before one last statement is quoted, and a guess where it was caught") {
  const WorkerExit exit = exit_with(ExitStatus::exited(3), kCaughtOom + "FATAL: training failed\n");
  CHECK(exit.lines.front() + "\n" == kTracebackHeading);
  CHECK(judge(exit).code == "W-EXIT");
  CHECK_THAT(judge(exit).likely, ContainsSubstring("GPU memory ran out"));
  CHECK_THAT(report_on(exit, Shown::kYes), ContainsSubstring("| FATAL: training failed\n"));
  CHECK(verdict_on(3, kCaughtOom).code == "W-GPU");  // it is the last line
}

TEST_CASE("an exception that was not caught is the cause, whatever libraries print after it") {
  for (const std::string after :
       {"CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        " 12%|#2       | 12/100 [00:01<00:08, 10.0it/s]\n",
        "Epoch 3:  12%|#2       | 12/100 [00:01<00:08, 10.0it/s]\n",
        "wandb: You can sync this run to the cloud\nwandb: Find logs at: ./wandb\n",
        "[rank1]:[W1128 10:00:00.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group\n",
        "gpu-01:7:9 [0] NCCL INFO comm 0x55 rank 1 nranks 2 - Abort COMPLETE\n",
        "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
        "Exception ignored in: <function Loader.__del__ at 0x7f>\nTraceback (most recent call "
        "last):\n  File \"loader.py\", line 9, in __del__\nAttributeError: pipe\n",
        "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File \"a.py\", "
        "line 9, in close\nKeyError: 'x'\n"}) {
    CAPTURE(after);
    const std::string bar = "Epoch 3:  11%|#1       | 11/100 [00:01<00:09, 10.0it/s]\n";
    CHECK(verdict_on(1, steps(0, 30) + bar + kCaughtOom + after).code == "W-GPU");
    const WorkerExit exit = exit_with(ExitStatus::exited(1), kCaughtOom + after);
    CHECK(exception_of(exit.lines).front() + "\n" == kOom);
  }
}

TEST_CASE(
    "what was said after an exception is quoted with it, which a thread or a handler printed") {
  const std::string in_thread =
      "Exception in thread Thread-1 (work):\n" + kTracebackHeading + kFrame;
  const std::string last = "config mismatch: expected 3 layers, found 4";
  for (const std::string& before : {in_thread, kTracebackHeading + kFrame}) {
    CAPTURE(before);
    const std::string text = before + "ZeroDivisionError: metrics\n" + last + "\n";
    const WorkerExit exit = exit_with(ExitStatus::exited(1), text);
    CHECK_THAT(report_on(exit, Shown::kYes),
               ContainsSubstring(kTracebackAndMore +
                                 "\n            | ZeroDivisionError: metrics\n"
                                 "            | " +
                                 last + "\n"));
  }
  const Verdict verdict = verdict_on(1, in_thread + kOom + last + "\n");
  CHECK(verdict.code == "W-EXIT");  // that thread ended no process
  CHECK_THAT(verdict.likely, ContainsSubstring("GPU memory ran out"));
  CHECK(verdict_on(1, in_thread + kOom).code == "W-GPU");
}

TEST_CASE("a thread that fails while Python shuts down after an exception is not the cause") {
  const std::string thread = "Exception in thread Thread-1 (work):\n" + kTracebackHeading + kFrame +
                             "RuntimeError: queue is closed\n";
  const std::string uncaught =
      kTracebackHeading + "  File \"train.py\", line 9, in <module>\n    step()\n" + kFrame + kOom;
  const WorkerExit exit = exit_with(ExitStatus::exited(1), uncaught + thread + thread);
  CHECK(judge(exit).code == "W-GPU");
  CHECK(exception_of(exit.lines).front() + "\n" == kOom);
  CHECK(verdict_on(1, kCaughtOom + "batch halved\n" + thread).code == "W-EXIT");
}

TEST_CASE("what hooks and children print while Python shuts down is not the cause") {
  const std::string uncaught = kTracebackHeading +
                               "  File \"train.py\", line 9, in <module>\n    step()\n" + kFrame +
                               "KeyError: 'labels'\n";
  const std::string full = kTracebackHeading + "  File \"wandb.py\", line 7, in sync\n" +
                           "OSError: [Errno 28] No space left on device\n";
  for (const std::string& after :
       {"ERROR:root:could not sync the run\n" + full, full,
        "Process Process-1:\n" + kTracebackHeading +
            "  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 314, in _bootstrap\n" +
            "_queue.Empty\n",
        kTracebackHeading + "  File \"<string>\", line 2, in <module>\nKeyboardInterrupt\n"}) {
    CAPTURE(after);
    const WorkerExit exit = exit_with(ExitStatus::exited(1), uncaught + after);
    CHECK(judge(exit).code == "W-EXIT");
    CHECK(exception_of(exit.lines).front() == "KeyError: 'labels'");
  }
  // A logger says that it was caught, and another line that the program went on.
  CHECK(verdict_on(1, "ERROR:root:eval failed\n" + uncaught + full).code == "W-DISK");
  CHECK(verdict_on(1, uncaught + "a\nb\nc\nd\n" + full).code == "W-DISK");
}

TEST_CASE("an exception that Python ignores while it shuts down gives no code") {
  const std::string uncaught = kTracebackHeading +
                               "  File \"train.py\", line 11, in <module>\n"
                               "    raise KeyError(\"layer.11.weight\")\n"
                               "KeyError: 'layer.11.weight'\n";
  const std::string ignored = captured("asides/ignored");
  const std::string error = "OSError: [Errno 28] No space left on device";
  for (const std::string& exception :
       std::vector{error, std::string("MemoryError"),
                   std::string("ModuleNotFoundError: No module named 'wandb.sdk'"),
                   std::string("BrokenPipeError: [Errno 32] Broken pipe")}) {
    std::string aside = ignored;
    aside.replace(aside.find(error), error.size(), exception);
    CAPTURE(exception);
    const Verdict verdict = verdict_on(1, uncaught + aside);
    CHECK(verdict.code == "W-EXIT");
    CHECK(verdict.likely.empty());
  }
  for (const char* aside : {"atexit", "thread", "logging-error", "task", "child"}) {
    CAPTURE(aside);
    const WorkerExit exit =
        exit_with(ExitStatus::exited(1), uncaught + captured(std::string("asides/") + aside));
    CHECK(judge(exit).code == "W-EXIT");
    CHECK(judge(exit).likely.empty());
    CHECK(exception_of(exit.lines) == std::vector<std::string>{"KeyError: 'layer.11.weight'"});
  }
  // One in the middle of the run hides nothing of the end.
  CHECK(verdict_on(1, ignored + kTracebackHeading + "  File \"t.py\", line 9, in <module>\n" +
                          "KeyError: 'a'\n\n" + kDuringHandling + "\n\n" + kCaughtOom)
            .code == "W-GPU");
}

TEST_CASE("memory that ran out is the cause where the checkpoint is saved once more after it") {
  const std::string saved = "2026-11-30 02:31:07,114 INFO saved checkpoint step_20.pt\n";
  const std::string text = saved + "2026-11-30 02:31:07,201 ERROR exception in training\n" +
                           kTracebackHeading + "  File \"train.py\", line 9, in <module>\n" + kOom +
                           "2026-11-30 02:31:07,202 INFO saved checkpoint step_30.pt\n";
  CHECK(verdict_on(1, text).code == "W-GPU");
}

TEST_CASE("the exception of a loader's process decides, which PyTorch shows in its own") {
  const auto of_loader = [](const std::string& error) {
    return kTracebackHeading +
           "  File \"train.py\", line 12, in <module>\n    for b in loader: pass\n"
           "  File \"/site-packages/torch/_utils.py\", line 750, in reraise\n"
           "    raise exception\n"
           "OSError: Caught OSError in DataLoader worker process 0.\n"
           "Original Traceback (most recent call last):\n"
           "  File \"/site-packages/torch/utils/data/_utils/fetch.py\", line 54, in fetch\n"
           "    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
           "  File \"train.py\", line 8, in __getitem__\n    l = open(path)\n" +
           error + "\n";
  };
  CHECK(verdict_on(1, of_loader("OSError: [Errno 24] Too many open files: '/dev/null'")).code ==
        "W-LIMIT");
  CHECK(verdict_on(1, of_loader("OSError: [Errno 28] No space left on device: cache")).code ==
        "W-DISK");
  CHECK(verdict_on(1, of_loader("KeyError: 'labels'")).code == "W-EXIT");
}

TEST_CASE("an exception that was caught and shown before a thread failed is not the cause") {
  const std::string thread = "Exception in thread Thread-1 (work):\n" + kTracebackHeading + kFrame +
                             "RuntimeError: loader died\n";
  const std::string in_function =
      kTracebackHeading + "  File \"t.py\", line 4, in load\n    open(path)\n";
  for (const std::string& caught :
       {in_function + "FileNotFoundError: cache\n",
        kTracebackHeading + "  File \"t.py\", line 3, in <module>\n    import flash\n"
                            "ModuleNotFoundError: No module named 'flash'\n"}) {
    const WorkerExit exit = exit_with(ExitStatus::exited(1), caught + thread);
    CHECK(judge(exit).code == "W-EXIT");
    CHECK(exception_of(exit.lines).front() == "RuntimeError: loader died");
  }
}

TEST_CASE("an error file is no evidence where its worker raised or reported something else later") {
  const std::string file =
      R"({"message": {"message": "OutOfMemoryError: CUDA out of memory.", "extraInfo": )"
      R"({"py_callstack": "Traceback (most recent call last):\nOutOfMemoryError: CUDA out of )"
      R"(memory.\n", "timestamp": "17"}}})";
  const auto source = [&file](int code, const std::string& text) {
    return exit_with(ExitStatus::exited(code), text, file).source;
  };
  CHECK(source(1, "") == EvidenceSource::kErrorFile);
  CHECK(source(1, kCaughtOom) == EvidenceSource::kErrorFile);
  CHECK(source(1, "UserWarning: slow\n") == EvidenceSource::kErrorFile);
  CHECK(source(3, "") == EvidenceSource::kErrorFile);
  CHECK(source(1, kTracebackHeading + kFrame + "KeyError: 'labels'\n") == EvidenceSource::kStderr);
  CHECK(source(1, kCorrupt) == EvidenceSource::kStderr);
  CHECK(source(3, "giving up\n") == EvidenceSource::kStderr);
}

TEST_CASE("lines that differ in their numbers have one shape") {
  CHECK(shape_of("step 7: loss 0.31") == shape_of("step 128: loss 12.5"));
  CHECK(shape_of("at 0x7f68") == shape_of("at 0xdeadbeef"));
  CHECK(shape_of("object 7f68ab") == shape_of("object 00123456"));
  CHECK(shape_of("step 7") != shape_of("stop 7"));
}
