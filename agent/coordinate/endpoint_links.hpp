// The links of a coordinator in this process to where other nodes look for it. EndpointCheck finds
// out whether they can reach it there; EndpointNotice tells another coordinator of the run that it
// is not the one. Thread rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/config/launch_config.hpp"
#include "base/clock.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

/// How the links of a run of several nodes are sealed. run_agent() has made sure that the secret,
/// or the certificates, can be used.
[[nodiscard]] inline client::LinkSecret link_secret_of(const LaunchConfig& config) {
  const RendezvousConfig& rendezvous = *config.rendezvous;
  return {net::make_link_tls(rendezvous.secret, rendezvous.certificates).value(),
          config.run_id.value(), rendezvous.given_host};
}

inline constexpr Duration kCheckInterval = std::chrono::seconds(1);
/// A name may resolve only when its host is known to run; until then nothing is said.
inline constexpr Duration kCheckSilence = std::chrono::seconds(10);

/// Whether other nodes can reach the coordinator of this process where they are told to. Nothing on
/// this machine says which address is forwarded to it, so it connects there and compares a nonce.
class EndpointCheck {
 public:
  /// Both may destroy this object. `other`: another coordinator of the run answers there; it is
  /// asked again if this object lives on. `unanswered`: none has, with the evidence of the last
  /// attempt.
  struct Tells {
    std::function<void(const protocol::Probe& answer)> other;
    std::function<void(const std::string& evidence)> unanswered;
  };
  /// `own`: the nonce of the coordinator of this process. `silence`: see Tells.
  EndpointCheck(const boost::asio::any_io_executor& executor, client::LinkSecret secret,
                const CoordinatorAddress& where, std::string own, Duration silence, Tells tells);

 private:
  void on(const client::Event& event);
  void answered(const protocol::Message& message);
  void attempt();
  void again(const std::string& evidence);
  void ask_later();

  const std::string nonce_;
  const std::string run_;
  const Duration silence_;
  const Tells tells_;
  const TimePoint began_ = Clock::now();
  boost::asio::steady_timer timer_;
  std::shared_ptr<client::CoordinatorLink> link_;
  client::LinkId link_id_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

// There is no other way to notice that a server listens there again.
inline constexpr Duration kNoticeInterval = std::chrono::milliseconds(500);
/// A notice on a link that stays open, by which a host that is gone is noticed.
inline constexpr Duration kReminderInterval = std::chrono::seconds(2);
/// A host that answers none of so many notices is not the one that it was: one that loses its power
/// closes no connection.
inline constexpr int kUnansweredMax = 4;

/// While this process coordinates the run, it tells so to whatever coordinator of the run is there
/// again, or still: where the run's endpoint is, or where the run was coordinated before. That one
/// then sends its agents here (docs/FAILOVER.md).
class EndpointNotice {
 public:
  /// It returns what this coordinator tells; none: nothing now.
  using Says = std::function<std::optional<protocol::Lead>()>;
  /// Another coordinator of the run is there. Not called from inside a call here.
  using Hears = std::function<void(const protocol::Moved&)>;
  /// Its link is down, or says nothing, and no other one follows. Not called from inside a call
  /// here.
  using Ends = std::function<void()>;
  /// Without `ends` it connects again for ever.
  EndpointNotice(boost::asio::any_io_executor executor, const LaunchConfig& config,
                 CoordinatorAddress where, Says says, Hears hears = {}, Ends ends = {});

  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  void on(const client::Event& event);
  void attempt();
  void tell();
  void again();
  void end();

  Says says_;
  Hears hears_;
  Ends ends_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<client::CoordinatorLink> link_;
  client::LinkId link_id_ = 0;
  bool is_up_ = false;
  bool has_ended_ = false;
  int unanswered_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace ddprun
