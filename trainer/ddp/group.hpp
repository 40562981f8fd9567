// The ranks of one round: the c10d process group (Gloo for CPU tensors; for CUDA tensors NCCL, or
// Gloo if ranks share a device) and the store client used for its rendezvous. A group of one rank
// has neither, and every call is a no-op. One thread. A failed collective throws c10::Error; after
// that the group can only be destroyed.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/program/route.hpp"

namespace c10d {
class ProcessGroup;
}

namespace ddprun::trainer {

enum class StoreRole { kConnect, kServe };  ///< kServe: rank 0 of a run without a launcher's store
enum class DeviceCollectives { kGloo, kNccl };

struct GroupOptions {
  int rank = 0;
  int size = 1;
  Peer store;  ///< MASTER_ADDR and MASTER_PORT
  StoreRole store_role = StoreRole::kConnect;
  std::string key_prefix;  ///< unique per round
  at::Device device = at::kCPU;
  DeviceCollectives device_collectives = DeviceCollectives::kGloo;
  std::chrono::milliseconds timeout{};  ///< of every collective and of the connection
  /// Whether the round is over, so that its store may be gone. Empty: it never is.
  std::function<bool()> outdated{};
};

class Group {
 public:
  /// Blocks until all ranks are connected. Throws LostPeer, after the timeout at the latest.
  explicit Group(const GroupOptions& options);
  /// Shuts down the backends, then the store client.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// In place, over all ranks.
  void sum(at::Tensor& tensor);
  void minimum(at::Tensor& tensor);
  /// Sends row r of `rows` [size, ...] to rank r, and receives from rank r what fills a flat tensor
  /// of `lengths[r]` elements; in rank order.
  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& rows,
                                                 std::vector<std::int64_t> lengths);
  /// The flat tensors of all ranks, equally long, one after the other.
  [[nodiscard]] at::Tensor gather(const at::Tensor& own);
  /// In place, in few large messages: sets every tensor to that of rank `from`.
  void broadcast(const std::vector<at::Tensor>& tensors, int from = 0);
  /// A barrier over the store: afterwards no rank reads from a peer's socket, so that all may close
  /// theirs and exit.
  void leave_together();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool alone() const { return size_ == 1; }
  /// For the reducer; null in a group of one rank.
  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;

 private:
  struct Connection;
  /// A barrier over the store.
  void meet_in(const std::string& key);
  int rank_;
  int size_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace ddprun::trainer
