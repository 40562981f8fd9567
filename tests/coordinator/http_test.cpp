// The pure parts: protocol detection, HTTP requests and the contents of the pages.
#include "rendezvous/coordinator/http.hpp"

#include <boost/json/parse.hpp>

#include "rendezvous/coordinator/arrivals.hpp"
#include "rendezvous/coordinator/links.hpp"
#include "rendezvous/coordinator/status.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;

namespace {

int code_of(std::string_view request) {
  const auto asked = read_request(request, "node-1");
  REQUIRE(asked.has_value());
  return asked->code;
}

Page page_of(std::string_view request) {
  const auto asked = read_request(request, "node-1");
  REQUIRE(asked.has_value());
  CHECK(asked->code == 200);
  return asked->page;
}

ServerView example() {
  RunView run;
  run.status.run_id = RunId("a<b>&\"c");
  run.status.phase = round::Phase::kForming;
  run.status.why = "1 of 2 nodes here <script>";
  run.status.terms.nodes_min = run.status.terms.nodes_max = 2;
  run.status.terms.max_restarts = 3;
  run.status.missing = {1};
  round::NodeStatus node;
  node.host = "left";
  node.address = "10.0.0.1";
  node.workers = 4;
  node.silent = std::chrono::milliseconds(1500);
  run.status.nodes = {node};
  run.log.push_back({std::chrono::seconds(2), "a node joined"});
  ServerView view;
  view.address = "127.0.0.1:29400";
  view.store.keys = 5;
  view.runs = {run};
  return view;
}

}  // namespace

TEST_CASE("a page is shown to who names this machine, and not to a site whose name leads here") {
  const auto code_for = [](const std::string& host) {
    return code_of("GET /status HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  for (const char* host : {"127.0.0.1:29400", "[::1]:29400", "[fd00::7]", "10.0.0.7", "localhost:7",
                           "node-1", "NODE-1:29400"}) {
    INFO(host);
    CHECK(code_for(host) == 200);
  }
  for (const char* host : {"evil.example", "evil.example:29400", "node-1.evil.example", "node-12",
                           "[evil]", "127.0.0.1.evil.example", "[::1].evil.example", "[::1",
                           "localhost:80:evil", "localhost:evil"}) {
    INFO(host);
    CHECK(code_for(host) == 421);
  }
  CHECK(code_of("GET /status HTTP/1.0\r\n\r\n") == 200);
  CHECK(read_request("GET / HTTP/1.1\r\nHost: n.a\r\n\r\n", "n.a")->code == 200);
  CHECK(read_request("GET / HTTP/1.1\r\nHost: n\r\n\r\n", "n.a")->code == 200);
  CHECK_THAT(response_to_refused(421), ContainsSubstring("421 Misdirected Request"));
}

TEST_CASE("the first bytes distinguish agents, HTTP and everything else") {
  CHECK(protocol_of("DDPR") == Speaks::kAgent);
  CHECK(protocol_of("DDPRxyz") == Speaks::kAgent);
  for (const char* part : {"", "D", "DD", "DDP", "G", "GET", "DE", "P", "HEA"}) {
    CHECK(protocol_of(part) == Speaks::kUnknownYet);
  }
  for (const char* part : {"\x16", "\x16\x03\x01"}) CHECK(protocol_of(part) == Speaks::kTls);
  CHECK(protocol_of("GET /") == Speaks::kHttp);
  CHECK(protocol_of("DELETE /") == Speaks::kHttp);
  for (const char* part : {"DDX", "GEX", "SSH-2.0", "\x17\x03\x03", "\x01"}) {
    CHECK(protocol_of(part) == Speaks::kStore);
  }
  CHECK(protocol_of(std::string_view("\0\xce", 2)) == Speaks::kStore);
}

TEST_CASE(
    "a request is parsed when its headers are complete, and returns JSON except to a browser") {
  CHECK_FALSE(read_request("GET /status HTTP/1.1\r\nHost: x\r\n", "node-1").has_value());
  CHECK(page_of("GET /status HTTP/1.1\r\nAccept: */*\r\n\r\n") == Page::kJson);
  CHECK(page_of("GET /status?x=1 HTTP/1.0\n\n") == Page::kJson);
  CHECK(page_of("GET /status HTTP/1.1\r\nACCEPT: Text/HTML,*/*\r\n\r\n") == Page::kHtml);
  CHECK(page_of("GET /status HTTP/1.1\r\nX-Accept: text/html\r\n\r\n") == Page::kJson);
  CHECK(page_of("GET /status.json HTTP/1.1\r\nAccept: text/html\r\n\r\n") == Page::kJson);
  CHECK(page_of("GET / HTTP/1.1\r\n\r\n") == Page::kHtml);
}

