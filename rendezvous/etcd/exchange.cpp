#include "rendezvous/etcd/exchange.hpp"

#include <netinet/tcp.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/address.hpp"
#include "net/connect.hpp"
#include "net/listen.hpp"

namespace ddprun::etcd {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Of an answer, or of a line of one that does not end.
constexpr std::size_t kBodyBytesMax = 256 * 1024;
constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr const char* kAdvice =
    "; see protocol, cacert, cert and key of --rdzv-conf, and the servers' certificates";

/// A server that vanishes is noticed within 10 s on a connection that only waits.
void keep_alive(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using Seconds = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Every = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Times = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  socket.set_option(Seconds(4), ignored);
  socket.set_option(Every(2), ignored);
  socket.set_option(Times(3), ignored);
}

}  // namespace

class Exchange::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, Request request, Done done)
      : executor_(executor),
        asked_(std::move(request)),
        done_(std::move(done)),
        resolver_(executor, asked_.where.host),
        deadline_(executor) {}

  void start() {
    resolver_.start(asked_.deadline, [this](Result<net::Addresses> addresses) {
      const auto self = shared_from_this();
      on_resolved(std::move(addresses));
    });
  }

  void cancel() {
    done_ = nullptr;
    close();
  }

 private:
  void on_resolved(Result<net::Addresses> addresses) {
    if (!addresses) return fail(addresses.error().sentence);
    connector_ = std::make_shared<net::Connector>(
        executor_, net::interleave_families(*addresses, asked_.where.port), asked_.deadline,
        [weak = weak_from_this()](Result<net::Connected> connected) {
          if (const auto self = weak.lock()) self->on_connected(std::move(connected));
        });
    connector_->start();
  }

  void on_connected(Result<net::Connected> connected) {
    connector_.reset();
    if (!connected) return fail(connected.error().sentence);
    answer_.connected = answer_.silent = true;
    peer_ = net::to_text(connected->peer);
    socket_.emplace(std::move(connected->socket));
    error_code ignored;
    answer_.own_address = socket_->local_endpoint(ignored).address().to_string();
    if (asked_.line) keep_alive(*socket_);
    deadline_.expires_at(asked_.deadline);
    deadline_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (cancelled) return;
      self->answer_.silent = false;
      self->fail(self->peer_ + ": no answer in time");
    });
    if (asked_.tls) tls_ = net::TlsSession::connecting(asked_.tls, asked_.where.host);
    prepare();
    if (tls_) {
      send(tls_->take_output());
    } else {
      send(std::exchange(request_, {}));
    }
    read();
  }

  void prepare() {
    http::request<http::string_body> request(http::verb::post, asked_.path, 11);
    request.set(http::field::host, host_and_port(asked_.where.host, asked_.where.port));
    request.set(http::field::content_type, "application/json");
    request.keep_alive(false);
    if (!asked_.token.empty()) request.set(http::field::authorization, asked_.token);
    request.body() = asked_.body;
    request.prepare_payload();
    std::ostringstream text;
    text << request;
    request_ = text.str();
    // Else a chunk that has come is not seen before the next one begins.
    parser_.eager(!asked_.line);
    if (asked_.line) {
      parser_.body_limit(boost::none);  // each line has its limit
    } else {
      parser_.body_limit(kBodyBytesMax);
    }
  }

  void send(std::string_view bytes) {
    unsent_.append(bytes);
    if (!writing_.empty() || unsent_.empty()) return;
    writing_.swap(unsent_);
    asio::async_write(*socket_, asio::buffer(writing_),
                      [self = shared_from_this()](const error_code& why, std::size_t) {
                        self->writing_.clear();
                        if (!self->done_) return;
                        if (why) return self->fail(net::evidence(self->peer_, why));
                        self->send({});
                      });
  }

  void read() {
    socket_->async_read_some(asio::buffer(piece_),
                             [self = shared_from_this()](const error_code& why, std::size_t size) {
                               if (self->done_) self->on_read(why, size);
                             });
  }

  void on_read(const error_code& why, std::size_t size) {
    answer_.silent = answer_.silent && size == 0;
    if (why == asio::error::eof) return end();
    if (why) return fail(net::evidence(peer_, why));
    const std::string_view bytes(piece_.data(), size);
    if (tls_) return open(bytes);
    if (parse(bytes)) read();
  }

  void open(std::string_view sealed) {
    std::string plain;
    const auto opened = tls_->receive(sealed, plain);
    const bool ended = tls_->has_ended();
    if (!opened && !ended) {
      answer_.distrusted = !tls_->is_accepted();
      send_alert();
      return fail(peer_ + ": " + opened.error().sentence + (answer_.distrusted ? kAdvice : ""));
    }
    send(tls_->take_output());
    if (tls_->is_established() && !request_.empty() && !ended) {
      send(tls_->seal(std::exchange(request_, {})));
    }
    if (!parse(plain)) return;
    if (ended) return end();
    read();
  }

  /// Why it is refused, for the server's log.
  void send_alert() {
    error_code ignored;
    socket_->write_some(asio::buffer(tls_->take_output()), ignored);
  }

  /// No more bytes follow.
  void end() {
    error_code why;
    if (parser_.got_some() && (!tls_ || tls_->has_ended())) parser_.put_eof(why);
    if (!why && parser_.is_done()) return complete();
    fail(peer_ + ": it closed the connection");
  }

  /// False: nothing more is to be read.
  bool parse(std::string_view bytes) {
    const auto room = buffer_.prepare(bytes.size());
    buffer_.commit(asio::buffer_copy(room, asio::buffer(bytes.data(), bytes.size())));
    while (!parser_.is_done() && buffer_.size() > 0) {
      error_code why;
      buffer_.consume(parser_.put(buffer_.data(), why));
      if (asked_.line && parser_.is_header_done()) {
        deadline_.cancel();
        if (parser_.get().result_int() == 200 && !pass_lines()) return false;
      }
      if (why == http::error::need_more) return true;
      if (why) {
        fail(net::evidence(peer_, why));
        return false;
      }
    }
    if (!parser_.is_done()) return true;
    complete();
    return false;
  }

  void complete() {
    answer_.answered = true;
    answer_.status = static_cast<int>(parser_.get().result_int());
    answer_.body = std::move(parser_.get().body());
    finish();
  }

  /// False: this was cancelled meanwhile, or has failed.
  bool pass_lines() {
    std::string& body = parser_.get().body();
    while (true) {
      const auto end = body.find('\n');
      if (end == std::string::npos) break;
      const std::string line = body.substr(0, end);
      body.erase(0, end + 1);
      asked_.line(line);
      if (!done_) return false;
    }
    if (body.size() <= kBodyBytesMax) return true;
    fail(peer_ + ": a line of its answer is too long");
    return false;
  }

  void fail(const std::string& sentence) {
    answer_.failure = sentence;
    finish();
  }

  void finish() {
    close();
    if (const Done done = std::exchange(done_, nullptr)) done(std::move(answer_));
  }

  void close() {
    resolver_.cancel();
    if (connector_) connector_->cancel();
    connector_.reset();
    deadline_.cancel();
    error_code ignored;
    if (socket_) socket_->close(ignored);
  }

  asio::any_io_executor executor_;
  Request asked_;
  Done done_;
  net::Resolver resolver_;
  std::shared_ptr<net::Connector> connector_;
  asio::steady_timer deadline_;
  std::optional<tcp::socket> socket_;
  std::string peer_;
  HttpAnswer answer_;
  std::unique_ptr<net::TlsSession> tls_;  // null: plain HTTP
  std::string request_;                   // until it is sent
  std::string unsent_;
  std::string writing_;
  std::array<char, kPieceBytes> piece_{};
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

Exchange::Exchange(asio::any_io_executor executor, Request request, Done done)
    : impl_(std::make_shared<Impl>(executor, std::move(request), std::move(done))) {}

Exchange::~Exchange() {
  impl_->cancel();
}

void Exchange::start() {
  impl_->start();
}

void Exchange::cancel() {
  impl_->cancel();
}

}  // namespace ddprun::etcd
