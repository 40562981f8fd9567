#include "agent/report/report.hpp"

#include <signal.h>

#include <algorithm>

#include "agent/report/error_file.hpp"
#include "agent/report/quotation.hpp"
#include "base/limits.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using Catch::Matchers::EndsWith;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

// Python's json.dump of what torch's recorder writes.
const std::string kErrorJson =
    R"({"message": {"message": "ValueError: needle", "extraInfo": {"py_callstack": )"
    R"("Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n)"
    R"(ValueError: needle\n", )"
    R"("timestamp": "1767323045"}}})";

const std::string kExit = "\n  exit      code 1";

const RawEvidence kStderr{std::nullopt,
                          "step 310\nFile \"train.py\", line 310, in step\nKeyError: 'labels'\n"};

RunFailure failing(const RawEvidence& evidence = kStderr) {
  RunFailure failure;
  WorkerExit& exit = failure.first;
  exit.worker = {Rank(12), LocalRank(4), 48213, "gpu-02"};
  exit.since_start = 3h + 12min + 5s;
  exit.when = WallTime(11h + 2min + 41s + 118ms);
  exit.log = "logs/7f3a/attempt_1/4/stderr.log";
  add_evidence(exit, evidence);
  failure.round = Round(1);
  return failure;
}

std::string report_of(const RunFailure& failure) {
  return failure_report(failure, "gpu-02");
}

}  // namespace

TEST_CASE("the report names who, how, when, what it last said, who was stopped, and the log") {
  RunFailure failure = failing();
  failure.round = Round(2);
  failure.stopped = 63;
  failure.stop_took = 1400ms;
  failure.no_restart = "all 2 restarts are used";
  CHECK(report_of(failure) ==
        "ddprun: error [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1, "
        "first failure of round 2\n"
        "  when      11:02:41.118Z, 3 h 12 min after start, round 2\n"
        "  evidence  last lines of its stderr:\n"
        "            | step 310\n"
        "            | File \"train.py\", line 310, in step\n"
        "            | KeyError: 'labels'\n"
        "  others    63 ranks were running; ddprun stopped them in 1.4 s\n"
        "  next      not restarted: all 2 restarts are used\n"
        "  log       logs/7f3a/attempt_1/4/stderr.log" +
            kExit);
}

TEST_CASE("rounds that ended alike are said before what the last one printed") {
  RunFailure failure = failing();
  failure.round = Round(2);
  failure.repeated = "rounds 1 and 2 ended alike within 2 s of their start: rank 12, exit code 1";
  CHECK_THAT(report_of(failure),
             ContainsSubstring("\n  evidence  " + failure.repeated + "\n            last lines"));
  failure.no_retry = "twice in a row";
  CHECK_THAT(report_of(failure),
             ContainsSubstring("ddprun: error [RESTARTS] giving up: rank 12 (local 4, pid 48213) "
                               "on gpu-02 ended with exit code 1, twice in a row\n  when"));
}

TEST_CASE("where the first failure is a witness, the report names the culprit and what shows it") {
  RunFailure failure = failing();
  failure.stopped = 1;
  failure.stop_took = 20ms;
  failure.finding = Finding{"W-COLLECTIVE",
                            "a collective gave up after 4 s; rank 1" + kOddOneOut,
                            {1},
                            {"rank 1 is stopped (state T)", "rank 12 said: \x1b[31mTimed out"},
                            "something stopped it",
                            "rank 12 gave up"};
  CHECK(report_of(failure) ==
        "ddprun: error [W-COLLECTIVE] " + failure.finding->text +
            "\n"
            "  when      11:02:41.118Z, 3 h 12 min after start, round 1\n"
            "  evidence  rank 1 is stopped (state T)\n"
            "            rank 12 said: \\x1b[31mTimed out\n"
            "  likely    something stopped it\n"
            "  others    rank 12 gave up; 1 rank was running; ddprun stopped it in 20 ms\n"
            "  log       rank 12's: logs/7f3a/attempt_1/4/stderr.log" +
            kExit);
  failure.finding->ranks.clear();
  CHECK_THAT(report_of(failure), ContainsSubstring("| KeyError: 'labels'\n  likely"));
}

