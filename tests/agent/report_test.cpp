#include "agent/core/report.hpp"

#include <signal.h>

#include "agent/core/error_file.hpp"
#include "agent/core/text.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

// Python's json.dump of what torch's recorder writes.
const std::string kErrorJson =
    R"({"message": {"message": "ValueError: needle", "extraInfo": {"py_callstack": )"
    R"("Traceback (most recent call last):\n  File \"t.py\", line 3, in main\n)"
    R"(ValueError: needle\n", )"
    R"("timestamp": "1767323045"}}})";

ExitRecord failing() {
  ExitRecord record;
  record.rank = Rank(12);
  record.local_rank = LocalRank(4);
  record.pid = 48213;
  record.status = ExitStatus::exited(1);
  record.since_start = 3h + 12min + 5s;
  record.when = WallTime(11h + 2min + 41s + 118ms);
  record.stderr_tail = "step 310\nFile \"train.py\", line 310, in step\nKeyError: 'labels'\n";
  record.log = "logs/7f3a/attempt_1/4/stderr.log";
  return record;
}

FailureFacts facts(const ExitRecord& record) {
  return facts_of(record, "gpu-02");
}

}  // namespace

TEST_CASE("the report names who, how, when, what it last said, who was stopped, and the log") {
  FailureFacts one = facts(failing());
  one.round = Round(2);
  one.stopped = 63;
  one.stop_took = 1400ms;
  one.next = "not restarted: all 1 restarts are used";
  CHECK(failure_report(one) ==
        "ddprun: error [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1, "
        "first failure of round 2\n"
        "  when      11:02:41.118Z, 3 h 12 min after start, round 2\n"
        "  evidence  last lines of its stderr:\n"
        "            | step 310\n"
        "            | File \"train.py\", line 310, in step\n"
        "            | KeyError: 'labels'\n"
        "  others    63 ranks were running; ddprun stopped them in 1.4 s (none failed first)\n"
        "  next      not restarted: all 1 restarts are used\n"
        "  log       logs/7f3a/attempt_1/4/stderr.log");
}

TEST_CASE("a worker's last words, its host and its log forge no line and send no escape") {
  ExitRecord record = failing();
  record.stderr_tail = "\x1b[31mred\x1b[0m\tend\nddprun: done\x00\xE2\x80\xAE\n"s;
  record.log = "logs\nddprun: done";
  FailureFacts wild = facts_of(record, "gpu\n\x1b[2J");
  wild.next = "a\rb";
  const std::string report = failure_report(wild);
  CHECK_THAT(report, ContainsSubstring("on gpu\\n\\x1b[2J ended with") &&
                         ContainsSubstring("| \\x1b[31mred\\x1b[0m\tend\n") &&
                         ContainsSubstring("| ddprun: done\\x00\\u202e\n") &&
                         ContainsSubstring("logs\\nddprun: done") && ContainsSubstring("a\\rb"));
  CHECK(report.find_first_of("\x1b\r") == std::string::npos);
  CHECK(report.find("\nddprun:") == std::string::npos);
}

TEST_CASE("a report has no line without information") {
  ExitRecord record = failing();
  record.stderr_tail.clear();
  record.log.clear();
  CHECK(failure_report(facts(record)) ==
        "ddprun: error [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1, "
        "first failure of the run\n"
        "  when      11:02:41.118Z, 3 h 12 min after start, round 1");
}

TEST_CASE("a worker killed from outside is reported with an unknown sender") {
  ExitRecord record = failing();
  record.status = ExitStatus::signaled(SIGKILL);
  CHECK_THAT(
      failure_report(facts(record)),
      ContainsSubstring("[W-KILLED] rank 12 (local 4, pid 48213) on gpu-02 received SIGKILL, "
                        "not sent by ddprun; sender unknown"));
}

TEST_CASE("a crash comes with what to try") {
  ExitRecord record = failing();
  record.status = ExitStatus::signaled(SIGSEGV);
  CHECK_THAT(failure_report(facts(record)), ContainsSubstring("[W-CRASH]"));
  CHECK_THAT(failure_report(facts(record)),
             ContainsSubstring("\n  try       PYTHONFAULTHANDLER=1"));
  record.status = ExitStatus::signaled(SIGSEGV, ExitStatus::Core::kDumped);
  CHECK_THAT(failure_report(facts(record)), !ContainsSubstring("  try"));
}

TEST_CASE("a rank that needed SIGKILL is counted apart") {
  FailureFacts one = facts(failing());
  one.stopped = 1;
  one.killed = 1;
  one.stop_took = 30s;
  CHECK_THAT(failure_report(one), ContainsSubstring("1 rank was running; ddprun stopped it in 30 s "
                                                    "(none failed first); 1 rank needed SIGKILL"));
}

TEST_CASE("error.json is preferred to the end of stderr") {
  ExitRecord record = failing();
  record.error_json = kErrorJson;
  const std::string report = failure_report(facts(record));
  CHECK_THAT(report, ContainsSubstring("  evidence  its error.json:\n"
                                       "            | Traceback (most recent call last):\n"));
  CHECK_THAT(report, ContainsSubstring("            | ValueError: needle\n"));
  CHECK_THAT(report, !ContainsSubstring("KeyError"));
}

