#include "agent/output/output.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/lines.hpp"

#include <signal.h>

#include <map>
#include <set>
#include <vector>

#include "base/limits.hpp"
#include "tests/proc/stage.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/sentences.hpp"

using ddprun::Clock;
using ddprun::DescriptorLimit;
using ddprun::Route;
using ddprun::Stream;
using ddprun::WorkerOutput;
using ddprun::WorkerOutputPlan;
using ddprun::test::kBytesNotShown;
using namespace proc_test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("an inherited stream is the launcher's own descriptor") {
  Stage stage;
  auto output = WorkerOutput::open(stage.io().get_executor(), stage.consoles(),
                                   stage.plan(Route::kInherit, Route::kInherit));
  REQUIRE(output.has_value());
  CHECK(output->descriptor(Stream::kStdout) == 1);
  CHECK(output->descriptor(Stream::kStderr) == 2);
}

TEST_CASE("passed stderr arrives byte for byte, and its tail is kept") {
  Stage stage;
  stage.start(stage.plan(Route::kDiscard, Route::kPass),
              shell("printf 'a\\rb\\377\\001\\n\\nend' >&2; echo lost"));
  stage.finish();
  CHECK(stage.err() == "a\rb\xff\x01\n\nend");
  CHECK(stage.tail() == "a\rb\xff\x01\n\nend");
  CHECK(stage.out().empty());
}

TEST_CASE("kept stderr is shown nowhere and is there for the report") {
  Stage stage;
  stage.start(stage.plan(Route::kDiscard, Route::kKeep), shell("echo reason >&2"));
  stage.finish();
  CHECK(stage.err().empty());
  CHECK(stage.tail() == "reason\n");
}

TEST_CASE("when a worker last wrote is known where both of its streams pass through here") {
  for (const Route out : {Route::kKeep, Route::kInherit, Route::kDiscard}) {
    Stage stage;
    const auto before = Clock::now();
    stage.start(stage.plan(out, Route::kKeep), shell("echo reason >&2"));
    const auto started = stage.last_written();
    stage.finish();
    CHECK(stage.last_written().has_value() == (out == Route::kKeep));
    if (out != Route::kKeep) continue;
    CHECK(started >= before);
    CHECK(stage.last_written() > started);
  }
}

TEST_CASE("stdout of a process that gets another rank goes where that rank's goes") {
  Stage stage;
  // One each: the end of the first line may come when the second one is waited for.
  const std::string first = stage.path("first");
  const std::string second = stage.path("second");
  REQUIRE(::mkfifo(first.c_str(), 0600) == 0);
  REQUIRE(::mkfifo(second.c_str(), 0600) == 0);
  auto plan = stage.plan(Route::kLog, Route::kKeep);
  auto log = ddprun::LogFile::open(plan.out.file, stage.disk());
  REQUIRE(log.has_value());
  plan.out.log = *log;
  stage.start(plan, shell("echo one; read x <" + first + "; echo two; read x <" + second +
                          "; printf three"));
  const auto has = [&stage](const std::string& file, const std::string& text) {
    run_until(stage.io(), [&] { return contents(stage.path(file)) == text; });
  };
  has("0.stdout.log", "one\n");
  plan.out.route = Route::kPass;
  CHECK(stage.set_rank(plan) == Route::kPass);
  std::ofstream(first) << "\n";
  has("console.out", "two\n");
  plan.out.route = Route::kLog;
  CHECK(stage.set_rank(plan) == Route::kLog);
  plan.out.route = Route::kInherit;
  CHECK(stage.set_rank(plan) == Route::kLog);
  std::ofstream(second) << "\n";
  stage.finish();
  CHECK(stage.file("0.stdout.log") == "one\nthree");
  CHECK(stage.out() == "two\n");
}

TEST_CASE("a redirected stream is written by the worker itself, the tail comes from the file") {
  Stage stage;
  stage.start(stage.plan(Route::kFile, Route::kFile), shell("echo out; echo err >&2"));
  stage.finish();
  CHECK(stage.file("0.stdout.log") == "out\n");
  CHECK(stage.file("0.stderr.log") == "err\n");
  CHECK(stage.tail().empty());  // it did not come through here
  CHECK(stage.out().empty());
  CHECK(stage.err().empty());
}

TEST_CASE("a tee'd stream is raw in its file and whole prefixed lines on its console") {
  Stage stage;
  stage.start(stage.plan(Route::kTee, Route::kTee),
              shell("printf '10%%\\r20%%\\rdone\\nlast'; printf 'bad\\377\\n' >&2"));
  stage.finish();
  CHECK(stage.file("0.stdout.log") == "10%\r20%\rdone\nlast");
  CHECK(stage.out() == "[w0]:done\n[w0]:last\n");
  CHECK(stage.file("0.stderr.log") == "bad\xff\n");
  CHECK(stage.err() == "[w0]:bad\xff\n");
  CHECK(stage.tail() == "bad\xff\n");
}