TEST_CASE("the log named is the culprit's, else the witness's by its rank, else of the stacks") {
  RunFailure failure = failing();
  failure.finding = Finding{"W-PEER", "rank 1" + kOddOneOut, {1}, {}, "", ""};
  const std::vector<RankLog> logs{{Rank(0), "logs/0/stderr.log"}, {Rank(1), "logs/1/stderr.log"}};
  CHECK_THAT(failure_report(failure, "gpu-01", logs),
             EndsWith("\n  log       logs/1/stderr.log" + kExit));
  CHECK_THAT(failure_report(failure, "gpu-01"),
             EndsWith("\n  log       rank 12's: gpu-02:" + failure.first.log + kExit));
  failure.finding->ranks = {12};
  CHECK_THAT(report_of(failure), EndsWith("\n  log       " + failure.first.log + kExit));
  failure.finding->ranks = {1};
  failure.first.given_up = failure.finding;
  failure.first.log = "logs/stacks-600s.txt";
  CHECK_THAT(failure_report(failure, "gpu-02", logs),
             EndsWith("\n  log       logs/stacks-600s.txt" + kExit));
}

TEST_CASE("on another node the report names the host of the log, and whose start it counts from") {
  const std::string report = report_of(failing());
  CHECK_THAT(report, ContainsSubstring("\n  log       logs/7f3a/"));
  std::string elsewhere = report;
  elsewhere.insert(elsewhere.find("logs/7f3a/"), "gpu-02:");
  elsewhere.replace(elsewhere.find("after start"), 11, "after the start of its node");
  CHECK(failure_report(failing(), "gpu-01") == elsewhere);
}

TEST_CASE("a worker's last words, its host and its log forge no line and send no escape") {
  RunFailure wild =
      failing({std::nullopt, "\x1b[31mred\x1b[0m\tend\nddprun: done\x00\xE2\x80\xAE\n"s});
  wild.first.log = "logs\nddprun: done";
  wild.first.worker.host = "gpu\n\x1b[2J";
  wild.no_restart = "a\rb";
  const std::string report = report_of(wild);
  CHECK_THAT(report, ContainsSubstring("on gpu\\n\\x1b[2J ended with") &&
                         ContainsSubstring("| \\x1b[31mred\\x1b[0m\tend\n") &&
                         ContainsSubstring("| ddprun: done\\x00\\u202e\n") &&
                         ContainsSubstring("logs\\nddprun: done") && ContainsSubstring("a\\rb"));
  CHECK(report.find_first_of("\x1b\r") == std::string::npos);
  CHECK(report.find("\nddprun:") == std::string::npos);
}

TEST_CASE("a report has no line without information") {
  RunFailure failure = failing({});
  failure.first.log.clear();
  CHECK(report_of(failure) ==
        "ddprun: error [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1, "
        "first failure of the run\n"
        "  when      11:02:41.118Z, 3 h 12 min after start, round 1" +
            kExit);
}

TEST_CASE("a worker killed from outside is reported with an unknown sender") {
  RunFailure failure = failing();
  failure.first.status = ExitStatus::signaled(SIGKILL);
  CHECK_THAT(
      report_of(failure),
      ContainsSubstring("[W-KILLED] rank 12 (local 4, pid 48213) on gpu-02 received SIGKILL" +
                        kSenderUnknown));
}

TEST_CASE("a crash comes with what to try") {
  RunFailure failure = failing();
  failure.first.status = ExitStatus::signaled(SIGSEGV);
  CHECK_THAT(report_of(failure), ContainsSubstring("[W-CRASH]"));
  CHECK_THAT(report_of(failure), ContainsSubstring("\n  try       ulimit -c unlimited"));
  failure.first.status = ExitStatus::signaled(SIGSEGV, ExitStatus::Core::kDumped);
  CHECK_THAT(report_of(failure), !ContainsSubstring("  try"));
}

TEST_CASE("a rank that needed SIGKILL is counted apart") {
  RunFailure failure = failing();
  failure.stopped = 1;
  failure.killed = 1;
  failure.stop_took = 30s;
  CHECK_THAT(report_of(failure), ContainsSubstring("1 rank was running; ddprun stopped it in 30 s; "
                                                   "1 rank needed SIGKILL"));
}

