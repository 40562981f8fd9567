#include "net/connect.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "net/disk_thread.hpp"
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

struct Answer {
  std::atomic<bool> ready = false;  // publishes `result` to the io thread
  Result<Addresses> result = Addresses();
};

void answer(const std::string& name, const Lookup& how, Answer& out) {
  try {
    out.result = how(name);
  } catch (const std::exception& failure) {
    out.result = Error(ErrorKind::kSystem, "cannot resolve " + name + ": " + failure.what());
  }
  out.ready.store(true, std::memory_order_release);
}

/// Returns the read end of a pipe that hangs up when the result is available.
Result<int> start_thread(const std::string& name, const Lookup& how,
                         const std::shared_ptr<Answer>& out) {
  const auto fail = [&name](const char* why) {
    return Error(ErrorKind::kSystem, "cannot resolve " + name + ": " + why);
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(std::strerror(errno));
  const std::string why = start_detached([name, how, out, tell = ends[1]] {
    answer(name, how, *out);
    ::close(tell);
  });
  if (why.empty()) return ends[0];
  ::close(ends[0]);
  ::close(ends[1]);
  return fail(why.c_str());
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

std::optional<Addresses> addresses_without_lookup(const std::string& host) {
  if (host == "localhost") {
    return Addresses{asio::ip::address_v6::loopback(), asio::ip::address_v4::loopback()};
  }
  boost::system::error_code why;
  const auto literal = asio::ip::make_address(host, why);
  if (why) return std::nullopt;
  return Addresses{literal};
}

Result<Addresses> resolve_blocking(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (code != 0) {
    const char* why = code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code);
    return Error(ErrorKind::kSystem,
                 "host name " + name + " does not resolve on this node: " + why);
  }
  Addresses found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
      found.emplace_back(asio::ip::address_v4(ntohl(v4->sin_addr.s_addr)));
    } else if (entry->ai_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ai_addr);
      asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
      found.emplace_back(asio::ip::address_v6(bytes, v6->sin6_scope_id));
    }
  }
  ::freeaddrinfo(list);
  if (found.empty()) {
    return Error(ErrorKind::kSystem, "host name " + name + " has no IPv4 or IPv6 address");
  }
  return found;
}

class Resolver::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, std::string host, Lookup how)
      : host_(std::move(host)), how_(std::move(how)), hung_up_(executor), deadline_(executor) {}

  void start(TimePoint deadline, Done done) {
    cancel();
    done_ = std::move(done);
    if (auto known = addresses_without_lookup(host_)) return post(std::move(*known));
    if (answer_ == nullptr) {
      auto fresh = std::make_shared<Answer>();
      const auto started = start_thread(host_, how_, fresh);
      if (!started) return post(started.error());
      answer_ = std::move(fresh);
      hung_up_.assign(*started);
      await_answer();
    }
    deadline_.expires_at(deadline);
    deadline_.async_wait([self = shared_from_this(), turn = turn_](const auto& why) {
      if (why || turn != self->turn_) return;
      self->finish(Error(ErrorKind::kSystem, "resolving host name " + self->host_ +
                                                 " timed out; is the name service reachable?"));
    });
  }

  void cancel() {
    ++turn_;
    done_ = nullptr;
    deadline_.cancel();
  }

  /// Leaves a running thread behind; it ends with its lookup.
  void abandon() {
    cancel();
    answer_.reset();
    if (hung_up_.is_open()) hung_up_.close();
  }

 private:
  void post(Result<Addresses> result) {
    asio::post(deadline_.get_executor(),
               [self = shared_from_this(), turn = turn_, outcome = std::move(result)]() mutable {
                 if (turn == self->turn_) self->finish(std::move(outcome));
               });
  }

  void await_answer() {
    hung_up_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& why) {
                          if (!why && self->answer_ != nullptr) self->take_answer();
                        });
  }

  void take_answer() {
    pollfd thread{hung_up_.native_handle(), POLLIN, 0};
    if (::poll(&thread, 1, 0) == 0) return await_answer();  // as in Child::wait()
    const std::shared_ptr<Answer> answered = std::move(answer_);
    answer_.reset();
    hung_up_.close();
    const bool ready = answered->ready.load(std::memory_order_acquire);
    if (done_ && ready) finish(std::move(answered->result));
  }

  void finish(Result<Addresses> result) {
    const Done done = std::move(done_);
    cancel();
    if (done) done(std::move(result));
  }

  const std::string host_;
  const Lookup how_;
  std::shared_ptr<Answer> answer_;  // set while a lookup thread runs
  asio::posix::stream_descriptor hung_up_;
  asio::steady_timer deadline_;
  Done done_;
  std::uint64_t turn_ = 0;
};

Resolver::Resolver(asio::any_io_executor executor, std::string host, Lookup how)
    : impl_(std::make_shared<Impl>(executor, std::move(host), std::move(how))) {}

Resolver::~Resolver() {
  impl_->abandon();
}

void Resolver::start(TimePoint deadline, Done done) {
  impl_->start(deadline, std::move(done));
}

void Resolver::cancel() {
  impl_->cancel();
}

}  // namespace ddprun::net
