#include "agent/run.hpp"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "agent/agent.hpp"
#include "agent/control/server.hpp"
#include "agent/control/signals.hpp"
#include "agent/events/run_events.hpp"
#include "agent/node/kill_order.hpp"
#include "agent/output/log.hpp"
#include "agent/output/wait_line.hpp"
#include "agent/proc/cgroup.hpp"
#include "agent/proc/program.hpp"
#include "agent/workers/output_end.hpp"
#include "base/exit_status.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/process_setup.hpp"
#include "base/random_uuid.hpp"
#include "base/signals.hpp"
#include "net/bugs.hpp"
#include "net/http.hpp"
#include "net/listen.hpp"
#include "net/loop_turns.hpp"
#include "net/tls.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// While workers' output passes through a console writer, our messages go the same way: lines stay
// whole.
class Attachment {
 public:
  Attachment(spdlog::logger& logger, std::shared_ptr<ConsoleWriter> console) {
    for (const auto& sink : logger.sinks()) {
      auto ours = std::dynamic_pointer_cast<MessageSink>(sink);
      if (ours == nullptr) continue;
      ours->attach([console](std::string_view line) { console->write_own(line); });
      attached_.push_back(std::move(ours));
    }
  }
  ~Attachment() {
    for (const auto& sink : attached_) sink->attach({});
  }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 private:
  std::vector<std::shared_ptr<MessageSink>> attached_;
};

EventLog::Options events_of(const LaunchConfig& config) {
  using Place = EventLog::Options::Place;
  const std::string& dir = config.log.dir;
  const Place place = dir.empty()          ? Place::kTemporary
                      : dir == "/dev/null" ? Place::kNowhere
                                           : Place::kGiven;
  return {place, config.run_id, this_host(), Clock::now()};
}

/// What commands do to this run.
struct Commands final : control::Target {
  [[nodiscard]] control::NodeStatus status() const override { return agent->status(); }
  [[nodiscard]] Result<std::string> signal_workers(int signal, bool force,
                                                   const control::Peer& from) override {
    const std::string sender = "ddprun signal (pid " + std::to_string(from.pid) + ")";
    return agent->signal_ranks({signal, sender, client::SignalCame::For::kAllNodes, force});
  }
  void stop(const control::Peer& from, Reach reach) override {
    const bool all = reach == Reach::kAllNodes;
    const std::string command = all ? "ddprun stop --all-nodes" : "ddprun stop";
    ReceivedSignal signal{SIGTERM, command + " (pid " + std::to_string(from.pid) + ")"};
    signal.all_nodes = all;
    request_stop(signal);
  }
  [[nodiscard]] asio::awaitable<std::string> stacks() override { return agent->save_stacks(); }

  Agent* agent = nullptr;  // before the first command can come, it is there
  std::function<void(const ReceivedSignal&)> request_stop;
};

/// Jobs and windows are a matter of the terminal, which is here; and what cannot be handled, or
/// reports a fault, no node passes on.
client::SignalCame::For reach_of(int signal) {
  using For = client::SignalCame::For;
  return may_be_passed_on(signal) ? For::kAllNodes : For::kThisNode;
}

asio::awaitable<int> run_to_the_end(Agent& agent, OutputEnd& end, control::ControlSocket& control) {
  const int exit_code = co_await agent.run();
  control.tell(agent.outcome());
  co_await end.finish(exit_code);
  co_return exit_code;
}

std::shared_ptr<warm::WarmWorkers> warm_workers(asio::io_context& io, const LaunchConfig& config,
                                                Orphans& orphans,
                                                const std::optional<Cgroup>& cgroup,
                                                const std::optional<rlimit>& descriptor_limit,
                                                spdlog::logger& logger, EventLog& events) {
  if (!config.warm) return nullptr;
  const auto note = [&logger, &events](const std::string& why, bool again) {
    events.record({"cold", Round(0), {{"text", why}}});
    if (!again) logger.info(note_line("WARM", "cold: " + printable(why)));
  };
  if (!config.warm->refused.empty()) {
    note(config.warm->refused, false);
    return nullptr;
  }
  return std::make_shared<warm::WarmWorkers>(
      io.get_executor(),
      warm::WarmInputs{*config.warm, config.workers.count, orphans, cgroup, descriptor_limit, note,
                       [&events](int modules) {
                         events.record({"template_ready", Round(0), {{"modules", modules}}});
                       }});
}

/// --http of one ddprun: GET /healthz or /, which is about the agent and not about training, and
/// GET /metrics for Prometheus.
class MetricsServer {
 public:
  using Facts = std::function<MetricsFacts()>;
  explicit MetricsServer(EventLog& events) : events_(events) {}
  ~MetricsServer() { events_.stop_observing(this); }
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// Listens, if the configuration says so, and tells where. If the port is that of
  /// TORCHELASTIC_HEALTH_CHECK_PORT and in use, that costs a warning: other agents of this node
  /// inherit the same variable. Errors: kPortTaken or kSystem, of --http.
  [[nodiscard]] Result<void> open(const boost::asio::any_io_executor& executor,
                                  const std::optional<HttpConfig>& config, spdlog::logger& logger,
                                  Facts facts);

