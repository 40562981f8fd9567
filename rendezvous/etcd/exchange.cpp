#include "rendezvous/etcd/exchange.hpp"

#include <netinet/tcp.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <utility>

#include "base/address.hpp"
#include "net/connect.hpp"
#include "net/listen.hpp"
#include "net/resolve.hpp"

namespace ddprun::etcd {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Of an answer, or of a line of one that does not end.
constexpr std::size_t kBodyBytesMax = 256 * 1024;

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
    answer_.connected = true;
    peer_ = net::to_text(connected->peer);
    socket_.emplace(std::move(connected->socket));
    error_code ignored;
    answer_.own_address = socket_->local_endpoint(ignored).address().to_string();
    if (asked_.line) keep_alive(*socket_);
    deadline_.expires_at(asked_.deadline);
    deadline_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled) self->fail(self->peer_ + ": no answer in time");
    });
    write();
  }

  void write() {
    request_.method(http::verb::post);
    request_.version(11);
    request_.target(asked_.path);
    request_.set(http::field::host, host_and_port(asked_.where.host, asked_.where.port));
    request_.set(http::field::content_type, "application/json");
    request_.keep_alive(false);
    if (!asked_.token.empty()) request_.set(http::field::authorization, asked_.token);
    request_.body() = asked_.body;
    request_.prepare_payload();
    // Else a chunk that has come is not seen before the next one begins.
    parser_.eager(!asked_.line);
    if (asked_.line) {
      parser_.body_limit(boost::none);  // each line has its limit
    } else {
      parser_.body_limit(kBodyBytesMax);
    }
    http::async_write(*socket_, request_,
                      [self = shared_from_this()](const error_code& why, std::size_t) {
                        if (why) return self->fail(net::evidence(self->peer_, why));
                        self->read();
                      });
  }

  void read() {
    http::async_read_some(*socket_, buffer_, parser_,
                          [self = shared_from_this()](const error_code& why, std::size_t) {
                            if (self->done_) self->on_read(why);
                          });
  }

  void on_read(const error_code& why) {
    if (asked_.line && parser_.is_header_done()) {
      deadline_.cancel();
      if (parser_.get().result_int() == 200 && !pass_lines()) return;
    }
    if (why) {
      const bool ended = why == http::error::end_of_stream || why == http::error::partial_message;
      return fail(ended ? peer_ + ": it closed the connection" : net::evidence(peer_, why));
    }
    if (!parser_.is_done()) return read();
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
  http::request<http::string_body> request_;
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
