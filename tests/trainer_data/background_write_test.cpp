#include "trainer/checkpoint/background_write.hpp"

#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;
using namespace std::chrono_literals;

namespace {

constexpr auto kHung = 60s;

/// A disk that takes as long as the test wants.
class SlowDisk {
 public:
  void go_on() { gone_on_.set_value(); }
  [[nodiscard]] std::function<void()> job() {
    return [written = gone_on_.get_future().share()] {
      if (written.wait_for(kHung) != std::future_status::ready) throw std::runtime_error("hung");
    };
  }

 private:
  std::promise<void> gone_on_;
};

}  // namespace

TEST_CASE("a slow write is busy, and its owner does not wait unless it asks to") {
  BackgroundWrite write;
  CHECK_FALSE(write.busy());
  SlowDisk disk;
  write.start(disk.job());
  CHECK(write.busy());
  CHECK_FALSE(write.poll());
  CHECK(write.busy());
  disk.go_on();
  const auto result = write.wait();
  REQUIRE(result);
  CHECK(result->problem.empty());
  CHECK_FALSE(write.busy());
}

TEST_CASE("a write that has ended is found by the next look, once") {
  BackgroundWrite write;
  std::promise<void> ends;
  const auto deadline = std::chrono::steady_clock::now() + kHung;
  write.start([&ends] { ends.set_value(); });
  ends.get_future().wait();
  std::optional<WriteResult> result;
  while (!result && std::chrono::steady_clock::now() < deadline) result = write.poll();
  REQUIRE(result);
  CHECK(result->problem.empty());
  CHECK_FALSE(write.busy());
  CHECK_FALSE(write.poll());
  CHECK_FALSE(write.wait());
}

TEST_CASE("a write runs in another thread, whose processor time is its result") {
  BackgroundWrite write;
  auto writer = std::this_thread::get_id();
  write.start([&writer] {
    writer = std::this_thread::get_id();
    const auto until = std::chrono::steady_clock::now() + 2ms;
    while (std::chrono::steady_clock::now() < until) continue;
  });
  const auto result = write.wait();
  REQUIRE(result);
  CHECK(writer != std::this_thread::get_id());
  CHECK(result->cpu_time > 0ns);
}

TEST_CASE("a write that fails says why, and the next one is another") {
  BackgroundWrite write;
  write.start([] { throw TrainerError("cannot write f: No space left on device"); });
  CHECK(write.wait()->problem == "cannot write f: No space left on device");
  write.start([] {});
  CHECK(write.wait()->problem.empty());
}

TEST_CASE("a bug in a write is thrown where its result is asked for") {
  BackgroundWrite write;
  write.start([] { throw std::logic_error("a bug"); });
  CHECK_THROWS_WITH((void)write.wait(), "a bug");
  CHECK_FALSE(write.busy());
}

TEST_CASE("the end of the owner waits for the write") {
  bool written = false;
  SlowDisk disk;
  std::thread helper;
  {
    BackgroundWrite write;
    write.start([&written, slow = disk.job()] {
      slow();
      written = true;
    });
    helper = std::thread([&disk] { disk.go_on(); });
  }
  helper.join();
  CHECK(written);
}
