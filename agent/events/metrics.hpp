// RunMetrics: the run on this node as Prometheus reads it, from the same events that events.jsonl
// has. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/events/event.hpp"

namespace ddprun {

/// What no event says: now, of this process.
struct MetricsFacts {
  std::string version{};
  std::string run{};
  std::string host{};
  Duration age{};  // since ddprun started, on the clock of the events
  std::uint64_t output_bytes = 0;
  std::uint64_t store_connections = 0;
  std::uint64_t store_keys = 0;
  std::uint64_t store_refused = 0;
  std::vector<std::pair<Rank, std::int64_t>> steps{};  // the last of each rank that reports them
  Duration longest_turn{};                             // of the event loop
  Duration turn_cpu_max{};                             // processor time of one turn
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
};

class RunMetrics {
 public:
  void take(const RunEvent& event, Duration since_start);
  /// Text exposition format, version 0.0.4.
  [[nodiscard]] std::string text(const MetricsFacts& facts) const;

 private:
  enum Phase : std::uint8_t { kStop, kRendezvous, kStart, kSpawn, kPhases };
  struct Sum {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  using At = std::optional<double>;  // seconds since the start

  void take_round(const RunEvent& event, double at);
  void add(Phase phase, At from, double to);
  void end_health(double at);
  [[nodiscard]] double healthy_seconds(double now) const;
  [[nodiscard]] std::string recovery_text() const;

  std::uint64_t rounds_ = 0;
  std::int64_t round_ = 0;
  std::int64_t restarts_ = 0;
  std::int64_t nodes_ = 0;
  std::int64_t world_size_ = 0;
  std::int64_t running_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t links_lost_ = 0;
  std::uint64_t signals_ = 0;
  std::array<Sum, kPhases> phases_{};
  double healthy_ = 0;
  At healthy_since_{};
  At decided_{};
  At ended_{};
  At stop_began_{};
  At first_started_{};
};

}  // namespace ddprun
