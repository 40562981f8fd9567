#include "rendezvous/client/link.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <string_view>
#include <utility>

#include "net/listen.hpp"
#include "rendezvous/client/who_answers.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace ddprun::client {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// Read from the link before other events are handled.
constexpr std::size_t kReceiveAtOnce = 256 * 1024;

std::string unproven(const net::TlsSession& tls) {
  if (tls.is_established()) return "";
  return tls.has_secret() ? " before it proved that it knows the secret"
                          : " before it proved whose its certificate is";
}

}  // namespace

Link::Link(net::Connected connected, LinkUser& user, std::unique_ptr<net::TlsSession> tls)
    : socket_(std::move(connected.socket)),
      user_(&user),
      peer_(net::to_text(connected.peer)),
      tls_(std::move(tls)) {
  if (tls_) unsent_ = tls_->take_output();
}

void Link::begin() {
  queue({protocol::kMagic, sizeof(protocol::kMagic)});
}

void Link::start() {
  corked_ = false;
  write();
  read();
}

void Link::send(const protocol::Message& message) {
  if (state_ != State::kOpen || !failure_.empty()) return;
  queue(protocol::frame(protocol::encode(message)));
  const std::size_t waiting = unsent() + unsealed_.size();
  if (waiting > kUnsentBytesMax) {
    failure_ = peer_ + ": it does not read: " + std::to_string(waiting) + " bytes are unsent";
    return lose_later(failure_);
  }
  if (!corked_) write();
}

// Nothing is said to a peer that has not proved who it is.
void Link::queue(std::string_view bytes) {
  if (!tls_) {
    unsent_.append(bytes);
  } else if (tls_->is_established()) {
    unsent_ += tls_->seal(bytes);
  } else {
    unsealed_.append(bytes);
  }
}

void Link::close() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosing;
  write();
  if (state_ == State::kClosing) watch_for_stall();
}

void Link::leave() {
  user_ = nullptr;
  close_now();
}

void Link::read() {
  if (state_ != State::kOpen) return;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& why) {
    if (!why && self->state_ == State::kOpen) self->on_readable();
  });
}

void Link::on_readable() {
  corked_ = true;
  if (!receive_some()) return;
  corked_ = false;
  write();
  read();
}

// False: the link is no longer open.
bool Link::receive_some() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): recv() fills it
  std::array<char, 16 * 1024> room;
  for (std::size_t total = 0; total < kReceiveAtOnce;) {
    error_code why;
    const std::size_t count = socket_.read_some(asio::buffer(room), why);
    if (why == asio::error::would_block || why == asio::error::try_again) return true;
    if (why) {
      const bool ended = why == asio::error::eof;
      std::string cause = ended ? peer_ + ": it closed the connection" : net::evidence(peer_, why);
      if (tls_) cause += unproven(*tls_);
      lose(failure_.empty() ? cause : failure_);
      return false;
    }
    if (!take(std::string_view(room.data(), count))) return false;
    if (count < room.size()) return true;
    total += count;
  }
  return true;
}

// False: the link is no longer open.
bool Link::take(std::string_view bytes) {
  if (!tls_) {
    reader_.feed(bytes);
    return deliver();
  }
  std::string plain;
  const auto opened = tls_->receive(bytes, plain);
  unsent_ += tls_->take_output();
  if (opened && tls_->is_established() && !unsealed_.empty()) queue(std::exchange(unsealed_, {}));
  if (opened) {
    reader_.feed(plain);
    return deliver();
  }
  // What preceded it could not be answered any more.
  if (tls_->is_accepted()) {
    lose(peer_ + ": " + opened.error().sentence);
  } else {
    meet(tls_->has_secret() ? has_another_secret(peer_)
                            : has_no_trust(peer_, opened.error().sentence));
  }
  return false;
}

// False: the link is no longer open.
bool Link::deliver() {
  while (true) {
    const auto body = reader_.next();
    if (!body) {
      lose_to_invalid_data(body.error().sentence);
      return false;
    }
    if (!*body) return true;
    auto message = protocol::decode(**body);
    known_ = known_ || message.has_value();
    if (message) {
      user_->heard(std::move(*message));
      if (state_ != State::kOpen) return false;
    } else if (message.error().kind == ErrorKind::kUnsupported) {
      send(protocol::Unknown{message.error().sentence});
    } else {
      lose_to_invalid_data(message.error().sentence);
      return false;
    }
  }
}

void Link::lose_to_invalid_data(const std::string& detail) {
  if (known_) return lose(peer_ + ": invalid message: " + detail);
  meet(not_a_coordinator(peer_));
}

void Link::meet(const std::string& sentence) {
  LinkUser* const user = std::exchange(user_, nullptr);
  close_now();
  if (user != nullptr) user->met_another_server(sentence);
}

void Link::write() {
  if (state_ == State::kClosed || awaiting_room_) return;
  bool progress = false;
  while (unsent() > 0 && failure_.empty()) {
    error_code why;
    const auto rest = asio::buffer(unsent_.data() + sent_, unsent());
    const std::size_t count = socket_.write_some(rest, why);
    if (why == asio::error::would_block || why == asio::error::try_again) {
      await_room();
      break;
    }
    // The kernel wakes the reader too: it reads what had arrived, then reports the end.
    if (why) failure_ = net::evidence(peer_, why);
    sent_ += count;
    written_ += count;
    progress = true;
  }
  if (unsent() == 0 || !failure_.empty()) {
    unsent_.clear();
    sent_ = 0;
    if (state_ == State::kClosing) return close_now();
  } else if (sent_ > unsent_.size() / 2) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  if (progress && user_ != nullptr) user_->wrote(*this);
}

void Link::await_room() {
  awaiting_room_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& why) {
    self->awaiting_room_ = false;
    if (!why) self->write();
  });
}

void Link::watch_for_stall() {
  if (!stall_) stall_ = std::make_unique<asio::steady_timer>(socket_.get_executor());
  stall_->expires_after(kStallMax);
  stall_->async_wait([self = shared_from_this(), before = written_](const error_code& why) {
    if (why || self->state_ != State::kClosing) return;
    if (self->written_ == before) return self->close_now();
    self->watch_for_stall();
  });
}

void Link::lose(const std::string& evidence) {
  LinkUser* const user = std::exchange(user_, nullptr);
  close_now();
  if (user != nullptr) user->lost(evidence);
}

void Link::lose_later(std::string evidence) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), text = std::move(evidence)] {
    if (self->state_ == State::kOpen) self->lose(text);
  });
}

void Link::close_now() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  unsent_.clear();
  sent_ = 0;
  if (stall_) stall_->cancel();
  // Unread bytes would make the kernel reset the connection and the peer lose what it was sent.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): recv() fills it
  std::array<char, 16 * 1024> ignored_bytes;
  error_code why;
  for (int turns = 0; turns < 16 && !why; ++turns) {
    socket_.read_some(asio::buffer(ignored_bytes), why);
  }
  error_code ignored;  // whatever the cause, the descriptor is gone
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
  if (user_ != nullptr) user_->wrote(*this);
}

}  // namespace ddprun::client
