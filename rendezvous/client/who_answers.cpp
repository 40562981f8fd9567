#include "rendezvous/client/who_answers.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

#include "net/bugs.hpp"
#include "net/listen.hpp"

namespace ddprun::client {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::string_view_literals;

namespace {

// VALIDATE with c10d's magic number, then PING with a nonce; the answer is the nonce alone.
constexpr std::string_view kPing = "\x00\xCE\xF7\x85\x3C\x0D\x61\x6C\x73\x6F"sv;
constexpr std::string_view kNonce = kPing.substr(6);
// A ddprun coordinator serves a store as well, but only it answers this with its name.
constexpr std::string_view kRequest = "POST / HTTP/1.0\r\n\r\n"sv;
constexpr std::string_view kServer = "\r\nServer: ddprun\r\n"sv;
constexpr std::size_t kHeadMax = 512;

/// Empty where it may be a coordinator.
std::string sentence_about(const std::string& peer, const std::string& pong,
                           const std::string& answer) {
  if (answer.find(kServer) != std::string::npos) return "";
  if (pong == kNonce) {
    return "a c10d store (of torchrun, or a TCPStore) answers at " + peer +
           ", not a ddprun coordinator; start all nodes of a run with ddprun, or use another port "
           "(--rdzv-endpoint, or --master-port with static)";
  }
  return answer.starts_with("HTTP/") ? not_a_coordinator(peer) : "";
}

}  // namespace

WhoAnswers::WhoAnswers(asio::any_io_executor executor, tcp::endpoint peer, Done done)
    : executor_(std::move(executor)),
      peer_(std::move(peer)),
      socket_(executor_),
      limit_(executor_),
      done_(std::move(done)) {}

void WhoAnswers::start() {
  asio::co_spawn(executor_, run(shared_from_this()), net::rethrow_bug);
}

void WhoAnswers::cancel() {
  done_ = nullptr;
  limit_.cancel();
  boost::system::error_code ignored;  // whatever the cause, the descriptor is gone
  socket_.close(ignored);
}

asio::awaitable<void> WhoAnswers::run(std::shared_ptr<WhoAnswers> self) {
  std::string ping(kPing);
  const std::string pong = co_await self->ask(std::move(ping), kNonce.size());
  std::string answer;
  if (self->done_) {
    std::string request(kRequest);
    answer = co_await self->ask(std::move(request), kHeadMax);
  }
  const Done done = std::exchange(self->done_, nullptr);
  if (done) done(sentence_about(net::to_text(self->peer_), pong, answer));
}

/// What is received until the peer closes, `enough` bytes have arrived or kAskMax has passed.
asio::awaitable<std::string> WhoAnswers::ask(std::string request, std::size_t enough) {
  std::string answer;
  socket_ = tcp::socket(executor_);
  limit_.expires_after(kAskMax);
  limit_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) self->socket_.close(ignored);
  });
  auto [failed] = co_await socket_.async_connect(peer_, asio::as_tuple(asio::use_awaitable));
  if (!failed) {
    const auto whole = asio::buffer(request);
    auto [unsent, count] =
        co_await asio::async_write(socket_, whole, asio::as_tuple(asio::use_awaitable));
    failed = unsent;
  }
  std::array<char, kHeadMax> room{};
  while (!failed && answer.size() < enough) {
    const auto rest = asio::buffer(room);
    auto [ended, count] =
        co_await socket_.async_read_some(rest, asio::as_tuple(asio::use_awaitable));
    answer.append(room.data(), count);
    failed = ended;
  }
  limit_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  co_return answer;
}

std::string not_a_coordinator(const std::string& peer) {
  return "the server at " + peer +
         " is not a ddprun coordinator; check --rdzv-endpoint (with static --master-addr and "
         "--master-port), or use another port";
}

std::string has_another_secret(const std::string& peer) {
  return "the server at " + peer +
         " has another secret or none, or is not a ddprun coordinator; compare --rdzv-secret-file "
         "(or DDPRUN_SECRET, or ~/.config/ddprun/secret) of all nodes";
}

std::string has_no_trust(const std::string& peer, const std::string& cause) {
  return "no trusted link to the server at " + peer + ": " + cause +
         "; compare --rdzv-tls-cert, --rdzv-tls-key and --rdzv-tls-ca of all nodes";
}

}  // namespace ddprun::client
