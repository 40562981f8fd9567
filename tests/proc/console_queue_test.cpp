#include "agent/output/console_queue.hpp"

#include "tests/support/catch.hpp"

using ddprun::ConsoleQueue;
using Origin = ddprun::ConsoleQueue::Origin;

namespace {

std::string all_of(ConsoleQueue& queue) {
  std::string all;
  while (!queue.empty()) {
    all += queue.front();
    queue.pop(queue.front().size());
  }
  return all;
}

}  // namespace

TEST_CASE("a console's queue keeps the order of what is pushed") {
  ConsoleQueue queue;
  queue.push("worker 1\n", Origin::kWorker);
  queue.push("own\n", Origin::kOwn);
  queue.push("worker 2\n", Origin::kWorker);
  CHECK(queue.worker_bytes() == 18);
  CHECK(queue.own_bytes() == 4);
  CHECK(all_of(queue) == "worker 1\nown\nworker 2\n");
  CHECK(queue.worker_bytes() + queue.own_bytes() == 0);
}

TEST_CASE("own lines that pass worker output leave a line that is written in part whole") {
  ConsoleQueue queue;
  queue.push("worker 1\nworker 2\n", Origin::kWorker);
  queue.push("own 1\n", Origin::kOwn);
  queue.pop(3);
  queue.put_own_first();
  queue.push("own 2\n", Origin::kOwn);
  queue.put_own_first();
  CHECK(all_of(queue) == "ker 1\nown 1\nown 2\nworker 2\n");
}

TEST_CASE("own lines end a line whose rest is not there, once") {
  ConsoleQueue queue;
  queue.push("50 %", Origin::kWorker);
  queue.pop(2);
  for (const char* line : {"own 1\n", "own 2\n"}) {
    queue.push(line, Origin::kOwn);
    queue.put_own_first();
  }
  CHECK(all_of(queue) == "\nown 1\nown 2\n %");
}

TEST_CASE("an own line that is written in part is finished first, and told as a whole") {
  ConsoleQueue queue;
  queue.push("own 1\nown 2\n", Origin::kOwn);
  queue.push("worker\n", Origin::kWorker);
  queue.push("own 3\n", Origin::kOwn);
  queue.pop(8);
  CHECK(queue.own_lines() == "own 2\nown 3\n");
  queue.put_own_first();
  CHECK(all_of(queue) == "n 2\nown 3\nworker\n");
}

TEST_CASE("what is written of a long block is forgotten") {
  ConsoleQueue queue;
  const std::string line(1023, 'x');
  for (int count = 0; count < 1024; ++count) queue.push(line + "\n", Origin::kWorker);
  queue.pop(ddprun::kConsoleQueueBytesMax / 2 + 1);
  CHECK(queue.front().size() == ddprun::kConsoleQueueBytesMax / 2 - 1);
  CHECK(queue.worker_bytes() == queue.front().size());
}
