#include "rendezvous/client/connection.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/assert.hpp"
#include "net/connect.hpp"
#include "rendezvous/client/link.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/client/who_answers.hpp"

namespace ddprun::client {

namespace asio = boost::asio;

namespace {

// After this long without an answer to the hello, another connection asks what kind of server it
// is.
constexpr Duration kDoubtAfter = std::chrono::milliseconds(250);
static_assert(kDoubtAfter + 2 * kAskMax < std::chrono::seconds(1), "refused within a second");

/// Every function that calls the sink keeps itself alive meanwhile: the sink may end the link.
class TcpLink final : public CoordinatorLink,
                      public std::enable_shared_from_this<TcpLink>,
                      public LinkUser {
 public:
  TcpLink(const asio::any_io_executor& executor, const std::string& host, std::uint16_t port,
          Sink sink, LinkSecret secret)
      : executor_(executor),
        first_host_(host),
        host_(host),
        port_(port),
        aim_(host_and_port(host, port)),
        sink_(std::move(sink)),
        secret_(std::move(secret)),
        resolver_(std::make_unique<net::Resolver>(executor, host)),
        progress_(executor),
        doubt_(executor) {}

  void connect(LinkId link) override;
  void aim(const std::string& host, std::uint16_t port, const std::string& why) override;
  void send(LinkId link, const protocol::Message& message) override {
    if (link == current_ && link_ != nullptr) link_->send(message);
  }
  void close(LinkId link) override;
  asio::awaitable<void> flush() override { return flush(shared_from_this()); }
  void shut();

 private:
  static asio::awaitable<void> flush(std::shared_ptr<TcpLink> self);
  [[nodiscard]] bool is_where_it_was() const;
  void on_resolved(TimePoint deadline, Result<net::Addresses> addresses);
  void on_connected(Result<net::Connected> connected);
  [[nodiscard]] std::unique_ptr<net::TlsSession> begin_tls() const;
  enum class By { kPeer, kKernel };  // whether the peer's kernel refused to connect
  void down(const std::string& evidence, By by = By::kPeer);
  void heard(protocol::Message message) override;
  void lost(const std::string& evidence) override;
  void met_another_server(const std::string& sentence) override;
  void doubt_after(Duration silence);
  void ask_who_answers();
  void on_answer(const std::string& sentence);
  void cancel_doubt();
  void wrote(Link& link) override;
  [[nodiscard]] std::size_t unsent() const;
  void moved() {
    ++moves_;
    progress_.cancel();
  }

  const asio::any_io_executor executor_;
  const std::string first_host_;
  std::string host_;
  std::uint16_t port_;
  std::string aim_;                                         // host:port
  std::map<std::string, asio::ip::address> answered_at_{};  // by aim: where it did last
  net::Addresses tried_{};
  const Sink sink_;
  const LinkSecret secret_;
  std::unique_ptr<net::Resolver> resolver_;  // null: there is nowhere to go
  std::string nowhere_;                      // why
  std::shared_ptr<net::Connector> connector_;
  LinkId current_ = 0;  // the link that produces events; 0: none
  std::shared_ptr<Link> link_;
  std::vector<std::shared_ptr<Link>> closing_;  // still writing
  asio::steady_timer progress_;                 // a condition variable, for flush()
  std::uint64_t moves_ = 0;

  bool is_known_ = false;  // a coordinator has answered; from then on every peer is one
  boost::asio::ip::tcp::endpoint peer_;
  asio::steady_timer doubt_;
  std::shared_ptr<WhoAnswers> asking_;
  std::string held_;  // why the link ended, until the question is answered
};

void TcpLink::connect(LinkId link) {
  DDPRUN_ASSERT(link != 0);
  if (current_ != 0) close(current_);
  current_ = link;
  if (resolver_ == nullptr) {
    return asio::post(executor_, [weak = weak_from_this(), link] {
      const auto self = weak.lock();
      if (self != nullptr && self->current_ == link) self->down(self->nowhere_);
    });
  }
  const TimePoint deadline = Clock::now() + kAttemptMax;
  resolver_->start(deadline, [this, deadline](Result<net::Addresses> addresses) {
    const auto self = shared_from_this();
    on_resolved(deadline, std::move(addresses));
  });
}

void TcpLink::aim(const std::string& host, std::uint16_t port, const std::string& why) {
  const bool resolves = current_ != 0 && connector_ == nullptr && link_ == nullptr;
  if (resolves) {
    asio::post(executor_, [weak = weak_from_this(), link = current_] {
      const auto self = weak.lock();
      if (self != nullptr && self->current_ == link) self->down("the coordinator has moved");
    });
  }
  host_ = host;
  port_ = port;
  aim_ = host_and_port(host, port);
  nowhere_ = why;
  resolver_ = host.empty() ? nullptr : std::make_unique<net::Resolver>(executor_, host);
}

// A name may mean another host by now: its refusal says nothing of the process that answered.
bool TcpLink::is_where_it_was() const {
  const auto found = answered_at_.find(aim_);
  if (found == answered_at_.end()) return true;
  return std::find(tried_.begin(), tried_.end(), found->second) != tried_.end();
}

void TcpLink::on_resolved(TimePoint deadline, Result<net::Addresses> addresses) {
  if (!addresses) return down(addresses.error().sentence);
  tried_ = *addresses;
  connector_ =
      std::make_shared<net::Connector>(executor_, net::interleave_families(*addresses, port_),
                                       deadline, [this](Result<net::Connected> connected) {
                                         const auto self = shared_from_this();
                                         on_connected(std::move(connected));
                                       });
  connector_->start();
}

void TcpLink::on_connected(Result<net::Connected> connected) {
  const bool refused = connector_->was_refused();
  connector_.reset();
  if (!connected) {
    const bool by_its_kernel = refused && is_where_it_was();
    return down(connected.error().sentence, by_its_kernel ? By::kKernel : By::kPeer);
  }
  peer_ = connected->peer;
  auto tls = begin_tls();
  const auto link = std::make_shared<Link>(std::move(*connected), *this, std::move(tls));
  link_ = link;
  link->begin();
  sink_(LinkUp{current_, !is_where_it_was(), peer_.address().to_string()});
  if (link->is_closed()) return;
  doubt_after(kDoubtAfter);
  link->start();
}

std::unique_ptr<net::TlsSession> TcpLink::begin_tls() const {
  if (!secret_.tls) return nullptr;
  if (secret_.tls->has_secret()) return net::TlsSession::connecting(secret_.tls, secret_.run);
  const bool renamed = host_ == first_host_ && !secret_.host.empty();
  return net::TlsSession::connecting(secret_.tls, renamed ? secret_.host : host_);
}

// With a secret or certificates nothing is asked in clear, and no answer in clear would be
// believed.
void TcpLink::doubt_after(Duration silence) {
  if (is_known_ || secret_.tls) return;
  doubt_.expires_after(silence);
  doubt_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
    const auto self = weak.lock();
    if (!cancelled && self != nullptr) self->ask_who_answers();
  });
}