TEST_CASE("lines of many workers that write in small pieces are neither torn nor mixed") {
  Stage stage;
  constexpr int kWorkers = 8;
  for (int worker = 0; worker < kWorkers; ++worker) {
    auto plan = stage.plan(Route::kTee, Route::kTee, std::to_string(worker));
    stage.start(plan, probe(worker % 2 == 0 ? "torn-stdout" : "torn-stderr", "100,4095,37"));
  }
  stage.finish();
  std::map<std::string, int> count;
  for (const std::string& line : lines_of(stage.out() + stage.err())) {
    REQUIRE(line.size() == 5 + 4095);
    REQUIRE(line.find_first_not_of(line[5], 5) == std::string::npos);
    ++count[line.substr(0, 5)];
  }
  CHECK(count.size() == kWorkers);
  for (const auto& [prefix, lines] : count) CHECK(lines == 100);
}

TEST_CASE("a tee'd line longer than the limit is whole in the file and cut on the console") {
  Stage stage;
  const std::size_t width = ddprun::kLineBytesMax + 1000;
  stage.start(stage.plan(Route::kTee, Route::kDiscard),
              probe("torn-stdout", "1," + std::to_string(width) + ",8192"));
  stage.finish();
  CHECK(stage.file("0.stdout.log").size() == width + 1);
  CHECK_THAT(stage.out(), ContainsSubstring(" [ddprun: 1000" + kBytesNotShown + "\n"));
}

TEST_CASE("nothing that a worker wrote before its exit is lost") {
  Stage stage;
  constexpr int kWorkers = 30;
  for (int worker = 0; worker < kWorkers; ++worker) {
    stage.start(stage.plan(Route::kTee, Route::kPass, std::to_string(worker)),
                shell("printf '%60000d\\n' 7; echo bye >&2; kill -9 $$"));
  }
  stage.finish();
  CHECK(lines_of(stage.out()).size() == kWorkers);
  CHECK(lines_of(stage.err()).size() == kWorkers);
}

TEST_CASE("lines that match a filter are collected from all ranks, with their prefix") {
  Stage stage;
  auto file = ddprun::LogFile::open(stage.path("filtered_stdout.log"), stage.disk());
  REQUIRE(file.has_value());
  auto filter = std::make_shared<ddprun::FilterLog>(ddprun::FilterLog{{"a,b", "loss"}, *file});
  for (const std::string name : {"0", "1"}) {
    auto plan = stage.plan(Route::kTee, Route::kTee, name);
    plan.out.filter = filter;
    stage.start(plan, shell("echo loss 1; echo other; echo a,b; echo a b; echo loss >&2"));
  }
  stage.finish();
  const auto lines = lines_of(stage.file("filtered_stdout.log"));
  CHECK(std::multiset<std::string>(lines.begin(), lines.end()) ==
        std::multiset<std::string>{"[w0]:loss 1", "[w0]:a,b", "[w1]:loss 1", "[w1]:a,b"});
  CHECK(lines_of(stage.out()).size() == 8);
}

TEST_CASE("a process left behind that holds the pipe open delays the end only so long") {
  Stage stage;
  const std::string left = stage.path("pid");
  stage.start(stage.plan(Route::kTee, Route::kPass),
              shell("printf before; echo trouble >&2; setsid sh -c 'echo $$ > " + left +
                    ".new; mv " + left + ".new " + left +
                    "; exec sleep 1000' & "
                    "while [ ! -e " +
                    left + " ]; do :; done"));
  const auto before = Clock::now();
  stage.finish(std::chrono::milliseconds(50));
  CHECK(Clock::now() - before < kWaitMax);
  CHECK(stage.out() == "[w0]:before\n");
  CHECK(stage.tail() == "trouble\n");
  ::kill(std::stoi(contents(left)), SIGKILL);
}

TEST_CASE("a full log disk is told once; console, tail and worker continue") {
  Stage stage;
  auto plan = stage.plan(Route::kTee, Route::kTee);
  plan.err.file = stage.path("full.log");
  std::filesystem::create_symlink("/dev/full", plan.err.file);
  plan.err.log = stage.open_log(Route::kTee, plan.err.file);
  stage.start(plan, shell("for n in 1 2 3; do echo $n >&2; done; exit 4"));
  stage.finish();
  CHECK(stage.statuses.at(0) == ddprun::ExitStatus::exited(4));
  CHECK(stage.err() == "[w0]:1\n[w0]:2\n[w0]:3\n");
  CHECK(stage.tail() == "1\n2\n3\n");
  stage.finish_files();
  REQUIRE(stage.warnings.size() == 1);
  CHECK_THAT(stage.warnings[0], ContainsSubstring("No space left on device"));
}

TEST_CASE("a console that closes early, as head does, neither kills nor hangs a worker") {
  Stage stage;
  Pipe pipe;
  stage.set_console(pipe.write_end());
  pipe.close_read();
  stage.start(stage.plan(Route::kTee, Route::kPass), probe("torn-stdout", "2000,1000,1001"));
  stage.finish();
  CHECK(stage.statuses.at(0) == ddprun::ExitStatus::exited(0));
  CHECK(stage.file("0.stdout.log").size() == 2000 * 1001);
}