TEST_CASE("a torn error.json counts as absent, and that is noted") {
  ExitRecord record = failing();
  record.error_json = kErrorJson.substr(0, 60);
  CHECK_THAT(
      failure_report(facts(record)),
      ContainsSubstring("  evidence  its error.json is truncated; last lines of its stderr:\n"));
  record.stderr_tail.clear();
  CHECK_THAT(failure_report(facts(record)),
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
  CHECK(read_error_file("{\"message\": \"" + std::string(2'000'000, 'x') + "\"}").form ==
        Form::kTorn);
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

TEST_CASE("the quotation begins at the last traceback") {
  const auto lines = quotable_lines(
      "a\n[rank1]: Traceback (most recent call last):\nb\nTraceback (most recent call last):\nc\n");
  CHECK(lines == std::vector<std::string>{"Traceback (most recent call last):", "c"});
}

TEST_CASE("the quotation begins at the first of chained tracebacks, the root cause") {
  const std::string links[] = {
      "During handling of the above exception, another exception occurred:",
      "The above exception was the direct cause of the following exception:"};
  for (const std::string& link : links) {
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
  const auto lines = quotable_lines(
      "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\nValueError: b\n");
  CHECK(lines == std::vector<std::string>{"Traceback (most recent call last):", "ValueError: b"});
}

TEST_CASE("a long chain keeps its root cause and its end, and says what is left out") {
  const auto traceback = [](const std::string& error) {
    std::string text = "Traceback (most recent call last):\n";
    for (int frame = 0; frame < 15; ++frame)
      text += error + " frame " + std::to_string(frame) + "\n";
    return text + error + "\n";
  };
  const std::string link =
      "\nThe above exception was the direct cause of the following exception:\n\n";
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
  for (int i = 0; i < 50; ++i) tail += std::to_string(i) + "\n";
  const auto lines = quotable_lines(tail);
  CHECK(lines.size() == 20);
  CHECK(lines.front() == "30");
  CHECK(lines.back() == "49");
}

TEST_CASE("a quotation cannot move the cursor, and of a progress bar shows the last state") {
  CHECK(quotable_lines("10%\r50%\r100%\n") == std::vector<std::string>{"100%"});
  CHECK(quotable_lines("windows\r\n\x1b[31mred") ==
        std::vector<std::string>{"windows", "\\x1b[31mred"});
  CHECK(quotable_lines(std::string(1000, 'x')).front() == std::string(400, 'x') + "...");
  CHECK(quotable_lines("").empty());
}

TEST_CASE("a death, a restart, a stop and the end are one line each") {
  CHECK(death_line(failing(), "gpu-02", 1) ==
        "ddprun: warning [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1; "
        "stopping 1 other rank");
  CHECK(restart_line("restart 1 of 3, round 2") ==
        "ddprun: note [RESTART] restart 1 of 3, round 2");
  CHECK(done_line(2, 3h + 12min, RestartCount(1)) ==
        "ddprun: done: all 2 ranks exited with code 0 after 3 h 12 min; 1 restart");
  CHECK(stop_line(SIGINT, 8, 30s) ==
        "ddprun: note [INT] stopping 8 ranks (Ctrl-C); press Ctrl-C again to kill immediately");
  CHECK(stop_line(SIGTERM, 8, 30s) ==
        "ddprun: note [STOP] SIGTERM received, stopping 8 ranks, shutdown timeout 30 s");
  CHECK(stopped_line(SIGTERM, {8, 2, 0, 30s}) ==
        "ddprun: note [STOP] 8 ranks gone after 30 s, 2 needed SIGKILL; exit 143");
  CHECK(stopped_line(SIGTERM, {7, 0, 1, 40s}) ==
        "ddprun: note [STOP] 7 ranks gone after 40 s, 1 still alive; exit 143");
  CHECK(stopped_line(SIGTERM, {0, 0, 1, 40s}) ==
        "ddprun: note [STOP] 1 rank still alive after 40 s; exit 143");
  CHECK(stopped_line(SIGTERM, {}) == "ddprun: note [STOP] no rank was running; exit 143");
}

TEST_CASE("a closed terminal is told with what to do about it") {
  CHECK_THAT(stop_line(SIGHUP, 8, 30s),
             ContainsSubstring("[HUP] the terminal was closed (SIGHUP)"));
  CHECK_THAT(stop_line(SIGHUP, 8, 30s), ContainsSubstring("\n  try       nohup"));
}

TEST_CASE("the start says what runs where, and what the limits are") {
  StartFacts one;
  one.version = "0.1.0";
  one.run = RunId("7f3a");
  one.workers = 2;
  one.store = "127.0.0.1:41207";
  one.log_dir = "/logs/7f3a";
  one.shutdown_timeout = 30s;
  one.max_restarts = 3;
  CHECK(start_line(one) ==
        "ddprun 0.1.0 run 7f3a round 1: 2 ranks, store 127.0.0.1:41207, logs /logs/7f3a; "
        "shutdown timeout 30 s, max restarts 3");
}
