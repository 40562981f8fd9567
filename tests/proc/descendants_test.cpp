// What a worker leaves behind when it ends, with a cgroup of its own and without.
#include "agent/proc/descendants.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "agent/proc/orphans.hpp"
#include "tests/proc/grandchildren.hpp"
#include "tests/proc/test_cgroup.hpp"

using ddprun::Descendants;
using ddprun::ExitStatus;
using namespace proc_test;

namespace {

enum class How { kLeaf, kDescent };

/// This process as the agent of workers that have a cgroup each, or none.
class Scene {
 public:
  explicit Scene(How how) : orphans(io.get_executor()) {
    if (how == How::kLeaf) group_.emplace();
    boost::asio::co_spawn(io, orphans.reap(), [](const std::exception_ptr&) {});
  }
  ~Scene() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Whether the machine allows it.
  [[nodiscard]] bool possible() const { return !group_ || *group_; }

  ddprun::Child& start(ddprun::SpawnRequest request) {
    const std::string mark = "test/1/" + std::to_string(workers_.size());
    request.environment.push_back("DDPRUN_WORKER=" + mark);
    if (group_) request.leaf = (*group_)->make(std::to_string(workers_.size()));
    auto child = ddprun::spawn(io.get_executor(), request);
    if (!child) FAIL(child.error().sentence);
    orphans.except(child->pid());
    workers_.push_back({std::make_unique<ddprun::Child>(std::move(*child)), mark});
    return *workers_.back().child;
  }
  /// Of the worker that was started as number `index`, when it has ended.
  Descendants after(std::size_t index, int last_signal = 0) {
    Worker& worker = workers_.at(index);
    static_cast<void>(wait_for(io, *worker.child));
    orphans.no_longer_except(worker.child->pid());
    return {io.get_executor(),
            orphans,
            {worker.child->pid(), worker.mark, worker.child->leaf(), last_signal}};
  }
  void wait(Descendants& descendants) { run(io, descendants.wait_until_gone()); }

  boost::asio::io_context io;
  ddprun::Orphans orphans;

 private:
  struct Worker {
    std::unique_ptr<ddprun::Child> child;
    std::string mark;
  };
  std::optional<TestCgroup> group_;
  std::vector<Worker> workers_;
};

std::vector<std::string> names_of(const Descendants& descendants) {
  std::vector<std::string> names;
  for (const auto& process : descendants.living(100)) names.push_back(process.name);
  return names;
}

/// Starts the probe `what` as a worker; its two children are the ones it leaves.
Grandchildren left_by(Scene& scene, const std::string& what = "leave-children") {
  Pipe pipe;
  auto request = probe(what);
  request.stdout_fd = pipe.write_end();
  scene.start(request);
  return Grandchildren(pipe);
}

int living_of_session(pid_t leader) {
  const auto all = ddprun::list_processes();
  REQUIRE(all.has_value());
  return static_cast<int>(std::count_if(all->begin(), all->end(), [&](const auto& process) {
    return process.session == leader && !process.ended;
  }));
}

}  // namespace

TEST_CASE("what a worker leaves is found in whatever session it is, named, and its end learned") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const Grandchildren pids = left_by(scene);
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  CHECK(alive(pids.in_group));
  CHECK(alive(pids.in_session));
  CHECK(names_of(left) == std::vector<std::string>{"proc_probe", "proc_probe"});
  left.signal(SIGTERM);
  scene.wait(left);
  CHECK_FALSE(alive(pids.in_group));
  CHECK_FALSE(alive(pids.in_session));
  CHECK(names_of(left).empty());
}

TEST_CASE("what has left the worker's cgroup gets its signal like the rest") {
  Scene scene(How::kLeaf);
  if (!scene.possible()) return;
  TempDir directory;
  const auto ours = ddprun::Cgroup::of_this_process();
  const std::string procs = ours->path() + "/cgroup.procs";
  // One moves itself, one has a parent that stays in the cgroup.
  const std::string moves = "(sh -c 'echo $$ > " + procs + "; echo $$ > $0; exec sleep 1000' ";
  const std::string one = directory / "one";
  const std::string two = directory / "two";
  scene.start(shell(moves + one + ") & (" + moves + two + "); sleep 1000) & until [ -s " + one +
                    " ] && [ -s " + two + " ]; do sleep 0.01; done"));
  const int number = GENERATE(SIGTERM, SIGKILL);
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  CHECK(names_of(left).size() >= 2);
  left.signal(number);
  scene.wait(left);
  CHECK_FALSE(alive(std::stoi(contents(one))));
  CHECK_FALSE(alive(std::stoi(contents(two))));
}

