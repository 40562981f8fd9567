// The contents of GET /status, as JSON and as an HTML page. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/round/status.hpp"
#include "rendezvous/store/server.hpp"

namespace ddprun::coordinator {

struct RunView {
  struct Line {
    Duration ago;
    std::string text;
  };
  round::Status status;
  std::vector<Line> log;  // oldest first
};

/// A run whose nodes are sent to another coordinator.
struct MovedRun {
  std::string run_id;
  std::string coordinator;  // "10.0.0.2:41234"
};

struct ServerView {
  std::string address;
  Duration uptime{};
  WallTime now{};
  std::size_t connections = 0;  // of the port, including agents and store clients
  std::size_t agents = 0;
  std::size_t rejected = 0;  // connections without secret or certificate
  store::Counters store;
  std::vector<RunView> runs;  // sorted by run id
  std::vector<MovedRun> moved;
};

[[nodiscard]] std::string to_json(const ServerView& view);
/// Reloads itself. Escapes everything that was received from peers.
[[nodiscard]] std::string to_html(const ServerView& view);

}  // namespace ddprun::coordinator
