// A coordinator in a `ddprun` that learns of another one of its run: docs/FAILOVER.md.
#include "tests/coordinator/live.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::protocol;

namespace {

ServerOptions followed() {
  ServerOptions options;
  options.only_run = RunId("run");
  options.own_agent = AgentId("agent-run-a");
  options.fails_over = true;
  options.at_endpoint = true;
  return options;
}

/// Whether the kernel does: no process listens there.
bool refuses(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool refused = ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0;
  ::close(fd);
  return refused;
}

}  // namespace

TEST_CASE("a lead is believed by a coordinator without a round: its agents are sent there") {
  LiveCoordinator coordinator(followed());
  Agent early(coordinator.port(), hello_of("run", "a", 2));
  early.await<Waiting>();
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), Round(4), 4711});
  CHECK(early.await<Moved>() == Moved{"127.0.0.1", 4711});
  CHECK(early.closed());
  leader.await<Beat>();
  Agent late(coordinator.port(), hello_of("run", "b", 2));
  CHECK(late.await<Moved>() == Moved{"127.0.0.1", 4711});
  CHECK(late.closed());
  Client reader(coordinator.port());
  reader.send("GET /status.json HTTP/1.1\r\n\r\n");
  const std::string answer = reader.receive(4096);
  CHECK_THAT(answer, ContainsSubstring("307 Temporary Redirect") &&
                         ContainsSubstring("Location: http://127.0.0.1:4711/status.json\r\n"));
}

TEST_CASE("no lead moves a run whose coordinator has its majority") {
  for (const int least : {1, 2}) {
    LiveCoordinator coordinator(followed());
    std::vector<Hello> hellos{hello_of("run", "a", 2), hello_of("run", "b", 2)};
    for (Hello& hello : hellos) {
      hello.terms.nodes_min = least;
      hello.fingerprint = hello.command = "train.py";
    }
    Agent first(coordinator.port(), hellos[0]);
    Agent second(coordinator.port(), hellos[1]);
    const auto round = first.start_round();
    (void)second.start_round();
    const std::string& origin = round.succession.origin;
    for (const Lead& lead :
         {Lead{RunId("run"), Round(9), 4711}, Lead{RunId("run"), Round(9), 4711, origin},
          Lead{RunId("run"), Round(9), 4711, "of another run"},
          Lead{RunId("run"), Round(9), 4711, origin, "train.py"},
          Lead{RunId("run"), Round(9), 4711, "~", least == 2 ? "train.py" : "guessed.py"}}) {
      Agent stranger(coordinator.port());
      stranger.say(lead);
      stranger.await<Refused>();
      CHECK(stranger.closed());
    }
    for (Agent* member : {&first, &second}) {
      member->say(Beat{});
      CHECK(std::holds_alternative<Beat>(member->next()));
    }
  }
}

TEST_CASE("nodes that wait for their run are sent nowhere by who does not know their command") {
  ServerOptions options = followed();
  auto& own = options.own.emplace();
  own.run_id = RunId("run");
  own.fingerprint = own.command = "train.py";
  LiveCoordinator coordinator(options);
  Hello hello = hello_of("run", "a", 2);
  hello.fingerprint = hello.command = "train.py";
  for (const bool waits : {false, true}) {
    std::optional<Agent> early;
    if (waits) early.emplace(coordinator.port(), hello).await<Waiting>();
    for (const std::string& known : {std::string(), std::string("eval.py")}) {
      Agent stranger(coordinator.port());
      stranger.say(Lead{RunId("run"), Round(4), 4711, "", known});
      stranger.await<Refused>();
    }
  }
  Hello other = hello;
  other.agent = AgentId("other");
  other.fingerprint = other.command = "eval.py";
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), Round(4), 4711, "", "train.py"});
  leader.await<Beat>();
  Agent late(coordinator.port(), hello);
  CHECK(late.await<Moved>().port == 4711);
  Agent stranger(coordinator.port(), other);
  CHECK(stranger.await<Refused>().code == RefusalCode::kCommandDiffers);
}

