#include "agent/warm/warm_workers.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "agent/proc/program.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/warm/core/stock.hpp"
#include "agent/warm/processes.hpp"
#include "net/bugs.hpp"

namespace ddprun::warm {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kParked = "parked ";
constexpr int kInterpreterWords = 2;  // of the command, see configure_warm(); then the program

std::string joined_by(const std::vector<std::string>& texts, char separator) {
  std::string joined;
  for (const std::string& text : texts)
    joined += (joined.empty() ? "" : std::string(1, separator)) + text;
  return joined;
}

/// The interpreter looks at its streams once, when it starts: the template has the same kind. What
/// it prints before the hook is imported stays in the pipe, whose `early` end it has, too.
int open_stream(bool seekable, int file, int& early, Descriptors& passed) {
  if (seekable) return ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
  static_cast<void>(::fcntl(ends[1], F_SETPIPE_SZ, kEarlyBytes));
  early = passed.add(ends[0]);
  return ends[1];
}

bool is_seekable(const Start& start, const char* stream) {
  const auto kind = start.inherited.find(stream);
  return kind != start.inherited.end() && kind->second == kSeekable;
}

}  // namespace

WarmWorkers::WarmWorkers(asio::any_io_executor executor, WarmInputs inputs)
    : executor_(executor),
      inputs_(std::move(inputs)),
      stock_(inputs_.workers, inputs_.config.ahead),
      seats_(static_cast<std::size_t>(inputs_.workers)),
      due_(executor),
      refill_(executor),
      start_(executor),
      ended_(executor, TimePoint::max()) {}

void WarmWorkers::ask(std::vector<Wanted> wanted, std::function<void()> answered) {
  wanted_ = std::move(wanted);
  answered_ = std::move(answered);
  asked_ = false;
  start_.cancel();
  refill_.cancel();
  const bool begins = inputs_.config.first && made_.argv.empty() && !wanted_.empty();
  // And for the first forks; later ones, for a restart, have to come in time.
  waits_for_imports_ = inputs_.config.first && stock_.state() != TemplateState::kReady;
  if (begins) begin_template(wanted_.front().start);
  ask_now();
}

void WarmWorkers::ask_now() {
  if (!answered_ || asked_ || (waits_for_imports_ && !stock_.settled())) return;
  asked_ = true;
  if (stock_.wants_template() || !stock_.settled()) why_cold_ = "the template is not ready";
  std::vector<int> alike;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const int seat = static_cast<int>(i);
    if (stock_.state() != TemplateState::kReady) break;
    if (wanted_[i].start.program.empty()) continue;
    const std::string other = difference(made_, wanted_[i].start);
    if (other.empty()) alike.push_back(seat);
    if (!other.empty()) act(Note{other + " is not that of the template"});
  }
  asked_at_ = Clock::now();
  if (template_) template_before_ = processor_of(template_->pid());
  perform(stock_.ask(alike, asked_at_));
}

void WarmWorkers::release() {
  answered_ = nullptr;
  wanted_.clear();
  start_.cancel();
  teacher_ = {};
  perform(stock_.release());
}

std::optional<Child> WarmWorkers::take(int seat) {
  if (!stock_.take(seat)) return std::nullopt;
  Seat taken = std::exchange(seats_.at(static_cast<std::size_t>(seat)), {});
  if (!taken.link->send("go")) {
    kill(taken.child);
    return std::nullopt;
  }
  inputs_.orphans.except(taken.child->pid());
  return std::move(*taken.child);
}

void WarmWorkers::round_runs(Start first, Teacher teacher) {
  wanted_.clear();
  teacher_ = std::move(teacher);
  perform(stock_.release());
  refill_.expires_after(kRefillAfter);
  refill_.async_wait([self = shared_from_this()](const auto& why) {
    if (!why) self->perform(self->stock_.refill(Clock::now()));
  });
  if (!first.program.empty()) first_ = std::move(first);
  if (over_ || !stock_.wants_template() || first_.program.empty()) return;
  begin_template_later();
}

// A step is a store to memory, so nothing tells of the first one: it is looked for again.
void WarmWorkers::begin_template_later() {
  start_.expires_after(inputs_.config.after);
  start_.async_wait([self = shared_from_this()](const auto& why) {
    if (why) return;
    const bool learns = self->inputs_.config.preload.empty();
    const bool early = learns && self->teacher_.is_early && self->teacher_.is_early();
    if (early) return self->begin_template_later();
    self->begin_template(self->first_);
  });
}

void WarmWorkers::retire() {
  over_ = true;
  start_.cancel();
  refill_.cancel();
  perform(stock_.refuse("the run is over"));
}

// First the interpreter alone: one that does not import the hook would run the program.
void WarmWorkers::begin_template(const Start& first) {
  if (over_ || !stock_.wants_template()) return;
  const auto binary = check_binary(first.program);
  if (!binary) return perform(stock_.refuse(binary.error().sentence));
  made_ = first;
  Descriptors passed;
  std::vector<std::string> argv(first.argv.begin(), first.argv.begin() + kInterpreterWords);
  argv.insert(argv.end(), {"-c", "pass"});
  const auto started = start_interpreter(argv, {}, passed);
  if (!started) return perform(stock_.refuse(started.error().sentence));
  perform(stock_.probe_started(template_->pid(), Clock::now()));
}

