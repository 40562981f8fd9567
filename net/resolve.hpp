// Resolves a host name without blocking the io_context's thread. Literals and `localhost` need no
// lookup. For any other name a detached thread runs getaddrinfo; it accesses only its own result
// and the pipe that signals completion, and ends with the lookup, so a hanging name service does
// not delay the exit of the process: Asio's async_resolve joins its thread in the destructor of the
// io_context, and getaddrinfo_a cannot be cancelled. Thread rule: the io_context's thread. `done`
// is never called from inside start(), nor after cancel() or destruction.
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
/// May block; called on a dedicated thread.
using Lookup = std::function<Result<Addresses>(const std::string& name)>;

/// The addresses of a literal (IPv6 without brackets) or of `localhost`; nullopt for a name.
[[nodiscard]] std::optional<Addresses> addresses_without_lookup(const std::string& host);

/// Calls getaddrinfo and keeps its order. Errors state the name and the system's error.
[[nodiscard]] Result<Addresses> resolve_blocking(const std::string& name);

class Resolver {
 public:
  using Done = std::function<void(Result<Addresses>)>;

  Resolver(boost::asio::any_io_executor executor, std::string host, Lookup how = resolve_blocking);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Starts a lookup and replaces an earlier one. Joins a lookup that is still running, so there is
  /// at most one thread. Fails when `deadline` passes.
  void start(TimePoint deadline, Done done);
  void cancel();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::net
