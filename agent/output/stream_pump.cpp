#include "agent/output/stream_pump.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <utility>

#include "agent/output/console.hpp"
#include "agent/output/console_queue.hpp"
#include "agent/output/lines.hpp"
#include "agent/output/prefixed_lines.hpp"
#include "agent/proc/program.hpp"
#include "base/limits.hpp"

namespace ddprun {

namespace {

// The beginning of a line that is passed on waits so long for its end, if that is on its way, and
// up to so many bytes.
constexpr std::chrono::milliseconds kHeldMax{500};
constexpr std::size_t kHeldBytesMax = 64 * 1024;
// What is read at most after kDrainMax: all that a pipe can hold (fs.pipe-max-size), and no more.
constexpr std::size_t kDrainBytesMax = 1024 * 1024;
static_assert(kConsoleQueueBytesMax >= 2 * (kLineBytesMax + kPumpChunkBytes),
              "one stream's chunk must fit into half a queue");
static_assert(kPumpChunkBytes >= kAtomicWriteBytesMax);

}  // namespace

namespace asio = boost::asio;

Result<std::shared_ptr<StreamPump>> StreamPump::open(asio::any_io_executor executor,
                                                     const StreamPlan& plan, PumpSinks sinks) {
  auto pump = std::make_shared<StreamPump>(std::move(executor), plan, std::move(sinks));
  std::optional<Error> error;
  switch (plan.route) {
    case Route::kInherit:
      break;
    case Route::kDiscard:
      error = pump->open_null();
      break;
    case Route::kFile:
      pump->worker_end_ = plan.log->descriptor();
      break;
    case Route::kLog:
      error = plan.like_console ? pump->open_way_to_console() : pump->open_pipe();
      break;
    case Route::kTee:
    case Route::kKeep:
      error = pump->open_pipe();
      break;
    case Route::kPass:
      error = pump->open_way_to_console();
      if (pump->sinks_.stream == Stream::kStdout) pump->lose_nothing();
      break;
    case Route::kLabel:
      error = pump->open_way_to_console();
      pump->lose_nothing();
      break;
  }
  if (error) return *error;
  return pump;
}

StreamPump::StreamPump(asio::any_io_executor executor, const StreamPlan& plan, PumpSinks sinks)
    : plan_(plan),
      sinks_(std::move(sinks)),
      worker_end_(sinks_.stream == Stream::kStdout ? STDOUT_FILENO : STDERR_FILENO),
      pipe_(executor),
      end_(executor, TimePoint::max()),
      hold_(executor),
      labelled_(sinks_.live.get()),
      tail_(kTailBytesMax) {
  labelled_.set_label(sinks_.label);
}

StreamPump::~StreamPump() {
  close_worker_end();
  stop();
}

std::optional<Error> StreamPump::open_way_to_console() {
  const int label = plan_.route == Route::kLabel ? sinks_.label_columns : 0;
  const auto ends = sinks_.terminal ? sinks_.terminal->open_pseudoterminal(label) : std::nullopt;
  if (!ends) return open_pipe();
  is_terminal_ = true;
  return take_ends(ends->ours, ends->workers);
}

std::optional<Error> StreamPump::open_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_refused("cannot make a pipe for a worker's output", errno);
  }
  ::fcntl(ends[0], F_SETFL,
          O_NONBLOCK);  // the worker's end is another open file and stays blocking
  return take_ends(ends[0], ends[1]);
}

std::optional<Error> StreamPump::take_ends(int ours, int workers) {
  worker_end_ = workers;
  owns_worker_end_ = true;
  boost::system::error_code why;
  pipe_.assign(ours, why);
  if (!why) return std::nullopt;
  if (is_terminal_) sinks_.terminal->forget(ours);
  ::close(ours);
  return system_refused("cannot watch a worker's output", why.value());
}

std::optional<Error> StreamPump::open_null() {
  worker_end_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  owns_worker_end_ = worker_end_ >= 0;
  if (owns_worker_end_) return std::nullopt;
  return system_refused("cannot open /dev/null", errno);
}

void StreamPump::close_worker_end() {
  if (owns_worker_end_) ::close(worker_end_);
  owns_worker_end_ = false;
  worker_end_ = -1;
  if (plan_.route == Route::kFile) plan_.log->close();  // the worker has it now
}

void StreamPump::set_prefix(const std::string& prefix, const std::string& label) {
  sinks_.prefix = prefix;
  sinks_.label = label;
  labelled_.set_label(label);
}

void StreamPump::set_route(Route route) {
  const auto switches = [](Route one) { return one == Route::kPass || one == Route::kLog; };
  if (route == plan_.route || !switches(route) || !switches(plan_.route) || !plan_.log) return;
  if (plan_.route == Route::kPass) pass_held();
  plan_.route = route;
  revealed_ = false;
  if (route == Route::kPass) lose_nothing();
}

