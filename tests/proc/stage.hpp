// Stage: an agent's share of a run, for the tests of workers' output.
#pragma once

#include <vector>

#include "agent/output/output.hpp"
#include "base/process_setup.hpp"
#include "tests/proc/support.hpp"

namespace proc_test {

/// An agent's share of a run: consoles that are files, workers, what they leave.
class Stage {
 public:
  Stage() {
    ddprun::prepare_process();
    out_ = open_file("console.out");
    err_ = open_file("console.err");
    files_ = consoles_ = ddprun::open_consoles(io_.get_executor(), out_, err_);
  }
  ~Stage() {
    ::close(out_);
    ::close(err_);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  [[nodiscard]] ddprun::WorkerOutputPlan plan(ddprun::Route out, ddprun::Route err,
                                              const std::string& name = "0") {
    ddprun::WorkerOutputPlan of;
    of.out.route = out;
    of.out.file = directory_ / (name + ".stdout.log");
    of.err.route = err;
    of.err.file = directory_ / (name + ".stderr.log");
    of.out.log = open_log(out, of.out.file);
    of.err.log = open_log(err, of.err.file);
    of.prefix = "[w" + name + "]:";
    of.warn = [this](const std::string& sentence) { warnings.push_back(sentence); };
    return of;
  }

  [[nodiscard]] std::shared_ptr<ddprun::LogFile> open_log(ddprun::Route route,
                                                          const std::string& path) {
    if (route != ddprun::Route::kFile && route != ddprun::Route::kTee) return nullptr;
    auto file = ddprun::LogFile::open(path, disk_);
    REQUIRE(file.has_value());
    return *file;
  }

  void start(const ddprun::WorkerOutputPlan& of, ddprun::SpawnRequest request) {
    auto output = ddprun::WorkerOutput::open(io_.get_executor(), consoles_, of);
    if (!output) FAIL(output.error().sentence);
    request.stdout_fd = output->descriptor(ddprun::Stream::kStdout);
    request.stderr_fd = output->descriptor(ddprun::Stream::kStderr);
    auto child = ddprun::spawn(io_.get_executor(), request);
    if (!child) FAIL(child.error().sentence);
    outputs_.push_back(std::move(*output));
    outputs_.back().start();
    children_.push_back(std::move(*child));
  }

  /// Waits for all workers and drains their output.
  Stage& finish(ddprun::Duration timeout = kWaitMax) {
    for (auto& child : children_) statuses.push_back(wait_for(io_, child));
    for (auto& output : outputs_) run(io_, output.drain(ddprun::Clock::now() + timeout));
    return *this;
  }

  void set_console(int descriptor) {
    consoles_ = ddprun::open_consoles(io_.get_executor(), descriptor, descriptor);
  }
  [[nodiscard]] const ddprun::DiskThread& disk() const { return disk_; }
  [[nodiscard]] std::string out() {
    run(io_, files_.out->flush(ddprun::Clock::now() + kWaitMax));
    return contents(directory_ / "console.out");
  }
  [[nodiscard]] std::string err() {
    run(io_, files_.err->flush(ddprun::Clock::now() + kWaitMax));
    return contents(directory_ / "console.err");
  }
  void finish_files() { run(io_, disk_.idle(ddprun::Clock::now() + kWaitMax)); }
  [[nodiscard]] std::string file(const std::string& name) {
    finish_files();
    return contents(directory_ / name);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }
  [[nodiscard]] std::string tail(std::size_t worker = 0) const {
    return outputs_[worker].tail(ddprun::Stream::kStderr);
  }
  [[nodiscard]] const ddprun::WorkerOutput& output(std::size_t worker = 0) const {
    return outputs_[worker];
  }
  ddprun::Route set_rank(const ddprun::WorkerOutputPlan& of) {
    return outputs_.front().set_rank(of);
  }
  bool reveal(bool on) { return outputs_.front().reveal(on); }
  [[nodiscard]] auto last_written() const { return outputs_.front().last_written(); }
  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  [[nodiscard]] const ddprun::Consoles& consoles() const { return consoles_; }

  std::vector<std::string> warnings;
  std::vector<ddprun::ExitStatus> statuses;

 private:
  int open_file(const std::string& name) {
    return ::open((directory_ / name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }

  TempDir directory_;
  boost::asio::io_context io_;
  int out_ = -1;
  int err_ = -1;
  ddprun::Consoles consoles_;
  ddprun::DiskThread disk_{io_.get_executor()};
  ddprun::Consoles files_;  // those at the beginning
  std::vector<ddprun::WorkerOutput> outputs_;
  std::vector<ddprun::Child> children_;
};

}  // namespace proc_test