TEST_CASE("ranks that were stopped within a millisecond were stopped at once") {
  RunFailure failure = failing();
  failure.stopped = 2;
  CHECK_THAT(report_of(failure),
             ContainsSubstring("2 ranks were running; ddprun stopped them at once\n"));
  failure.spared = 1s;
  CHECK_THAT(
      report_of(failure),
      ContainsSubstring("2 ranks were still running 1 s later; ddprun stopped them at once\n"));
}

TEST_CASE("error.json is preferred to the end of stderr") {
  const std::string report = report_of(failing({kErrorJson, kStderr.stderr_tail}));
  CHECK_THAT(report, ContainsSubstring("  evidence  its error.json:\n"
                                       "            | Traceback (most recent call last):\n"));
  CHECK_THAT(report, ContainsSubstring("            | ValueError: needle\n"));
  CHECK_THAT(report, !ContainsSubstring("KeyError"));
}

TEST_CASE("stdout is quoted where stderr is empty, and it says so") {
  RawEvidence raw;
  raw.stdout_tail = "step 7\nassertion failed\n";
  CHECK_THAT(report_of(failing(raw)),
             ContainsSubstring("  evidence  " + kLastOfStdout + "            | step 7\n"));
  raw.stderr_tail = "Killed\n";
  CHECK_THAT(report_of(failing(raw)), !ContainsSubstring("step 7"));
}

TEST_CASE("the log named is the one of the stream that is quoted") {
  RawEvidence raw;
  raw.stdout_log = "logs/stdout.log";
  raw.stdout_tail = "step 7\n";
  CHECK(failing(raw).first.log == raw.stdout_log);
  raw.stderr_tail = "Killed\n";
  CHECK(failing(raw).first.log == "logs/7f3a/attempt_1/4/stderr.log");
}

TEST_CASE("no log is named that is empty, and one that cannot be read is") {
  RawEvidence raw;
  raw.stdout_log = "logs/stdout.log";
  CHECK(failing(raw).first.log.empty());
  raw.error_json = kErrorJson;
  CHECK(failing(raw).first.log.empty());
  raw.error_file = "logs/error.json";
  CHECK(failing(raw).first.log == "logs/error.json");
  raw.files_read = false;
  CHECK(failing(raw).first.log == "logs/7f3a/attempt_1/4/stderr.log");
  raw = {std::nullopt, "\n", "step 7\n"};  // nothing to quote either
  raw.stdout_log = "logs/stdout.log";
  CHECK(failing(raw).first.log == "logs/stdout.log");
}

TEST_CASE("the last line of a report has the exit code of the run") {
  RunFailure failure = failing();
  failure.first.status = ExitStatus::signaled(SIGKILL);
  CHECK_THAT(report_of(failure), EndsWith("\n  exit      code 137"));
}

TEST_CASE("a stderr that ddprun does not see is not called empty") {
  RawEvidence raw;
  raw.stderr_unseen = raw.stdout_unseen = true;
  CHECK_THAT(report_of(failing(raw)), EndsWith("\n  evidence  " + kStderrIsRaw + kExit));
  raw.stdout_unseen = false;
  CHECK_THAT(report_of(failing(raw)), ContainsSubstring("  evidence  " + kStderrIsRaw + "\n"));
  raw.stdout_tail = "step 7\n";
  CHECK_THAT(report_of(failing(raw)),
             ContainsSubstring("  evidence  " + kStderrIsRaw + "; last lines of its stdout:\n"));
}

TEST_CASE("lines of two streams that had one way to ddprun are called output") {
  RawEvidence raw;
  raw.stderr_has_both = true;
  raw.stderr_tail = "step 7\nKilled\n";
  CHECK_THAT(report_of(failing(raw)),
             ContainsSubstring("  evidence  " + kLastOfBoth + ":\n            | step 7\n"));
}

TEST_CASE("a worker that said nothing where ddprun listens is told to be heard") {
  RawEvidence raw;
  raw.stdout_unseen = true;
  CHECK_THAT(report_of(failing(raw)),
             ContainsSubstring("its stdout does not pass through ddprun") &&
                 ContainsSubstring("\n  try       --tee=3 "));
  raw.stdout_tail = "x";
  CHECK_THAT(report_of(failing(raw)), !ContainsSubstring("--tee"));
}

