#include "net/connect.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cctype>
#include <utility>

#include "base/assert.hpp"
#include "net/listen.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

void prepare(tcp::socket& socket, error_code& why) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  socket.non_blocking(true, why);
  if (!why) socket.set_option(tcp::no_delay(true), why);
}

}  // namespace

std::vector<tcp::endpoint> interleave_families(const Addresses& addresses, std::uint16_t port) {
  std::vector<tcp::endpoint> first;
  std::vector<tcp::endpoint> second;
  for (const auto& address : addresses) {
    const bool same_family = address.is_v6() == addresses.front().is_v6();
    (same_family ? first : second).emplace_back(address, port);
  }
  std::vector<tcp::endpoint> all;
  for (std::size_t at = 0; at < std::max(first.size(), second.size()); ++at) {
    if (at < first.size()) all.push_back(first[at]);
    if (at < second.size()) all.push_back(second[at]);
  }
  if (all.size() > kConnectCandidatesMax) all.resize(kConnectCandidatesMax);
  return all;
}

std::string evidence(const std::string& peer, const error_code& why) {
  std::string cause = why.message();
  if (!cause.empty()) {
    cause[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(cause[0])));
  }
  return peer + ": " + cause;
}

bool is_self_connection(const tcp::socket& socket, const tcp::endpoint& peer) {
  error_code why;
  const auto here = socket.local_endpoint(why);
  return !why && here == peer;
}

Connector::Connector(asio::any_io_executor executor, std::vector<tcp::endpoint> candidates,
                     TimePoint deadline, Done done)
    : stagger_(executor), deadline_(executor, deadline), done_(std::move(done)) {
  DDPRUN_ASSERT(!candidates.empty());
  for (const auto& where : candidates) attempts_.emplace_back(executor, where);
}

void Connector::start() {
  deadline_.async_wait([self = shared_from_this()](const error_code& why) {
    if (!why) self->on_deadline();
  });
  asio::post(stagger_.get_executor(), [self = shared_from_this()] { self->start_next(); });
}

void Connector::cancel() {
  done_ = nullptr;
  stagger_.cancel();
  deadline_.cancel();
  for (Attempt& attempt : attempts_) {
    error_code ignored;  // nothing to do if closing fails
    attempt.socket.close(ignored);
  }
}

void Connector::start_next() {
  if (!done_ || started_ == attempts_.size()) return;
  Attempt& attempt = attempts_[started_++];
  ++running_;
  error_code why;
  attempt.socket.open(attempt.where.protocol(), why);
  if (!why) prepare(attempt.socket, why);
  if (why) return fail(attempt, evidence(to_text(attempt.where), why));
  attempt.socket.async_connect(attempt.where, [self = shared_from_this(), &attempt](error_code ec) {
    self->on_connected(attempt, ec);
  });
  if (started_ == attempts_.size()) return;
  stagger_.expires_after(kConnectStagger);
  stagger_.async_wait([self = shared_from_this()](const error_code& ec) {
    if (!ec) self->start_next();
  });
}

void Connector::on_connected(Attempt& attempt, error_code why) {
  if (!done_) return;
  if (why == asio::error::connection_refused) ++refused_;
  if (why) return fail(attempt, evidence(to_text(attempt.where), why));
  if (is_self_connection(attempt.socket, attempt.where)) {
    ++refused_;
    attempt.socket.set_option(asio::socket_base::linger(true, 0), why);  // leaves no TIME_WAIT
    return fail(attempt, to_text(attempt.where) +
                             ": no server listens on this port (the socket connected to itself)");
  }
  finish(Connected{std::move(attempt.socket), attempt.where});
}

void Connector::fail(Attempt& attempt, const std::string& sentence) {
  error_code ignored;  // the sentence already states the cause
  attempt.socket.close(ignored);
  failures_ += (failures_.empty() ? "" : "; ") + sentence;
  --running_;
  if (started_ < attempts_.size()) return start_next();
  if (running_ == 0) finish(Error(ErrorKind::kSystem, failures_));
}

void Connector::on_deadline() {
  if (!done_) return;
  for (Attempt& attempt : attempts_) {
    if (!attempt.socket.is_open()) continue;
    // The elapsed time is left out so that repeated failures produce the same sentence, which is
    // logged once.
    failures_ += (failures_.empty() ? "" : "; ") + to_text(attempt.where) + ": no answer";
  }
  finish(Error(ErrorKind::kSystem, failures_));
}

void Connector::finish(Result<Connected> result) {
  const Done done = std::move(done_);
  cancel();
  if (done) done(std::move(result));
}

}  // namespace ddprun::net
