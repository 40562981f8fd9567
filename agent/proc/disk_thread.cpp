#include "agent/proc/disk_thread.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ddprun {

namespace asio = boost::asio;

namespace {

struct Task {
  DiskThread::Job job;
  DiskThread::Job done;
};

/// What the two threads share; whoever is last destroys it.
class Desk {
 public:
  Desk() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Desk() {
    if (event_ >= 0) ::close(event_);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  [[nodiscard]] int event() const { return event_; }
  void put(Task task) {
    const std::lock_guard lock(mutex_);
    todo_.push_back(std::move(task));
    wake_.notify_one();
  }
  [[nodiscard]] std::vector<DiskThread::Job> take_done() {
    std::uint64_t count = 0;
    while (::read(event_, &count, sizeof count) < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
  }
  void quit() {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    todo_.clear();
    wake_.notify_one();
  }
  /// The life of the thread.
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return quit_ || !todo_.empty(); });
      if (quit_) return;
      Task task = std::move(todo_.front());
      todo_.pop_front();
      lock.unlock();
      task.job();
      task.job = nullptr;
      lock.lock();
      if (quit_) return;
      done_.push_back(std::move(task.done));
      const std::uint64_t one = 1;
      while (::write(event_, &one, sizeof one) < 0 && errno == EINTR) continue;
    }
  }

 private:
  const int event_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> todo_;
  std::vector<DiskThread::Job> done_;
  bool quit_ = false;
};

bool start_thread(const std::shared_ptr<Desk>& desk) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the io thread
  bool started = true;
  try {
    std::thread([desk] { desk->work(); }).detach();
  } catch (const std::system_error&) {
    started = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

class DiskThread::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(asio::any_io_executor executor)
      : changed_(executor, TimePoint::max()), event_(std::move(executor)) {}
  ~Impl() {
    if (desk_) desk_->quit();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void post(Job job, Job done) {
    if (!desk_ && !begin()) {
      job();
      return done();
    }
    desk_->put({std::move(job), std::move(done)});
    if (left_++ == 0) await_done();
  }

  asio::awaitable<void> idle(TimePoint deadline) {
    const auto self = shared_from_this();
    const auto token = asio::as_tuple(asio::use_awaitable);
    while (left_ != 0 && !hurried_ && Clock::now() < deadline) {
      changed_.expires_at(deadline);
      const auto [ended] = co_await changed_.async_wait(token);
      static_cast<void>(ended);  // a job has ended, or the deadline is there
    }
  }

  void hurry() {
    hurried_ = true;
    changed_.cancel();
  }

  [[nodiscard]] asio::any_io_executor executor() { return changed_.get_executor(); }

 private:
  bool begin() {
    auto desk = std::make_shared<Desk>();
    const int event = desk->event() < 0 ? -1 : ::fcntl(desk->event(), F_DUPFD_CLOEXEC, 0);
    if (event < 0) return false;
    boost::system::error_code why;
    event_.assign(event, why);
    if (why) ::close(event);
    if (why || !start_thread(desk)) return false;
    desk_ = std::move(desk);
    return true;
  }

  void await_done() {
    event_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const boost::system::error_code& ended) {
                        const auto self = weak.lock();
                        if (!ended && self) self->take_done();
                      });
  }

  void take_done() {
    const std::vector<Job> done = desk_->take_done();
    for (const Job& one : done) one();
    left_ -= done.size();
    changed_.cancel();
    if (left_ != 0) await_done();
  }

  std::shared_ptr<Desk> desk_;  // null before the first job
  std::size_t left_ = 0;        // jobs whose `done` was not called yet
  bool hurried_ = false;
  asio::steady_timer changed_;
  asio::posix::stream_descriptor event_;
};

DiskThread::DiskThread(asio::any_io_executor executor)
    : impl_(std::make_shared<Impl>(std::move(executor))) {}

DiskThread::~DiskThread() = default;
DiskThread::DiskThread(DiskThread&&) noexcept = default;

void DiskThread::post(Job job, Job done) {
  impl_->post(std::move(job), std::move(done));
}

asio::awaitable<void> DiskThread::idle(TimePoint deadline) {
  return impl_->idle(deadline);
}

void DiskThread::hurry() {
  impl_->hurry();
}

asio::any_io_executor DiskThread::executor() const {
  return impl_->executor();
}

}  // namespace ddprun