TEST_CASE("a report fills at most one screen, and keeps the root cause and the end") {
  RawEvidence raw;
  std::string text = "Traceback (most recent call last):\n";
  for (int frame = 0; frame < 30; ++frame) text += "  root frame " + std::to_string(frame) + "\n";
  raw.stderr_tail = text + "RuntimeError: can't start new thread\n\n" + kDirectCause + "\n\n" +
                    text + "ValueError: end\n";
  raw.facts.limits.processes = 7;
  raw.facts.limits.cgroup_processes = 9;
  RunFailure failure = failing(raw);
  failure.stopped = 7;
  failure.no_restart = "all 2 restarts are used";
  const std::string report = report_of(failure);
  CHECK(std::count(report.begin(), report.end(), '\n') == 23);
  CHECK_THAT(report, ContainsSubstring("| RuntimeError: can't start new thread\n") &&
                         ContainsSubstring("| ValueError: end\n") &&
                         ContainsSubstring(" lines left out ...\n"));
}

TEST_CASE("a traceback that the console has shown is not quoted in full again") {
  const std::string prefix = GENERATE(""s, "[rank1]: "s);
  const std::string heading = prefix + "Traceback (most recent call last):\n";
  const std::string frame = prefix + "  File \"t.py\", line 3, in main\n";
  const std::string exception = prefix + "KeyError: 'labels'";
  RawEvidence raw;
  raw.stderr_tail = "step 7\n" + heading + frame + exception + "\nCompile with more\n";
  RunFailure failure = failing(raw);
  const auto report = [&](Shown shown) { return failure_report(failure, "gpu-02", {}, shown); };
  CHECK_THAT(report(Shown::kNo), ContainsSubstring("| " + heading));
  CHECK_THAT(report(Shown::kYes),
             ContainsSubstring("  evidence  " + kTracebackAndMore + "\n            | " + exception +
                               "\n            | Compile with more\n  log  "));
  failure.alike = 1;  // whose traceback is above?
  CHECK(report(Shown::kYes) == report(Shown::kNo));
  raw.stderr_tail += "\n" + kDirectCause + "\n\n" + heading + frame + "ValueError: end\n";
  failure = failing(raw);
  CHECK(report(Shown::kYes) == report(Shown::kNo));
  failure = failing();  // no traceback
  CHECK(report(Shown::kYes) == report(Shown::kNo));
}

TEST_CASE("a command that cannot be run is reported for the node, with the rank as evidence") {
  RawEvidence raw;
  raw.stderr_tail = "sh: 1: train: not found\n";
  RunFailure failure = failing(raw);
  failure.first.status = ExitStatus::exited(127);
  CHECK(report_of(failure) ==
        "ddprun: error [EXEC] cannot run the command on gpu-02: sh: 1: train: not found\n"
        "  when      11:02:41.118Z, 3 h 12 min after start, round 1\n"
        "  evidence  rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 127\n"
        "  log       logs/7f3a/attempt_1/4/stderr.log\n"
        "  exit      code 127");
}

TEST_CASE("native frames behind an exception leave its message in sight") {
  std::string text = "Traceback (most recent call last):\nRuntimeError: boom\n";
  for (int frame = 0; frame < 30; ++frame) text += "frame #" + std::to_string(frame) + ": f\n";
  CHECK(quotable_lines(text) ==
        std::vector<std::string>{"Traceback (most recent call last):", "RuntimeError: boom",
                                 "frame #0: f", "frame #1: f",
                                 "... 28 native frames left out ..."});
}

TEST_CASE("a torn error.json counts as absent, and that is noted") {
  const std::string torn = kErrorJson.substr(0, 60);
  CHECK_THAT(report_of(failing({torn, kStderr.stderr_tail})),
             ContainsSubstring("  evidence  its error.json is truncated; " + kLastLines + ":\n"));
  CHECK_THAT(report_of(failing({torn, ""})),
             ContainsSubstring("  evidence  its error.json is truncated\n"));
}

