// The library and the agent's end of the link in one process: the test is the worker.
#include "agent/worker_link/server.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/server_thread.hpp"
#include "worker_api/worker.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

using worker_link::WorkerNumber;
constexpr WorkerNumber kWorker{2};

struct Reports final : worker_link::Target {
  [[nodiscard]] std::optional<Owner> owner_of(int pid) const override {
    return pid == ::getpid() ? std::optional<Owner>(Owner{kWorker, true}) : std::nullopt;
  }
  void hear(WorkerNumber worker, const worker_link::Report& report) override {
    if (std::holds_alternative<worker_link::Ready>(report)) told.set_value(worker);
    if (const auto* checkpoint = std::get_if<worker_link::Checkpoint>(&report)) {
      written.set_value({checkpoint->step, checkpoint->path});
    }
    const auto* section = std::get_if<worker_link::OpenSection>(&report);
    if (section != nullptr) exceeded.set_value(*section);
  }
  std::promise<WorkerNumber> told;
  std::promise<std::pair<std::int64_t, std::string>> written;
  std::promise<worker_link::OpenSection> exceeded;
};

template <class T>
T get(std::promise<T>& promise) {
  auto future = promise.get_future();
  REQUIRE(future.wait_for(std::chrono::milliseconds(kHung_ms)) == std::future_status::ready);
  return future.get();
}

}  // namespace

// One case, because a process connects once.
TEST_CASE("a worker reports, is asked to stop, and notices at once that its agent is gone") {
  const std::string path = "/tmp/ddprun-test-" + std::to_string(::getpid()) + ".link";
  ::setenv("DDPRUN_WORKER_SOCKET", path.c_str(), 1);
  ServerThread thread;
  Reports reports;
  auto opened = worker_link::Server::open(thread.executor(), path, 3, reports);
  REQUIRE(opened.has_value());
  auto server = std::move(*opened);
  thread.start();

  CHECK(step_done(41) == 0);
  CHECK(ready() == 0);
  CHECK(get(reports.told) == kWorker);
  CHECK(checkpoint_written(7, "/a") == 0);
  CHECK(get(reports.written) == std::pair<std::int64_t, std::string>(7, "/a"));
  CHECK(checkpoint_written(7, "") == EINVAL);
  CHECK(checkpoint_written(7, std::string(5000, 'x')) == ENAMETOOLONG);
  std::optional<worker_link::LastStep> last;
  thread.run([&] { last = server->last_step(kWorker); });
  REQUIRE(last);
  CHECK(last->step == 41);
  thread.run([&] { last = server->last_step(WorkerNumber(0)); });
  CHECK_FALSE(last);

  const Section long_one("long", 1h);
  const Section short_one("short", 20ms);
  REQUIRE(short_one.watched());
  const worker_link::OpenSection exceeded = get(reports.exceeded);
  CHECK(exceeded.name == "short");
  CHECK(exceeded.limit == 20ms);
  CHECK(exceeded.lasts >= 20ms);

  CHECK(stop_requested() == 0);
  CHECK(wait_for_stop(1ms) == 0);
  thread.run([&] { server->ask_to_stop(SIGTERM); });
  CHECK(wait_for_stop(1min) == 1);
  CHECK(stop_requested() == SIGTERM);
  CHECK(connected());
  thread.run([&] { server.reset(); });
  CHECK_FALSE(connected());
  CHECK(::access(path.c_str(), F_OK) != 0);
  CHECK(step_done(42) == 0);  // not read any more
  CHECK(ready() == ENOTCONN);
  ::unsetenv("DDPRUN_WORKER_SOCKET");
}