void WarmWorkers::act(const Begin&) {
  template_->signal_group(SIGKILL);
  HookOrder order;
  order.agent = ::getpid();
  Descriptors passed;
  if (inputs_.config.preload.empty() && teacher_.pid <= 0) return perform(stock_.put_off());
  auto started = name_modules(order, passed);
  if (started) started = start_interpreter(made_.argv, order, passed);
  if (!started) return perform(stock_.refuse(started.error().sentence));
  perform(stock_.template_started(template_->pid(), Clock::now()));
}

Result<void> WarmWorkers::start_interpreter(const std::vector<std::string>& argv, HookOrder order,
                                            Descriptors& passed) {
  auto pair = Link::make(executor_);
  if (!pair) return pair.error();
  order.link = passed.add(pair->other);
  order.archive = passed.add(open_hook());
  order.out = passed.add(memory_file("ddprun-stdout", ""));
  order.err = passed.add(memory_file("ddprun-stderr", ""));
  order.mark = template_mark(value_or(made_.environment, "DDPRUN_WORKER", ""));
  if (passed.failed()) return system_refused("cannot make the files of the template", errno);
  Descriptors streams;
  SpawnRequest request;
  request.stdout_fd = streams.add(
      open_stream(is_seekable(made_, kStandardOutput), order.out, order.early_out, passed));
  request.stderr_fd = streams.add(
      open_stream(is_seekable(made_, kStandardError), order.err, order.early_err, passed));
  if (streams.failed()) return system_refused("cannot make its output", errno);
  request.kept = passed.all();
  request.program = made_.program;
  request.argv = argv;
  request.environment = to_block(template_environment(made_.environment, order));
  request.descriptor_limit = inputs_.descriptor_limit;
  request.leaf = make_leaf();
  auto child = spawn(executor_, request);
  if (!child && request.leaf) request.leaf->remove();
  if (!child) return child.error();
  template_ = std::make_shared<Child>(std::move(*child));
  inputs_.orphans.except_standing(template_->pid());
  bury(template_);
  template_link_ = std::move(pair->link);
  template_link_->receive([this](const auto& text) { take_message(text); });
  return {};
}

