#include "agent/agent.hpp"

#include <signal.h>

#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/coordinate/endpoint_links.hpp"
#include "agent/coordinate/in_process_link.hpp"
#include "agent/output/log.hpp"
#include "agent/report/lines.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/program_name.hpp"
#include "base/random_uuid.hpp"
#include "net/bugs.hpp"
#include "net/local_peer.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

AgentIdentity identify(const RunContext& context, bool has_coordinator) {
  using At = AgentIdentity::Coordinator;
  const bool here = has_coordinator || !context.config().rendezvous;
  return {AgentId(uuid_of_process()), context.hostname(), here ? At::kHere : At::kElsewhere,
          net::outward_addresses()};
}

std::shared_ptr<client::CoordinatorLink> make_link(asio::any_io_executor executor,
                                                   const LaunchConfig& config,
                                                   client::CoordinatorLink::Sink sink) {
  if (!config.rendezvous) {
    return make_in_process_link(std::move(executor), config.run_id, std::move(sink));
  }
  const CoordinatorAddress address =
      config.rendezvous->etcd ? CoordinatorAddress{} : config.rendezvous->coordinator;
  return client::make_tcp_link(std::move(executor), address.host, address.port, std::move(sink),
                               link_secret_of(config));
}

}  // namespace

Agent::Agent(asio::any_io_executor executor, AgentInputs inputs, Coordinator coordinator,
             MakeCoordinator make_coordinator, OpenCoordinator open_coordinator)
    : executor_(executor),
      context_(std::move(inputs)),
      identity_(identify(context_, coordinator != nullptr)),
      node_(*this, Node(membership_options(context_.config(), identity_),
                        single_node() ? Node::Nodes::kSingle : Node::Nodes::kSeveral, now())),
      link_(make_link(executor, context_.config(),
                      [this](const client::Event& event) { take(event); })),
      store_(executor, context_.config(), coordinator.get(),
             make_part_logger(context_.logger(), "STORE")),
      tick_(executor),
      ended_(executor, TimePoint::max()),
      settled_(executor, TimePoint::max()),
      late_(executor) {
  store_.on_rank_claims([this](Round round, const RankClaims& claims) {
    if (runner_) runner_->rank_claimed(round, claims);
  });
  if (single_node()) return;
  endpoint_ = context_.config().rendezvous->coordinator;
  SeatUser& user = *this;
  if (!context_.config().rendezvous->etcd) {
    seat_ = std::make_unique<EndpointSeat>(executor_, context_.config(), std::move(coordinator),
                                           std::move(make_coordinator), std::move(open_coordinator),
                                           user);
    node_.core().stand_by(seat_->stand_by());
    return;
  }
  const protocol::Hello hello = membership_options(context_.config(), identity_).hello;
  elected_ = std::make_unique<ElectedSeat>(executor_, context_.config(), hello,
                                           std::move(open_coordinator), user);
  link_->aim("", 0, "no node is elected");
}

