#include "rendezvous/etcd/client.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/address.hpp"

namespace ddprun::etcd {

namespace asio = boost::asio;

namespace {

// gRPC's codes, as far as they mean something else than "ask another server".
constexpr int kInvalidArgument = 3;
constexpr int kNotFound = 5;
constexpr int kPermissionDenied = 7;
constexpr int kFailedPrecondition = 9;
constexpr int kUnauthenticated = 16;

// A server that does not answer within this part of the time is given up for the next.
constexpr Duration kAttemptMin = std::chrono::milliseconds(300);

bool is_stale_token(const Refusal& refusal) {
  return refusal.code == kUnauthenticated ||
         refusal.text.find("revision of auth store is old") != std::string::npos;
}

bool is_final(const Refusal& refusal) {
  return refusal.code == kInvalidArgument || refusal.code == kPermissionDenied ||
         refusal.code == kFailedPrecondition || refusal.code == kUnauthenticated;
}

}  // namespace

class Client::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::any_io_executor executor, ClientOptions options)
      : executor_(std::move(executor)),
        options_(std::move(options)),
        current_(options_.first % options_.endpoints.size()) {}

  struct Call {
    std::string path;
    std::string body;
    TimePoint deadline;
    Done done;
    std::size_t tried = 0;       // servers
    std::size_t distrusted = 0;  // of them
    bool renewed = false;        // the token, once
    Reply failure{};
  };

  void call(Call call) {
    const std::uint64_t id = ++last_id_;
    calls_.emplace(id, std::move(call));
    ask(id);
  }

  void watch(const std::string& body, Duration within, std::function<void(std::string_view)> line,
             std::function<void(std::string)> ended) {
    watch_.reset();
    ended_ = std::move(ended);
    Exchange::Request request{endpoint(),   "/v3/watch",    body, token_, Clock::now() + within,
                              options_.tls, std::move(line)};
    watch_ = std::make_unique<Exchange>(executor_, std::move(request),
                                        [weak = weak_from_this()](const HttpAnswer& answer) {
                                          const auto self = weak.lock();
                                          if (self) self->end_watch(answer);
                                        });
    watch_->start();
  }

  void close() {
    calls_.clear();
    exchanges_.clear();
    watch_.reset();
    ended_ = nullptr;
  }

  [[nodiscard]] const std::string& own_address() const { return own_address_; }

 private:
  [[nodiscard]] const Endpoint& endpoint() const { return options_.endpoints[current_]; }

  void end_watch(const HttpAnswer& answer) {
    std::string why = answer.failure;
    if (answer.answered) {
      const auto refusal = read_refusal(answer.body);
      why = refusal ? refusal->text : "it ended";
      if (refusal && is_stale_token(*refusal)) token_.clear();
    } else if (!answer.connected) {
      current_ = (current_ + 1) % options_.endpoints.size();
    }
    if (const auto ended = std::exchange(ended_, nullptr)) ended(std::move(why));
  }

  void ask(std::uint64_t id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    Call& call = found->second;
    const bool logs_in = !options_.user.empty() && token_.empty();
    const auto attempt = std::max<Duration>(
        kAttemptMin, (call.deadline - Clock::now()) / static_cast<int>(options_.endpoints.size()));
    Exchange::Request request{
        endpoint(),
        logs_in ? "/v3/auth/authenticate" : call.path,
        logs_in ? authenticate_body(options_.user, options_.password) : call.body,
        token_,
        std::min(call.deadline, Clock::now() + attempt),
        options_.tls};
    const std::size_t asked = current_;
    auto exchange = std::make_unique<Exchange>(
        executor_, std::move(request),
        [weak = weak_from_this(), id, asked, logs_in](HttpAnswer answer) {
          if (const auto self = weak.lock()) self->on_answer(id, asked, logs_in, std::move(answer));
        });
    Exchange& started = *exchange;
    exchanges_.insert_or_assign(id, std::move(exchange));
    started.start();
  }

  void on_answer(std::uint64_t id, std::size_t asked, bool logs_in, HttpAnswer answer) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    Call& call = found->second;
    if (answer.connected) {
      own_address_ = answer.own_address;
      call.failure.reach = Reach::kServer;
    }
    call.distrusted += answer.distrusted ? 1 : 0;
    if (!answer.answered) return next(id, asked, answer.failure + hint(answer));
    ever_answered_ = true;
    const Endpoint& where = options_.endpoints[asked];
    const std::string name = host_and_port(where.host, where.port) + ": ";
    if (answer.status == 200) {
      if (!logs_in) return finish(id, Reply{true, std::move(answer.body), "", Reach::kServer});
      token_ = read_token(answer.body);
      if (token_.empty()) return next(id, asked, name + "it is not an etcd server");
      return ask(id);
    }
    const auto refusal = read_refusal(answer.body);
    if (!refusal) {
      return next(id, asked,
                  name + "no gateway of etcd's v3 API (HTTP " + std::to_string(answer.status) +
                      "); etcd 3.4 or newer is needed, and protocol=https if it speaks TLS");
    }
    if (!logs_in && !token_.empty() && is_stale_token(*refusal) && !call.renewed) {
      call.renewed = true;
      token_.clear();
      return ask(id);
    }
    if (refusal->code == kNotFound) {  // of a lease: it has expired
      return finish(id, Reply{false, "", name + refusal->text, Reach::kServer});
    }
    if (!is_final(*refusal)) return next(id, asked, name + refusal->text);
    Reply reply{false, "", name + refusal->text, Reach::kServer};
    reply.refused = true;
    finish(id, std::move(reply));
  }

  /// What a server does that expects TLS, or does not.
  [[nodiscard]] std::string hint(const HttpAnswer& answer) const {
    if (!answer.silent || ever_answered_) return "";
    return options_.tls ? "; if it does not speak TLS, pass --rdzv-conf protocol=http"
                        : "; if it speaks TLS, pass --rdzv-conf protocol=https";
  }

  /// The next server, if there is one and time for it.
  void next(std::uint64_t id, std::size_t asked, const std::string& why) {
    Call& call = calls_.at(id);
    if (current_ == asked) current_ = (current_ + 1) % options_.endpoints.size();
    call.failure.failure += (call.failure.failure.empty() ? "" : "; ") + why;
    ++call.tried;
    if (call.tried < options_.endpoints.size() && Clock::now() < call.deadline) return ask(id);
    Reply reply = std::move(call.failure);
    reply.refused = call.distrusted == call.tried;
    finish(id, std::move(reply));
  }

  void finish(std::uint64_t id, Reply reply) {
    const Done done = std::move(calls_.at(id).done);
    calls_.erase(id);
    exchanges_.erase(id);
    done(std::move(reply));
  }

  asio::any_io_executor executor_;
  ClientOptions options_;
  std::size_t current_;  // the server that is asked
  std::string token_;
  std::string own_address_;
  bool ever_answered_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, std::unique_ptr<Exchange>> exchanges_;
  std::unique_ptr<Exchange> watch_;
  std::function<void(std::string)> ended_;
};

Client::Client(asio::any_io_executor executor, ClientOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(options))) {}

Client::~Client() {
  impl_->close();
}

void Client::call(const std::string& path, std::string body, Duration within, Done done) {
  impl_->call({path, std::move(body), Clock::now() + within, std::move(done)});
}

void Client::watch(std::string body, Duration within, std::function<void(std::string_view)> line,
                   std::function<void(std::string)> ended) {
  impl_->watch(body, within, std::move(line), std::move(ended));
}

const std::string& Client::own_address() const {
  return impl_->own_address();
}

}  // namespace ddprun::etcd
