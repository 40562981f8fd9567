#include "agent/worker_link/exit_watch.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/server_thread.hpp"

using namespace ddprun;
using namespace ddprun::worker_link;

namespace {

using Word = ExitWatch::Word;
constexpr long kFutexWaitv = 449;

/// A thread that owns a word as the library's thread does, until end().
class Owner {
 public:
  explicit Owner(std::shared_ptr<Word> word) : word_(std::move(word)) {
    thread_ = std::thread([this] { live(); });
    owns_.get_future().wait();
  }
  ~Owner() {
    if (thread_.joinable()) end();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  void end() {
    end_.set_value();
    thread_.join();
  }

 private:
  void live() {
    word_->store(static_cast<std::uint32_t>(::syscall(SYS_gettid)) | FUTEX_WAITERS);
    entry_.next = &head_.list;
    head_.list.next = &entry_;
    head_.futex_offset = reinterpret_cast<char*>(word_.get()) - reinterpret_cast<char*>(&entry_);
    ::syscall(SYS_set_robust_list, &head_, sizeof(head_));
    owns_.set_value();
    end_.get_future().wait();
  }

  std::shared_ptr<Word> word_;
  robust_list entry_{};  // the kernel reads both as the thread ends
  robust_list_head head_{};
  std::promise<void> owns_;
  std::promise<void> end_;
  std::thread thread_;
};

/// Watches a word; told() waits for the exit of its owner.
struct Watched {
  explicit Watched(std::uint32_t value = 0) : word(std::make_shared<Word>(value)) {}
  void watch(ExitWatch& exits) {
    exits.watch(word, [this] { exited.set_value(); });
  }
  [[nodiscard]] bool told() {
    return exited.get_future().wait_for(std::chrono::milliseconds(kHung_ms)) ==
           std::future_status::ready;
  }
  std::shared_ptr<Word> word;
  std::promise<void> exited;
};

bool kernel_can_wait() {
  return ::syscall(kFutexWaitv, nullptr, 0, 0, nullptr, 0) < 0 && errno != ENOSYS;
}

}  // namespace

TEST_CASE("the exit of the thread that owns a word is told, while its process lives") {
  if (!kernel_can_wait()) {
    WARN("this kernel has no futex_waitv: not tested");
    return;
  }
  ServerThread thread;
  ExitWatch exits(thread.executor());
  thread.start();
  Watched first;
  Watched second;
  Owner one(first.word);
  Owner two(second.word);
  thread.run([&] { first.watch(exits); });
  thread.run([&] { second.watch(exits); });
  two.end();
  CHECK(second.told());
  one.end();
  CHECK(first.told());

  Watched late;  // it has ended before it was watched
  Owner(late.word).end();
  thread.run([&] { late.watch(exits); });
  CHECK(late.told());
}

TEST_CASE("what is forgotten, too much, or written all the time is not told") {
  if (!kernel_can_wait()) {
    WARN("this kernel has no futex_waitv: not tested");
    return;
  }
  ServerThread thread;
  ExitWatch exits(thread.executor());
  thread.start();
  std::atomic<int> told = 0;
  const auto never = [&] { ++told; };
  const auto forgotten = std::make_shared<Word>(0);
  thread.run([&] { exits.watch(forgotten, never); });
  thread.run([&] { exits.forget(forgotten); });
  forgotten->store(FUTEX_OWNER_DIED);

  std::vector<std::shared_ptr<Watched>> others;
  for (std::size_t i = 0; i < kExitsWatchedMax; ++i) {
    others.push_back(std::make_shared<Watched>());
    thread.run([&] { others.back()->watch(exits); });
  }
  const auto too_many = std::make_shared<Word>(FUTEX_OWNER_DIED);
  thread.run([&] { exits.watch(too_many, never); });

  // Each wake looks at all words.
  Watched& changes = *others.front();
  const auto wake_all = [&](std::uint32_t value) {
    changes.word->store(value);
    ::syscall(SYS_futex, changes.word.get(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  };
  for (std::uint32_t value = 1; value < 10; ++value) wake_all(value);
  Owner(others.back()->word).end();
  CHECK(others.back()->told());  // the others are watched as before
  wake_all(FUTEX_OWNER_DIED);
  CHECK(changes.told());
  thread.run([] {});
  CHECK(told == 0);
}
