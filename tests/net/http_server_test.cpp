// The HTTP server: what a client gets, and what one costs that means no good.
#include "net/http.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "net/listen.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::net;
using boost::asio::ip::tcp;

namespace {

struct Stage {
  Stage() {
    auto listener = listen_on(io.get_executor(), "127.0.0.1", 0);
    REQUIRE(listener.has_value());
    at = listener->local_endpoint();
    server.emplace(std::move(*listener), "/page", [this](const HttpRequest& request) {
      paths.push_back(request.path);
      return http_response("200 OK", "text/plain", "body of " + request.path);
    });
  }

  [[nodiscard]] tcp::socket client() {
    tcp::socket socket(io);
    socket.connect(at);
    return socket;
  }
  /// What the server sends until it closes.
  std::string ask(tcp::socket& socket, const std::string& request) {
    boost::asio::write(socket, boost::asio::buffer(request));
    return rest_of(socket);
  }
  std::string rest_of(tcp::socket& socket) {
    std::string text;
    bool ended = false;
    boost::asio::async_read(socket, boost::asio::dynamic_buffer(text),
                            [&](const auto&, std::size_t) { ended = true; });
    while (!ended && io.run_one_for(std::chrono::seconds(20)) != 0) continue;
    REQUIRE(ended);
    return text;
  }
  std::string ask(const std::string& request) {
    auto socket = client();
    return ask(socket, request);
  }

  boost::asio::io_context io;
  tcp::endpoint at;
  std::vector<std::string> paths;
  std::optional<HttpServer> server;
};

}  // namespace

TEST_CASE("a GET gets the page and the end of the connection, a HEAD its headers alone") {
  Stage stage;
  const std::string got = stage.ask("GET /page?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(got.ends_with("\r\n\r\nbody of /page"));
  const std::string head = stage.ask("HEAD /page HTTP/1.0\n\n");
  CHECK(head == got.substr(0, got.size() - std::string("body of /page").size()));
}

TEST_CASE("a browser has to name this machine, a collector of metrics need not") {
  Stage stage;
  const std::string from = "GET /page HTTP/1.1\r\nHost: evil.example\r\n";
  CHECK(stage.ask(from + "\r\n").starts_with("HTTP/1.1 200"));
  CHECK(stage.ask(from + "Accept-Language: en\r\n\r\n").starts_with("HTTP/1.1 421"));
}

TEST_CASE("a request that comes byte by byte is answered, one that is none is refused") {
  Stage stage;
  auto slow = stage.client();
  for (const char letter : std::string("GET /page HTTP/1.1\r\n\r")) {
    boost::asio::write(slow, boost::asio::buffer(&letter, 1));
    stage.io.poll();
  }
  CHECK(stage.paths.empty());
  CHECK(stage.ask(slow, "\n").ends_with("body of /page"));
  CHECK(stage.ask("POST /page HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  CHECK(stage.ask(std::string("\0\xff\n\n", 4)).starts_with("HTTP/1.1 400 "));
  CHECK(stage.ask(std::string(2 * kHttpHeadBytesMax, 'x')).starts_with("HTTP/1.1 431 "));
  CHECK(stage.paths.size() == 1);
}

TEST_CASE("where silent clients have all places, the next client is answered at once") {
  Stage stage;
  std::vector<tcp::socket> silent;
  for (std::size_t i = 0; i < kHttpConnectionsMax; ++i) silent.push_back(stage.client());
  stage.io.poll();
  const auto began = std::chrono::steady_clock::now();
  CHECK(stage.ask("GET /page HTTP/1.1\r\n\r\n").ends_with("body of /page"));
  CHECK(std::chrono::steady_clock::now() - began < kHttpTimeMax / 2);
  // One has given way, the others' time has an end.
  for (auto& socket : silent) CHECK(stage.rest_of(socket).empty());
}

TEST_CASE("the end of the server closes its connections and its port") {
  Stage stage;
  auto client = stage.client();
  stage.io.poll();
  stage.server.reset();
  CHECK(stage.rest_of(client).empty());
  tcp::socket late(stage.io);
  boost::system::error_code refused;
  late.connect(stage.at, refused);
  CHECK(refused);
}
