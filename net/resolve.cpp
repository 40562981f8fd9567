#include "net/resolve.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace ddprun::net {

namespace asio = boost::asio;

namespace {

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
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the io thread handles signals
  Result<int> hung_up = ends[0];
  try {
    std::thread([name, how, out, tell = ends[1]] {
      answer(name, how, *out);
      ::close(tell);
    }).detach();
  } catch (const std::system_error& why) {
    ::close(ends[0]);
    ::close(ends[1]);
    hung_up = fail(why.what());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return hung_up;
}

}  // namespace

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
