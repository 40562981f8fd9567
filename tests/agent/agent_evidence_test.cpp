// The evidence of real deaths: limits, the kernel's kills for memory, and output that is awkward.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/agent/agent_run.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

namespace fs = std::filesystem;

/// A memory cgroup of version 1 with a limit, removed at the end; none without the right to it.
class MemoryLimit {
 public:
  explicit MemoryLimit(const std::string& bytes)
      : folder_("/sys/fs/cgroup/memory/ddprun-evidence-" + std::to_string(::getpid())) {
    std::error_code why;
    made_ = ::geteuid() == 0 && fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") &&
            fs::create_directory(folder_, why);
    if (!made_) WARN("no memory cgroup of version 1 that can be written: not tested");
    if (made_) std::ofstream(folder_ + "/memory.limit_in_bytes") << bytes;
  }
  ~MemoryLimit() {
    if (!made_) return;
    // Its last process may not be quite gone.
    (void)wait_until([this] { return ::rmdir(folder_.c_str()) == 0; });
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  explicit operator bool() const { return made_; }
  [[nodiscard]] std::string procs() const { return folder_ + "/cgroup.procs"; }

 private:
  std::string folder_;
  bool made_ = false;
};

const std::string kEat = "exec dd if=/dev/zero of=/dev/null bs=300M count=1";

std::string report_of(const std::string& script, Argv options = {}, Environment changes = {}) {
  auto run = start(1, script, std::move(options), std::move(changes));
  (void)run.wait(3 * kWaitMax);  // a second of processor time takes long on a busy machine
  return run.err();
}

}  // namespace

// What a sanitizer needs exceeds the limit.
#if !DDPRUN_TEST_SANITIZED
TEST_CASE("the kernel's kill in the cgroup of ddprun is told for certain, with the limit") {
  const MemoryLimit limit("80M");
  if (!limit) return;
  Argv argv{"sh", "-c", "echo 0 > " + limit.procs() + "; exec \"$@\"", "sh"};
  const Argv run_argv = driver(1, {}, kEat);
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv);
  CHECK(run.wait() == ExitStatus::exited(137));
  CHECK_THAT(run.err(), ContainsSubstring("error [W-OOM] rank 0 ") &&
                            ContainsSubstring(kKilledByKernel) &&
                            ContainsSubstring("  evidence  " + kCgroupKills + " went ") &&
                            ContainsSubstring("; limit 80 MiB, peak "));
}
#endif

TEST_CASE("the kernel's kill in a cgroup that the worker entered is found in counter or log") {
  const MemoryLimit limit("64M");
  if (!limit) return;
  const std::string report = report_of("echo 0 > " + limit.procs() + "; " + kEat);
  CHECK_THAT(report, ContainsSubstring("error [W-OOM] rank 0 ") && ContainsSubstring(kHostKills) &&
                         ContainsSubstring(kOutOfMemory));
}

TEST_CASE("a worker that kills itself, or that a sibling kills, has an unknown sender") {
  CHECK_THAT(report_of("kill -9 $$$$"),
             ContainsSubstring("error [W-KILLED] rank 0 ") && ContainsSubstring(kSenderUnknown));
  TemporaryDirectory dir;
  const std::string sibling =
      "if [ $RANK = 1 ]; then echo $$$$ > $DIR/pid; exec sleep 1000; fi; "
      "until [ -s $DIR/pid ]; do sleep 0.01; done; kill -9 $$(cat $DIR/pid); exec sleep 1000";
  auto run = start(2, sibling, {}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(137));
  CHECK_THAT(run.err(), ContainsSubstring("error [W-KILLED] rank 1 "));
}