TEST_CASE("error.json may hold a plain string") {
  const ErrorFile file = read_error_file(R"({"message": "no space left", "timestamp": 3})");
  CHECK(file.form == ErrorFile::Form::kGood);
  CHECK(file.error.message == "no space left");
}

TEST_CASE("what is not the recorder's JSON is torn, and nothing is absent") {
  using Form = ErrorFile::Form;
  CHECK(read_error_file(std::nullopt).form == Form::kAbsent);
  for (const char* text : {"", "{", "[]", "{}", "{\"message\": 3}", "{\"message\": {}}", "\xff"}) {
    CHECK(read_error_file(std::string(text)).form == Form::kTorn);
  }
  CHECK(read_error_file(std::string(2'000'000, '{')).form == Form::kTorn);
}

TEST_CASE("of a huge error.json the message is found, its beginning and its end") {
  const std::string huge = "ValueError: \\u00e9\\n" + std::string(3'000'000, 'x') + "\\\" the end";
  const std::string whole = R"({"message": {"message": ")" + huge +
                            R"(", "extraInfo": {"py_callstack": "Traceback\n)" + huge +
                            R"(\n", "timestamp": "17"}}})";
  const std::string read =
      whole.substr(0, kErrorFileBytesMax) + whole.substr(whole.size() - kErrorFileEndBytes);
  const ErrorFile file = read_error_file(read);
  REQUIRE(file.form == ErrorFile::Form::kGood);
  CHECK_THAT(file.error.message, ContainsSubstring("ValueError: \xC3\xA9\nxxx") &&
                                     ContainsSubstring("xxx\" the end\n"));
  CHECK(file.error.message.size() < 10'000);
  const auto passed_up = with_error_code(read, 3);
  REQUIRE(passed_up);
  CHECK_THAT(*passed_up, ContainsSubstring("\"errorCode\":3") && ContainsSubstring("the end"));
}

TEST_CASE("the launcher above gets the root error with its code inside the message") {
  const auto text = with_error_code(kErrorJson, -9);
  REQUIRE(text);
  CHECK_THAT(*text, ContainsSubstring(R"("timestamp":"1767323045"},"errorCode":-9}})"));
  CHECK(with_error_code(R"({"message": "plain"})", 3) == R"({"message": "plain"})");
  CHECK_FALSE(with_error_code("{", 3));
}

TEST_CASE("an error of ddprun itself has the recorder's schema, so that it is read back") {
  const ErrorFile file = read_error_file(own_error_file("cannot run x", 17));
  CHECK(file.form == ErrorFile::Form::kGood);
  CHECK(file.error.message == "cannot run x");
}

TEST_CASE("an error that quotes bytes that are not UTF-8 is JSON all the same") {
  const ErrorFile file = read_error_file(own_error_file("cannot run ./x\xff\x1b", 17));
  CHECK(file.form == ErrorFile::Form::kGood);
  CHECK(file.error.message == "cannot run ./x\xEF\xBF\xBD\\x1b");
}

TEST_CASE("the quotation begins at the last traceback") {
  const auto lines = quotable_lines(
      "a\n[rank1]: Traceback (most recent call last):\nb\nTraceback (most recent call last):\nc\n");
  CHECK(lines == std::vector<std::string>{"Traceback (most recent call last):", "c"});
}

TEST_CASE("the quotation begins at the first of chained tracebacks, the root cause") {
  for (const std::string& link : {kDuringHandling, kDirectCause}) {
    for (const std::string prefix : {"", "[rank3]: "}) {
      const std::string chain = prefix + "Traceback (most recent call last):\n" + prefix +
                                "  in root\n" + prefix + "KeyError: 'a'\n" + prefix + "\n" +
                                prefix + link + "\n" + prefix + "\n" + prefix +
                                "Traceback (most recent call last):\n" + prefix + "ValueError: b\n";
      const auto lines =
          quotable_lines("Traceback (most recent call last):\nolder\n" + chain + chain);
      REQUIRE(lines.size() == 8);
      CHECK(lines.front() == prefix + "Traceback (most recent call last):");
      CHECK(lines.at(2) == prefix + "KeyError: 'a'");
      CHECK(lines.back() == prefix + "ValueError: b");
    }
  }
}

