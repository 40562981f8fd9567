#include "agent/watch/stack_groups.hpp"

#include "tests/support/catch.hpp"

using ddprun::ProcessStacks;
using ddprun::RankStacks;
using ddprun::StackDump;
using ddprun::StackFrame;

namespace {

RankStacks rank_of(int number, ProcessStacks process) {
  process.pid = 1000 + number;
  return {{ddprun::Rank(number), ddprun::LocalRank(number), 1000 + number, "gpu-01"}, {process}};
}

ProcessStacks in_python(const std::string& function, const std::string& where) {
  ProcessStacks process;
  process.state = 'S';
  process.python = {{1, "MainThread", {{function, where}, {"<module>", "train.py:9"}}}};
  process.native = {{1, "", {{"read", "libc.so.6"}}}};
  return process;
}

ProcessStacks in_kernel(char state, const std::string& wait_channel) {
  ProcessStacks process;
  process.state = state;
  process.wait_channel = wait_channel;
  return process;
}

}  // namespace

TEST_CASE("ranks are grouped by place, the odd ones first and by name") {
  StackDump dump;
  for (int rank = 0; rank < 63; ++rank) {
    const bool odd = rank == 17 || rank == 40;
    dump.ranks.push_back(rank_of(
        rank, odd ? in_python("next", "loader.py:88") : in_python("all_reduce", "ddp.py:1523")));
  }
  CHECK(groups_text(group_stacks(dump)) ==
        "2 ranks: next (loader.py:88): 17, 40; 61 ranks: all_reduce (ddp.py:1523)");
}

TEST_CASE("groups of one size are all named, and one group alone is not") {
  StackDump dump;
  dump.ranks = {rank_of(0, in_python("f", "a.py:1")), rank_of(1, in_python("g", "a.py:2"))};
  CHECK(groups_text(group_stacks(dump)) == "1 rank: f (a.py:1): 0; 1 rank: g (a.py:2): 1");
  dump.ranks.pop_back();
  CHECK(groups_text(group_stacks(dump)) == "1 rank: f (a.py:1)");
}

TEST_CASE("of many groups the smallest and the largest are named") {
  StackDump dump;
  for (int rank = 0; rank < 9; ++rank) {
    dump.ranks.push_back(rank_of(rank, in_python("f", "a.py:" + std::to_string(rank % 7))));
  }
  const std::string text = groups_text(group_stacks(dump));
  CHECK(text ==
        "1 rank: f (a.py:2): 2; 1 rank: f (a.py:3): 3; 1 rank: f (a.py:4): 4; ... ; "
        "2 ranks: f (a.py:1): 1, 8");
}

TEST_CASE("without Python the place is the native frame behind the C library's") {
  ProcessStacks process = in_kernel('S', "futex_wait_queue");
  process.native = {{1,
                     "",
                     {{"+0x8612b", "libc.so.6"},
                      {"pthread_mutex_lock", "libc.so.6"},
                      {"gloo::Pair::recv(int, long)", "libtorch_cpu.so"},
                      {"main", "train"}}}};
  CHECK(place_of(rank_of(0, process)) == "gloo::Pair::recv (libtorch_cpu.so)");
}

TEST_CASE("without stacks the place is what the kernel says") {
  CHECK(place_of(rank_of(0, in_kernel('S', "hrtimer_nanosleep"))) ==
        "sleeping in hrtimer_nanosleep (state S)");
  CHECK(place_of(rank_of(0, in_kernel('D', "nfs_wait"))) ==
        "uninterruptible sleep in nfs_wait (state D)");
  CHECK(place_of(rank_of(0, in_kernel('T', "do_signal_stop"))) == "stopped (state T)");
  CHECK(place_of(rank_of(0, in_kernel('R', ""))) == "running (state R)");
  CHECK(place_of(RankStacks{}) == "not readable in time");
}

TEST_CASE("of a rank that has exited no stack is told") {
  const StackDump dump{{rank_of(0, in_kernel('Z', "")), rank_of(1, in_kernel('S', "poll")),
                        rank_of(2, in_kernel('?', ""))}};
  const StackDump left = living(dump);
  REQUIRE(left.ranks.size() == 1);
  CHECK(left.ranks[0].worker.rank.value() == 1);
}

TEST_CASE("a child that ended without success and was not waited for is evidence") {
  StackDump dump;
  dump.ranks = {rank_of(0, in_kernel('S', "do_wait"))};
  const int pid = dump.ranks[0].worker.pid;
  dump.ranks[0].ended = {{7, pid, "load\ner", ddprun::ExitStatus::signaled(9)},
                         {8, 5, "cc1", ddprun::ExitStatus::exited(3)}};
  const std::vector<std::string> lines = ddprun::ended_children(dump);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with(": its child 7 (load\\ner) ended with SIGKILL and was not waited for"));
  CHECK(lines[1].find(": child of its process 5, 8 (cc1) ended with exit code 3 ") !=
        std::string::npos);
  CHECK(dump_text(dump, "").find(" (cc1) ended with exit code 3") != std::string::npos);
}

TEST_CASE("names from other processes stay on their line in a dump") {
  StackDump dump;
  ProcessStacks process = in_python("f\nrank 9: forged", "a\x1b[2J.py:1");
  process.name = "x\ny";
  process.kernel = {"do_\nwait"};
  dump.ranks = {rank_of(0, process)};
  const std::string text = dump_text(dump, "12:00:00.000Z, round 1: asked\nfor");
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\nrank 9") == std::string::npos);
  CHECK(text.find("12:00:00.000Z, round 1: asked\\nfor\n") == 0);
  CHECK(text.find("pid 1000 (x\\ny), state S") != std::string::npos);
}
