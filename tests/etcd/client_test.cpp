// Client against scripted servers on loopback: which is asked, what counts as an answer.
#include "rendezvous/etcd/client.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/client/scene.hpp"

using namespace ddprun;
using namespace ddprun::etcd;
using client::Listener;
using client::Peer;
using client::runs_until;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::string http(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

class Scene {
 public:
  explicit Scene(std::size_t servers = 1, const std::string& user = "", bool one_refuses = false) {
    ClientOptions options;
    for (std::size_t i = 0; i < servers; ++i) {
      listeners.push_back(std::make_unique<Listener>(io));
      options.endpoints.push_back({"127.0.0.1", listeners.back()->port()});
    }
    if (one_refuses) options.endpoints.push_back({"127.0.0.1", test::free_port()});
    options.user = user;
    options.password = "secret";
    client = std::make_unique<Client>(io.get_executor(), options);
  }
  void call(Duration within = seconds(5)) {
    reply.reset();
    client->call("/v3/kv/range", "{}", within, [this](Reply got) { reply = std::move(got); });
  }
  /// The whole request, once it has come.
  std::string request(Peer& peer, const std::string& body) {
    std::string got;
    while (!got.ends_with(body)) {
      const std::string more = peer.receive(1);
      REQUIRE(!more.empty());
      got += more;
    }
    return got;
  }
  Reply& answer() {
    REQUIRE(runs_until(io, [this] { return reply.has_value(); }));
    return *reply;
  }

  client::asio::io_context io;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::unique_ptr<Client> client;
  std::optional<Reply> reply;
};

}  // namespace

TEST_CASE("a call is one request, and its answer is the body") {
  Scene scene;
  scene.call();
  Peer peer = scene.listeners[0]->accept();
  CHECK_THAT(scene.request(peer, "\r\n\r\n{}"),
             ContainsSubstring("POST /v3/kv/range HTTP/1.1\r\n"));
  peer.send(http("200 OK", R"({"header":{}})"));
  CHECK(scene.answer().answered);
  CHECK(scene.answer().body == R"({"header":{}})");
  CHECK(scene.client->own_address() == "127.0.0.1");
}

TEST_CASE("a chunked answer is one body, too") {
  Scene scene;
  scene.call();
  Peer peer = scene.listeners[0]->accept();
  scene.request(peer, "{}");
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n");
  peer.send("4\r\n\":1}\r\n0\r\n\r\n");
  CHECK(scene.answer().body == R"({"a":1})");
}

TEST_CASE("a server that cannot answer is followed by the next") {
  Scene scene(3);
  scene.call();
  Peer first = scene.listeners[0]->accept();
  scene.request(first, "{}");
  SECTION("because it has no leader") {
    first.send(http("503 Service Unavailable", R"({"error":"etcdserver: no leader","code":14})"));
  }
  SECTION("because it ends") {
    first.close();
  }
  SECTION("because it is something else") {
    first.send("hello\r\n\r\n");
  }
  Peer second = scene.listeners[1]->accept();
  scene.request(second, "{}");
  second.send(http("200 OK", "{}"));
  CHECK(scene.answer().answered);
  // The one that answered is asked first from now on.
  scene.call();
  Peer again = scene.listeners[1]->accept();
  scene.request(again, "{}");
  again.send(http("200 OK", "{}"));
  CHECK(scene.answer().answered);
}

TEST_CASE("a call ends at its deadline, and says why each server did not answer") {
  Scene scene(1, "", true);
  scene.call(seconds(2));
  Peer silent = scene.listeners[0]->accept();
  CHECK(!scene.answer().answered);
  CHECK(scene.answer().reach == Reach::kServer);
  CHECK_THAT(scene.answer().failure, ContainsSubstring("no answer in time; "));
  CHECK_THAT(scene.answer().failure, ContainsSubstring("refused"));
}

TEST_CASE("no server at all is another thing than servers that do not answer") {
  Scene scene(0, "", true);
  scene.call();
  CHECK(scene.answer().reach == Reach::kNone);
}

TEST_CASE("a user logs in first, and again when the token is no longer good") {
  Scene scene(1, "trainer");
  scene.call();
  const auto serve = [&](const std::string& path, const std::string& end, const std::string& text) {
    Peer peer = scene.listeners[0]->accept();
    const std::string request = scene.request(peer, end);
    CHECK_THAT(request, ContainsSubstring("POST " + path));
    peer.send(text);
    return request;
  };
  serve("/v3/auth/authenticate", "}", http("200 OK", R"({"header":{},"token":"t1"})"));
  CHECK_THAT(serve("/v3/kv/range", "{}",
                   http("401 Unauthorized", R"({"error":"invalid auth token","code":16})")),
             ContainsSubstring("Authorization: t1\r\n"));
  serve("/v3/auth/authenticate", "}", http("200 OK", R"({"header":{},"token":"t2"})"));
  CHECK_THAT(serve("/v3/kv/range", "{}", http("200 OK", "{}")),
             ContainsSubstring("Authorization: t2\r\n"));
  CHECK(scene.answer().answered);
}

TEST_CASE("a wrong password is refused, and no other server is asked") {
  Scene scene(2, "trainer");
  scene.call();
  Peer peer = scene.listeners[0]->accept();
  scene.request(peer, "}");
  peer.send(http("400 Bad Request",
                 R"({"error":"etcdserver: authentication failed, invalid user ID or password",)"
                 R"("code":3})"));
  CHECK(scene.answer().refused);
  CHECK_THAT(scene.answer().failure, ContainsSubstring("invalid user ID"));
}

TEST_CASE("a watch brings lines as they come, and says when it ends") {
  Scene scene;
  std::vector<std::string> lines;
  std::string ended;
  scene.client->watch(
      "{}", seconds(5), [&](std::string_view line) { lines.emplace_back(line); },
      [&](const std::string& why) { ended = why; });
  Peer peer = scene.listeners[0]->accept();
  scene.request(peer, "{}");
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n3\r\ntwo\r\n");
  REQUIRE(runs_until(scene.io, [&] { return lines.size() == 1; }));
  peer.send("1\r\n\n\r\n");
  REQUIRE(runs_until(scene.io, [&] { return lines.size() == 2; }));
  CHECK(lines == std::vector<std::string>{"one", "two"});
  peer.close();
  REQUIRE(runs_until(scene.io, [&] { return !ended.empty(); }));
  CHECK_THAT(ended, ContainsSubstring("closed the connection"));
}