TEST_CASE("HEAD is GET without the body, and a proxy's absolute URL is accepted") {
  const auto asked = read_request("HEAD /status HTTP/1.1\r\n\r\n", "node-1");
  REQUIRE(asked.has_value());
  CHECK(asked->code == 200);
  CHECK(asked->part == Part::kHead);
  CHECK(read_request("GET /status HTTP/1.1\r\n\r\n", "node-1")->part == Part::kWhole);
  CHECK(read_request("HEAD /other HTTP/1.1\r\n\r\n", "node-1")->code == 404);
  const std::string whole = response_with(Page::kJson, "{}");
  CHECK(whole == std::string(head_of(whole)) + "{}");
  CHECK(page_of("GET http://gpu-01:29400/status HTTP/1.1\r\n\r\n") == Page::kJson);
  CHECK(page_of("GET http://gpu-01 HTTP/1.1\r\n\r\n") == Page::kHtml);
  CHECK(code_of("GET http://gpu-01/other HTTP/1.1\r\n\r\n") == 404);
}

TEST_CASE("any other request is refused with its code") {
  CHECK(code_of("GET /other HTTP/1.1\r\n\r\n") == 404);
  CHECK(code_of("POST /status HTTP/1.1\r\n\r\n") == 405);
  CHECK(code_of("GET /status\r\n\r\n") == 400);
  CHECK(code_of("GET\r\n\r\n") == 400);
  CHECK(code_of("GET " + std::string(net::kHttpHeadBytesMax, 'x')) == 431);
  CHECK_FALSE(
      read_request("GET " + std::string(net::kHttpHeadBytesMax - 4, 'x'), "node-1").has_value());
  CHECK_THAT(response_to_refused(405), ContainsSubstring("405 Method Not Allowed\r\n") &&
                                           ContainsSubstring("Allow: GET, HEAD\r\n"));
}

TEST_CASE("a response states its length, its type and Connection: close") {
  CHECK_THAT(response_with(Page::kJson, "{}"),
             ContainsSubstring("HTTP/1.1 200 OK\r\n") &&
                 ContainsSubstring("Content-Length: 2\r\n") &&
                 ContainsSubstring("Content-Type: application/json\r\n") &&
                 ContainsSubstring("Connection: close\r\n") && ContainsSubstring("\r\n\r\n{}"));
}

TEST_CASE("the JSON lists connected and missing nodes, and why the run waits") {
  const auto value = boost::json::parse(to_json(example()));
  const auto& run = value.at("runs").as_array().at(0);
  CHECK(run.at("run_id") == "a<b>&\"c");
  CHECK(run.at("phase") == "forming");
  CHECK(run.at("nodes_here") == 1);
  CHECK(run.at("missing_node_ranks") == boost::json::array{1});
  CHECK(run.at("reason") == "1 of 2 nodes here <script>");
  const auto& node = run.at("nodes").as_array().at(0);
  CHECK(node.at("host") == "left");
  CHECK(node.at("workers") == 4);
  CHECK(node.at("group_rank").is_null());
  CHECK(node.at("silent_ms") == 1500);
  CHECK(run.at("log").as_array().at(0).at("text") == "a node joined");
  CHECK(value.at("store").at("keys") == 5);
}

TEST_CASE("no node is missing in a run that is stopping or over") {
  for (const auto phase : {round::Phase::kStopping, round::Phase::kOver}) {
    ServerView view = example();
    view.runs[0].status.phase = phase;
    CHECK(to_html(view).find("missing") == std::string::npos);
    const auto value = boost::json::parse(to_json(view));
    const auto& run = value.at("runs").as_array().at(0);
    CHECK(run.at("missing_node_ranks").as_array().empty());
  }
}

TEST_CASE("the page reloads itself, fits a narrow screen and has times of day and plurals") {
  ServerView view = example();
  view.now = WallTime(std::chrono::hours(11) + std::chrono::minutes(2));
  view.store.keys = 1;
  view.agents = 2;
  view.runs[0].status.terms.max_restarts = 1;
  const std::string page = to_html(view);
  CHECK_THAT(page, ContainsSubstring("http-equiv=\"refresh\"") &&
                       ContainsSubstring("width=device-width") &&
                       ContainsSubstring("@media(max-width:600px)"));
  CHECK_THAT(page, ContainsSubstring("11:02:00Z, version") &&
                       ContainsSubstring("<li>11:01:58Z, 2 s ago: a node joined"));
  CHECK_THAT(page, ContainsSubstring(" 1 key,") && ContainsSubstring(" 2 agents.") &&
                       ContainsSubstring("0 of 1 restart used"));
  CHECK(boost::json::parse(to_json(view)).at("time_ms") == 39'720'000);
}

