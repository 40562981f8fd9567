#include "agent/proc/console.hpp"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/proc/limits.hpp"
#include "base/duration_text.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

using Origin = ConsoleQueue::Origin;

constexpr std::size_t kFullBytes = kConsoleQueueBytesMax / 2;

// What to hand to one write(): whole lines that a FIFO takes in one piece, as many as fit.
std::string_view next_write(ConsoleTarget::Kind kind, std::string_view bytes) {
  const bool in_one_piece =
      kind != ConsoleTarget::Kind::kReopened && kind != ConsoleTarget::Kind::kShared;
  if (in_one_piece || bytes.size() <= kAtomicWriteBytesMax) return bytes;
  const auto newline = bytes.rfind('\n', kAtomicWriteBytesMax - 1);
  return bytes.substr(0, newline == std::string_view::npos ? kAtomicWriteBytesMax : newline + 1);
}

std::uint64_t lines_in(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto newlines = std::count(bytes.begin(), bytes.end(), '\n');
  return static_cast<std::uint64_t>(newlines) + (bytes.ends_with('\n') ? 0 : 1);
}

bool same_file(int one, int other) {
  struct stat a = {};
  struct stat b = {};
  if (::fstat(one, &a) != 0 || ::fstat(other, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

ConsoleWriter::ConsoleWriter(asio::any_io_executor executor, int descriptor)
    : target_(executor, descriptor), stall_(executor), changed_(executor, TimePoint::max()) {
  closed_ = target_.kind() == ConsoleTarget::Kind::kClosed;
}

ConsoleWriter::Taken ConsoleWriter::write(std::string_view bytes) {
  if (closed_ || bytes.empty()) return Taken::kYes;
  announce_drops();
  const std::size_t queued = queue_.worker_bytes();
  const bool over = queued + bytes.size() > kConsoleQueueBytesMax;
  if (dropped_lines_ != 0 || (stalled_ && over) || queued > kConsoleQueueBytesMax) {
    drop(bytes);
    return Taken::kDropped;
  }
  push(bytes, Origin::kWorker);
  return Taken::kYes;
}

void ConsoleWriter::write_own(std::string_view lines) {
  if (closed_ || lines.empty()) return;
  announce_drops();
  if (queue_.own_bytes() + lines.size() > kConsoleOwnBytesMax) return drop(lines);
  push(lines, Origin::kOwn);
  if (stalled_) queue_.put_own_first();
}

bool ConsoleWriter::full() const {
  return !closed_ && !stalled_ && queue_.worker_bytes() > kFullBytes;
}

asio::awaitable<void> ConsoleWriter::room() {
  const auto self = shared_from_this();
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (full()) {
    const auto [cancelled] = co_await changed_.async_wait(token);  // ended by stall_ at the latest
    static_cast<void>(
        cancelled);  // the only way it completes, and the condition is looked at again
  }
}

asio::awaitable<void> ConsoleWriter::flush(TimePoint deadline) {
  const auto self = shared_from_this();
  const auto token = asio::as_tuple(asio::use_awaitable);
  asio::steady_timer limit(changed_.get_executor(), deadline);
  limit.async_wait([self](const boost::system::error_code& ended) {
    if (!ended) self->hurry();
  });
  while (!closed_ && !hurried_ && (!queue_.empty() || waiting_)) {
    const auto [cancelled] = co_await changed_.async_wait(token);  // ended by hurry() at the latest
    static_cast<void>(cancelled);
  }
  const TimePoint over = Clock::now() + kConsoleHurryMax;
  limit.expires_at(over);
  limit.async_wait([self](const boost::system::error_code& ended) {
    if (!ended) self->changed_.cancel();
  });
  while (!closed_ && !unwritten_own_lines().empty() && Clock::now() < over) {
    const auto [cancelled] = co_await changed_.async_wait(token);
    static_cast<void>(cancelled);
  }
}

void ConsoleWriter::hurry() {
  hurried_ = true;
  queue_.put_own_first();
  changed_.cancel();
}

std::uint64_t ConsoleWriter::unshown_lines() const {
  return dropped_total_ + lines_in(queue_.worker_output());
}

void ConsoleWriter::drop(std::string_view bytes) {
  const std::uint64_t lines = lines_in(bytes);
  dropped_lines_ += lines;
  dropped_total_ += lines;
}

void ConsoleWriter::push(std::string_view bytes, Origin origin) {
  queue_.push(bytes, origin);
  if (!waiting_) write_queue();
  if (waiting_ && !queue_.empty()) watch_for_stall();
}

void ConsoleWriter::write_queue() {
  while (!queue_.empty()) {
    const std::string_view piece = next_write(target_.kind(), queue_.front());
    const ssize_t written = target_.write(piece);
    if (written >= 0) {
      own_in_flight_ = queue_.front_is_own() ? piece : std::string_view();
      queue_.pop(static_cast<std::size_t>(written));
      if (target_.kind() != ConsoleTarget::Kind::kFile) continue;
      wait_for_console();  // the file has it when the thread has written it
      break;
    } else if (errno == EAGAIN) {
      wait_for_console();
      break;
    } else if (full_disk(errno)) {
      queue_.pop(piece.size());  // lost; there may be room again later
    } else if (errno != EINTR) {
      close();
      return;
    }
  }
  changed_.cancel();
}

std::string ConsoleWriter::unwritten_own_lines() const {
  const bool in_flight = waiting_ && target_.kind() == ConsoleTarget::Kind::kFile;
  return (in_flight ? own_in_flight_ : "") + queue_.own_lines();
}

void ConsoleWriter::announce_drops() {
  if (dropped_lines_ == 0 || stalled_ || queue_.worker_bytes() > kFullBytes) return;
  const std::string message = std::string(queue_.mid_line() ? "\n" : "") +
                              "ddprun: " + std::to_string(dropped_lines_) +
                              " lines are not shown here: the console took nothing for " +
                              duration_text(kConsoleStallMax) + "\n";
  dropped_lines_ = 0;
  push(message, Origin::kOwn);
}

void ConsoleWriter::wait_for_console() {
  waiting_ = true;
  const auto self = weak_from_this();  // a console that never answers must not keep anything alive
  target_.async_writable([self](const boost::system::error_code& ended) {
    const auto writer = self.lock();
    if (!ended && writer) writer->on_writable();
  });
  if (!queue_.empty()) watch_for_stall();
}

void ConsoleWriter::watch_for_stall() {
  if (std::exchange(watched_, true)) return;
  stall_.expires_after(kConsoleStallMax);
  stall_.async_wait([self = weak_from_this()](const boost::system::error_code& ended) {
    const auto writer = self.lock();
    if (ended || !writer || !writer->watched_) return;
    // Of an earlier wait: a process that slept too long finds it beside the answer of the console.
    if (Clock::now() < writer->stall_.expiry()) return;
    writer->stalled_ = true;
    writer->queue_.put_own_first();
    writer->changed_.cancel();
  });
}

void ConsoleWriter::on_writable() {
  waiting_ = false;
  stalled_ = false;
  stop_watching();
  write_queue();
  announce_drops();
}

void ConsoleWriter::stop_watching() {
  if (std::exchange(watched_, false)) stall_.cancel();
}

void ConsoleWriter::close() {
  closed_ = true;
  waiting_ = false;
  queue_.clear();
  stop_watching();
  changed_.cancel();
  target_.close();
}

Consoles open_consoles(asio::any_io_executor executor, int out_descriptor, int err_descriptor) {
  Consoles consoles;
  consoles.err = std::make_shared<ConsoleWriter>(executor, err_descriptor);
  consoles.out = same_file(out_descriptor, err_descriptor)
                     ? consoles.err
                     : std::make_shared<ConsoleWriter>(executor, out_descriptor);
  return consoles;
}

}  // namespace ddprun
