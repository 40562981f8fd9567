// StoreDoor: the store of the coordinator's port. Clients reach that of the live round; with a
// fixed master port this one is found where that of the round before was, and a worker that has not
// ended yet must not get a key of the wrong round. So StoreGate says which clients have to wait: a
// node tells when none of its workers is left. Thread rule: one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/coordinator/links.hpp"
#include "rendezvous/round/run.hpp"
#include "rendezvous/store/server.hpp"

namespace ddprun::coordinator {

/// Pure.
class StoreGate {
 public:
  enum class Answer {
    kWelcome,
    kWaits,   // its node is not known, or others have its address: it may be of either round
    kIsLate,  // unless its node's word is still on its way
  };

  /// From now on the store is that of a round after `ended`.
  void begin(Round ended, const std::vector<round::LeftOnNode>& nodes);
  /// Asks again about each node that may have workers of the ended round. Whether one has none now.
  [[nodiscard]] bool look(const round::Run& run);

  [[nodiscard]] bool is_open() const { return waits_for_.empty(); }
  [[nodiscard]] Round ended() const { return ended_; }
  /// The hosts of the nodes that it waits for, for people; of many, some.
  [[nodiscard]] std::string awaited() const;
  [[nodiscard]] Answer of(const std::string& address) const;

 private:
  struct Nodes {
    int all = 0;
    int left = 0;
  };
  Round ended_{0};
  std::vector<round::LeftOnNode> waits_for_;
  std::map<std::string, Nodes> by_address_;
};

class StoreDoor {
 public:
  /// `options` and `links` outlive it.
  StoreDoor(boost::asio::any_io_executor executor, const ServerOptions& options, Links& links)
      : executor_(std::move(executor)), options_(options), links_(links) {}

  [[nodiscard]] Result<void> start();
  void close();
  /// See Server::begin_fresh_store(). `nodes`: where workers of the ended round may be left.
  [[nodiscard]] Result<void> begin_fresh(Round ended, const std::vector<round::LeftOnNode>& nodes,
                                         std::function<void()> idle);
  void close_store(Round ended) { ended_.erase(ended); }
  /// That of the live round; null before start().
  [[nodiscard]] store::Server* live() const { return live_.get(); }

  /// A client has come; Link::held has its first bytes.
  void enter(Link& link);
  [[nodiscard]] bool is_open() const { return gate_.is_open(); }
  /// A node of this run has said something. Whether pass() lets more clients in.
  [[nodiscard]] bool look(const round::Run& run) { return gate_.look(run); }
  /// Lets clients in that can be of the new round alone.
  void pass();
  /// When those that wait are looked at again, by look_again(): what they have sent is to be read
  /// first.
  [[nodiscard]] std::optional<TimePoint> deadline() const { return look_at_; }
  void look_again();

 private:
  [[nodiscard]] Result<void> open();
  void adopt(Link& link);
  void tell_who_is_waited_for();

  boost::asio::any_io_executor executor_;
  const ServerOptions& options_;
  Links& links_;
  std::unique_ptr<store::Server> live_;
  std::map<Round, std::unique_ptr<store::Server>> ended_;  // which still have clients
  StoreGate gate_;
  std::vector<std::pair<TimePoint, std::uint64_t>> waiting_;  // links, in order of arrival
  std::optional<TimePoint> look_at_;                          // set while there are any
  bool told_ = false;
};

}  // namespace ddprun::coordinator
