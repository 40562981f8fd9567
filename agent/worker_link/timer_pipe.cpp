#include "agent/worker_link/timer_pipe.hpp"

#include <errno.h>
#include <fcntl.h>
#include <spdlog/logger.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "agent/proc/leftovers.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/proc/program.hpp"
#include "agent/report/quotation.hpp"
#include "agent/watch/timer_table.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

// Processes that have ended are looked for this often at most, where the table is full.
constexpr Duration kForgetInterval = std::chrono::seconds(1);
// What a pipe holds at most (fs.pipe-max-size): what is read at once of requests that were written
// before their workers were stopped.
constexpr std::size_t kTimerBacklogMax = 1024 * 1024;

double seconds_since_epoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// For reading and writing: a pipe without a writer would be readable all the time, at its end. It
// gets its name when it is read, because one that is not read is removed by others that start.
Result<OpenPipe> open_pipe_at(const std::string& path) {
  if (remove_if_unread(path)) {
    return Error(ErrorKind::kSystem, path + " is in use, or is not a named pipe");
  }
  remove_unfinished_pipes(path);
  const std::string unfinished = unfinished_pipe(path);
  if (::mkfifo(unfinished.c_str(), 0600) != 0) return system_refused("cannot make " + path, errno);
  const int opened = ::open(unfinished.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  // Unlike rename() this replaces no pipe that another agent has made meanwhile.
  const bool made = opened >= 0 && ::link(unfinished.c_str(), path.c_str()) == 0;
  const int why = errno;
  ::unlink(unfinished.c_str());
  if (made) return OpenPipe{opened, path, ""};
  if (opened >= 0) ::close(opened);
  return system_refused("cannot make " + path, why);
}

}  // namespace

// A worker may change its directory.
Result<OpenPipe> open_pipe(const std::string& wanted, const Result<std::string>& own) {
  if (wanted.empty()) return own ? open_pipe_at(*own) : Result<OpenPipe>(own.error());
  std::error_code unknown;
  const std::string path = std::filesystem::absolute(wanted, unknown).string();
  auto there = open_pipe_at(path);
  if (there || !own) return there;
  auto here = open_pipe_at(*own);
  if (here) here->note = there.error().sentence + "; the timers of workers are at " + *own;
  return here;
}

TimerPipe::TimerPipe(const boost::asio::any_io_executor& executor, const OpenPipe& pipe,
                     spdlog::logger& logger, Workers workers)
    : path_(pipe.path),
      logger_(logger),
      workers_(std::move(workers)),
      stream_(executor, pipe.descriptor),
      due_(executor) {
  read();
}

void TimerPipe::read() {
  stream_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read,
      [this, alive = std::weak_ptr<void>(alive_)](const boost::system::error_code& why) {
        if (why || alive.expired()) return;
        static_cast<void>(take_chunk(Duration(0)));  // nothing came: it is waited for again
        arm();
        read();
      });
}

// False: there is nothing to read.
bool TimerPipe::take_chunk(Duration stopped) {
  const ssize_t count = ::read(stream_.native_handle(), chunk_.data(), chunk_.size());
  if (count <= 0) return false;
  take(std::string_view(chunk_.data(), static_cast<std::size_t>(count)), stopped);
  return true;
}

void TimerPipe::take(std::string_view bytes, Duration stopped) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (!skips_line_ && line_.size() + part.size() > kTimerLineBytesMax) {
      skips_line_ = true;
      line_.clear();
      refuse("it is longer than " + std::to_string(kTimerLineBytesMax) + " bytes");
    }
    if (!skips_line_) line_ += part;
    if (end == std::string_view::npos) return;
    if (!skips_line_) take_line(line_, stopped);
    skips_line_ = false;
    line_.clear();
  }
}

void TimerPipe::take_line(std::string_view line, Duration stopped) {
  const auto request = parse_timer_request(line);
  if (!request) return refuse(request.error().sentence + ": " + quotable(line));
  if (request->releases()) return table_.release(*request);
  set(*request, stopped);
}

// A process that has ended meanwhile needs no timer. `stopped`: for how long the worker was, since
// it wrote the request.
void TimerPipe::set(const TimerRequest& request, Duration stopped) {
  const auto process = find_process(request.pid);
  if (!process || process->ended) return;
  if (!workers_.has(request.pid)) {
    return refuse("pid " + std::to_string(request.pid) + " is not a process of a worker");
  }
  if (table_.full()) forget_ended();
  const double written = seconds_since_epoch() - std::chrono::duration<double>(stopped).count();
  if (table_.set(request, process->started, Clock::now(), written)) return;
  refuse("there are more than " + std::to_string(kTimersMax) + " timers");
}

void TimerPipe::forget_ended() {
  const TimePoint now = Clock::now();
  if (now - looked_for_ended_ < kForgetInterval) return;
  looked_for_ended_ = now;
  for (const int pid : table_.pids()) {
    const auto process = find_process(pid);
    if (!process || process->ended) table_.forget(pid);
  }
}

void TimerPipe::refuse(const std::string& why) {
  if (std::exchange(refused_, true)) return;
  logger_.warn(warning_line(
      "TIMER", "a request at " + path_ + " is ignored: " + why + "; others are not reported"));
}

void TimerPipe::arm() {
  const auto next = table_.next();
  due_.cancel();
  if (!next) return;
  due_.expires_at(*next);
  due_.async_wait([this, alive = std::weak_ptr<void>(alive_)](const auto& why) {
    if (why || alive.expired()) return;
    tell(table_.take_due(Clock::now()));
    arm();
  });
}

void TimerPipe::round_runs() {
  table_.start_held(Clock::now());
  arm();
}

// Processes in sessions of their own are not stopped, and may write meanwhile.
void TimerPipe::extend(Duration by) {
  table_.extend(by);
  for (std::size_t read = 0; read < kTimerBacklogMax && take_chunk(by); read += kChunk) {
  }
  arm();
}

void TimerPipe::tell(std::vector<WorkerTimer> due) {
  for (WorkerTimer& timer : due) {
    const auto process = find_process(timer.pid);
    const bool lives = process && !process->ended && process->started == timer.process_started;
    if (lives && !workers_.expired(timer)) table_.hold(std::move(timer));
  }
}

}  // namespace ddprun