TEST_CASE("a member of a round of a fixed number of nodes goes only where its round is known") {
  LiveCoordinator coordinator(followed());
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), Round(4), 4711, "origin"});
  leader.await<Beat>();
  Hello hello = hello_of("run", "a", 2);
  hello.claim = Claim{{Round(3), "c0"}, 1, 2, RestartCount(0), NodeState::kRunning};
  hello.claim->succession.has_vote = true;
  hello.claim->succession.origin = "origin";
  Agent member(coordinator.port(), hello);
  CHECK(member.await<Moved>().port == 4711);
  hello.claim->succession.origin = "another";
  Agent other(coordinator.port(), hello);
  other.await<Waiting>();
}

TEST_CASE("a lead is not believed where the round is known, of another run, or by a daemon") {
  LiveCoordinator coordinator(followed());
  Agent member(coordinator.port(), hello_of("run", "a", 1));
  const auto round = member.start_round();
  for (const Lead& lead :
       {Lead{RunId("run"), round.stamp.number, 4711}, Lead{RunId("another"), Round(9), 4711}}) {
    Agent stranger(coordinator.port());
    stranger.say(lead);
    stranger.await<Refused>();
    CHECK(stranger.closed());
  }
  member.say(Beat{});
  member.await<Beat>();
  LiveCoordinator daemon;
  Agent guest(daemon.port(), hello_of("run", "a", 2));
  guest.await<Waiting>();
  Agent stranger(daemon.port());
  stranger.say(Lead{RunId("run"), Round(9), 4711});
  stranger.await<Refused>();
  guest.say(Beat{});
  guest.await<Beat>();
}

TEST_CASE("a lead holds as long as its link, and then a run may begin again") {
  LiveCoordinator coordinator(followed());
  {
    Agent leader(coordinator.port());
    leader.say(Lead{RunId("run"), Round(4), 4711});
    leader.await<Beat>();
    Agent sent(coordinator.port(), hello_of("run", "a", 1));
    CHECK(sent.await<Moved>().port == 4711);
    Agent second(coordinator.port());
    second.say(Lead{RunId("run"), Round(5), 4712});
    CHECK(second.await<Moved>().port == 4711);  // the two are to learn of each other
    Agent stranger(coordinator.port());
    stranger.say(Lead{RunId("another"), Round(5), 4712});
    stranger.await<Refused>();
  }
  CHECK(eventually([&] {
    bool moved = true;
    coordinator.on_thread([&](auto& server) { moved = server->has_moved(); });
    return !moved;
  }));
  Agent late(coordinator.port(), hello_of("run", "b", 1));
  late.start_round();
}

TEST_CASE("what listens at an endpoint is told a part of the origin, by which no member is known") {
  LiveCoordinator coordinator(followed());
  Agent member(coordinator.port(), elastic_hello("a"));
  Agent other(coordinator.port(), elastic_hello("b"));
  const auto round = member.start_round();
  const std::string name = protocol::name_of_origin(round.succession.origin);
  CHECK(name.size() + 16 < round.succession.origin.size());
  Agent same(coordinator.port());
  same.say(Lead{RunId("run"), round.stamp.number, 4711, name});
  same.await<Refused>();
}

TEST_CASE("a coordinator shows no name that proves that a node was in a round") {
  LiveCoordinator coordinator(followed());
  Agent member(coordinator.port(), elastic_hello("a"));
  Agent other(coordinator.port(), elastic_hello("b"));
  const auto round = member.start_round();
  for (const std::string path : {"/status", "/status.json"}) {
    Client reader(coordinator.port());
    reader.send("GET " + path + " HTTP/1.1\r\n\r\n");
    const std::string page = reader.receive(1024 * 1024);
    CHECK(page.starts_with("HTTP/1.1 200 "));
    CHECK(page.find(round.stamp.author) == std::string::npos);
    CHECK(page.find(round.succession.origin) == std::string::npos);
  }
}

