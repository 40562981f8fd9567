#include "launcher/local_coordinator.hpp"

#include <spdlog/logger.h>

#include <utility>

#include "agent/coordinate/node_store.hpp"
#include "agent/output/log.hpp"
#include "base/message_line.hpp"
#include "base/random_uuid.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

coordinator::ServerOptions options_of(const Launch& launch, spdlog::logger& logger) {
  coordinator::ServerOptions options;
  options.store.connections = connections_max(launch.config);
  options.log = make_part_logger(logger, "COORDINATOR");
  options.only_run = launch.config.run_id;
  options.own_agent = AgentId(uuid_of_process());
  options.status = launch.status;
  options.secret = launch.config.rendezvous->secret;
  options.certificates = launch.config.rendezvous->certificates;
  options.peers = make_store_peers(launch.config, options.log);
  options.list_begins = launch.config.rendezvous->list_begins;
  options.fails_over = launch.config.rendezvous->fails_over;
  const WorkerConfig& workers = launch.config.workers;
  auto& own = options.own.emplace();
  own.run_id = launch.config.run_id;
  own.terms.commands_may_differ = workers.commands_may_differ;
  own.terms.is_named = launch.config.rendezvous->run_is_named;
  own.terms.program = workers.identity.program;
  own.fingerprint = workers.identity.fingerprint;
  own.command = workers.identity.text;
  own.host = launch.preview.host;
  return options;
}

/// Who can reach it may join the run: the user should know, once.
void note_if_open(const Launch& launch, const asio::ip::tcp::endpoint& at, spdlog::logger& logger) {
  const RendezvousConfig& rendezvous = *launch.config.rendezvous;
  const bool is_closed = rendezvous.secret || rendezvous.certificates;
  if (is_closed || !rendezvous.secret_from.empty() || at.address().is_loopback()) return;
  logger.info(note_line(
      "OPEN", "who reaches port " + std::to_string(at.port()) +
                  " of this node can join this run, and end it: it has no secret; ddprun secret "
                  "--new makes one for all runs of a home that the nodes share, "
                  "--rdzv-secret-file=FILE gives one to this run, =off is silent"));
}

Error cannot_serve(const CoordinatorPlan& plan, const Error& why) {
  std::string text = "this node has to run the coordinator and " + why.sentence;
  if (why.kind != ErrorKind::kPortTaken) return {why.kind, std::move(text)};
  text += ", unless an earlier run is still ending there";
  if (plan.rank_by_default) {
    text +=
        "; no --node-rank is given, so this node is node 0; if node 0 already runs there, pass "
        "--node-rank=1";
  }
  return {why.kind, std::move(text)};
}

}  // namespace

Result<Coordinator> start_local_coordinator(asio::any_io_executor executor, const Launch& launch,
                                            spdlog::logger& logger) {
  if (!launch.coordinator) return Coordinator();
  coordinator::ServerOptions options = options_of(launch, logger);
  options.at_endpoint = true;
  auto server = coordinator::open_server(executor, launch.coordinator->bind,
                                         launch.coordinator->port, std::move(options));
  if (server) {
    note_if_open(launch, (*server)->endpoint(), logger);
    return std::move(*server);
  }
  const bool taken = server.error().kind == ErrorKind::kPortTaken;
  if (taken && launch.coordinator->need == CoordinatorPlan::Need::kMay) return Coordinator();
  return cannot_serve(*launch.coordinator, server.error());
}

OpenCoordinator coordinator_opener(const Launch& launch, spdlog::logger& logger) {
  return [&launch, &logger](asio::ip::tcp::acceptor listener,
                            coordinator::SeatTerms terms) -> Result<Coordinator> {
    coordinator::ServerOptions options = options_of(launch, logger);
    const bool is_elected = terms.term > 0;
    options.seat = std::move(terms);
    auto server = std::make_unique<coordinator::Server>(listener.get_executor(),
                                                        std::move(listener), std::move(options));
    const auto started = server->start();
    if (!started) return started.error();
    if (is_elected) note_if_open(launch, server->endpoint(), logger);
    return server;
  };
}

}  // namespace ddprun