TEST_CASE("the page marks a run in trouble, with the reason") {
  const auto marked = [](const ServerView& view) {
    const std::string page = to_html(view);
    const auto at = page.find("Attention: ");
    CHECK((at != std::string::npos) == (page.find("class=\"trouble\"") != std::string::npos));
    return at == std::string::npos ? "" : page.substr(at + 11, page.find('<', at) - at - 11);
  };
  ServerView view = example();
  round::Status& status = view.runs[0].status;
  round::NodeStatus& node = status.nodes[0];
  CHECK(marked(view).empty());  // nodes have yet to come
  status.round.number = Round(1);
  CHECK(marked(view) == "nodes were lost: 1 missing, node rank 1");
  status.phase = round::Phase::kRunning;
  status.terms.nodes_min = 1;
  status.missing.clear();
  node.group_rank = 0;
  node.state = protocol::NodeState::kRunning;
  CHECK(marked(view).empty());
  node.silent = status.terms.silence_max();
  CHECK(marked(view) == "left does not answer");
  node.state = protocol::NodeState::kSucceeded;
  CHECK(marked(view).empty());
  node.state = protocol::NodeState::kFailed;
  CHECK(marked(view) == "a worker failed on left");
  status.phase = round::Phase::kOver;
  CHECK(marked(view).empty());
}

TEST_CASE("the page escapes text from peers") {
  const std::string page = to_html(example());
  CHECK_THAT(page, ContainsSubstring("run a&lt;b&gt;&amp;&quot;c: forming"));
  CHECK_THAT(page, ContainsSubstring("1 missing, node rank 1"));
  CHECK(page.find("<script>") == std::string::npos);
}

TEST_CASE("the page of a run that has failed tells its exit code and the first cause, marked") {
  ServerView view = example();
  round::Status& status = view.runs[0].status;
  status.phase = round::Phase::kOver;
  status.nodes.clear();
  protocol::Done& verdict = status.verdict.emplace();
  verdict.exit_code = 7;
  verdict.text = status.why = "rank 3 (gpu-02) failed: exit code 7 <b>";
  verdict.failure.emplace().first.lines = {"the password is needle"};
  const std::string page = to_html(view);
  CHECK_THAT(page, ContainsSubstring(": ended with exit code 7</h2>") &&
                       ContainsSubstring("<section class=\"trouble\">") &&
                       ContainsSubstring("<strong>First cause: rank 3 (gpu-02) failed: exit code 7 "
                                         "&lt;b&gt;</strong>"));
  CHECK_THAT(page, !ContainsSubstring("<table>"));  // no empty one
  CHECK_THAT(page + to_json(view), !ContainsSubstring("needle"));
  const auto json = boost::json::parse(to_json(view));
  const auto& told = json.at("runs").as_array().at(0).at("verdict");
  CHECK(told.at("exit_code") == 7);
  CHECK(told.at("text") == boost::json::value(verdict.text));
  verdict = {0, "all 4 ranks exited with code 0"};
  CHECK_THAT(to_html(view), ContainsSubstring(": succeeded</h2>") &&
                                !ContainsSubstring("<section class=\"trouble\">"));
}

TEST_CASE("nodes that have gone stay on the page, with why, and each node has its version") {
  ServerView view = example();
  round::Status& status = view.runs[0].status;
  status.nodes[0].version = "1.2";
  status.gone.push_back({"gpu-<2>", "10.0.0.2", "ranks 2-3", "", "lost gpu-<2>: no heartbeat",
                         std::chrono::seconds(61)});
  CHECK_THAT(to_html(view), ContainsSubstring("<td title=\"version\">1.2</td>") &&
                                ContainsSubstring("<h3>nodes that have gone</h3>") &&
                                ContainsSubstring("<td title=\"host\">gpu-&lt;2&gt;</td>") &&
                                ContainsSubstring("1 min 1 s ago</td>") &&
                                ContainsSubstring("lost gpu-&lt;2&gt;: no heartbeat</td>") &&
                                ContainsSubstring("<td title=\"version\">not told</td>"));
  const auto json = boost::json::parse(to_json(view));
  const auto& run = json.at("runs").as_array().at(0);
  CHECK(run.at("nodes").as_array().at(0).at("version") == "1.2");
  const auto& gone = run.at("gone").as_array().at(0);
  CHECK(gone.at("ranks") == "ranks 2-3");
  CHECK(gone.at("version").is_null());
  CHECK(gone.at("ago_ms") == 61'000);
  CHECK(run.at("verdict").is_null());
}

TEST_CASE("a page whose run is coordinated elsewhere sends the reader there") {
  const std::string moved = response_moved(Page::kHtml, "10.0.0.2:41234");
  CHECK_THAT(moved, ContainsSubstring("HTTP/1.1 307 Temporary Redirect\r\n") &&
                        ContainsSubstring("Location: http://10.0.0.2:41234/\r\n"));
  CHECK_THAT(response_moved(Page::kJson, "[::1]:5"),
             ContainsSubstring("Location: http://[::1]:5/status.json\r\n"));
  ServerView view;
  view.moved.push_back({"a<b", "10.0.0.2:41234"});
  CHECK_THAT(to_html(view), ContainsSubstring("Run a&lt;b is coordinated at <a "
                                              "href=\"http://10.0.0.2:41234/\">") &&
                                !ContainsSubstring("No run."));
  CHECK(boost::json::parse(to_json(view)).at("moved").as_array().at(0).at("coordinator") ==
        "10.0.0.2:41234");
}