void TcpLink::ask_who_answers() {
  if (current_ == 0 || is_known_ || asking_ != nullptr) return;
  asking_ = std::make_shared<WhoAnswers>(executor_, peer_, [this](const std::string& sentence) {
    const auto self = shared_from_this();
    on_answer(sentence);
  });
  asking_->start();
}

// A refusal ends the agent, as if the server itself had said it.
void TcpLink::on_answer(const std::string& sentence) {
  asking_.reset();
  if (!sentence.empty()) {
    if (held_.empty()) held_ = sentence;
    using protocol::Refused;
    sink_(Incoming{current_, Refused{protocol::RefusalCode::kProtocol, sentence, {}}});
  }
  if (current_ != 0 && !held_.empty()) down(std::exchange(held_, {}));
}

void TcpLink::cancel_doubt() {
  doubt_.cancel();
  if (asking_) asking_->cancel();
  asking_.reset();
  held_.clear();
}

void TcpLink::down(const std::string& evidence, By by) {
  cancel_doubt();
  link_.reset();
  moved();
  sink_(LinkDown{std::exchange(current_, 0), evidence, by == By::kKernel});
}

void TcpLink::heard(protocol::Message message) {
  const auto self = shared_from_this();
  answered_at_.insert_or_assign(aim_, peer_.address());
  if (!std::exchange(is_known_, true)) cancel_doubt();
  sink_(Incoming{current_, std::move(message)});
}

void TcpLink::lost(const std::string& evidence) {
  const auto self = shared_from_this();
  if (is_known_ || secret_.tls) return down(evidence);
  link_.reset();
  held_ = evidence;
  doubt_.cancel();
  ask_who_answers();
}

void TcpLink::met_another_server(const std::string& sentence) {
  const auto self = shared_from_this();
  if (is_known_) return down(sentence);
  cancel_doubt();
  on_answer(sentence);
}

void TcpLink::wrote(Link& link) {
  moved();
  if (!link.is_closed()) return;
  std::erase_if(closing_, [&link](const auto& closing) { return closing.get() == &link; });
}

void TcpLink::close(LinkId link) {
  if (link != current_) return;
  current_ = 0;
  cancel_doubt();
  if (resolver_) resolver_->cancel();
  if (connector_) connector_->cancel();
  connector_.reset();
  const std::shared_ptr<Link> closing = std::move(link_);
  link_.reset();
  if (closing == nullptr) return;
  closing_.push_back(closing);
  closing->close();
}

void TcpLink::shut() {
  current_ = 0;
  cancel_doubt();
  if (resolver_) resolver_->cancel();
  if (connector_) connector_->cancel();
  if (link_) link_->leave();
  for (const auto& link : closing_) link->leave();
  closing_.clear();
  moved();
}

std::size_t TcpLink::unsent() const {
  std::size_t bytes = link_ ? link_->unsent() : 0;
  for (const auto& link : closing_) bytes += link->unsent();
  return bytes;
}

asio::awaitable<void> TcpLink::flush(std::shared_ptr<TcpLink> self) {
  const TimePoint hung = Clock::now() + kFlushMax;
  while (self->unsent() > 0 && Clock::now() < hung) {
    const std::uint64_t before = self->moves_;
    self->progress_.expires_at(std::min(hung, Clock::now() + kStallMax));
    co_await self->progress_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (self->moves_ == before) co_return;  // the time passed
  }
}

}  // namespace

std::shared_ptr<CoordinatorLink> make_tcp_link(asio::any_io_executor executor,
                                               const std::string& host, std::uint16_t port,
                                               CoordinatorLink::Sink sink, LinkSecret secret) {
  const auto link =
      std::make_shared<TcpLink>(executor, host, port, std::move(sink), std::move(secret));
  return {static_cast<CoordinatorLink*>(link.get()), [link](CoordinatorLink*) { link->shut(); }};
}

}  // namespace ddprun::client
