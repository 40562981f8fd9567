#include "trainer/ddp/group.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "trainer/ddp/limits.hpp"
#include "trainer/device/accelerator.hpp"
#include "trainer/error.hpp"

namespace ddprun::trainer {

struct Group::Connection {
  // Destroyed in reverse order: the group first, the store client last.
  c10::intrusive_ptr<c10d::TCPStore> client;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  StoreRole role = StoreRole::kConnect;
};

namespace {

const std::vector<std::uint8_t> kYes{1};
constexpr std::size_t kBroadcastBytesMax = std::size_t{250} << 20;  // as Python's DDP

c10::intrusive_ptr<c10d::TCPStore> connect(const GroupOptions& options) {
  c10d::TCPStoreOptions tcp;
  tcp.port = options.store.port;
  tcp.isServer = options.store_role == StoreRole::kServe && options.rank == 0;
  tcp.waitWorkers = false;  // otherwise the constructor acts as a barrier
  tcp.timeout = options.outdated ? std::min(kStoreAttempt, options.timeout) : options.timeout;
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  while (true) {
    try {
      auto client = c10::make_intrusive<c10d::TCPStore>(options.store.host, tcp);
      client->setTimeout(options.timeout);
      return client;
    } catch (const std::exception& error) {
      const bool over = options.outdated && options.outdated();
      if (!over && std::chrono::steady_clock::now() < deadline) continue;
      throw LostPeer("no store at MASTER_ADDR:MASTER_PORT " + options.store.host + ":" +
                     std::to_string(options.store.port) + " (" + first_line(error.what()) +
                     "); is the launcher, or rank 0, still running?");
    }
  }
}

// As in Python, GLOO_SOCKET_IFNAME is a comma-separated list; without it, use the interface that
// routes to MASTER_ADDR.
c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> gloo_options(const GroupOptions& options,
                                                                 const std::string& address) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(std::min(kConnectTimeout, options.timeout));
  const char* names = std::getenv("GLOO_SOCKET_IFNAME");
  std::istringstream list(names != nullptr ? names : "");
  for (std::string name; std::getline(list, name, ',');) {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
  }
  if (gloo->devices.empty()) {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
  }
  gloo->threads = static_cast<int>(gloo->devices.size()) * 2;
  return gloo;
}

c10::intrusive_ptr<c10d::ProcessGroup> make_group(const GroupOptions& options,
                                                  const std::string& address,
                                                  const c10::intrusive_ptr<c10d::Store>& store) {
  auto gloo_store = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(gloo_store, options.rank, options.size,
                                                          gloo_options(options, address));
  gloo->setTimeout(options.timeout);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  // Without a default backend the group's rank and size are wrong.
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  if (!options.device.is_cuda()) return group;
  if (options.device_collectives == DeviceCollectives::kGloo) {
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::GLOO, gloo);
    return group;
  }
  auto nccl_store = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
  add_nccl(*group, {nccl_store, options.rank, options.size, options.timeout});
  return group;
}

// Torch 2.15 has new names for both, and warns of the old ones.
template <class ProcessGroup>
void all_to_all(ProcessGroup& group, at::Tensor& received, at::Tensor& sent,
                std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& sent_lengths) {
  if constexpr (requires { group.all_to_all_single(received, sent, lengths, sent_lengths); }) {
    group.all_to_all_single(received, sent, lengths, sent_lengths)->wait();
  } else {
    group.alltoall_base(received, sent, lengths, sent_lengths)->wait();
  }
}

template <class ProcessGroup>
void all_gather(ProcessGroup& group, at::Tensor& received, at::Tensor& sent) {
  if constexpr (requires { group.all_gather_single(received, sent); }) {
    group.all_gather_single(received, sent)->wait();
  } else {
    group._allgather_base(received, sent)->wait();
  }
}

}  // namespace

Group::Group(const GroupOptions& options) : rank_(options.rank), size_(options.size) {
  if (alone()) return;
  connection_ = std::make_unique<Connection>();
  connection_->role = options.store_role;
  // Before connecting, because the store's client retries an unresolvable name until its timeout.
  const auto address = local_address_towards(options.store);
  connection_->client = connect(options);
  connection_->store =
      c10::make_intrusive<c10d::PrefixStore>(options.key_prefix, connection_->client);
  try {
    meet_in("arrived");
    connection_->group = make_group(options, address, connection_->store);
  } catch (const c10::Error& error) {
    throw LostPeer("could not connect to all " + std::to_string(size_) + " ranks (" +
                   first_line(error.what_without_backtrace()) + ")");
  }
}

Group::~Group() {
  if (!connection_ || !connection_->group) return;
  try {
    shut_nccl(*connection_->group);
  } catch (const std::exception&) {
    // Already failing: the collective that failed first has thrown the cause.
  }
}

void Group::sum(at::Tensor& tensor) {
  if (alone()) return;
  std::vector<at::Tensor> tensors{tensor};
  connection_->group->allreduce(tensors)->wait();
}

void Group::minimum(at::Tensor& tensor) {
  if (alone()) return;
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  connection_->group->allreduce(tensors, options)->wait();
}

std::vector<at::Tensor> Group::exchange(const at::Tensor& rows, std::vector<std::int64_t> lengths) {
  auto sent = rows.flatten();
  if (alone()) return {sent};
  std::vector<std::int64_t> sent_lengths(lengths.size(), sent.numel() / size_);
  auto received =
      at::empty({std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})}, rows.options());
  all_to_all(*connection_->group, received, sent, lengths, sent_lengths);
  return received.split_with_sizes(lengths);
}

at::Tensor Group::gather(const at::Tensor& own) {
  if (alone()) return own;
  auto sent = own;
  auto received = at::empty({own.numel() * size_}, own.options());
  all_gather(*connection_->group, received, sent);
  return received;
}

void Group::broadcast(const std::vector<at::Tensor>& tensors, int from) {
  if (alone() || tensors.empty()) return;
  c10d::broadcast_coalesced(connection_->group, tensors, kBroadcastBytesMax, from);
}

void Group::meet_in(const std::string& key) {
  auto& store = *connection_->store;
  if (store.add(key, 1) == size_) store.set("all_" + key, kYes);
  store.wait({"all_" + key});
}

void Group::leave_together() {
  if (alone()) return;
  meet_in("left");
  if (connection_->role == StoreRole::kConnect) return;
  // Rank 0 serves the store and must stay alive until the other ranks have read their last reply.
  auto& store = *connection_->store;
  if (rank_ == 0) {
    store.wait({"all_gone"});
  } else if (store.add("gone", 1) == size_ - 1) {
    store.set("all_gone", kYes);
  }
}

const c10::intrusive_ptr<c10d::ProcessGroup>& Group::process_group() const {
  static const c10::intrusive_ptr<c10d::ProcessGroup> kNone;
  return connection_ ? connection_->group : kNone;
}

}  // namespace ddprun::trainer
