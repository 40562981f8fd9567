// EndpointCheck: whether other nodes can reach the coordinator of this process where they are told
// to. Nothing on this machine says which address is forwarded to it, so it connects there and
// compares a nonce. Thread rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "agent/config/launch_config.hpp"
#include "base/clock.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

inline constexpr Duration kCheckInterval = std::chrono::seconds(1);
/// A name may resolve only when its host is known to run; until then nothing is said.
inline constexpr Duration kCheckSilence = std::chrono::seconds(10);

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
  client::Connections link_;
  client::LinkId link_id_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace ddprun