// Of a worker that has imported them: the template reads their names from its memory, which this
// process may open, because it is its parent.
Result<void> WarmWorkers::name_modules(HookOrder& order, Descriptors& passed) const {
  const bool given = !inputs_.config.preload.empty();
  order.modules = joined_by(given ? inputs_.config.preload : stock_.cuts(), ',');
  if (given) return {};
  const std::string worker = "/proc/" + std::to_string(teacher_.pid);
  order.memory = passed.add(::open((worker + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  const int why = errno;
  order.maps = passed.add(::open((worker + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!passed.failed()) return {};
  return system_refused("cannot read what a worker has imported; name it with --preload", why);
}

void WarmWorkers::take_message(const std::optional<std::string>& text) {
  const bool imports = stock_.state() == TemplateState::kImporting;
  const auto actions = text ? stock_.message(*text, Clock::now()) : stock_.template_ended();
  if (imports && stock_.state() == TemplateState::kReady) {
    int modules = 0;
    const auto number = std::min(text->find(' ') + 1, text->size());
    std::from_chars(text->data() + number, text->data() + text->size(), modules);
    inputs_.ready(modules);
  }
  perform(actions);
}

void WarmWorkers::take_answer(int seat, const std::optional<std::string>& text) {
  if (text && text->starts_with(kParked) && adopt(seat, *text)) {
    perform(stock_.parked(seat, Clock::now()));
  } else if (text == "ready") {
    perform(stock_.agreed(seat, Clock::now()));
  } else {
    perform(stock_.lost(seat));
  }
}

// It has become a child of this process before it said so.
bool WarmWorkers::adopt(int seat, const std::string& text) {
  Seat& filled = seats_.at(static_cast<std::size_t>(seat));
  pid_t pid = 0;
  std::from_chars(text.data() + kParked.size(), text.data() + text.size(), pid);
  if (filled.child || pid <= 0) return false;
  siginfo_t state = {};
  if (::waitid(P_PID, static_cast<id_t>(pid), &state, WEXITED | WNOHANG | WNOWAIT) != 0)
    return false;
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0 && errno != ENOSYS && errno != EPERM) return false;
  auto leaf = make_leaf();
  if (leaf && !leaf->take(pid)) {
    leaf->remove();
    leaf.reset();
  }
  try {
    filled.child = std::make_shared<Child>(executor_, pid, pidfd, std::move(leaf));
  } catch (const boost::system::system_error&) {
    return false;
  }
  inputs_.orphans.except_standing(pid);
  filled.before = processor_of(pid);
  return true;
}

void WarmWorkers::perform(const StockActions& actions) {
  for (const StockAction& action : actions) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
  arm();
  ask_now();
  tell_if_answered();
}

void WarmWorkers::act(const Park& action) {
  for (std::size_t at = 0; at < action.seats.size(); at += kDescriptorsMax) {
    Descriptors others;
    const std::size_t end = std::min(at + kDescriptorsMax, action.seats.size());
    for (std::size_t i = at; i < end; ++i) {
      const int seat = action.seats[i];
      auto pair = Link::make(executor_);
      if (!pair) continue;  // its fork comes too late for the stock
      others.add(pair->other);
      Seat& filled = seats_.at(static_cast<std::size_t>(seat));
      filled.link = std::move(pair->link);
      filled.link->receive([this, seat](const auto& text) { take_answer(seat, text); });
    }
    static_cast<void>(template_link_->send(action.ahead ? "park" : "fork", others.all()));
  }
}

void WarmWorkers::act(const Check&) {
  static_cast<void>(template_link_->send("check"));  // no answer comes then, which has a deadline
}

void WarmWorkers::act(const Ask& action) {
  const Wanted& wanted = wanted_.at(static_cast<std::size_t>(action.seat));
  Descriptors environment;
  std::string block;
  for (const std::string& entry : to_block(wanted.start.environment)) block += entry + '\0';
  block.pop_back();
  const int file = environment.add(memory_file("ddprun-environment", block));
  Seat& asked = seats_.at(static_cast<std::size_t>(action.seat));
  static_cast<void>(file >= 0 &&
                    asked.link->send("become", {wanted.stdout_fd, wanted.stderr_fd, file}));
}

void WarmWorkers::act(const Drop& action) {
  const Seat dropped = std::exchange(seats_.at(static_cast<std::size_t>(action.seat)), {});
  if (dropped.child) kill(dropped.child);
}

void WarmWorkers::act(const EndTemplate&) {
  template_->signal_group(SIGKILL);
  template_link_.reset();
}

void WarmWorkers::act(const Again&) {
  asio::post(executor_, [self = shared_from_this()] {
    if (self->teacher_.pid > 0) self->begin_template(self->made_);
  });
}

void WarmWorkers::act(const Note& action) {
  if (over_) return;
  why_cold_ = action.text;
  const bool is_new = noted_.insert(action.text).second;
  inputs_.note(action.text, !is_new);
}

void WarmWorkers::tell_if_answered() {
  if (!answered_ || !asked_ || !stock_.answered()) return;
  asio::post(executor_, std::exchange(answered_, nullptr));
}

void WarmWorkers::arm() {
  const auto deadline = stock_.deadline();
  due_.cancel();
  if (!deadline) return;
  due_.expires_at(*deadline);
  due_.async_wait([self = shared_from_this()](const auto& why) {
    if (!why) self->perform(self->stock_.tick(Clock::now(), self->starved()));
  });
}

Duration WarmWorkers::starved() const {
  const Duration since = Clock::now() - asked_at_;
  Duration most{0};
  bool forks = false;
  for (int i = 0; i < inputs_.workers; ++i) {
    const Seat& one = seats_[static_cast<std::size_t>(i)];
    forks = forks || stock_.seat(i) == SeatState::kForking;
    if (stock_.seat(i) != SeatState::kAsked || !one.child) continue;
    most = std::max(most, processor_of(one.child->pid()).starved(one.before, since));
  }
  if (!template_ || (!forks && !stock_.checking())) return most;
  if (forks && has_ready_member(template_->pid())) return since;  // of those it has just forked
  return std::max(most, processor_of(template_->pid()).starved(template_before_, since));
}

void WarmWorkers::pause_groups(bool on) {
  if (template_) template_->pause_group(on);
  for (const Seat& one : seats_) {
    if (one.child) one.child->pause_group(on);
  }
}

void WarmWorkers::continue_groups(Duration stopped) {
  pause_groups(false);
  asked_at_ += stopped;
  stock_.extend(stopped);
  arm();
}

void WarmWorkers::kill(const std::shared_ptr<Child>& child) {
  if (child->leaf()) child->leaf()->kill();
  child->signal_group(SIGKILL);
  bury(child);
}

void WarmWorkers::bury(std::shared_ptr<Child> child) {
  ++processes_;
  asio::co_spawn(executor_, wait_for(shared_from_this(), std::move(child)), net::rethrow_bug);
}

asio::awaitable<void> WarmWorkers::wait_for(std::shared_ptr<WarmWorkers> self,
                                            std::shared_ptr<Child> child) {
  const auto status = co_await child->wait();
  static_cast<void>(status);
  self->inputs_.orphans.no_longer_except(child->pid());
  if (child->leaf()) child->leaf()->remove();
  if (--self->processes_ == 0) self->ended_.cancel();
}

std::optional<Cgroup> WarmWorkers::make_leaf() {
  if (!inputs_.cgroup) return std::nullopt;
  return inputs_.cgroup->make("warm" + std::to_string(++leaves_));
}

asio::awaitable<void> WarmWorkers::end() {
  answered_ = nullptr;
  retire();
  if (processes_ == 0) co_return;
  ended_.expires_after(kEndMax);
  boost::system::error_code cancelled;
  co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

}  // namespace ddprun::warm