 private:
  [[nodiscard]] std::string respond(const net::HttpRequest& request) const;

  EventLog& events_;
  Facts facts_;
  RunMetrics metrics_;
  std::unique_ptr<net::HttpServer> server_;
};

constexpr const char* kPages = "/healthz and /metrics";

Result<void> MetricsServer::open(const boost::asio::any_io_executor& executor,
                                 const std::optional<HttpConfig>& config, spdlog::logger& logger,
                                 Facts facts) {
  if (!config) return {};
  auto listener = net::listen_on(executor, config->address, config->port);
  if (!listener && config->origin == HttpConfig::Origin::kOption) return listener.error();
  if (!listener) {
    logger.warn(warning_line("HTTP", "TORCHELASTIC_HEALTH_CHECK_PORT: " +
                                         listener.error().sentence + "; no health check here"));
    return {};
  }
  facts_ = std::move(facts);
  events_.observe(this,
                  [this](const RunEvent& event, Duration since) { metrics_.take(event, since); });
  logger.info(note_line("HTTP", "health check and metrics at http://" +
                                    net::to_text(listener->local_endpoint()) + "/metrics"));
  server_ = std::make_unique<net::HttpServer>(
      std::move(*listener), kPages,
      [this](const net::HttpRequest& request) { return respond(request); });
  return {};
}

std::string MetricsServer::respond(const net::HttpRequest& request) const {
  const bool is_probe = request.path == "/healthz" || request.path == "/";
  if (is_probe) {
    return net::http_response("200 OK", "text/plain; charset=utf-8", "ok\n");
  }
  if (request.path != "/metrics") return net::http_refusal(404, kPages);
  MetricsFacts facts = facts_();
  facts.age = events_.since_start();
  return net::http_response("200 OK", "text/plain; version=0.0.4; charset=utf-8",
                            metrics_.text(facts));
}

/// Tells the event log of turns of the event loop that are long.
class TurnsInEvents {
 public:
  TurnsInEvents(asio::io_context& io, EventLog& events) {
    net::LoopTurns::here().on_longer([&io, &events](const net::LoopTurn& turn) {
      asio::post(io, [&events, turn] { events.record(slow_turn_event(turn.took, turn.cpu)); });
    });
  }
  ~TurnsInEvents() { net::LoopTurns::here().on_longer({}); }
  TurnsInEvents(const TurnsInEvents&) = delete;
  TurnsInEvents& operator=(const TurnsInEvents&) = delete;
};

/// In tests no turn may use more processor time (DDPRUN_TEST_TURN_MS); others may keep this thread
/// from running.
bool had_slow_turn(spdlog::logger& logger) {
  const char* const limit = std::getenv("DDPRUN_TEST_TURN_MS");
  const auto most = std::chrono::ceil<std::chrono::milliseconds>(net::LoopTurns::here().most_cpu());
  if (limit == nullptr || most.count() <= std::atol(limit)) return false;
  logger.error(error_line("BUG", "a turn of the event loop used " + std::to_string(most.count()) +
                                     " ms of processor time"));
  return true;
}

int drive(asio::io_context& io, Signals& signals, Agent& agent, OutputEnd& end, Commands& commands,
          control::ControlSocket& control, const Consoles& consoles) {
  int exit_code = kExitFailure;
  asio::co_spawn(io, run_to_the_end(agent, end, control), [&](std::exception_ptr bug, int code) {
    if (bug) std::rethrow_exception(bug);
    exit_code = code;
    io.stop();  // what still waits (signals, a worker that nothing ends) is dropped with `io`
  });
  using For = client::SignalCame::For;
  bool stopped = false;
  const auto stop = [&](const ReceivedSignal& received) {
    if (received.by_kernel) end.end_echo(received.number);
    // Nothing but consoles and files are waited for, or this is the second signal.
    if (end.began() || (stopped && is_forced_stop(received.number))) end.hurry();
    if (end.began()) return;
    stopped = true;
    end.stop_keeping();
    if (end.has_logs()) return agent.request_stop(received);
    exit_code =
        exit_code_of_signal(received.number);  // nothing was begun yet: a file system stalls
    io.stop();
  };
  commands.agent = &agent;
  commands.request_stop = stop;
  asio::co_spawn(
      io,
      signals.deliver(stop,
                      [&](const ReceivedSignal& received) {
                        if (received.number == SIGTSTP) {
                          if (received.by_kernel) end.end_echo(received.number);
                          return agent.pause(received);
                        }
                        // After Ctrl-Z the window may have another size than before.
                        const bool here = reach_of(received.number) == For::kThisNode;
                        if (here && consoles.terminal) consoles.terminal->resize();
                        agent.pass_on({received.number, received.from, reach_of(received.number)});
                      }),
      net::rethrow_bug);
  io.run();
  return exit_code;
}

