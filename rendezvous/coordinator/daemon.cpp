#include "rendezvous/coordinator/daemon.hpp"

#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/process_setup.hpp"
#include "base/secret.hpp"
#include "net/disk_thread.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/live_runs.hpp"

namespace ddprun::coordinator {

namespace asio = boost::asio;

namespace {

/// Writes until something is refused; returns what was not written. O_NONBLOCK is set on some
/// terminals, by another process.
std::string_view write_out(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable = {descriptor, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  return text;
}

class LogSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  LogSink(const DiskThread& thread, int descriptor, std::size_t bytes_max)
      : log_(std::make_shared<Log>(thread, descriptor, bytes_max)) {}

 private:
  // Outlives the sink while a write is under way.
  struct Log : std::enable_shared_from_this<Log> {
    Log(const DiskThread& by, int to, std::size_t most)
        : thread(by), descriptor(to), bytes_max(most) {}
    void add(std::string_view line);
    void write();

    DiskThread thread;
    const int descriptor;
    const std::size_t bytes_max;
    std::string waiting{};
    bool in_flight = false;
    std::uint64_t lost = 0;
  };

  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}  // the thread's idle() is waited for at the end

  std::shared_ptr<Log> log_;
};

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  log_->add({line.data(), line.size()});
}

void LogSink::Log::add(std::string_view line) {
  if (waiting.size() + line.size() > bytes_max) {
    ++lost;
    return;
  }
  waiting += line;
  if (!in_flight) write();
}

void LogSink::Log::write() {
  in_flight = true;
  const auto refused = std::make_shared<std::string>();
  thread.post([refused, to = descriptor,
               text = std::exchange(waiting, {})] { *refused = write_out(to, text); },
              [self = shared_from_this(), refused] {
                self->in_flight = false;
                self->lost +=
                    static_cast<std::uint64_t>(std::count(refused->begin(), refused->end(), '\n'));
                if (refused->empty() && self->lost != 0) {
                  self->waiting += "ddprun-rdzvd: " + std::to_string(self->lost) +
                                   " earlier lines are missing: the log could not be written\n";
                  self->lost = 0;
                }
                if (!self->waiting.empty()) self->write();
              });
}

// The event loop, its log, signals, the file of its runs, lookups in /proc.
constexpr std::size_t kOwnDescriptors = 32;

int fail(const Error& error) {
  std::fprintf(stderr, "ddprun-rdzvd: %s\n", error.sentence.c_str());
  return exit_code_of(error.kind);
}

std::shared_ptr<spdlog::logger> make_log(const DiskThread& thread) {
  auto log = std::make_shared<spdlog::logger>("ddprun-rdzvd", make_log_sink(thread, STDERR_FILENO));
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %l: %v");
  return log;
}

std::shared_ptr<LiveRuns> open_live_runs(const DaemonOptions& options, const DiskThread& disk,
                                         const std::shared_ptr<spdlog::logger>& log) {
  const std::string path =
      options.state_file ? *options.state_file : live_runs_path(options.bind, options.port);
  if (path.empty()) return nullptr;
  const auto warn = [log](const std::string& sentence) { log->warn("{}", sentence); };
  return std::make_shared<LiveRuns>(path, disk, warn);
}

}  // namespace

spdlog::sink_ptr make_log_sink(const DiskThread& thread, int descriptor, std::size_t bytes_max) {
  return std::make_shared<LogSink>(thread, descriptor, bytes_max);
}

int run(const DaemonOptions& options) try {
  prepare_process();
  boost::system::error_code why;
  (void)asio::ip::make_address(options.bind, why);
  if (why) {
    return fail(
        {ErrorKind::kUsage, "--bind " + options.bind +
                                " is not an IP address; use one like 127.0.0.1, 0.0.0.0 or ::1"});
  }
  SharedSecret secret;
  if (!options.secret_file.empty()) {
    auto read = read_secret(options.secret_file, "--secret-file=" + options.secret_file);
    if (!read) return fail(read.error());
    secret = std::move(*read);
  }
  (void)raise_descriptor_limit();
  // The daemon starts no process. As pid 1 of a container it may inherit orphans, which the kernel
  // reaps.
  std::signal(SIGCHLD, SIG_IGN);
  asio::io_context io(1);
  DiskThread output(io.get_executor());  // stdout and stderr may be files, or terminals
  const auto log = make_log(output);
  ServerOptions served{options.store,  log,           std::nullopt, secret, options.certificates,
                       options.limits, options.status};
  const std::shared_ptr<LiveRuns> live_runs = open_live_runs(options, output, log);
  served.live_runs = live_runs;
  served.descriptors = descriptors_for_clients(kOwnDescriptors);
  const auto server = open_server(io.get_executor(), options.bind, options.port, std::move(served));
  if (!server) return fail(server.error());
  const bool is_closed = secret != nullptr || options.certificates;
  if (!is_closed && !(*server)->endpoint().address().is_loopback()) {
    log->warn(
        "who reaches port {} can join every run of this daemon, and end it: it has no secret "
        "(--secret-file)",
        (*server)->endpoint().port());
  }
  asio::signal_set signals(io, SIGTERM, SIGINT);
  unblock_signals({SIGTERM, SIGINT});
  // The runs are not stopped: their workers keep running, and their agents reconnect to the next
  // daemon.
  signals.async_wait([&](const boost::system::error_code&, int) {
    (*server)->close();
    if (live_runs) live_runs->hurry();
    asio::co_spawn(io, output.idle(Clock::now() + kDiskHurryMax),
                   [&io](const std::exception_ptr&) { io.stop(); });
  });
  const std::string ready = "ready " + net::to_text((*server)->endpoint()) + "\n";
  output.post([ready] { (void)write_all(STDOUT_FILENO, ready); }, [] {});
  io.run();
  output.abandon();
  return 0;
} catch (const boost::system::system_error& error) {
  const bool starved = error.code() == boost::system::errc::too_many_files_open;
  return fail(
      {ErrorKind::kSystem, "cannot start: " + error.code().message() +
                               (starved ? "; raise the limit on open files (ulimit -n)" : "")});
}

}  // namespace ddprun::coordinator
