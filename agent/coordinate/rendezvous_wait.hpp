// RendezvousWait: what a node without a round waits for, from the events of its link. Pure: time is
// an argument. Thread rule: none.
#pragma once

#include <optional>

#include "agent/config/rendezvous_config.hpp"
#include "agent/output/wait_line.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun {

class RendezvousWait {
 public:
  RendezvousWait(const RendezvousConfig& config, TimePoint start)
      : config_(config), start_(start) {}

  /// The coordinator, nodes, or nothing. `joined`: a coordinator has answered before.
  [[nodiscard]] const std::optional<Wait>& after(const client::Event& event, bool joined,
                                                 TimePoint now);
  /// A round starts, or the run is over: the next wait begins from zero.
  void end();

 private:
  void wait_for_coordinator(bool joined, TimePoint now);
  void wait_for_nodes(const protocol::Waiting& waiting, TimePoint now);

  const RendezvousConfig& config_;
  TimePoint start_;
  std::optional<Wait> wait_{};
  std::optional<TimePoint> nodes_since_{};
};

}  // namespace ddprun
