#include "agent/node_store.hpp"

#include <utility>

#include "base/assert.hpp"

namespace ddprun {

NodeStore::NodeStore(boost::asio::any_io_executor executor, const LaunchConfig& config,
                     Companion* companion, std::shared_ptr<spdlog::logger> log)
    : executor_(std::move(executor)),
      config_(config),
      companion_(companion),
      log_(std::move(log)) {}

bool NodeStore::fixed() const {
  return config_.rendezvous && config_.rendezvous->master == MasterChoice::kFixed;
}

Result<std::uint16_t> NodeStore::open_next() {
  if (fixed()) return config_.master_port;
  auto store = RoundStore::listen(executor_, config_, 0, log_);
  if (!store) return store.error();
  next_.emplace(std::move(*store));
  return next_->port();
}

Result<void> NodeStore::serve() {
  if (fixed()) {
    close();
    used_ = true;
    return {};
  }
  DDPRUN_ASSERT(next_.has_value());
  current_ = std::exchange(next_, std::nullopt);
  return current_->serve();
}

void NodeStore::close() {
  if (current_) current_->close();
  current_.reset();
  // Only what a round has used: a worker of another node may be faster than this node's agent, and
  // must not be thrown out of a store that is empty anyway.
  if (std::exchange(used_, false) && companion_ != nullptr) companion_->begin_fresh_store();
}

}  // namespace ddprun