asio::awaitable<int> Agent::run() {
  const auto timers = co_await context_.open_timers();
  if (!timers) co_return context_.fail("START", timers.error());
  const auto logs = co_await context_.open_logs();
  if (!logs) {
    context_.close_links();
    co_return context_.fail("START", logs.error());
  }
  context_.events().record(start_event(context_.config(), ::getpid()));
  if (!single_node()) log_start();
  node_.feed(node::Begin{});
  if (elected_) elected_->start();
  if (seat_) seat_->check_endpoint();
  if (!single_node()) context_.begin_control();
  boost::system::error_code cancelled;
  while (!node_->end()) {
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  co_await link_->flush();
  const client::End end = *node_->end();
  report_end(end);
  context_.events().report_is_told();
  record_end(end);
  if (context_.spares() != nullptr) context_.spares()->stop();  // else they notice that it is over
  context_.close_links();
  co_await context_.end_waiting_workers();
  co_await settle();
  report_own_error();
  co_return end.exit_code;
}

void Agent::take(const client::Event& event) {
  for (RunEvent& recorded : link_events_.of(event)) context_.events().record(std::move(recorded));
  const auto* incoming = std::get_if<client::Incoming>(&event);
  if (const auto* stop = incoming ? std::get_if<protocol::Stop>(&incoming->message) : nullptr) {
    failure_known_ = stop->verdict && stop->verdict->failure;
  }
  feed(event);
  if (seat_) seat_->observe(event);
  if (context_.spares() != nullptr && waits_as_spare_node(event)) context_.spares()->node_waits();
  show_wait(event);
}

void Agent::act(const client::Connect& action) {
  const std::optional<client::Place>& to = action.to;
  const bool may_host = !node_->membership().joined() && !to;
  if (may_host && seat_ && seat_->host()) node_.core().coordinator_is_here();
  if (to || is_aimed_) {
    link_->aim(to ? to->address : endpoint_.host, to ? to->port : endpoint_.port);
    is_aimed_ = to.has_value();
  }
  link_->connect(action.link);
}

void Agent::act(const client::Coordinate& action) {
  const auto made = seat_->coordinate(action);
  if (!made) feed(client::Abdicated{made.error().sentence});
}

bool Agent::waits_as_spare_node(const client::Event& event) const {
  const auto* incoming = std::get_if<client::Incoming>(&event);
  const auto* waiting =
      incoming == nullptr ? nullptr : std::get_if<protocol::Waiting>(&incoming->message);
  const bool runs = runner_ != nullptr || node_->end() || node_->stop_signal() != 0;
  if (waiting == nullptr || runs) return false;
  return waiting->round.value() > 0 && waiting->here > waiting->nodes_max;
}

void Agent::request_stop(const ReceivedSignal& received) {
  if (stopped_by_.number == 0) {
    stopped_by_ = received;
    ranks_are_stopped_ = runner_ != nullptr;
  }
  context_.events().record(signal_event(received.number, "stop", received.from));
  if (context_.spares() != nullptr) context_.spares()->stop();
  node_.feed(node::StopAsked{received, runner_ && runner_->failure_is_unreported()});
  if (node_->is_forced_stop()) settled_.cancel();
  if (stays_ && coordinator_here() != nullptr) shut_down_coordinator();
}

std::string Agent::pass_on(client::SignalCame came) {
  signal_note_ = signal_name(came.signal) + " was passed on already";  // by another node
  feed(std::move(came));
  return signal_note_;
}

Result<std::string> Agent::signal_ranks(client::SignalCame came) {
  const bool asks = runner_ != nullptr && !came.force;
  const std::vector<Rank> ends = asks ? runner_->ended_by(came.signal) : std::vector<Rank>();
  if (!ends.empty()) return Error{ErrorKind::kUsage, signal_refusal(came.signal, ends)};
  return pass_on(std::move(came));
}

void Agent::act(const client::DeliverSignal& deliver) {
  using Others = client::DeliverSignal::Others;
  context_.events().record(signal_event(deliver.signal, "pass_on"));
  SignalFacts facts;
  facts.signal = deliver.signal;
  facts.from = deliver.from;
  facts.host = deliver.host;
  if (runner_ != nullptr) {
    auto passed = runner_->pass_on(deliver.signal, deliver.force);
    facts.ranks = passed.ranks;
    facts.ends = std::move(passed.ends);
  }
  facts.other_nodes = deliver.other_nodes;
  facts.others_reached = deliver.others != Others::kUnreachable;
  signal_note_ = signal_text(facts);
  // The size of a window changes often.
  const bool said = deliver.signal != SIGWINCH && signal_lines_.try_take(Clock::now());
  if (!said) return;
  const std::size_t omitted = signal_lines_.take_omitted();
  const std::string more = omitted == 0 ? "" : "; " + std::to_string(omitted) + " more not shown";
  context_.logger().info(note_line("SIGNAL", signal_note_ + more));
}

void Agent::joins_other(const CoordinatorAddress& other) {
  endpoint_ = other;
  store_.forget_coordinator();
  coordinator_at(other, false, "");
}

void Agent::coordinator_at(const std::optional<CoordinatorAddress>& where, bool here,
                           const std::string& why) {
  const CoordinatorAddress address = where.value_or(CoordinatorAddress{});
  link_->aim(address.host, address.port, why);
  feed(client::CoordinatorMoved{where ? to_text(address) : "", where.has_value(), here});
}

void Agent::seat_note(const std::string& text) {
  context_.logger().info(run_note(text));
}

void Agent::fail(const Error& error) {
  node_.feed(node::Failed{report_error(error), error.sentence});
}

void Agent::act(const client::OpenStore&) {
  const auto port = store_.open_next();
  if (!port) return fail(port.error());
  feed(client::StoreOpened{*port});
}

void Agent::act(const client::ServeStore& action) {
  const auto served = store_.serve(action.round, action.peers);
  if (!served) fail(served.error());
}

void Agent::act(const client::ReleaseStore& action) {
  store_.release(action.round, [this, round = action.round] { feed(client::StoreIdle{round}); });
}

void Agent::act(const client::StartGroup& action) {
  const auto started = start_group(action.round);
  if (started) return;
  fail(started.error());
  node_.feed(node::NotStarted{action.round.stamp.number});
}

Result<void> Agent::start_group(const protocol::StartRound& start) {
  const Round round = start.stamp.number;
  if (seat_) seat_->end_checks();
  if (const auto served = store_.begin(); !served) return served.error();
  group_rank_ = start.group_rank;
  nodes_ = start.group_size;
  RoundInputs inputs = context_.prepare(facts_of(start, context_.config()));
  context_.log_round(inputs.facts);
  inputs.hooks = hooks_of(round, inputs.facts.first_rank);
  inputs.store_waits = [this, round] { return store_.waits(round); };
  if (Spares* spares = context_.spares()) {
    spares->pause();
    if (start.restarts.value() > 0) spares->say_if_none();
    spares->fill(carried_);
  }
  inputs.carried = std::exchange(carried_, {});
  runner_ = RoundRunner::make(executor_, std::move(inputs));
  asio::co_spawn(executor_, run_group(runner_, round), net::rethrow_bug);
  return {};
}

RoundHooks Agent::hooks_of(Round round, Rank first_rank) {
  RoundHooks hooks;
  hooks.opened = [this, round] {
    if (single_node() && round == Round(1)) log_start();
    log_placement();
  };
  hooks.tell = [this](client::Event event) { tell_of_round(std::move(event)); };
  hooks.stopping = [this](int workers) {
    const Duration timeout = context_.config().stopping.shutdown_timeout;
    context_.logger().warn(stop_line(stopped_by_, workers, timeout));
  };
  hooks.spawn_failed = [this, first_rank](const SpawnFailed& failure) {
    fail_to_spawn(context_.fail_to_spawn(failure, first_rank), failure.error.sentence);
  };
  return hooks;
}

void Agent::tell_of_round(client::Event event) {
  const bool runs = std::holds_alternative<client::GroupRunning>(event);
  feed(std::move(event));
  if (!runs) return;
  context_.round_runs();
  context_.begin_control();
  tell_that_it_started();
}

// It is said at once only if others have to be stopped first, which may take a while.
void Agent::fail_to_spawn(OwnError error, const std::string& sentence) {
  const std::vector<WorkerName> workers = runner_->workers();
  const auto running = std::count_if(workers.begin(), workers.end(),
                                     [](const WorkerName& worker) { return worker.pid != 0; });
  if (running > 0) {
    context_.logger().warn(
        warning_line(error.code, error.text + "; stopping " + count_text(running, "other rank")));
  }
  own_error_reported_ = true;
  own_error_ = std::move(error);
  node_.feed(node::Failed{own_error_->exit_code, sentence});
}

asio::awaitable<void> Agent::run_group(std::shared_ptr<RoundRunner> runner, Round round) {
  RoundResult result = co_await runner->run();
  if (auto cleanup = cleanup_event(round, result)) context_.events().record(std::move(*cleanup));
  context_.events().record(round_ended_event(round, result));
  result.own_workers = runner->own_workers();
  context_.log_round_over();
  last_ = std::move(result);
  carried_ = runner->hand_over();
  runner_ = nullptr;
  context_.log_unkillable(*last_);
  node_.feed(node::GroupOver{round, *last_});
  if (!single_node() && !node_->end()) arm_late();                      // other nodes may take long
  if (!carried_.all.empty()) end_workers(std::exchange(carried_, {}));  // no round could be begun
}

// None of these three comes for a group that could not be started.
void Agent::act(const client::StopGroup& action) {
  if (runner_) runner_->end(action);
}

void Agent::act(const node::PassStopSignal& action) {
  if (runner_) runner_->request_stop(action.signal);
}

void Agent::act(const client::CheckHang& action) {
  if (runner_) runner_->check_hang(action.echo);
}

void Agent::act(const client::ArmTimer& action) {
  tick_.expires_at(action.deadline);
  tick_.async_wait([this](const boost::system::error_code& why) {
    if (!why) feed(client::Tick{});
  });
}

void Agent::act(const client::End&) {
  tick_.cancel();
  ended_.cancel();
}

void Agent::act(const node::LogNote& action) {
  const std::string& text = action.text;
  if (!context_.logger().should_log(spdlog::level::info)) return;  // --quiet
  note_ = text;
  if (!failure_known_) return context_.logger().info(run_note(text));
  late_note_ = run_note(text);
  arm_late();
}

void Agent::log_death(const std::string& line) {
  if (!failure_known_) return context_.logger().warn(line);
  late_death_ = line;
  arm_late();
}

void Agent::act(const node::LogRestart& action) {
  context_.logger().info(restart_line(action.reason));
}

void Agent::act(const node::LogLeaving& action) {
  context_.logger().warn(leaving_line(action.received));
}

int Agent::report_error(const Error& error) {
  own_error_reported_ = true;
  return context_.fail(start_code_of(error.kind), error);
}

void Agent::log_start() {
  const LaunchConfig& config = context_.config();
  StartFacts facts;
  facts.version = kVersion;
  facts.run = config.run_id;
  facts.workers = config.workers.count;
  if (config.rendezvous) {
    using At = NodesFacts::At;
    facts.nodes = {config.rendezvous->nodes_min, config.rendezvous->nodes_max,
                   coordinator_text(*config.rendezvous),
                   seat_ && seat_->any() != nullptr ? At::kThisNode : At::kElsewhere};
  }
  if (config.log.asks_for_files()) {
    facts.log_dir = config.rendezvous ? context_.logs().base() : context_.logs().run_directory();
  }
  facts.shutdown_timeout = config.stopping.shutdown_timeout;
  facts.max_restarts = config.stopping.max_restarts;
  context_.logger().info(start_line(facts));
}

// Only for people, and once: a restart gives each rank the same.
void Agent::log_placement() {
  const LaunchConfig& config = context_.config();
  if (!config.on_terminal || config.workers.count == 1) return;
  if (std::exchange(placement_logged_, true)) return;
  const std::string table = runner_->placement();
  if (!table.empty()) context_.logger().info(table);
}

}  // namespace ddprun
