// A link over TCP against a scripted coordinator on loopback: what is sent, which events it
// produces, and that none follows the end.
#include "rendezvous/client/connection.hpp"

#include "rendezvous/client/link.hpp"
#include "tests/client/scene.hpp"

using namespace ddprun;
using namespace ddprun::client;
using namespace ddprun::protocol;

namespace {

Leave leave(std::string reason) {
  return Leave{1, std::move(reason)};
}

struct Pair {
  Pair() { agent->connect(1); }
  Peer accept() {
    Peer peer = listener.accept();
    const auto up = agent.next<LinkUp>();
    CHECK(up.link == 1);
    CHECK(up.reached == "127.0.0.1");
    CHECK(peer.receive(4) == "DDPR");
    return peer;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(listener.port()); }
  std::string not_a_coordinator() const {
    return "the server at " + address() +
           " is not a ddprun coordinator; check --rdzv-endpoint (with static --master-addr and "
           "--master-port), or use another port";
  }
  /// The refusal that the agent gets as if the server had sent it; then the link ends.
  std::string refusal() {
    const auto refused = std::get<Refused>(agent.next<Incoming>().message);
    agent.next<LinkDown>();
    return refused.sentence;
  }
  asio::io_context io;
  Listener listener{io};
  Agent agent{io, "127.0.0.1", listener.port()};
};

constexpr std::size_t kPingBytes = 10;  // VALIDATE and PING
constexpr std::size_t kHttpBytes = 19;

}  // namespace

TEST_CASE("a link starts with the magic, then carries messages in both directions") {
  Pair pair;
  Peer peer = pair.accept();
  pair.agent->send(1, leave("first"));
  pair.agent->send(1, Beat{});
  CHECK(peer.receive_message() == Message(leave("first")));
  CHECK(peer.receive_message() == Message(Beat{}));
  peer.say(Beat{});
  peer.say(Done{3, "over"});
  CHECK(pair.agent.next<Incoming>().message == Message(Beat{}));
  const auto last = pair.agent.next<Incoming>();
  CHECK(last.link == 1);
  CHECK(last.message == Message(Done{3, "over"}));
}

TEST_CASE("a message sent on LinkUp is in the first segment, after the magic") {
  Pair pair;
  pair.agent.on_event = [&](const Event& event) {
    if (std::holds_alternative<LinkUp>(event)) pair.agent->send(1, Beat{});
  };
  Peer peer = pair.listener.accept();
  pair.agent.next<LinkUp>();
  std::string bytes(100, '\0');
  bytes.resize(peer.socket().read_some(asio::buffer(bytes)));
  CHECK(bytes == "DDPR" + frame(encode(Beat{})));
}

TEST_CASE("a message sent byte by byte arrives complete, many at once arrive in order") {
  Pair pair;
  Peer peer = pair.accept();
  for (const char byte : frame(encode(Beat{}))) peer.send({byte});
  CHECK(pair.agent.next<Incoming>().message == Message(Beat{}));
  std::string burst;
  for (int number = 1; number <= 500; ++number) {
    burst += frame(encode(Stop{Round(number), 15, Milliseconds(0), std::string(200, 'x')}));
  }
  peer.send(burst);
  for (int number = 1; number <= 500; ++number) {
    const auto incoming = pair.agent.next<Incoming>();
    REQUIRE(std::get<Stop>(incoming.message).round == Round(number));
  }
}

TEST_CASE("a port without a listener is reported with its address and the cause") {
  asio::io_context io;
  const std::uint16_t port = test::free_port();
  Agent agent(io, "127.0.0.1", port);
  agent->connect(7);
  const auto down = agent.next<LinkDown>();
  CHECK(down.link == 7);
  CHECK(down.evidence == "127.0.0.1:" + std::to_string(port) + ": connection refused");
}

TEST_CASE("a lost link is reported, and the next one connects to the restarted coordinator") {
  auto pair = std::make_unique<Pair>();
  const std::uint16_t port = pair->listener.port();
  Peer peer = pair->accept();
  peer.say(Beat{});
  pair->agent.next<Incoming>();
  peer.close();
  const auto down = pair->agent.next<LinkDown>();
  CHECK(down.link == 1);
  CHECK(down.evidence == "127.0.0.1:" + std::to_string(port) + ": it closed the connection");
  pair->agent->connect(2);
  Peer again = pair->listener.accept();
  CHECK(pair->agent.next<LinkUp>().link == 2);
  CHECK(again.receive(4) == "DDPR");
  again.reset();
  CHECK_THAT(pair->agent.next<LinkDown>().evidence, ContainsSubstring("connection reset by peer"));
}

