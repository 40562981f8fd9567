#include "net/disk_thread.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ddprun {

namespace asio = boost::asio;

namespace {

/// What the two threads share; the last of them destroys it.
class Desk {
 public:
  Desk() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Desk() {
    if (event_ >= 0) ::close(event_);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  [[nodiscard]] int event() const { return event_; }
  enum class Counted { kNo, kYes };
  void put(DiskThread::Job job, Counted counted) {
    const std::lock_guard lock(mutex_);
    todo_.push_back({std::move(job), counted});
    wake_.notify_one();
  }
  /// How many jobs that count have ended since the last call.
  [[nodiscard]] std::uint64_t take_ended() const {
    std::uint64_t count = 0;
    while (::read(event_, &count, sizeof count) < 0 && errno == EINTR) continue;
    return count;
  }
  void quit() {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    wake_.notify_one();
  }
  /// The life of the thread.
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return quit_ || !todo_.empty(); });
      if (quit_) break;
      Entry next = std::move(todo_.front());
      todo_.pop_front();
      lock.unlock();
      next.job();
      next.job = nullptr;
      lock.lock();
      if (next.counted == Counted::kNo) continue;
      const std::uint64_t one = 1;
      while (::write(event_, &one, sizeof one) < 0 && errno == EINTR) continue;
    }
    // Here, because what these own may be a file that takes long to close.
    const std::deque<Entry> never_begun = std::exchange(todo_, {});
    lock.unlock();
  }

 private:
  struct Entry {
    DiskThread::Job job;
    Counted counted = Counted::kYes;
  };

  const int event_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> todo_;
  bool quit_ = false;
};

}  // namespace

std::string start_detached(std::function<void()> work) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string why;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& failure) {
    why = failure.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return why;
}

class DiskThread::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(const asio::any_io_executor& executor)
      : executor_(executor),
        changed_(std::in_place, executor, TimePoint::max()),
        event_(std::in_place, executor) {}
  ~Impl() {
    if (desk_) desk_->quit();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void post(Job job, Job done, Kind kind) {
    if (abandoned_) return;
    if (!desk_ && !begin()) {
      job();
      return done();
    }
    desk_->put(std::move(job), Desk::Counted::kYes);
    pending_.push_back({std::move(done), kind});
    if (pending_.size() == 1) await_ended();
  }

  void drop(std::shared_ptr<void> object) {
    // On the other thread a desk is there.
    if (desk_) desk_->put([last = std::move(object)] {}, Desk::Counted::kNo);
  }

  asio::awaitable<void> idle(TimePoint deadline) {
    const auto self = shared_from_this();
    const auto token = asio::as_tuple(asio::use_awaitable);
    while (!pending_.empty() && Clock::now() < std::min(deadline, hurried_until_)) {
      changed_->expires_at(std::min(deadline, hurried_until_));
      const auto [ended] = co_await changed_->async_wait(token);
      static_cast<void>(ended);  // a job has ended, or the deadline is there
    }
  }

  void abandon() {
    if (desk_) desk_->quit();
    abandoned_ = true;
    pending_.clear();  // nothing is told any more: the loop has ended
    // A job may hold the last copy, and then this is destroyed on its thread, after the loop's
    // context.
    event_.reset();
    changed_.reset();
  }

  void hurry() {
    hurried_until_ = Clock::now() + kDiskHurryMax;
    if (changed_) changed_->cancel();
  }

  [[nodiscard]] bool has_writes() const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [](const Pending& pending) { return pending.kind == Kind::kWrite; });
  }

  [[nodiscard]] asio::any_io_executor executor() const { return executor_; }

 private:
  bool begin() {
    auto desk = std::make_shared<Desk>();
    const int event = desk->event() < 0 ? -1 : ::fcntl(desk->event(), F_DUPFD_CLOEXEC, 0);
    if (event < 0) return false;
    boost::system::error_code why;
    event_->assign(event, why);
    if (why) ::close(event);
    // An arena of its own would cost more than this thread's waits for it.
    ::mallopt(M_ARENA_MAX, 1);
    if (why || !start_detached([desk] { desk->work(); }).empty()) return false;
    desk_ = std::move(desk);
    return true;
  }

  void await_ended() {
    event_->async_wait(asio::posix::stream_descriptor::wait_read,
                       [weak = weak_from_this()](const boost::system::error_code& ended) {
                         const auto self = weak.lock();
                         if (!ended && self) self->on_ended();
                       });
  }

  void on_ended() {
    for (std::uint64_t left = desk_->take_ended(); left != 0; --left) {
      const Job done = std::move(pending_.front().tell);
      done();
      pending_.pop_front();  // now: a job that `done` posts finds a wait that continues
    }
    changed_->cancel();
    if (!pending_.empty()) await_ended();
  }

  std::shared_ptr<Desk> desk_;  // null before the first job
  bool abandoned_ = false;
  struct Pending {
    Job tell;  // called when the job has ended
    Kind kind = Kind::kOther;
  };
  std::deque<Pending> pending_;  // in the order of the jobs
  TimePoint hurried_until_ = TimePoint::max();
  const asio::any_io_executor executor_;
  std::optional<asio::steady_timer> changed_;  // this and the next: none once abandoned
  std::optional<asio::posix::stream_descriptor> event_;
};

DiskThread::DiskThread(const asio::any_io_executor& executor)
    : impl_(std::make_shared<Impl>(executor)) {}

void DiskThread::post(Job job, Job done, Kind kind) {
  impl_->post(std::move(job), std::move(done), kind);
}

void DiskThread::drop(std::shared_ptr<void> object) {
  impl_->drop(std::move(object));
}

asio::awaitable<void> DiskThread::idle(TimePoint deadline) {
  return impl_->idle(deadline);
}

void DiskThread::abandon() {
  impl_->abandon();
}

void DiskThread::hurry() {
  impl_->hurry();
}

bool DiskThread::has_writes() const {
  return impl_->has_writes();
}

asio::any_io_executor DiskThread::executor() const {
  return impl_->executor();
}

}  // namespace ddprun
