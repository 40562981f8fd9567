// The scenarios of the store's benchmark, each a script for a Swarm. Every one verifies what it is
// answered and throws std::runtime_error where that is wrong. They leave their keys behind: use a
// fresh server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ddprun::store::bench {

struct Target {
  std::string host;
  std::uint16_t port = 0;
  /// CPU seconds the server has used so far; empty: not measured.
  std::function<double()> server_cpu_s;
  /// Makes the keys of one measurement its own.
  std::string tag;
};

struct Measurement {
  double wall_s = 0;
  double cpu_s = 0;  // of the server, for the same stretch
  std::size_t requests = 0;
  double p50_us = 0;
  double p99_us = 0;
};

/// One of ping, get, add, set, check, wait.
/// `set` is a SET with a PING behind it in one segment, timed to the PONG.
Measurement in_sequence(const Target& target, const std::string& verb, std::size_t requests);
/// As many connections, each with one request outstanding, for `seconds`.
Measurement closed_loop(const Target& target, const std::string& verb, std::size_t connections,
                        double seconds);
/// Connect, VALIDATE, PING; 1024 at a time.
Measurement accept(const Target& target, std::size_t connections);
/// Everybody ADDs, the last SETs, all WAIT. Connections exist before.
Measurement barrier(const Target& target, std::size_t connections);
/// From connect to the barrier after a 128-byte id was handed to everybody.
Measurement nccl_start(const Target& target, std::size_t ranks);
/// nccl_start plus Gloo's full mesh: WAIT, WAIT, GET of everybody's address block.
Measurement gloo_start(const Target& target, std::size_t ranks);
/// One connection writes, and reads back, a value so many times.
Measurement set_value(const Target& target, std::size_t bytes, std::size_t times);
Measurement get_value(const Target& target, std::size_t bytes, std::size_t times);
/// One SET frees all waiters, each then GETs the value.
Measurement fan_out(const Target& target, std::size_t bytes, std::size_t waiters);
/// Holds connections that do nothing, and calls `meanwhile`.
void hold_idle(const Target& target, std::size_t connections,
               const std::function<void()>& meanwhile);

}  // namespace ddprun::store::bench
