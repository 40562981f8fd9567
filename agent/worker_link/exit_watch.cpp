#include "agent/worker_link/exit_watch.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <climits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ddprun::worker_link {

namespace {

// Headers before Linux 5.16 have none of this.
constexpr long kFutexWaitv = 449;  // the number is the same on all processors
constexpr std::uint32_t kFutex32 = 2;
constexpr std::size_t kFutexWaitvMax = 128;
struct Waiter {
  std::uint64_t value = 0;
  std::uint64_t address = 0;
  std::uint32_t flags = kFutex32;
  std::uint32_t reserved = 0;
};

static_assert(kExitsWatchedMax < kFutexWaitvMax);  // one is our own

std::uint64_t address_of(const ExitWatch::Word& word) {
  return reinterpret_cast<std::uintptr_t>(&word);
}

}  // namespace

/// What the two threads share; the last of them destroys it.
class ExitWatch::Desk {
 public:
  explicit Desk(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void add(std::shared_ptr<const Word> word, std::function<void()> exits) {
    const std::lock_guard lock(mutex_);
    if (watched_.size() >= kExitsWatchedMax) return;
    const std::uint32_t value = word->load();
    watched_.push_back({std::move(word), value, std::move(exits), 0});
    wake();
  }

  void remove(const std::shared_ptr<const Word>& word) {
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [&](const Watched& one) { return one.word == word; });
    wake();
  }

  void quit() {
    const std::lock_guard lock(mutex_);
    watched_.clear();
    executor_ = {};
    quit_ = true;
    wake();
  }

  /// The life of the thread.
  void work() {
    std::vector<Waiter> waiters;
    while (true) {
      // Mapped as long as the kernel reads them.
      const std::vector<std::shared_ptr<const Word>> kept = prepare(waiters);
      if (kept.empty() && waiters.empty()) return;
      const long woken =
          ::syscall(kFutexWaitv, waiters.data(), waiters.size(), 0, nullptr, CLOCK_MONOTONIC);
      const bool works = woken >= 0 || errno == EAGAIN || errno == EINTR;
      if (!works) return;
    }
  }

 private:
  struct Watched {
    std::shared_ptr<const Word> word;
    std::uint32_t value;  // that was seen last
    std::function<void()> exits;
    int changes;
  };

  // The io thread and this one write it; the kernel compares it, so that no wake is lost.
  void wake() {
    changed_.fetch_add(1);
    ::syscall(SYS_futex, &changed_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Nothing: it is over.
  std::vector<std::shared_ptr<const Word>> prepare(std::vector<Waiter>& waiters) {
    const std::lock_guard lock(mutex_);
    waiters.clear();
    if (quit_) return {};
    waiters.push_back({changed_.load(), address_of(changed_)});
    std::erase_if(watched_, [this](Watched& one) { return is_done(one); });
    std::vector<std::shared_ptr<const Word>> kept;
    for (const Watched& one : watched_) {
      waiters.push_back({one.value, address_of(*one.word)});
      kept.push_back(one.word);
    }
    return kept;
  }

  bool is_done(Watched& one) {
    const std::uint32_t value = one.word->load();
    if ((value & FUTEX_OWNER_DIED) != 0) {
      boost::asio::post(executor_, std::move(one.exits));
      return true;
    }
    return std::exchange(one.value, value) != value && ++one.changes > kWordChangesMax;
  }

  boost::asio::any_io_executor executor_;
  Word changed_{0};
  std::mutex mutex_;
  std::vector<Watched> watched_;
  bool quit_ = false;
};

ExitWatch::ExitWatch(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

ExitWatch::~ExitWatch() {
  if (desk_) desk_->quit();
}

void ExitWatch::watch(std::shared_ptr<const Word> word, std::function<void()> exits) {
  if (!desk_) {
    auto desk = std::make_shared<Desk>(executor_);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the io thread
    try {
      std::thread([desk] { desk->work(); }).detach();
      desk_ = std::move(desk);
    } catch (const std::system_error&) {  // no process is left for it: the kernel tells later
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (desk_) desk_->add(std::move(word), std::move(exits));
}

void ExitWatch::forget(const std::shared_ptr<const Word>& word) {
  if (desk_) desk_->remove(word);
}

}  // namespace ddprun::worker_link
