#include "agent/output/console.hpp"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/output/console_queue.hpp"
#include "base/format.hpp"
#include "base/program_name.hpp"

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

std::string missing_note(bool mid_line, std::uint64_t lines, const std::string& why) {
  return (mid_line ? "\n" : "") +
         (program_name() + ": " + count_text(static_cast<long long>(lines), "line")) +
         (lines == 1 ? " is" : " are") + " not shown here: " + why + "\n";
}

bool same_file(int one, int other) {
  struct stat a = {};
  struct stat b = {};
  if (::fstat(one, &a) != 0 || ::fstat(other, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

ConsoleWriter::ConsoleWriter(asio::any_io_executor executor, int descriptor)
    : target_(executor, descriptor),
      stall_(executor),
      changed_(executor, TimePoint::max()),
      stall_max_(kConsoleStallMax) {
  closed_ = target_.kind() == ConsoleTarget::Kind::kClosed;
  if (closed_) failure_ = EPIPE;
}

ConsoleWriter::Taken ConsoleWriter::write(std::string_view bytes) {
  if (closed_) lose(bytes, Origin::kWorker);
  if (closed_ || bytes.empty()) return Taken::kYes;
  announce_drops();
  const bool may_drop = stalled_ && !keeps_all_;
  const std::size_t max = may_drop ? kConsoleQueueBytesMax : kConsoleBacklogBytesMax;
  if (dropped_lines_ != 0 || queue_.worker_bytes() + bytes.size() > max) {
    drop(bytes);
    return Taken::kDropped;
  }
  push(bytes, Origin::kWorker);
  return Taken::kYes;
}

void ConsoleWriter::write_own(std::string_view lines) {
  if (closed_) lose(lines, Origin::kOwn);
  if (closed_ || lines.empty()) return;
  announce_drops();
  if (queue_.own_bytes() + lines.size() > kConsoleOwnBytesMax) return drop(lines);
  if (live_) live_->forget();
  push(lines, Origin::kOwn);
  if (stalled_) queue_.put_own_first();
}

void ConsoleWriter::draw_line(std::string_view text) {
  if (closed_ || waiting_ || mid_line_ || !queue_.empty()) return;
  const ssize_t written = target_.write(std::string(kClearLine).append(text));
  drawn_ = drawn_ || written > 0;
}

void ConsoleWriter::erase_line() {
  if (!closed_ && !waiting_) static_cast<void>(erase_drawn());
}

// False: the console takes nothing now.
bool ConsoleWriter::erase_drawn() {
  if (!drawn_) return true;
  const bool refused = target_.write(kClearLine) < 0 && errno == EAGAIN;
  if (refused) wait_for_console();
  drawn_ = refused;
  return !refused;
}

// While the lines of others are dropped, none is taken until that was announced in their place.
bool ConsoleWriter::full(OnStall on_stall) const {
  if (closed_) return false;
  const bool no_room = queue_.worker_bytes() > kFullBytes;
  return on_stall == OnStall::kDrop ? no_room && !stalled_ : no_room || dropped_lines_ != 0;
}

// Of the condition that is waited for, which is looked at again.
asio::awaitable<void> ConsoleWriter::change() {
  const auto [cancelled] = co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  static_cast<void>(cancelled);  // the only way it completes
}

// At that time a condition that is waited for is looked at again, whatever happens.
std::shared_ptr<asio::steady_timer> ConsoleWriter::wake_at(TimePoint time) {
  auto limit = std::make_shared<asio::steady_timer>(changed_.get_executor(), time);
  limit->async_wait([self = shared_from_this()](const boost::system::error_code& ended) {
    if (!ended) self->changed_.cancel();
  });
  return limit;
}

asio::awaitable<void> ConsoleWriter::room(OnStall on_stall) {
  const auto self = shared_from_this();
  // Ended by stall_ at the latest; with kWait by the console, or the end of the run.
  while (full(on_stall)) {
    co_await change();
  }
}

asio::awaitable<void> ConsoleWriter::written(TimePoint deadline) {
  const auto self = shared_from_this();
  const auto limit = wake_at(deadline);
  while (!closed_ && (!queue_.empty() || waiting_) && Clock::now() < deadline) {
    co_await change();
  }
  limit->cancel();
}

void ConsoleWriter::stop_keeping() {
  stopped_ = true;
  hold_workers_up_for(kConsoleStallAtStop);
}

void ConsoleWriter::hold_workers_up_for(Duration max) {
  if (std::exchange(stall_max_, max) == max || !std::exchange(watched_, false)) return;
  watch_for_stall();
}

// A console that is slow takes something again and again.
void ConsoleWriter::hurry_at(const std::shared_ptr<asio::steady_timer>& limit, Duration silence) {
  limit->async_wait(
      [self = shared_from_this(), limit, silence](const boost::system::error_code& ended) {
        if (ended) return;
        const TimePoint later = self->taken_at_ + silence;
        if (self->stopped_ || later <= Clock::now()) return self->hurry();
        limit->expires_at(later);
        self->hurry_at(limit, silence);
      });
}

asio::awaitable<void> ConsoleWriter::flush(TimePoint deadline, Duration silence) {
  const auto self = shared_from_this();
  const bool waits = keeps_all_ && !stopped_ && queue_.worker_bytes() != 0;
  const TimePoint until = waits ? TimePoint::max() : deadline;
  const auto silent = std::make_shared<asio::steady_timer>(changed_.get_executor(), until);
  hurry_at(silent, silence);
  // Ended by hurry() at the latest.
  while (!closed_ && !hurried_ && (!queue_.empty() || waiting_)) {
    co_await change();
  }
  silent->cancel();
  const TimePoint over = Clock::now() + kConsoleHurryMax;
  const auto limit = wake_at(over);
  while (!closed_ && !unwritten_own_lines().empty() && Clock::now() < over) {
    co_await change();
  }
  limit->cancel();
}

void ConsoleWriter::hurry() {
  hurried_ = true;
  queue_.put_own_first();
  changed_.cancel();
}

std::uint64_t ConsoleWriter::missing_lines() const {
  return dropped_lines_ + lost_.count() + lines_in(queue_.worker_output());
}

std::string ConsoleWriter::missing_because() const {
  if (closed_ && failure_ == EPIPE) return "it was closed";
  return failure_ != 0 ? ::strerror(failure_) : "it took nothing";
}

void ConsoleWriter::lose(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  if (origin == Origin::kOwn) {
    lost_own_ +=
        bytes.substr(0, kConsoleOwnBytesMax - std::min(kConsoleOwnBytesMax, lost_own_.size()));
    return;
  }
  lost_.ended += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  lost_.last_is_cut = bytes.back() != '\n';
}

void ConsoleWriter::lose_queue() {
  while (!queue_.empty()) {
    const std::string_view front = queue_.front();
    lose(front, queue_.front_is_own() ? Origin::kOwn : Origin::kWorker);
    queue_.pop(front.size());
  }
}

void ConsoleWriter::drop(std::string_view bytes) {
  const std::uint64_t lines = lines_in(bytes);
  dropped_lines_ += lines;
  dropped_total_ += lines;
}

void ConsoleWriter::push(std::string_view bytes, Origin origin) {
  queue_.push(bytes, origin);
  if (!bytes.empty()) mid_line_ = bytes.back() != '\n';
  if (!waiting_) write_queue();
  if (waiting_ && !queue_.empty()) watch_for_stall();
}

// While lines are missing, the note about them is written first: where it has no room, the rest has
// none.
void ConsoleWriter::write_queue() {
  if (!erase_drawn()) return;
  while (!queue_.empty()) {
    const std::string note = note_of_lost_lines();
    const std::string_view piece =
        note.empty() ? next_write(target_.kind(), queue_.front()) : std::string_view(note);
    using Begin = ConsoleTarget::Begin;
    const bool own = note.empty() && queue_.begins_own_line();
    const ssize_t written = target_.write(piece, own ? Begin::kFreshLine : Begin::kAnywhere);
    if (written >= 0) {
      taken_at_ = Clock::now();
      const bool is_file = target_.kind() == ConsoleTarget::Kind::kFile;
      if (is_file) put_in_flight(note.empty() ? piece : std::string_view());
      if (note.empty()) queue_.pop(static_cast<std::size_t>(written));
      if (is_file) {
        wait_for_console();  // the file has it when the thread has written it
        break;
      }
      if (!note.empty()) lost_ = {};
    } else if (errno == EAGAIN) {
      wait_for_console();
      break;
    } else if (full_disk(errno)) {
      failure_ = errno;  // there may be room again later
      lose_queue();
    } else if (errno != EINTR) {
      close(errno);
      return;
    }
  }
  changed_.cancel();
}

std::string ConsoleWriter::note_of_lost_lines() const {
  if (lost_.count() == 0) return {};
  return missing_note(cut_, lost_.count(), ::strerror(failure_));
}

void ConsoleWriter::put_in_flight(std::string_view front) {
  in_flight_ = front.empty()           ? InFlight::kNote
               : queue_.front_is_own() ? InFlight::kOwn
                                       : InFlight::kWorker;
  if (in_flight_ == InFlight::kOwn) own_in_flight_ = front;
}

void ConsoleWriter::on_file_written() {
  const InFlight what = std::exchange(in_flight_, InFlight::kNothing);
  const ConsoleTarget::Failure failure = target_.take_failure();
  own_in_flight_.clear();
  if (failure.error == 0) {
    if (what == InFlight::kNote) lost_ = {};
    return;
  }
  cut_ = failure.cut;
  if (what != InFlight::kNote) {
    lose(failure.lost, what == InFlight::kOwn ? Origin::kOwn : Origin::kWorker);
  } else {
    lose_queue();
  }
  if (!full_disk(failure.error)) return close(failure.error);
  failure_ = failure.error;
}

std::string ConsoleWriter::unwritten_own_lines() const {
  return own_in_flight_ + queue_.own_lines();
}

void ConsoleWriter::announce_drops() {
  if (dropped_lines_ == 0 || stalled_ || queue_.worker_bytes() > kFullBytes) return;
  const std::string why = "the console took nothing for " + duration_text(stall_max_);
  const std::string note = missing_note(false, dropped_lines_, why);
  dropped_lines_ = 0;
  push(note, Origin::kOwn);
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
  stall_.expires_after(stall_max_);
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
  if (target_.kind() == ConsoleTarget::Kind::kFile) on_file_written();
  if (closed_) return;
  write_queue();
  announce_drops();
}

void ConsoleWriter::stop_watching() {
  if (std::exchange(watched_, false)) stall_.cancel();
}

void ConsoleWriter::close(int error) {
  closed_ = true;
  waiting_ = false;
  failure_ = error;
  lose_queue();
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
  if (::isatty(err_descriptor) == 1) {
    consoles.terminal = std::make_shared<Terminal>(err_descriptor);
    consoles.live = std::make_shared<LiveLine>();
    consoles.err->set_live(consoles.live);
  }
  return consoles;
}

}  // namespace ddprun
