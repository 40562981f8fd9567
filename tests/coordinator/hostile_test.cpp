// Peers that send invalid data, hang, flood or are too many: limited in bytes and time, and no
// other peer is affected.
#include <algorithm>
#include <atomic>

#include "tests/coordinator/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

/// A working agent proves that the coordinator works.
void check_still_serves(LiveCoordinator& coordinator) {
  static int number = 0;
  Agent agent(coordinator.port(), hello_of("still" + std::to_string(++number), "a", 1));
  agent.start_round();
}

ServerOptions with(Limits limits) {
  ServerOptions options;
  options.limits = limits;
  return options;
}

}  // namespace

TEST_CASE("a frame over the limit, an empty one and invalid data close the connection") {
  LiveCoordinator coordinator;
  for (const std::string& bytes :
       {"\x7f\xff\xff\xff"s, "\0\0\0\0"s, "\0\0\0\x04zzzz"s, "\0\0\0\x02{}"s}) {
    Agent agent(coordinator.port());
    agent.socket().send(bytes);
    CHECK_FALSE(agent.try_next().has_value());
  }
  CHECK_THAT(coordinator.log(),
             ContainsSubstring("closed a connection: " + kFrameAnnounced + "2147483647 bytes"));
  check_still_serves(coordinator);
}

TEST_CASE("what an agent says of itself forges no line of the log, and turns no text around") {
  LiveCoordinator coordinator;
  const std::string wild = "a\n[error] forged\r\x1b[2J\x07\xE2\x80\xAE\xC2\x9B";
  const auto hello_from = [&](const std::string& name) {
    auto hello = elastic_hello(name);
    hello.agent = AgentId(name);
    hello.host = name + wild;
    hello.role = hello.command = wild;
    return hello;
  };
  auto first = std::make_unique<Agent>(coordinator.port(), hello_from("a"));
  Agent second(coordinator.port(), hello_from("b"));
  second.start_round();
  first->say(protocol::Leave{1, wild});
  first->closed();
  second.await<protocol::StartRound>();
  const std::string log = coordinator.log();
  CAPTURE(log);
  CHECK_THAT(log, ContainsSubstring("\\n[error] forged\\r\\x1b[2J\\x07\\u202e\\u009b"));
  CHECK(log.find("\n[error] forged") == std::string::npos);
  CHECK(log.find_first_of("\x1b\r\x07") == std::string::npos);
  CHECK(log.find("\xE2\x80\xAE") == std::string::npos);
  Agent unnamed(coordinator.port(), hello_of("run\nforged", "c", 1));
  CHECK(unnamed.closed());
}

TEST_CASE("connections that do not finish their hello give way to other addresses") {
  ServerOptions options;
  options.store.connections = 8;
  LiveCoordinator coordinator(options);
  std::vector<std::unique_ptr<Client>> half;
  for (int i = 0; i < 24; ++i) {
    half.push_back(std::make_unique<Client>(coordinator.port()));
    half.back()->send(i % 2 == 0 ? "D" : "DDPR\0"s);
  }
  check_still_serves(coordinator);
}

TEST_CASE("a run without agents gives its place to another") {
  Limits limits;
  limits.runs = 1;
  LiveCoordinator coordinator(with(limits));
  {
    Agent agent(coordinator.port(), hello_of("left", "a", 2));
    agent.await<protocol::Waiting>();
    Agent other(coordinator.port(), hello_of("other", "a", 2));
    other.await<protocol::Refused>();
  }
  // The refusal is repeated until the end of the first agent has been read.
  CHECK(eventually([&] {
    Agent other(coordinator.port(), hello_of("other", "b", 2));
    return std::holds_alternative<protocol::Waiting>(other.next());
  }));
  // The place is free again once the end of the second agent has been read too.
  CHECK(eventually([&] { return coordinator.log().find("lost b") != std::string::npos; }));
  check_still_serves(coordinator);
}

TEST_CASE("agents that are refused again and again do not fill the log") {
  LiveCoordinator coordinator;
  Agent member(coordinator.port(), hello_of("run", "a", 2));
  member.await<protocol::Waiting>();
  constexpr int kTimes = 2 * kRunLinesMax;
  for (int time = 0; time < kTimes; ++time) {
    Agent other(coordinator.port(), hello_of("run", "b" + std::to_string(time), 3));
    other.await<protocol::Refused>();
  }
  const std::string log = coordinator.log();
  CHECK(std::count(log.begin(), log.end(), '\n') < kTimes);
  check_still_serves(coordinator);
}