bool StreamPump::reveal(bool on) {
  if (plan_.route != Route::kLog || !pipe_.is_open()) return false;
  if (std::exchange(revealed_, on) == on || !on) return true;
  const std::string tail = tail_.text();
  const auto last = tail.find_last_not_of("\r\n");
  const auto before = tail.find_last_of('\n', last);
  const std::size_t begin =
      last == std::string::npos || before == std::string::npos ? 0 : before + 1;
  const bool is_finished = last != std::string::npos && tail.find('\n', last) != std::string::npos;
  if (is_finished && sinks_.live) show(sinks_.live->make_way());  // it is older than a prompt there
  begins_line_ = true;
  show_behind_label(std::string_view(tail).substr(begin));
  return true;
}

void StreamPump::lose_nothing() {
  sinks_.on_stall = ConsoleWriter::OnStall::kWait;
  sinks_.console->keep_all();
}

void StreamPump::start() {
  close_worker_end();
  if (!pipe_.is_open()) return;
  ended_ = false;
  read_at_ = Clock::now();
  const auto self = shared_from_this();
  asio::co_spawn(pipe_.get_executor(), pump(), [self](const std::exception_ptr& failure) {
    if (failure && self->sinks_.warn) self->sinks_.warn("reading a worker's output failed");
    self->stop();
  });
}

asio::awaitable<void> StreamPump::pump() {
  const auto self = shared_from_this();
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (!ended_) {
    const auto readable = asio::posix::stream_descriptor::wait_read;
    const auto [why] =
        co_await pipe_.async_wait(readable, token);  // ends with the worker, or drain()
    if (why) co_return;
    while (!ended_ && held_up() != Held::kNo) {
      if (held_up() == Held::kByConsole) {
        co_await sinks_.console->room(sinks_.on_stall);
      } else if (plan_.log->full()) {
        co_await plan_.log->room();
      } else {
        co_await plan_.filter->file->room();
      }
    }
    if (ended_) co_return;
    if (read_once() == Read::kEnd) finish();
  }
}

/// Whether this writes its log: not the worker.
bool StreamPump::is_logged() const {
  const Route route = plan_.route;
  const bool is_copied = plan_.copied && (route == Route::kPass || route == Route::kLabel);
  return route == Route::kTee || route == Route::kLog || is_copied;
}

StreamPump::Held StreamPump::held_up() const {
  const Route route = plan_.route;
  const bool shown =
      route == Route::kTee || route == Route::kPass || route == Route::kLabel || revealed_;
  if (shown && sinks_.console && sinks_.console->full(sinks_.on_stall)) return Held::kByConsole;
  if (!is_logged()) return Held::kNo;
  const bool full = plan_.log->full() || (plan_.filter && plan_.filter->file->full());
  return full ? Held::kByLog : Held::kNo;
}

// A terminal gives 4 KiB at a time.
StreamPump::Read StreamPump::read_once() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): read() fills it
  std::array<char, kPumpChunkBytes> buffer;
  std::size_t size = 0;
  ssize_t bytes = 0;
  do {
    bytes = ::read(pipe_.native_handle(), buffer.data() + size, buffer.size() - size);
    if (bytes > 0) size += static_cast<std::size_t>(bytes);
  } while (is_terminal_ && bytes > 0 && size < buffer.size());
  if (size == 0 && bytes < 0 && (errno == EAGAIN || errno == EINTR)) return Read::kNothing;
  if (size == 0) return Read::kEnd;  // of a terminal: EIO
  read_at_ = Clock::now();
  take(std::string_view(buffer.data(), size));
  return Read::kSome;
}

void StreamPump::take(std::string_view bytes) {
  if (sinks_.bytes) *sinks_.bytes += bytes.size();
  tail_.append(bytes);
  times_.add(*read_at_, bytes);
  if (is_logged()) plan_.log->append(bytes, sinks_.warn);
  if (plan_.route == Route::kPass) pass(bytes);
  if (plan_.route == Route::kLabel) label(labelled_.feed(bytes, *read_at_));
  if (plan_.route == Route::kTee) tee(bytes);
  if (revealed_) show_behind_label(bytes);
}

// Where more was there than the kernel takes in one piece, the worker may be in the middle of a
// line, which another worker's would tear. After less that is a prompt or a progress bar.
void StreamPump::pass(std::string_view bytes) {
  const auto newline = bytes.rfind('\n');
  if (newline == std::string_view::npos && !held_.empty()) {
    held_ += bytes;
    if (held_.size() > kHeldBytesMax) pass_held();
    return;
  }
  const bool is_long = bytes.size() >= kAtomicWriteBytesMax;
  const bool more_comes = std::exchange(was_long_, is_long) || is_long || !held_.empty();
  const std::size_t whole = newline == std::string_view::npos ? 0 : newline + 1;
  if (!held_.empty()) {
    const auto first = bytes.find('\n') + 1;
    held_ += bytes.substr(0, first);
    pass_held();
    show(bytes.substr(first, whole - first));
  } else {
    show(bytes.substr(0, whole));
  }
  if (!more_comes) return show(bytes.substr(whole));
  held_ = bytes.substr(whole);
  if (held_.empty()) return;
  hold_.expires_after(kHeldMax);
  hold_.async_wait([self = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto pump = self.lock();
    if (!cancelled && pump && !pump->ended_) pump->pass_held();
  });
}