/// Whether OpenSSL can be loaded, and the files be used, where a run needs them.
Result<void> check_tls(const LaunchConfig& config) {
  if (!config.rendezvous) return {};
  const auto link = net::make_link_tls(config.rendezvous->secret, config.rendezvous->certificates);
  if (!link) return link.error();
  const std::optional<EtcdConfig>& etcd = config.rendezvous->etcd;
  if (!etcd || !etcd->tls) return {};
  const auto client = net::TlsContext::make_client(*etcd->tls);
  return client ? Result<void>() : client.error();
}

void warn_without_proc(spdlog::logger& logger) {
  if (::access("/proc/self/stat", R_OK) == 0) return;
  logger.warn(warning_line("PROC",
                           "/proc cannot be read: a process that leaves the process group of its "
                           "worker is not found, and may outlive the run"));
}

/// About an event loop that cannot be made.
std::string line_about(const boost::system::system_error& error) {
  namespace errc = boost::system::errc;
  const auto& code = error.code();
  if (code == errc::operation_not_permitted || code == errc::function_not_supported) {
    return error_line("START", "the kernel or a sandbox refuses a system call that ddprun needs: " +
                                   std::string(error.what()));
  }
  const bool starved =
      code == errc::too_many_files_open || code == errc::too_many_files_open_in_system;
  const Error refused = system_refused("cannot start", code.value());
  return starved ? error_line("START", refused.sentence) : error_line("BUG", error.what());
}

}  // namespace

int run_agent(const LaunchConfig& config, const Environment& environment, spdlog::logger& logger,
              const MakeCoordinator& make_coordinator,
              const OpenCoordinator& open_coordinator) try {
  prepare_process();
  const auto usable = check_tls(config);
  if (!usable) {
    const bool mistake = usable.error().kind == ErrorKind::kUsage;
    logger.error(error_line(mistake ? "USAGE" : "START", usable.error().sentence));
    return exit_code_of(usable.error().kind);
  }
  const std::optional<rlimit> descriptor_limit = raise_descriptor_limit();
  asio::io_context io(1);
  Signals signals(io.get_executor(), config.stopping.signals);
  Coordinator coordinator;
  if (make_coordinator) {
    auto made = make_coordinator(io.get_executor());
    if (!made) {
      logger.error(error_line("NET-PORT", made.error().sentence));
      return exit_code_of(made.error().kind);
    }
    coordinator = std::move(*made);
  }
  Orphans orphans(io.get_executor());
  asio::co_spawn(io, orphans.reap(), net::rethrow_bug);
  warn_without_proc(logger);
  Commands commands;
  EventLog events(events_of(config), [&logger](const std::string& sentence) {
    logger.warn(warning_line("LOG", sentence));
  });
  MetricsServer metrics(events);
  const auto served = metrics.open(io.get_executor(), config.http, logger,
                                   [&commands] { return commands.agent->metrics_facts(); });
  if (!served) {
    logger.error(error_line("NET-PORT", served.error().sentence + " (--http)"));
    return exit_code_of(served.error().kind);
  }
  Consoles consoles = open_consoles(io.get_executor());
  if (consoles.live && !config.log.redraws) consoles.live->draw_nothing();
  // Where stdout is another terminal, or this one by another name, workers write there themselves.
  const bool one_terminal = consoles.out == consoles.err || ::isatty(STDOUT_FILENO) != 1;
  if (config.log.draws_waits && consoles.terminal && one_terminal) {
    consoles.waits = std::make_shared<WaitLine>(io.get_executor(), consoles.err, consoles.terminal,
                                                config.pid == 0 ? ::getpid() : config.pid);
  }
  const Attachment attachment(logger, consoles.err);
  std::shared_ptr<LogTree> logs;
  DiskThreads disks(io.get_executor());
  OutputEnd end(consoles, logs, disks, events, logger);
  control::ControlSocket control(disks.logs, logger, commands);
  const std::string nonce = random_uuid().substr(0, 8);
  const RunCgroup cgroup(nonce);
  const AgentInputs inputs{
      config,
      environment,
      logger,
      consoles,
      logs,
      events,
      disks,
      descriptor_limit,
      orphans,
      nonce,
      cgroup.get(),
      warm_workers(io, config, orphans, cgroup.get(), descriptor_limit, logger, events),
      [&] { control.open(environment); }};
  Agent agent(io.get_executor(), inputs, std::move(coordinator), make_coordinator,
              open_coordinator);
  const TurnsInEvents turns(io, events);
  const int exit_code = drive(io, signals, agent, end, commands, control, consoles);
  return had_slow_turn(logger) ? kExitFailure : exit_code;
} catch (const boost::system::system_error& error) {
  logger.error(line_about(error));
  return kExitFailure;
} catch (const std::exception& bug) {
  logger.error(error_line("BUG", bug.what()));
  return kExitFailure;
}

}  // namespace ddprun