TEST_CASE("random data of one peer does not fill the log: another number is not a new cause") {
  LiveCoordinator coordinator;
  for (char length = '\x70'; length < '\x7f'; ++length) {
    Agent agent(coordinator.port());
    agent.socket().send(std::string(1, length) + "\xff\xff\xff");
    CHECK_FALSE(agent.try_next().has_value());
  }
  const std::string log = coordinator.log();
  const std::string told = "[warning] closed a connection: " + kFrameAnnounced;
  CHECK(log.find(told) != std::string::npos);
  CHECK(log.find(told) == log.rfind(told));
}

TEST_CASE("invalid data from a member is the loss of its node, with the cause") {
  LiveCoordinator coordinator;
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  first.start_round();
  second.start_round();
  second.socket().send(std::string("\0\0\0\x04zzzz", 8));
  CHECK_THAT(first.start_round().reason,
             ContainsSubstring("lost b") && ContainsSubstring("it is not JSON"));
}

TEST_CASE("a message of an unknown type is answered and changes nothing") {
  LiveCoordinator coordinator;
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  agent.start_round();
  agent.socket().send(protocol::frame(R"({"type":"sing"})"));
  CHECK_THAT(agent.await<protocol::Unknown>().sentence, ContainsSubstring("sing"));
  agent.say(protocol::Beat{});
  agent.await<protocol::Beat>();
}

TEST_CASE("an agent that sends another message before its hello is refused") {
  LiveCoordinator coordinator;
  Agent agent(coordinator.port());
  agent.say(protocol::Beat{});
  CHECK(agent.await<protocol::Refused>().code == protocol::RefusalCode::kMalformed);
  CHECK(agent.closed());
}

TEST_CASE("half a hello and half a request, followed by silence, are closed after the timeout") {
  Limits limits;
  limits.idle_timeout = 50ms;
  LiveCoordinator coordinator(with(limits));
  const std::string hello = protocol::frame(protocol::encode(hello_of("run", "a", 1)));
  Client waits_as_client(coordinator.port());  // silent, as a store client may be
  for (const std::string& bytes : {"D"s, "DDPR"s, "DDPR" + hello.substr(0, 9), "GET /sta"s}) {
    Client peer(coordinator.port());
    peer.send(bytes);
    CHECK(peer.closed());
  }
  CHECK_THAT(coordinator.log(), ContainsSubstring(kNoFirstMessage + "50 ms"));
  Agent member(coordinator.port(), hello_of("run", "b", 2));
  member.await<protocol::Waiting>();
  CHECK(member.socket().silent());
  CHECK(waits_as_client.ask(store::requests::validate() + store::requests::ping(1), 4) ==
        store::requests::u32(1));
}

TEST_CASE("a refused agent that stays connected is closed after the timeout") {
  Limits limits;
  limits.idle_timeout = 50ms;
  LiveCoordinator coordinator(with(limits));
  Agent agent(coordinator.port());
  agent.say(protocol::Beat{});
  CHECK(agent.closed());  // the coordinator's half
  auto settled = coordinator.settled();
  CHECK(is_ready(settled));
}

TEST_CASE("an agent that does not read is lost when its queue is full") {
  Limits limits;
  limits.link_unsent_bytes = 20'000;
  limits.link_frames = 10'000'000;
  LiveCoordinator coordinator(with(limits));
  Agent reader(coordinator.port(), elastic_hello("a"));
  Agent deaf(coordinator.port(), elastic_hello("deaf"));
  reader.start_round();
  deaf.start_round();
  // Each answer quotes the message, so that few of them fill the kernel's buffers.
  const std::string unknown = protocol::frame(R"({"type":")" + std::string(200, 'x') + R"("})");
  std::string messages;
  for (int count = 0; count < 1000; ++count) messages += unknown;
  std::thread flood([&] {
    for (int count = 0; count < 2000; ++count) {
      if (!deaf.socket().send_all(messages)) break;
    }
  });
  const auto next = reader.try_next();
  flood.join();
  REQUIRE(next.has_value());
  REQUIRE(std::holds_alternative<protocol::StartRound>(*next));
  CHECK_THAT(std::get<protocol::StartRound>(*next).reason,
             ContainsSubstring("lost deaf") && ContainsSubstring("does not read"));
}