TEST_CASE("a worker that left nothing is known without a look through /proc") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  scene.start(probe("exit", "0"));
  CHECK_FALSE(scene.after(0).look());
}

TEST_CASE("while another worker lives, what it has left behind by then is its own") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  TempDir directory;
  // Its child in another session has lost its parent: it is a child of ours already.
  ddprun::Child& other = scene.start(shell("(setsid sh -c 'echo $$ > " + (directory / "escaped") +
                                           "; exec sleep 1000' & ) ; exec sleep 1000"));
  REQUIRE(eventually([&] { return contents(directory / "escaped").ends_with('\n'); }));
  const pid_t escaped = std::stoi(contents(directory / "escaped"));
  scene.start(probe("exit", "0"));
  Descendants none = scene.after(1);
  if (none.look()) none.signal(SIGKILL);  // a kernel that lists no children: it may have left some
  scene.wait(none);
  CHECK(alive(escaped));
  other.signal_group(SIGKILL);
  Descendants left = scene.after(0, SIGTERM);
  REQUIRE(left.look());  // it gets the signal that its group had
  scene.wait(left);
  CHECK_FALSE(alive(escaped));
}

TEST_CASE("what may have been left is known when the last worker has ended") {
  Scene scene(How::kDescent);
  ddprun::Child& other = scene.start(probe("wait"));
  scene.start(probe("exit", "0"));
  Descendants none = scene.after(1);
  const bool unknown = none.look();
  other.signal_group(SIGKILL);
  CHECK_FALSE(scene.after(0).look());
  if (unknown) scene.wait(none);
  CHECK(names_of(none).empty());
}

TEST_CASE("a process that has lost its mark and its session belongs to the last worker") {
  Scene scene(How::kDescent);
  TempDir directory;
  scene.start(shell("env -i PATH=$PATH setsid sh -c 'echo $$ > " + (directory / "pid") +
                    "; exec sleep 1000' & until [ -s " + (directory / "pid") +
                    " ]; do sleep 0.01; done"));
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  left.signal(SIGKILL);
  scene.wait(left);
  CHECK_FALSE(alive(std::stoi(contents(directory / "pid"))));
}

TEST_CASE("a process whose main thread has ended while another one runs is not gone") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const Grandchildren pids = left_by(scene, "leave-without-main-thread");
  REQUIRE(eventually([&] { return !alive(pids.in_group); }));  // its main thread
  Descendants left = scene.after(0);
  CHECK(left.look());
  CHECK(names_of(left) == std::vector<std::string>{"proc_probe"});
  left.signal(SIGTERM);
  scene.wait(left);
  run_until(scene.io, [&] { return !exists_in_proc(pids.in_group); });
}

TEST_CASE("what the left behind fork is waited for, and gets the last signal, too") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  TempDir directory;
  // Each ends as soon as the next one runs, which is not there when it is looked for; the last one
  // stays.
  scene.start(shell("chain() { if [ $1 = 0 ]; then echo > " + (directory / "last") +
                    "; exec sleep 1000; fi; (chain $(($1 - 1))) & }; chain 20 & exit 0"));
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  left.signal(SIGTERM);
  REQUIRE(eventually([&] {
    scene.io.poll();
    return names_of(left).empty() || !contents(directory / "last").empty();
  }));
  scene.wait(left);
  CHECK(names_of(left).empty());
}