void StreamPump::pass_held() {
  hold_.cancel();
  show(held_);
  held_.clear();
}

// A console that takes nothing keeps what is unfinished waiting.
void StreamPump::label(const std::string& shown) {
  sinks_.console->write(shown);
  const auto due = labelled_.due();
  if (due == label_due_) return;
  label_due_ = due;
  if (!due) return static_cast<void>(hold_.cancel());
  show_unfinished_at(*due);
}

void StreamPump::show_unfinished_at(TimePoint due) {
  hold_.expires_at(due);
  hold_.async_wait([self = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto pump = self.lock();
    if (cancelled || !pump || pump->ended_) return;
    if (pump->held_up() != Held::kNo) {
      return pump->show_unfinished_at(Clock::now() + kRedrawInterval);
    }
    pump->label_due_.reset();
    pump->label(pump->labelled_.show_unfinished(Clock::now()));
  });
}

void StreamPump::show_behind_label(std::string_view bytes) {
  std::string shown;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, bytes.find('\n'));
    const std::size_t taken = std::min(piece.size() + 1, bytes.size());
    if (begins_line_) shown += sinks_.label;
    shown += bytes.substr(0, taken);
    begins_line_ = bytes[taken - 1] == '\n';
    bytes.remove_prefix(taken);
  }
  show(shown);
}

void StreamPump::show(std::string_view bytes) {
  if (skips_to_newline_) {
    const auto newline = bytes.find('\n');
    bytes.remove_prefix(newline == std::string_view::npos ? bytes.size() : newline + 1);
    if (bytes.empty() && newline == std::string_view::npos) return;
    skips_to_newline_ = false;
  }
  if (bytes.empty()) return;
  const TimePoint now = Clock::now();
  const std::string way =
      sinks_.live ? sinks_.live->make_way_for_raw(bytes, sinks_.label, now) : "";
  if (!way.empty()) sinks_.console->write(way);
  if (sinks_.console->write(bytes) == ConsoleWriter::Taken::kDropped) {
    skips_to_newline_ = bytes.back() != '\n';
  }
}

void StreamPump::tee(std::string_view bytes) {
  const auto add = [this](std::string_view line) { add_line(line); };
  lines_.feed(bytes, Clock::now(), add, add);
  sinks_.console->write(block_);
  block_.clear();
}

void StreamPump::add_line(std::string_view line) {
  const std::size_t begin = block_.size();
  block_ += sinks_.prefix;
  block_ += line;
  block_ += '\n';
  if (!plan_.filter) return;
  const auto& texts = plan_.filter->texts;
  const bool wanted = std::any_of(texts.begin(), texts.end(), [line](const std::string& text) {
    return line.find(text) != std::string_view::npos;
  });
  if (wanted) plan_.filter->file->append(std::string_view(block_).substr(begin), sinks_.warn);
}

asio::awaitable<void> StreamPump::drain(TimePoint deadline) {
  const auto self = shared_from_this();
  const auto token = asio::as_tuple(asio::use_awaitable);
  if (!ended_) {
    end_.expires_at(deadline);
    const auto [ended] = co_await end_.async_wait(token);
    static_cast<void>(ended);  // the end or the deadline: the same steps follow
  }
  catch_up();
  if (!ended_) finish();
}

void StreamPump::catch_up() {
  Read read = Read::kSome;
  // Bounded: a process that never stops writing is not read for ever.
  for (std::size_t bytes = 0; read == Read::kSome && bytes < kDrainBytesMax;
       bytes += kPumpChunkBytes) {
    read = ended_ ? Read::kNothing : read_once();
  }
  if (plan_.route == Route::kPass) pass_held();
  if (read == Read::kEnd) finish();
}

void StreamPump::finish() {
  if (plan_.route == Route::kLabel) sinks_.console->write(labelled_.finish());
  if (plan_.route == Route::kPass) pass_held();
  if (plan_.route == Route::kTee) {
    lines_.finish([this](std::string_view line) { add_line(line); });
    sinks_.console->write(block_);
    block_.clear();
  }
  if (plan_.log) plan_.log->close();
  stop();
}

void StreamPump::stop() {
  ended_ = true;
  if (is_terminal_ && pipe_.is_open()) sinks_.terminal->forget(pipe_.native_handle());
  boost::system::error_code ignored;  // closing a pipe end that is no longer read
  pipe_.close(ignored);
  end_.cancel();
}

std::string StreamPump::tail() const {
  return tail_.text();
}

}  // namespace ddprun
