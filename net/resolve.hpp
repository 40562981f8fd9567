// Turns a host into addresses without blocking the io_context's thread. Literals and `localhost`
// need no look-up. For any other name one detached thread runs getaddrinfo, touches nothing but its
// own answer and the pipe that tells of it, and lives no longer than the look-up: a name service
// that hangs delays nobody's exit. Thread rule: the io_context's thread. `done` is never called
// from inside start(), nor after cancel() or the destructor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun::net {

using Addresses = std::vector<boost::asio::ip::address>;
/// Blocks; called on a thread of its own.
using LookUp = std::function<Result<Addresses>(const std::string& name)>;

/// Of a literal (v6 without brackets) or of `localhost`; nothing for a name.
[[nodiscard]] std::optional<Addresses> addresses_without_look_up(const std::string& host);

/// getaddrinfo, in the order of the system. Fails with the name and the system's cause.
[[nodiscard]] Result<Addresses> look_up(const std::string& name);

class Resolver {
 public:
  using Done = std::function<void(Result<Addresses>)>;

  Resolver(boost::asio::any_io_executor executor, std::string host, LookUp how = look_up);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Asks anew, in place of what was started before; a look-up that still runs is waited for, so
  /// there is never more than one thread. Fails when `deadline` passes.
  void start(TimePoint deadline, Done done);
  void cancel();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::net
