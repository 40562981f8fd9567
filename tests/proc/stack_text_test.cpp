#include "agent/proc/stacks.hpp"

#include "tests/support/catch.hpp"

using ddprun::StackFrame;

TEST_CASE("native stacks are read by process and thread, with what is missing") {
  const auto stacks = ddprun::parse_native_stacks(
      "F\t7\t7\tfutex_wait\tlibc.so.6\nF\t8\t8\tmain\ttrain\nF\t7\t7\tmain\ttrain\n"
      "F\t7\t9\tloader\ttrain\nE\t8\tlate\n");
  REQUIRE(stacks.at(7).threads.size() == 2);
  CHECK(stacks.at(7).threads[0].frames ==
        std::vector<StackFrame>{{"futex_wait", "libc.so.6"}, {"main", "train"}});
  CHECK(stacks.at(7).threads[1].tid == 9);
  CHECK(stacks.at(7).missing.empty());
  CHECK(stacks.at(8).missing == "not all native stacks were read in time");
}

TEST_CASE("what is no native stack is left out, and of too many frames the outer ones are") {
  std::string text = "F\nF\t\nF\tx\t1\ta\tb\nF\t7\tx\ta\tb\n\n\t\tE\t7\nG\t7\t7\ta\tb\nF\t7\t7\ta";
  for (int frame = 0; frame < 1000; ++frame) text += "\nF\t7\t7\tf" + std::to_string(frame) + "\tm";
  for (int thread = 0; thread < 1000; ++thread) {
    text += "\nF\t7\t" + std::to_string(100 + thread) + "\tf\tm";
  }
  const auto stacks = ddprun::parse_native_stacks(text);
  REQUIRE(stacks.size() == 1);
  CHECK(stacks.at(7).threads.size() == ddprun::kStackThreadsMax);
  CHECK(stacks.at(7).threads[0].frames.size() == ddprun::kStackFramesMax);
  CHECK(stacks.at(7).threads[0].frames[0] == StackFrame{"a", ""});
}

TEST_CASE("Python stacks are read from py-spy's text, the main thread first") {
  const auto threads = ddprun::parse_python_stacks(
      "Process 4711: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
      "Thread 4720 (idle): \"Thread-1 (loader)\"\n    get (queue.py:171)\n"
      "Thread 4711 (active): \"MainThread\"\n"
      "    all_reduce (torch/distributed/distributed_c10d.py:2810)\n    <module> (train.py:9)\n");
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].name == "MainThread");
  CHECK(threads[0].tid == 4711);
  CHECK(threads[0].frames == std::vector<StackFrame>{{"all_reduce", "distributed_c10d.py:2810"},
                                                     {"<module>", "train.py:9"}});
  CHECK(threads[1].frames == std::vector<StackFrame>{{"get", "queue.py:171"}});
}

TEST_CASE("what is no Python stack is left out") {
  CHECK(ddprun::parse_python_stacks("Error: Permission Denied\n    f (x.py:1)\n").empty());
  CHECK(ddprun::parse_python_stacks("Thread\nThread x: \"\n    f\n    (\n     ()\n").size() <= 1);
}
