// The scenarios of the store's benchmark, each a script for a Swarm. They verify every reply and
// throw std::runtime_error if it is wrong. They do not delete their keys: use a new server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ddprun::store::bench {

struct Target {
  std::string host;
  std::uint16_t port = 0;
  /// CPU seconds used by the server so far; not measured if empty.
  std::function<double()> server_cpu_s;
  /// Makes the keys of a measurement unique.
  std::string tag;
};

struct Measurement {
  double wall_s = 0;
  double cpu_s = 0;  // of the server, in the same interval
  std::size_t requests = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// One of ping, get, add, set, check, wait. `set` is a SET followed by a PING in one segment, timed
/// until the PONG.
Measurement in_sequence(const Target& target, const std::string& verb, std::size_t requests);
/// `connections` connections, each with one outstanding request, for `seconds`.
Measurement closed_loop(const Target& target, const std::string& verb, std::size_t connections,
                        double seconds);
/// Connect, VALIDATE, PING; 1024 at a time.
Measurement accept(const Target& target, std::size_t connections);
/// All connections ADD, the last one SETs, all WAIT. Connections are established before.
Measurement barrier(const Target& target, std::size_t connections);
/// From connect to the barrier after a 128-byte id has been distributed to all ranks.
Measurement nccl_start(const Target& target, std::size_t ranks);
/// nccl_start plus Gloo's full mesh: WAIT, WAIT, GET of every rank's address block.
Measurement gloo_start(const Target& target, std::size_t ranks);
/// One connection writes, or reads, a value `times` times.
Measurement set_value(const Target& target, std::size_t bytes, std::size_t times);
Measurement get_value(const Target& target, std::size_t bytes, std::size_t times);
/// One SET wakes all waiters; each then GETs the value.
Measurement fan_out(const Target& target, std::size_t bytes, std::size_t waiters);
/// Holds idle connections while calling `meanwhile`.
void hold_idle(const Target& target, std::size_t connections,
               const std::function<void()>& meanwhile);

}  // namespace ddprun::store::bench