TEST_CASE("a flood of one peer does not delay another's heartbeat") {
  LiveCoordinator coordinator;
  Agent calm(coordinator.port(), hello_of("calm", "a", 1));
  calm.start_round();
  Agent wild(coordinator.port(), hello_of("wild", "a", 1));
  wild.start_round();
  std::atomic<bool> enough = false;
  std::thread reads([&] {
    while (!enough && !wild.socket().receive(65536, 1000).empty()) {
    }
  });
  std::thread flood([&] {
    std::string beats;
    const std::string beat = protocol::frame(protocol::encode(protocol::Beat{}));
    for (int count = 0; count < 1000; ++count) beats += beat;
    while (!enough && wild.socket().send_all(beats)) {
    }
  });
  auto slowest = 0ms;
  for (int count = 0; count < 200; ++count) {
    const auto begin = std::chrono::steady_clock::now();
    calm.say(protocol::Beat{});
    calm.await<protocol::Beat>();
    const auto took = std::chrono::steady_clock::now() - begin;
    slowest = std::max(slowest, std::chrono::duration_cast<std::chrono::milliseconds>(took));
  }
  enough = true;
  flood.join();
  reads.join();
  CHECK(slowest < 5s);  // an agent is lost after silence of this length
}

TEST_CASE("one agent, run or connection too many is refused with the reason") {
  Limits limits;
  limits.agents = 3;
  limits.runs = 2;
  ServerOptions options = with(limits);
  options.store.connections = 4;
  LiveCoordinator coordinator(options);
  Agent one(coordinator.port(), hello_of("one", "a", 2));
  one.await<protocol::Waiting>();
  Agent two(coordinator.port(), hello_of("two", "a", 2));
  two.await<protocol::Waiting>();
  {
    Agent three(coordinator.port(), hello_of("three", "a", 2));
    const auto refused = three.await<protocol::Refused>();
    CHECK(refused.code == protocol::RefusalCode::kRunFull);
    CHECK_THAT(refused.sentence, ContainsSubstring("2 runs") && ContainsSubstring("--max-runs"));
  }
  Agent more(coordinator.port(),
             hello_of("one", "b", 3));  // refused because of other terms; stays connected
  CHECK(more.await<protocol::Refused>().code == protocol::RefusalCode::kTermsDiffer);
  Agent joined(coordinator.port(), hello_of("two", "b", 2));
  joined.start_round();
  {
    Agent fourth(coordinator.port(), hello_of("one", "c", 2));
    CHECK_FALSE(fourth.try_next().has_value());  // the fifth connection, while `more` is still open
  }
  CHECK(more.closed());
}

TEST_CASE("clients of the store that come together count once each, up to the limit") {
  ServerOptions options;
  options.store.connections = 8;
  LiveCoordinator coordinator(options);
  std::vector<Client> clients;
  coordinator.on_thread([&](auto&) {  // so that all of them are accepted in one batch
    while (clients.size() < options.store.connections) {
      clients.emplace_back(coordinator.port());
      clients.back().send(store::requests::validate() + store::requests::ping(7));
    }
  });
  for (Client& client : clients) CHECK(client.receive(4) == store::requests::u32(7));
  Client one_too_many(coordinator.port());
  one_too_many.send(store::requests::validate());
  CHECK(one_too_many.closed());
}

TEST_CASE("one agent too many is refused with the flag to change") {
  Limits limits;
  limits.agents = 1;
  LiveCoordinator coordinator(with(limits));
  Agent one(coordinator.port(), hello_of("one", "a", 1));
  one.start_round();
  Agent two(coordinator.port(), hello_of("two", "a", 1));
  const auto refused = two.await<protocol::Refused>();
  CHECK_THAT(refused.sentence, ContainsSubstring("--max-agents"));
  CHECK(refused.retry_after > 0ms);
  CHECK(two.closed());
}