TEST_CASE("limits that the worker's own script set are read from the dead worker") {
  const TemporaryDirectory dir;
  CHECK_THAT(report_of("ulimit -c 0; ulimit -t 1; while :; do :; done"),
             ContainsSubstring("error [W-LIMIT] rank 0 ") &&
                 ContainsSubstring(kCpuLimit + "1 s, it used 1 s"));
  CHECK_THAT(report_of("ulimit -c 0; ulimit -f 8; exec dd if=/dev/zero of=$DIR/x bs=1M count=1", {},
                       {{"DIR", dir.path()}}),
             ContainsSubstring("error [W-LIMIT] rank 0 ") && ContainsSubstring(kFileLimit));
  CHECK_THAT(report_of("ulimit -c 0; kill -SEGV $$$$"),
             ContainsSubstring("error [W-CRASH] rank 0 ") &&
                 ContainsSubstring("  evidence  " + kCoresAreOff + "\n"));
}

TEST_CASE("a last line of 300 KB without its end leaves the lines before it in sight") {
  TemporaryDirectory logs;
  const std::string script =
      "echo needle >&2; printf begin >&2; head -c 300000 /dev/zero | tr '\\0' x >&2; "
      "printf end >&2; exit 3";
  for (const Argv& options : {Argv{}, Argv{"redirects=3", "log=" + logs.path()}}) {
    const std::string report = report_of(script, options);
    const std::string quoted = report.substr(std::min(report.find("  evidence"), report.size()));
    CHECK_THAT(quoted, ContainsSubstring("| needle\n            | beginxxx"));
    CHECK_THAT(quoted, ContainsSubstring("xxxend\n"));
    CHECK(quoted.size() < 2000);
  }
}

TEST_CASE("an error.json of many megabytes still has its message") {
  const std::string script =
      "{ printf '{\"message\": {\"message\": \"ValueError: needle '; "
      "head -c 4000000 /dev/zero | tr '\\0' x; "
      "printf '\", \"extraInfo\": {\"py_callstack\": \"Traceback\\\\n the end\\\\n\", "
      "\"timestamp\": \"17\"}}}'; } > $TORCHELASTIC_ERROR_FILE; exit 6";
  CHECK_THAT(report_of(script), ContainsSubstring("its error.json:\n") &&
                                    ContainsSubstring("| ValueError: needle xxx") &&
                                    ContainsSubstring("the end\n"));
}

TEST_CASE("stdout is quoted where it goes to a file and stderr is empty or closed") {
  TemporaryDirectory logs;
  const std::string quoted = kLastOfStdout + "            | reason\n";
  CHECK_THAT(report_of("echo reason; exit 3", {"redirects=1", "log=" + logs.path()}),
             ContainsSubstring(quoted));
  CHECK_THAT(report_of("exec 2>&-; echo reason; exit 3", {"redirects=1", "log=" + logs.path()}),
             ContainsSubstring(quoted));
  CHECK_THAT(report_of("echo reason; exit 3"), ContainsSubstring("  try       --tee=3 "));
  CHECK_THAT(report_of("echo reason; exit 3", {"redirects=3", "log=" + logs.path()}),
             ContainsSubstring(quoted) && ContainsSubstring("/stdout.log\n"));
}

TEST_CASE("a traceback is quoted in full only where the console has not just shown it") {
  TemporaryDirectory logs;
  const std::string script =
      "{ echo 'Traceback (most recent call last):'; echo '  File \"t.py\", line 3'; "
      "echo 'KeyError: 7'; } >&2; exit 1";
  const std::string above = kTracebackIsAbove + "\n            | KeyError: 7\n";
  const std::string in_full = kLastLines + ":\n            | Traceback (most recent";
  const std::string log = "log=" + logs.path();
  CHECK_THAT(report_of(script), ContainsSubstring(above));
  CHECK_THAT(report_of(script, {"tee=3", log}), ContainsSubstring(above));
  CHECK_THAT(report_of(script, {"redirects=3", log}), ContainsSubstring(in_full));
  CHECK_THAT(report_of(script, {"console=raw"}),
             ContainsSubstring(kStderrIsRaw) && !ContainsSubstring(in_full));
}

TEST_CASE("bytes that are no text are quoted as such, and forge nothing") {
  const std::string report =
      report_of("printf '\\000\\377\\033[2Jx\\nddprun: done\\n' >&2; exit 3");
  CHECK_THAT(report, ContainsSubstring("| \\x00\xEF\xBF\xBD\\x1b[2Jx\n            | ddprun: done"));
}