TEST_CASE("all messages sent before the end are received before the end") {
  Pair pair;
  Peer peer = pair.accept();
  peer.say(Beat{});
  peer.say(Done{0, "over"});
  peer.close();
  pair.agent.next<Incoming>();
  CHECK(std::holds_alternative<Done>(pair.agent.next<Incoming>().message));
  pair.agent.next<LinkDown>();
}

TEST_CASE(
    "the verdict of a coordinator that resets the connection is received, even if we write to it") {
  Pair pair;
  Peer peer = pair.accept();
  pair.agent->send(1, Beat{});  // stays unread, so that the close is a reset
  peer.say(Done{0, "over"});
  peer.close();
  pair.agent->send(1, Beat{});
  pair.agent->send(1, Beat{});
  CHECK(std::holds_alternative<Done>(pair.agent.next<Incoming>().message));
  pair.agent.next<LinkDown>();
}

TEST_CASE("invalid frames and invalid messages end the link with a cause") {
  Pair pair;
  Peer peer = pair.accept();
  SECTION("an HTTP server") {
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    CHECK(pair.refusal() == pair.not_a_coordinator());
  }
  SECTION("a server that speaks first") {
    peer.send("SSH-2.0-OpenSSH_9.2p1\r\n");
    CHECK(pair.refusal() == pair.not_a_coordinator());
  }
  SECTION("an empty frame") {
    peer.send(std::string(4, '\0'));
    CHECK(pair.refusal() == pair.not_a_coordinator());
  }
  SECTION("broken JSON, after a message") {
    peer.send(frame(encode(Beat{})) + frame("{\"type\":"));
    pair.agent.next<Incoming>();
    CHECK_THAT(pair.agent.next<LinkDown>().evidence, ContainsSubstring("invalid message"));
  }
  CHECK(peer.is_over());
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("a c10d store that keeps silent or resets is named within a second") {
  Pair pair;
  Peer link = pair.accept();
  const TimePoint start = Clock::now();
  SECTION("it keeps silent") {}
  SECTION("it resets") {
    link.reset();
  }
  Peer ping = pair.listener.accept();
  ping.send(ping.receive(kPingBytes).substr(6));
  Peer request = pair.listener.accept();
  CHECK(request.receive(kHttpBytes).starts_with("POST / "));
  SECTION("and closes what it does not know") {
    request.close();
  }
  SECTION("and says nothing to what it does not know") {}
  CHECK_THAT(pair.refusal(), ContainsSubstring("a c10d store") &&
                                 ContainsSubstring("answers at " + pair.address()) &&
                                 ContainsSubstring("--rdzv-endpoint, or --master-port"));
  CHECK(Clock::now() - start < std::chrono::seconds(5));  // a second, on a machine of its own
}

TEST_CASE("an HTTP server that waits for the end of a line is named within a second") {
  Pair pair;
  Peer link = pair.accept();
  const TimePoint start = Clock::now();
  Peer ping = pair.listener.accept();
  Peer request = pair.listener.accept();
  CHECK(request.receive(kHttpBytes).starts_with("POST / "));
  request.send("HTTP/1.0 501 Unsupported method ('POST')\r\nServer: SimpleHTTP/0.6\r\n\r\n");
  request.close();
  CHECK(pair.refusal() == pair.not_a_coordinator());
  CHECK(Clock::now() - start < std::chrono::seconds(5));  // a second, on a machine of its own
}

TEST_CASE("a coordinator that is slow to answer, or ends the link, is only tried again") {
  Pair pair;
  Peer link = pair.accept();
  SECTION("it keeps silent") {
    Peer ping = pair.listener.accept();
    ping.send(ping.receive(kPingBytes).substr(6));
    Peer request = pair.listener.accept();
    request.receive(kHttpBytes);
    request.send("HTTP/1.1 405 Method Not Allowed\r\nServer: ddprun\r\n\r\n");
    request.close();
    link.say(Beat{});
    CHECK(pair.agent.next<Incoming>().message == Message(Beat{}));
  }
  SECTION("it ends the link, and knows nothing of a store") {
    link.close();
    pair.listener.accept().close();
    CHECK_THAT(pair.agent.next<LinkDown>().evidence, ContainsSubstring("closed the connection"));
  }
  SECTION("it answers while it is asked what it is") {
    Peer ping = pair.listener.accept();
    link.say(Beat{});
    pair.agent.next<Incoming>();
    CHECK(ping.receive(kPingBytes + 1).size() == kPingBytes);  // and then the end
  }
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("a message of a newer protocol is answered with unknown, and the link stays open") {
  Pair pair;
  Peer peer = pair.accept();
  peer.send(frame(R"({"type":"from_the_future"})"));
  peer.say(Beat{});
  pair.agent.next<Incoming>();
  const auto answer = peer.receive_message();
  REQUIRE(std::holds_alternative<Unknown>(answer));
  CHECK_THAT(std::get<Unknown>(answer).sentence, ContainsSubstring("from_the_future"));
}

TEST_CASE("close writes queued data first, and produces no event") {
  Pair pair;
  Peer peer = pair.accept();
  const std::string long_reason(4000, 'r');
  for (int times = 0; times < 200; ++times) pair.agent->send(1, leave(long_reason));
  pair.agent->close(1);
  pair.agent->send(1, leave("after the end"));
  for (int times = 0; times < 200; ++times) {
    REQUIRE(peer.receive_message() == Message(leave(long_reason)));
  }
  CHECK(peer.is_over());
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("close gives up on a peer that reads nothing for 1 s") {
  Pair pair;
  Peer peer = pair.accept();
  for (int times = 0; times < 900; ++times) pair.agent->send(1, leave(std::string(4000, 'r')));
  const TimePoint begin = Clock::now();
  pair.agent->close(1);
  if (GENERATE(false, true)) pair.agent.flush();
  CHECK(runs_until(pair.io, [&] { return pair.io.stopped(); }));  // the link is gone
  CHECK(Clock::now() - begin >= kStallMax);
  CHECK(Clock::now() - begin < 10 * kStallMax);
}

TEST_CASE("flush completes when everything is written, immediately if nothing is queued") {
  Pair pair;
  pair.agent.flush();
  Peer peer = pair.accept();
  for (int times = 0; times < 900; ++times) pair.agent->send(1, leave(std::string(4000, 'r')));
  bool flushed = false;
  asio::co_spawn(pair.io, pair.agent->flush(), [&](const std::exception_ptr&) { flushed = true; });
  run_what_is_ready(pair.io);
  CHECK_FALSE(flushed);
  for (int times = 0; times < 900; ++times) peer.receive_frame();
  CHECK(runs_until(pair.io, [&] { return flushed; }));
}

TEST_CASE("flush gives up on a peer that reads a little again and again") {
  Pair pair;
  Peer peer = pair.accept();
  for (int times = 0; times < 900; ++times) pair.agent->send(1, leave(std::string(4000, 'r')));
  asio::steady_timer next(pair.io);
  std::string some(100, '\0');
  std::function<void()> read_slowly = [&] {
    peer.socket().async_read_some(asio::buffer(some), [&](boost::system::error_code ended, auto) {
      next.expires_after(std::chrono::milliseconds(20));
      if (!ended) next.async_wait([&](auto cancelled) { cancelled ? void() : read_slowly(); });
    });
  };
  read_slowly();
  const TimePoint begin = Clock::now();
  pair.agent.flush();
  CHECK(Clock::now() - begin < kFlushMax + kStallMax);
  pair.agent.destroy();
  next.cancel();
  peer.close();
  run_what_is_ready(pair.io);
}

TEST_CASE("a message that never ends is not taken for a sign of life") {
  Pair pair;
  Peer peer = pair.accept();
  peer.say(Beat{});
  pair.agent.next<Incoming>();
  peer.send(std::string("\0\x0f\0\0", 4));  // of nearly 1 MiB
  for (int byte = 0; byte < 1000; ++byte) {
    peer.send(" ");
    run_what_is_ready(pair.io);
  }
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("a coordinator that does not read uses limited memory, then loses the link") {
  Pair pair;
  Peer peer = pair.accept();
  std::size_t sent = 0;
  while (sent < 3 * kUnsentBytesMax) {  // the kernel's own buffers come first
    pair.agent->send(1, leave(std::string(4000, 'r')));
    sent += 4000;
  }
  CHECK_THAT(pair.agent.next<LinkDown>().evidence, ContainsSubstring("it does not read"));
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("a new connect closes the old link, which produces no further events") {
  Pair pair;
  Peer old = pair.accept();
  old.say(Beat{});
  pair.agent->connect(2);
  Peer fresh = pair.listener.accept();
  CHECK(pair.agent.next<LinkUp>().link == 2);
  CHECK(old.is_over());
  pair.agent->send(1, Beat{});  // dropped: not the link that is up
  pair.agent->send(2, leave("two"));
  CHECK(fresh.receive(4) == "DDPR");
  CHECK(fresh.receive_message() == Message(leave("two")));
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("an attempt that is closed or replaced produces no event") {
  Pair pair;
  pair.agent->close(1);
  pair.agent->connect(2);
  pair.agent->connect(3);
  CHECK(pair.agent.next<LinkUp>().link == 3);
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("IPv6 literals connect, and localhost uses the family that listens") {
  asio::io_context io;
  const auto [address, host] = GENERATE(table<std::string, std::string>(
      {{"::1", "::1"}, {"::1", "localhost"}, {"127.0.0.1", "localhost"}, {"127.0.0.1", "127.1"}}));
  CAPTURE(address, host);
  Listener listener(io, address);
  Agent agent(io, host, listener.port());
  agent->connect(1);
  agent.next<LinkUp>();
  Peer peer = listener.accept();
  CHECK(peer.receive(4) == "DDPR");
}

TEST_CASE("refusals of both families are reported in one sentence") {
  asio::io_context io;
  const std::string port = std::to_string(test::free_port());
  Agent agent(io, "localhost", static_cast<std::uint16_t>(std::stoi(port)));
  agent->connect(1);
  CHECK(agent.next<LinkDown>().evidence ==
        "[::1]:" + port + ": connection refused; 127.0.0.1:" + port + ": connection refused");
}

TEST_CASE("a name that does not resolve is reported by name") {
  asio::io_context io;
  Agent agent(io, "no-such-host.invalid", 1);
  agent->connect(1);
  CHECK_THAT(agent.next<LinkDown>().evidence, ContainsSubstring("no-such-host.invalid"));
}

TEST_CASE("destroying the link cancels everything without an event") {
  asio::io_context io;
  Listener listener(io);
  Agent agent(io, GENERATE(as<std::string>(), "127.0.0.1", "localhost", "127.1"), listener.port());
  agent->connect(1);
  SECTION("at once") {}
  SECTION("while it connects") {
    io.run_one();
  }
  SECTION("with a link, and bytes to be written") {
    agent.next<LinkUp>();
    for (int times = 0; times < 900; ++times) agent->send(1, leave(std::string(4000, 'r')));
  }
  SECTION("with a link that closes") {
    agent.next<LinkUp>();
    for (int times = 0; times < 900; ++times) agent->send(1, leave(std::string(4000, 'r')));
    agent->close(1);
  }
  agent.destroy();
  CHECK(agent.heard_nothing_more());
  CHECK(runs_until(io, [&io] { return io.stopped(); }));  // no operation is left behind
}

TEST_CASE("the sink may destroy the link during any event") {
  Pair pair;
  const auto [kind, events] = GENERATE(table<std::size_t, std::size_t>({
      {Event(LinkUp{}).index(), 1},  // of LinkUp, two messages, LinkDown
      {Event(Incoming{}).index(), 2},
      {Event(LinkDown{}).index(), 4},
  }));
  pair.agent.on_event = [&, last = kind](const Event& event) {
    if (event.index() == last) pair.agent.destroy();
  };
  Peer peer = pair.listener.accept();
  peer.say(Beat{});
  peer.say(Beat{});
  peer.finish_sending();
  while (peer.receive(1).size() == 1) {
  }
  run_what_is_ready(pair.io);
  CHECK(pair.agent.heard() == events);
}

TEST_CASE("the sink may destroy the link when an attempt fails") {
  asio::io_context io;
  Agent agent(io, GENERATE(as<std::string>(), "no-such-host.invalid", "127.0.0.1"),
              test::free_port());
  agent.on_event = [&](const Event&) { agent.destroy(); };
  agent->connect(1);
  agent.next<LinkDown>();
  CHECK(agent.heard_nothing_more());
}

TEST_CASE("the sink may close the link, or connect again, while handling a message") {
  Pair pair;
  Peer peer = pair.accept();
  const bool again = GENERATE(false, true);
  pair.agent.on_event = [&](const Event& event) {
    if (!std::holds_alternative<Incoming>(event)) return;
    pair.agent->send(1, leave("last words"));
    pair.agent->close(1);
    if (again) pair.agent->connect(2);
  };
  peer.say(Beat{});
  peer.say(Beat{});
  pair.agent.next<Incoming>();
  CHECK(peer.receive_message() == Message(leave("last words")));
  CHECK(peer.is_over());
  if (again) CHECK(pair.agent.next<LinkUp>().link == 2);
  CHECK(pair.agent.heard_nothing_more());
}

TEST_CASE("a link goes where it is aimed, and nowhere says why") {
  asio::io_context io;
  Listener listener(io);
  Agent agent(io, "", 0);
  agent->aim("", 0, "no node is elected");
  agent->connect(1);
  CHECK(agent.next<LinkDown>().evidence == "no node is elected");
  agent->aim("127.0.0.1", listener.port());
  agent->connect(2);
  Peer peer = listener.accept();
  CHECK(agent.next<LinkUp>().link == 2);
  // An open link stays until the next connect().
  agent->aim("", 0, "gone");
  agent->send(2, Beat{});
  CHECK(peer.receive(4) == "DDPR");
  CHECK(peer.receive_message() == Message(Beat{}));
  agent->connect(3);
  CHECK(peer.is_over());
  CHECK(agent.next<LinkDown>().evidence == "gone");
}