TEST_CASE("a slow console holds the streams back, and no line is lost") {
  Stage stage;
  Pipe pipe;
  stage.set_console(pipe.write_end());
  stage.start(stage.plan(Route::kTee, Route::kPass), probe("torn-stdout", "4000,1000,1001"));
  stage.start(stage.plan(Route::kDiscard, Route::kPass, "1"),
              probe("torn-stderr", "4000,1000,1001"));
  run_until(stage.io(), [&] { return stage.consoles().out->full(); });
  stage.io().run_for(std::chrono::milliseconds(100));  // a pause
  std::string seen;
  run_until(stage.io(), [&] {
    seen += pipe.read_some();
    return seen.size() >= 8000 * 1001 + 4000 * 5;
  });
  stage.finish();
  CHECK(stage.consoles().out->dropped_lines() == 0);
  CHECK(lines_of(seen).size() == 8000);
}

TEST_CASE("a stream that only its file has is shown from its last line on, behind the label") {
  Stage stage;
  const std::string fifo = stage.path("answer");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  auto plan = stage.plan(Route::kLog, Route::kKeep);
  auto log = ddprun::LogFile::open(plan.out.file, stage.disk());
  REQUIRE(log.has_value());
  plan.out.log = *log;
  plan.label = "here:1| ";
  stage.start(plan, shell("exec 3<>" + fifo +
                          "; echo before; printf '(Pdb) '; read x <&3; "
                          "printf '42\\n(Pdb) '; read x <&3; echo hidden"));
  const auto has = [&stage](const std::string& file, const std::string& text) {
    run_until(stage.io(), [&] { return contents(stage.path(file)) == text; });
  };
  has("0.stdout.log", "before\n(Pdb) ");
  CHECK(stage.out().empty());
  CHECK(stage.reveal(true));
  CHECK(stage.reveal(true));
  has("console.out", "here:1| (Pdb) ");
  std::ofstream(fifo) << "\n";
  has("console.out", "here:1| (Pdb) 42\nhere:1| (Pdb) ");
  CHECK(stage.reveal(false));
  std::ofstream(fifo) << "\n";
  stage.finish();
  CHECK(stage.file("0.stdout.log") == "before\n(Pdb) 42\n(Pdb) hidden\n");
  CHECK(stage.out() == "here:1| (Pdb) 42\nhere:1| (Pdb) ");
}

TEST_CASE("a stream that is shown has nothing to reveal") {
  Stage stage;
  stage.start(stage.plan(Route::kPass, Route::kKeep), shell("echo shown"));
  CHECK_FALSE(stage.reveal(true));
  stage.finish();
  CHECK(stage.out() == "shown\n");
}

TEST_CASE("a console without a reader does not stop a worker, whose file is complete") {
  Stage stage;
  Pipe pipe;
  stage.set_console(pipe.write_end());
  stage.consoles().out->hold_workers_up_for(ddprun::kConsoleStallAtStop);
  stage.start(stage.plan(Route::kTee, Route::kPass), probe("torn-stdout", "5000,1000,1001"));
  stage.start(stage.plan(Route::kDiscard, Route::kPass, "1"),
              probe("torn-stderr", "5000,1000,1001"));
  stage.finish();
  CHECK(stage.file("0.stdout.log").size() == 5000 * 1001);
  CHECK(stage.tail(1).size() == ddprun::kTailBytesMax);
  std::string seen;
  run_until(stage.io(), [&] {
    seen += pipe.read_some();
    return seen.find("are not shown here") != std::string::npos;
  });
  CHECK(seen.size() < 2 * ddprun::kConsoleQueueBytesMax);
}

TEST_CASE("out of descriptors while output is set up is a sentence and leaves nothing open") {
  Stage stage;
  const auto plan = stage.plan(Route::kTee, Route::kTee);
  { auto warm = WorkerOutput::open(stage.io().get_executor(), stage.consoles(), plan); }
  const int open = open_descriptors();
  const int next = ::dup(1);
  ::close(next);
  int refused = 0;
  for (int spare = 0; spare < 4; ++spare) {  // two pipes
    auto output = [&] {
      const DescriptorLimit small(next + spare);
      return WorkerOutput::open(stage.io().get_executor(), stage.consoles(), plan);
    }();
    if (output) continue;
    ++refused;
    CHECK_THAT(output.error().sentence, ContainsSubstring("ulimit -n"));
    CHECK(open_descriptors() == open);
  }
  CHECK(refused == 4);
}

TEST_CASE("output that is given up closes its pipes, and the loop has nothing to wait for") {
  Stage stage;
  const int open = open_descriptors();
  {
    auto output = WorkerOutput::open(stage.io().get_executor(), stage.consoles(),
                                     stage.plan(Route::kPass, Route::kPass));
    REQUIRE(output.has_value());
    output->start();
    stage.io().poll();
  }
  stage.io().restart();
  const auto before = Clock::now();
  stage.io().run_for(kWaitMax);
  CHECK(Clock::now() - before < kWaitMax);
  CHECK(open_descriptors() <= open + 3);  // the loop's own
}