TEST_CASE("what is more than the share of a turn is found in the next turns, and gets its signal") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const int more = ddprun::kOrphansPerTurn + 20;
  const bool below = GENERATE(false, true);  // children of one that is left, or left themselves
  const std::string many =
      "i=0; while [ $i -lt " + std::to_string(more) + " ]; do sleep 1000 & i=$((i + 1)); done; ";
  TempDir directory;
  const std::string ready = "echo > " + (directory / "ready") + "; ";
  scene.start(shell(below ? "(setsid sh -c '" + many + ready + "wait' &); until [ -e " +
                                (directory / "ready") + " ]; do sleep 0.01; done"
                          : many + "exit 0"));
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  run_until(scene.io, [&] {
    static_cast<void>(left.look());
    return left.living(10'000).size() >= static_cast<std::size_t>(more);
  });
  left.signal(SIGTERM);
  if (below) CHECK(left.signalled() <= ddprun::kOrphansPerTurn + 1);
  scene.wait(left);
  CHECK(left.signalled() >= more);
  CHECK(names_of(left).empty());
}

TEST_CASE("an orphan is reaped although the zombie of a worker stands before it") {
  Scene scene(How::kDescent);
  ddprun::Child& zombie = scene.start(probe("exit", "0"));
  const Grandchildren pids = left_by(scene);
  siginfo_t info = {};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(zombie.pid()), &info, WEXITED | WNOWAIT) == 0);
  Descendants left = scene.after(1);
  REQUIRE(left.look());
  ::kill(pids.in_group, SIGKILL);
  run_until(scene.io, [&] { return !exists_in_proc(pids.in_group); });
  left.signal(SIGKILL);
  scene.wait(left);
}

TEST_CASE("workers that have ended together are looked for once, and their marks read once") {
  Scene scene(How::kDescent);
  std::vector<std::unique_ptr<Grandchildren>> pids;
  for (int worker = 0; worker < 4; ++worker) {
    Pipe pipe;
    auto request = probe("leave-children");
    request.stdout_fd = pipe.write_end();
    scene.start(request);
    pids.push_back(std::make_unique<Grandchildren>(pipe));
  }
  std::vector<Descendants> left;
  for (std::size_t worker = 0; worker < 4; ++worker) left.push_back(scene.after(worker));
  REQUIRE(left.front().look());
  REQUIRE(scene.orphans.left().size() == 8);
  const auto last = scene.orphans.left().rbegin()->first;
  for (Descendants& its : left) {
    REQUIRE(its.look());
    CHECK(names_of(its).size() == 2);
  }
  CHECK(scene.orphans.left().rbegin()->first == last);  // none was taken up again
  for (Descendants& its : left) its.signal(SIGTERM);
  for (Descendants& its : left) scene.wait(its);
  for (const Descendants& its : left) CHECK(its.signalled() == 2);
}

TEST_CASE("a stopped process that was left gets SIGTERM and obeys it") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const Grandchildren pids = left_by(scene);
  ::kill(pids.in_session, SIGSTOP);
  Descendants left = scene.after(0);
  REQUIRE(left.look());
  left.signal(SIGTERM);
  scene.wait(left);
  CHECK_FALSE(alive(pids.in_session));
}

TEST_CASE("a fork loop ends by SIGKILL, with and without a session for each") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const std::string what = GENERATE("fork-loop", "fork-loop-in-sessions");
  Pipe pipe;
  auto request = probe(what);
  request.stdout_fd = pipe.write_end();
  ddprun::Child& worker = scene.start(request);
  // The loop reaps what has ended; the program is bounded all the same.
  std::string said;
  run_until(scene.io, [&] {
    said += pipe.read_some();
    return said.starts_with("forking\n");
  });
  worker.signal_group(SIGKILL);
  Descendants left = scene.after(0, SIGKILL);
  if (left.look()) scene.wait(left);
  CHECK(names_of(left).empty());
  CHECK(living_of_session(worker.pid()) == 0);
  CHECK_THAT(said + pipe.read_all(), !ContainsSubstring("ended by itself"));
}

TEST_CASE("what is left is ended without a descriptor, which the facts about it need") {
  Scene scene(GENERATE(How::kLeaf, How::kDescent));
  if (!scene.possible()) return;
  const Grandchildren pids = left_by(scene);
  Descendants left = scene.after(0);
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(1);
  ::close(next);
  const rlimit few = {static_cast<rlim_t>(next + GENERATE(0, 1, 2)), before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const bool there = left.look();
  ::setrlimit(RLIMIT_NOFILE, &before);
  if (there) left.signal(SIGKILL);
  CHECK(eventually([&] { return !alive(pids.in_group); }));
}