TEST_CASE("a run that began while an older one was not heard ends when that one is") {
  LiveCoordinator coordinator(followed());
  Agent member(coordinator.port(), elastic_hello("a"));
  Agent spare(coordinator.port(), elastic_hello("b"));
  const auto round = member.start_round();
  CHECK(!round.succession.origin.empty());
  CHECK(round.succession.origin != round.stamp.author);  // which the endpoint's process is not told
  Agent same(coordinator.port());
  same.say(Lead{RunId("run"), round.stamp.number, 4711, round.succession.origin});
  same.await<Refused>();
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), round.stamp.number, 4711, "of an older run"});
  CHECK(member.await<Moved>().port == 4711);
}

TEST_CASE("a leader whose link is half open is not sent to itself") {
  LiveCoordinator coordinator(followed());
  auto half_open = std::make_unique<Agent>(coordinator.port());
  half_open->say(Lead{RunId("run"), Round(4), 4711});
  half_open->await<Beat>();
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), Round(4), 4711});
  leader.await<Beat>();
  half_open.reset();
  Agent late(coordinator.port(), hello_of("run", "a", 1));
  CHECK(late.await<Moved>().port == 4711);
}

TEST_CASE("a leader to which one that is to yield says that it leads meets that one") {
  ServerOptions options = followed();
  options.at_endpoint = false;
  LiveCoordinator coordinator(options);
  std::vector<std::string> met;
  coordinator.on_thread([&](auto& server) {
    server->on_rival([&met](const std::string& host, std::uint16_t port) {
      met.push_back(host + ":" + std::to_string(port));
    });
  });
  Agent member(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = member.start_round();
  const std::string& own = round.succession.origin;
  for (const std::string& origin : {std::string(), own, std::string("!")}) {
    Agent other(coordinator.port());
    other.say(Lead{RunId("run"), round.stamp.number, 4711, origin});
    other.await<Refused>();
  }
  Agent stranger(coordinator.port());
  stranger.say(Lead{RunId("another"), round.stamp.number, 4712, "!"});
  stranger.await<Refused>();
  coordinator.on_thread([&](auto&) { CHECK(met == std::vector<std::string>{"127.0.0.1:4711"}); });
}

TEST_CASE("a node of another list of hosts is not sent to the leader of this one") {
  ServerOptions options = followed();
  options.list_begins = "a:29400";
  LiveCoordinator coordinator(options);
  Agent leader(coordinator.port());
  leader.say(Lead{RunId("run"), Round(4), 4711});
  leader.await<Beat>();
  Hello other = hello_of("run", "x", 2);
  other.terms.list_begins = "b:29400";
  Agent stranger(coordinator.port(), other);
  CHECK(stranger.await<Refused>().code == RefusalCode::kWrongRun);
  CHECK(stranger.closed());
  other.terms.list_begins = "a:29400";
  Agent own(coordinator.port(), other);
  CHECK(own.await<Moved>().port == 4711);
}

TEST_CASE("a lead far beyond the rounds of a run is not believed") {
  LiveCoordinator coordinator(followed());
  Agent member(coordinator.port(), hello_of("run", "a", 1));
  member.start_round();
  Agent stranger(coordinator.port());
  stranger.say(Lead{RunId("run"), Round(1 << 29), 4711});
  stranger.await<Refused>();
  member.say(Beat{});
  member.await<Beat>();
}

TEST_CASE("a node that says it has the coordinator and has not is any other spare") {
  const bool in_later_hello = GENERATE(false, true);
  LiveCoordinator coordinator(followed());
  std::vector<Hello> hellos{elastic_hello("a"), elastic_hello("b"), elastic_hello("c")};
  for (Hello& hello : hellos) hello.terms.nodes_min = 2;
  Agent first(coordinator.port(), hellos[0]);
  Agent second(coordinator.port(), hellos[1]);
  (void)first.start_round();
  (void)second.start_round();
  hellos[2].runs_coordinator = !in_later_hello;
  Agent stranger(coordinator.port(), hellos[2]);
  (void)stranger.await<Waiting>();
  hellos[2].runs_coordinator = true;
  if (in_later_hello) stranger.say(hellos[2]);
  stranger.say(Leave{42, "bye", Round(0), true});
  CHECK(stranger.closed());
  first.say(Beat{});
  bool ended = false;
  for (Message next = first.next(); !std::holds_alternative<Beat>(next); next = first.next()) {
    ended = ended || std::holds_alternative<Done>(next) || std::holds_alternative<Stop>(next);
  }
  CHECK_FALSE(ended);
}

TEST_CASE("a probe is answered for its own run alone, and says whether that has had a round") {
  LiveCoordinator coordinator(followed());
  const auto ask = [&coordinator](const std::string& run) {
    Agent asking(coordinator.port());
    asking.say(Probe{"n", run});
    return asking.next();
  };
  CHECK(std::holds_alternative<Refused>(ask("other")));
  CHECK_FALSE(std::get<Probe>(ask("run")).had_round);
  Agent alone(coordinator.port(), hello_of("run", "a", 1));
  (void)alone.start_round();
  CHECK(std::get<Probe>(ask("run")).had_round);
}

TEST_CASE("a coordinator that resigns listens no longer when its agents' links end") {
  LiveCoordinator coordinator(followed());
  auto resigned = std::make_shared<std::promise<void>>();
  coordinator.on_thread(
      [&](auto& server) { server->on_resigned([resigned] { resigned->set_value(); }); });
  std::vector<Hello> hellos{elastic_hello("a"), elastic_hello("b")};
  for (Hello& hello : hellos) hello.terms.nodes_min = 1;
  hellos[0].runs_coordinator = true;
  hellos[1].standby_port = 7002;
  Agent own(coordinator.port(), hellos[0]);
  Agent other(coordinator.port(), hellos[1]);
  const auto round = own.start_round();
  (void)other.start_round();
  Leave leave{143, "SIGTERM received", round.stamp.number, true};
  own.say(leave);
  CHECK_THAT(other.await<Resigned>().reason, ContainsSubstring("SIGTERM received"));
  CHECK(other.closed());
  CHECK(refuses(coordinator.port()));
  auto done = resigned->get_future();
  CHECK(is_ready(done));
}

TEST_CASE("a candidate without a majority says so to its process, and nothing to its agents") {
  ServerOptions options = followed();
  options.seat.candidate.emplace();
  const auto abdicated = std::make_shared<std::promise<void>>();
  auto done = abdicated->get_future();
  options.seat.on_abdicate = [abdicated](const std::string&) { abdicated->set_value(); };
  LiveCoordinator coordinator(options);
  Hello hello = soon_lost_hello("a");
  hello.claim = Claim{{Round(3), "c0"},      1,    3, RestartCount(0), NodeState::kRunning,
                      {0, true, true, true}, false};
  Agent agent(coordinator.port(), hello);
  agent.say(Beat{});
  CHECK(std::holds_alternative<Beat>(agent.next()));
  CHECK(is_ready(done));
}

TEST_CASE("a daemon sends the nodes of a run nowhere, although another process claims to lead") {
  LiveCoordinator daemon;
  Agent member(daemon.port(), hello_of("run", "a", 2));
  member.await<Waiting>();
  Agent stranger(daemon.port());
  stranger.say(Lead{RunId("run"), Round(4), 4711});
  stranger.await<Refused>();
  Agent early(daemon.port());
  early.say(Lead{RunId("later"), Round(4), 4711});
  early.await<Refused>();
  Agent late(daemon.port(), hello_of("later", "b", 2));
  late.await<Waiting>();
}
