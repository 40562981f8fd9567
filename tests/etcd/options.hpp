// Options of the elections in the tests.
#pragma once

#include <string>

#include "rendezvous/etcd/election.hpp"

namespace ddprun::etcd {

inline constexpr Duration kTtl = std::chrono::seconds(5);

inline ElectionOptions options_of(const std::string& agent) {
  ElectionOptions options;
  options.agent = agent;
  options.ttl = kTtl;
  options.jitter = std::chrono::milliseconds(10);
  options.cut_off_max = std::chrono::seconds(60);
  options.where = "etcd h1:2379";
  return options;
}

}  // namespace ddprun::etcd
