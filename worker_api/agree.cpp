// A value that all ranks of a round agree on: the first that reaches the round's store.
#include <errno.h>

#include <algorithm>

#include "worker_api/link.hpp"
#include "worker_api/rounds.hpp"
#include "worker_api/store_client.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kAgreedBytesMax = 64 * 1024;
// An empty value counts as missing where it is compared.
constexpr char kFirstByte = '=';

}  // namespace

// The store of torchrun is that of all rounds.
int agree(const std::string& name, std::string& value, std::chrono::milliseconds timeout) {
  if (name.empty() || name.size() > kAgreedBytesMax) return EINVAL;
  if (value.size() > kAgreedBytesMax) return EMSGSIZE;
  const auto world = worker_link::present_world();
  if (!world) return EINVAL;  // of a spare that has no place: there is no round
  if (world->world_size == 1 && world->master_port == 0) return 0;
  const std::int64_t wait_ms = std::clamp<std::int64_t>(timeout.count(), 0, INT32_MAX);
  worker_link::StoreClient store(worker_link::monotonic_now() +
                                 wait_ms * worker_link::kMillisecond);
  int failed = store.connect(world->master_addr, world->master_port);
  std::string proposed = kFirstByte + value;
  const std::string key = "ddprun/agree/" + std::to_string(world->round) + "/" + name;
  if (failed == 0) failed = store.set_first(key, proposed);
  if (failed != 0) return failed;
  const bool is_ours = !proposed.empty() && proposed.front() == kFirstByte;
  if (!is_ours || proposed.size() > kAgreedBytesMax + 1) return ENOTCONN;
  value = proposed.substr(1);
  return 0;
}

}  // namespace ddprun
