#include "agent/output/output.hpp"

#include <algorithm>
#include <utility>

#include "agent/output/stream_pump.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace asio = boost::asio;

Result<WorkerOutput> WorkerOutput::open(asio::any_io_executor executor, const Consoles& consoles,
                                        const WorkerOutputPlan& plan) {
  WorkerOutput output;
  PumpSinks sinks = {consoles.err,       plan.prefix,       plan.warn,
                     Stream::kStderr,    plan.bytes,        plan.label,
                     plan.label_columns, consoles.terminal, consoles.live};
  auto err = StreamPump::open(executor, plan.err, sinks);
  if (!err) return err.error();
  output.err_ = std::move(*err);
  const bool one_file = consoles.out == consoles.err;
  const bool shares = !plan.out.copied && shares_a_way(plan.out.route, plan.err.route, one_file);
  if (shares && output.err_->is_like_console()) {
    output.err_->lose_nothing();
    output.out_ = output.err_;
    return output;
  }
  sinks.console = consoles.out;
  sinks.stream = Stream::kStdout;
  if (!one_file) sinks.terminal = nullptr;
  if (!one_file) sinks.live = nullptr;
  auto out = StreamPump::open(executor, plan.out, std::move(sinks));
  if (!out) return out.error();
  output.out_ = std::move(*out);
  return output;
}

WorkerOutput::WorkerOutput(WorkerOutput&&) noexcept = default;
WorkerOutput& WorkerOutput::operator=(WorkerOutput&& other) noexcept {
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  return *this;
}

WorkerOutput::~WorkerOutput() {
  if (out_) out_->stop();
  if (err_) err_->stop();
}

Route WorkerOutput::set_rank(const WorkerOutputPlan& plan) {
  out_->set_prefix(plan.prefix, plan.label);
  err_->set_prefix(plan.prefix, plan.label);
  if (!is_one_way()) out_->set_route(plan.out.route);
  return out_->route();
}

int WorkerOutput::descriptor(Stream stream) const {
  return (stream == Stream::kStdout ? out_ : err_)->worker_descriptor();
}

void WorkerOutput::start() {
  if (!is_one_way()) out_->start();
  err_->start();
}

asio::awaitable<void> WorkerOutput::drain(TimePoint deadline) {
  const auto out = out_;
  const auto err = err_;
  co_await out->drain(deadline);
  co_await err->drain(deadline);
}

void WorkerOutput::catch_up() {
  out_->catch_up();
  err_->catch_up();
}

std::optional<TimePoint> WorkerOutput::last_written() const {
  const auto out = out_->last_written();
  const auto err = err_->last_written();
  return out && err ? std::optional(std::max(*out, *err)) : std::nullopt;
}

bool WorkerOutput::sees_stderr() const {
  return err_->last_written().has_value();
}

bool WorkerOutput::reveal(bool on) {
  return out_->reveal(on);
}

bool WorkerOutput::is_held_up() const {
  return out_->held_up() != StreamPump::Held::kNo || err_->held_up() != StreamPump::Held::kNo;
}

void WorkerOutput::forget() {
  catch_up();
  out_->forget();
  err_->forget();
}

WorkerOutput::LastWords WorkerOutput::last_words() const {
  const std::string err = err_->tail();
  const bool is_live = !is_one_way() && !err.empty() && out_->times().is_live();
  if (!is_live) return {without_colours(err), is_one_way()};
  return {without_colours(WriteTimes::merged({out_->tail(), out_->times()}, {err, err_->times()})),
          true};
}

std::string WorkerOutput::tail(Stream stream) const {
  if (stream == Stream::kStderr) return without_colours(err_->tail());
  return is_one_way() ? "" : without_colours(out_->tail());
}

}  // namespace ddprun