TEST_CASE("refused hellos leave no run behind") {
  Limits limits;
  limits.runs = 1;
  LiveCoordinator coordinator(with(limits));
  for (int count = 0; count < 5; ++count) {
    auto hello = hello_of("run" + std::to_string(count), "a", 1);
    hello.node_rank = 7;  // of one node
    Agent agent(coordinator.port(), hello);
    CHECK(agent.await<protocol::Refused>().code == protocol::RefusalCode::kNodeRankTooHigh);
  }
  check_still_serves(coordinator);
}

TEST_CASE("incomplete frames of all agents together are limited") {
  Limits limits;
  limits.partial_bytes = 4096;
  LiveCoordinator coordinator(with(limits));
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  agent.start_round();
  agent.socket().send(std::string("\0\0\xff\xff", 4) + std::string(5000, ' '));
  CHECK(agent.closed());
  CHECK_THAT(coordinator.log(), ContainsSubstring("partial_bytes = 4096"));
  check_still_serves(coordinator);
}

TEST_CASE("peers that hoard incomplete messages do not crowd out an agent in the middle of one") {
  Limits limits;
  limits.partial_bytes = 64 * 1024;
  LiveCoordinator coordinator(with(limits));
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  const auto round = agent.start_round();
  const std::string beat = protocol::frame(protocol::encode(protocol::Beat{}));
  std::vector<std::unique_ptr<Agent>> hoarders;
  for (const std::string name : {"b", "c", "d"}) {
    hoarders.push_back(std::make_unique<Agent>(coordinator.port(), hello_of(name, name, 1)));
    hoarders.back()->start_round();
    hoarders.back()->socket().send(beat + "\0\1\0\0"s + std::string(15'000, ' '));
    hoarders.back()->await<protocol::Beat>();  // its incomplete message is read, and counted
  }
  protocol::Report report;
  report.round = round.stamp.number;
  report.state = protocol::NodeState::kFailed;
  report.store_port = 4001;
  report.failure.emplace().lines = std::vector<std::string>(15, std::string(2000, 'x'));
  report.failure->status = ExitStatus::exited(7);
  const std::string frame = protocol::frame(protocol::encode(report));
  agent.socket().send(frame.substr(0, frame.size() / 2));
  const std::string half = "GET /status HTTP/1.1\r\nX: " + std::string(7000, 'x');
  std::vector<Client> ask;
  while (ask.size() < 3) {
    ask.emplace_back(coordinator.port());
    ask.back().send(half);
  }
  CHECK(hoarders.front()->socket().closed());
  agent.socket().send(frame.substr(frame.size() / 2));
  agent.say(protocol::Stopped{round.stamp.number, 0ms, 0, 0});
  CHECK(agent.await<protocol::Done>().exit_code == 7);
}

TEST_CASE("the queue of an agent that does not read is counted, also where it shares all frames") {
  Limits limits;
  limits.link_unsent_bytes = 1024 * 1024 * 1024;
  limits.unsent_bytes = 64 * 1024;
  limits.link_frames = 10'000'000;
  LiveCoordinator coordinator(with(limits));
  Agent reader(coordinator.port(), elastic_hello("a"));
  Agent deaf(coordinator.port(), elastic_hello("deaf"));
  reader.start_round();
  deaf.start_round();
  const int small = 4096;  // less for the kernel to take
  ::setsockopt(deaf.socket().fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  std::string unknown;
  const std::string one = protocol::frame(R"({"type":")" + std::string(250, 'x') + R"("})");
  for (int count = 0; count < 100; ++count) unknown += one;
  for (int count = 0; count < 1000; ++count) {
    if (!deaf.socket().send_all(unknown)) break;
  }
  CHECK_THAT(reader.start_round().reason,
             ContainsSubstring("lost deaf") && ContainsSubstring("does not read"));
}

TEST_CASE("agents that reset the connection at any point leave nothing behind") {
  LiveCoordinator coordinator;
  for (int count = 0; count < 300; ++count) {
    Agent agent(coordinator.port(), hello_of("run" + std::to_string(count % 7), "a", 2));
    if (count % 3 == 0) agent.await<protocol::Waiting>();
    agent.socket().reset();
  }
  CHECK(eventually([&] {
    Client reader(coordinator.port());
    reader.send("GET /status.json HTTP/1.1\r\n\r\n");
    return reader.receive(1024 * 1024).find("\"agents\":0") != std::string::npos;
  }));
  check_still_serves(coordinator);
}