TEST_CASE("a chain whose first heading is lost is quoted from the first one that is left") {
  const auto lines = quotable_lines("KeyError: 'a'\n\n" + kDuringHandling +
                                    "\n\nTraceback (most recent call last):\nValueError: b\n");
  CHECK(lines == std::vector<std::string>{"Traceback (most recent call last):", "ValueError: b"});
}

TEST_CASE("a long chain keeps its root cause and its end, and says what is left out") {
  const auto traceback = [](const std::string& error) {
    std::string text = "Traceback (most recent call last):\n";
    for (int frame = 0; frame < 15; ++frame)
      text += error + " frame " + std::to_string(frame) + "\n";
    return text + error + "\n";
  };
  const std::string link = "\n" + kDirectCause + "\n\n";
  const auto lines =
      quotable_lines(traceback("root") + link + traceback("middle") + link + traceback("end"));
  const std::vector<std::string> begin{"Traceback (most recent call last):",
                                       "... 11 lines left out ...",
                                       "root frame 11",
                                       "root frame 12",
                                       "root frame 13",
                                       "root frame 14",
                                       "root"};
  REQUIRE(lines.size() == 20);
  CHECK(std::vector<std::string>(lines.begin(), lines.begin() + 7) == begin);
  CHECK(lines.at(10) == "... 28 lines left out ...");
  CHECK(lines.at(11) == "end frame 7");
  CHECK(lines.back() == "end");
}

TEST_CASE("a long traceback keeps its heading and its end") {
  std::string text = "Traceback (most recent call last):\n";
  for (int frame = 0; frame < 30; ++frame) text += "frame " + std::to_string(frame) + "\n";
  const auto lines = quotable_lines(text);
  REQUIRE(lines.size() == 19);
  CHECK(lines.at(0) == "Traceback (most recent call last):");
  CHECK(lines.at(1) == "... 13 lines left out ...");
  CHECK(lines.at(2) == "frame 13");
}

TEST_CASE("twenty lines are quoted, the last ones") {
  std::string tail;
  for (char i = 'A'; i <= 'Z'; ++i) tail += std::string("text ") + i + "\n";
  const auto lines = quotable_lines(tail);
  CHECK(lines.size() == 20);
  CHECK(lines.front() == "text G");
  CHECK(lines.back() == "text Z");
}

TEST_CASE("a quotation cannot move the cursor, and of a progress bar shows the last state") {
  CHECK(quotable_lines("10%\r50%\r100%\n") == std::vector<std::string>{"100%"});
  CHECK(quotable_lines("windows\r\n\x1b[31mred") ==
        std::vector<std::string>{"windows", "\\x1b[31mred"});
  const std::string longest = std::string(250, 'b') + std::string(150, 'e');
  CHECK(quotable_lines(longest).front() == longest);
  CHECK(quotable_lines(std::string(900, 'b') + std::string(150, 'e')).front() ==
        std::string(250, 'b') + "..." + std::string(150, 'e'));
  CHECK(quotable_lines("").empty());
}

TEST_CASE("a failure beside the first is told before the ranks that were stopped") {
  RunFailure failure = failing();
  failure.stopped = 1;
  failure.also = "rank 0 failed, too: exit code 1";
  CHECK_THAT(report_of(failure), ContainsSubstring("  others    " + failure.also + "; 1 rank was"));
}

TEST_CASE("a log that could not be written is not named") {
  RawEvidence raw = kStderr;
  raw.stderr_lost = true;
  CHECK_THAT(report_of(failing(raw)), !ContainsSubstring("\n  log "));
}

TEST_CASE("ranks that failed like the first one are said once, with their number") {
  RunFailure failure = failing();
  failure.alike = 1;
  CHECK_THAT(report_of(failure), ContainsSubstring("  others    1 other failed alike\n"));
  failure.alike = 62;
  failure.stopped = 1;
  failure.stop_took = 20ms;
  CHECK_THAT(report_of(failure),
             ContainsSubstring("  others    62 others failed alike; 1 rank was running; ddprun "
                               "stopped it in 20 ms\n"));
}
