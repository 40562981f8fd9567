// One test per message of docs/internals/LINK.md: every field is preserved, and the bytes match the
// documentation.
#include "rendezvous/protocol/codec.hpp"

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/names.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::protocol;

namespace {

Message round_trip(const Message& message) {
  const auto decoded = decode(encode(message));
  REQUIRE(decoded.has_value());
  return *decoded;
}

Hello full_hello() {
  Hello hello;
  hello.run_id = RunId("7f3a");
  hello.agent = AgentId("0123abcd");
  hello.host = "gpu-03";
  hello.address = "10.0.4.13";
  hello.store_port = 40123;
  hello.local_world_size = 8;
  hello.role = "trainer";
  hello.terms = Terms{2, 4, 3, Milliseconds(90'000), Milliseconds(500), Milliseconds(250), 8};
  hello.node_rank = 3;
  hello.scheduler_index = 7;
  hello.terms.commands_may_differ = true;
  hello.terms.min_uptime = std::chrono::seconds(60);
  hello.terms.hang_timeout = std::chrono::seconds(600);
  hello.fingerprint = "00a1";
  hello.command = "train.py --config 'a b'";
  hello.age = Milliseconds(1234);
  hello.stop_timeout = Milliseconds(45'000);
  hello.seen = Round(6);
  hello.runs_coordinator = true;
  hello.addresses = {"10.0.4.13", "fd00::13"};
  hello.claim = Claim{{Round(5), "c1"},
                      2,
                      3,
                      RestartCount(1),
                      NodeState::kSucceeded,
                      {2, true, true, true, true, "c0"},
                      true,
                      false,
                      true};
  hello.standby_port = 40124;
  hello.reached = "fe80::1%eth0";
  return hello;
}

Complaint full_complaint() {
  Complaint complaint;
  complaint.kind = ComplaintKind::kRendezvous;
  complaint.line = "wait timeout after 4000ms, keys: /default_pg/0//cpu//0/1";
  complaint.operation = "ALLREDUCE";
  complaint.place = "train.py:310";
  complaint.sequence = 7;
  complaint.limit = Milliseconds(4000);
  complaint.accused = {1, 3};
  return complaint;
}

WorkerExit full_exit() {
  WorkerExit exit;
  exit.worker = {Rank(12), LocalRank(4), 4711, "gpu-03"};
  exit.status = ExitStatus::signaled(11, ExitStatus::Core::kDumped);
  exit.passed_signal = 10;
  exit.when = WallTime(std::chrono::hours(11) + Milliseconds(118));
  exit.since_start = Milliseconds(3700);
  exit.after = Milliseconds(2500);
  exit.source = EvidenceSource::kErrorFile;
  exit.lines = {"Traceback", "boom"};
  exit.log = "/logs/stderr.log";
  exit.evidence.memory = {1, 2, true, 3, 4, 1, 5, 6, 7, 8, 9, 10, 11};
  exit.evidence.limits = {12, 13, 14, 15, 16, 17, 18, 19, "cv", true};
  exit.evidence.disks = {{"/dev/shm", 64, 0, 18}, {"/logs", 1'000, 10, std::nullopt}};
  exit.evidence.core_pattern = "|/usr/lib/systemd/systemd-coredump";
  exit.evidence.telling_line = "OSError: [Errno 28] No space left on device";
  exit.evidence.steps = "rank 3 last finished step 1041, others 1042";
  exit.evidence.silent = true;
  exit.evidence.stderr_unseen = true;
  exit.evidence.lines_of_stdout = true;
  exit.evidence.stdout_closed = true;
  exit.evidence.lines_of_both = true;
  exit.evidence.stepped = true;
  exit.complaint = full_complaint();
  exit.given_up = Finding{"HANG", "no progress", {1, 2}, {"1 rank: f (a.py:1)"}, "", ""};
  exit.given_up->places = {{"f (a.py:1)", {12}, 0}, {"g (a.py:2)", {13, 14}, 3}};
  exit.given_up->no_restart = "the kernel holds it";
  return exit;
}

RankFacts full_facts() {
  RankFacts facts;
  facts.rank = Rank(12);
  facts.local_rank = LocalRank(4);
  facts.pid = 4711;
  facts.end = RankEnd::kSucceeded;
  facts.state = "T";
  facts.waits_in = "clock_nanosleep";
  facts.channel = "hrtimer_nanosleep";
  facts.cpu = Milliseconds(20);
  facts.watched = Milliseconds(500);
  facts.store = {true, "127.0.0.1", {40112, 40114}};
  facts.silent = Milliseconds(4200);
  facts.exited = Milliseconds(300);
  facts.complaint = full_complaint();
  return facts;
}

StoreWait full_wait() {
  return {"10.0.0.7", 40112, "default_pg/0//cpu//0/1", 2, Milliseconds(12'000)};
}

}  // namespace

TEST_CASE("texts arrive printable, identifiers that are not are refused") {
  Hello hello = full_hello();
  hello.host = "gpu\n\x1b[2J";
  CHECK(std::get<Hello>(round_trip(hello)).host == "gpu\\n\\x1b[2J");
  hello.host = std::string(kNameBytesMax, '\n');
  CHECK(std::get<Hello>(round_trip(hello)).host.size() <= kNameBytesMax);
  hello.run_id = RunId("a\nb");
  CHECK_THAT(decode(encode(hello)).error().sentence, ContainsSubstring("control characters"));
  Report report;
  report.round = Round(1);
  report.store_port = 1;
  report.failure = full_exit();
  report.failure->lines = {"a\x1b[31mred\tb"};
  CHECK(std::get<Report>(round_trip(report)).failure->lines[0] == "a\\x1b[31mred\tb");
}

TEST_CASE("hello preserves every field") {
  CHECK(round_trip(full_hello()) == Message(full_hello()));
  Hello bare = full_hello();
  bare.node_rank.reset();
  bare.scheduler_index.reset();
  bare.claim.reset();
  bare.runs_coordinator = false;
  bare.address.clear();
  bare.role.clear();
  CHECK(round_trip(bare) == Message(bare));
}

TEST_CASE("hello contains the protocol number") {
  CHECK_THAT(encode(full_hello()), ContainsSubstring("\"type\":\"hello\",\"protocol\":1"));
}

TEST_CASE("refused preserves every field, and every code has a name") {
  for (const auto& [code, word] : names_of(RefusalCode{})) {
    const Refused refused{code, "no place", Milliseconds(5000)};
    CHECK(round_trip(refused) == Message(refused));
    CHECK_THAT(encode(refused), ContainsSubstring(std::string(word)));
  }
}

TEST_CASE("waiting preserves every field") {
  for (const auto& [then, word] : names_of(WaitEnd{})) {
    Waiting waiting{6, 7, 8, Round(2), Milliseconds(45'000), "6 of 8", then};
    waiting.successors = {{2, "gpu-03", "10.0.4.13", 40124}};
    CHECK(round_trip(waiting) == Message(waiting));
    CHECK_THAT(encode(waiting), ContainsSubstring(std::string(word)));
  }
}

TEST_CASE("round preserves every field") {
  StartRound start;
  start.stamp.number = Round(5);
  start.stamp.author = "c2";
  start.group_rank = 1;
  start.group_size = 2;
  start.rank_base = Rank(8);
  start.world_size = WorldSize(16);
  start.role_rank_base = 3;
  start.role_world_size = 9;
  start.master_address = "10.0.4.11";
  start.master_port = 41207;
  start.restarts = RestartCount(2);
  start.reason = "lost gpu-07";
  start.may_be_last = true;
  start.store_peers = {"10.0.4.11", "fd00::11"};
  start.succession = {3, true, true, true, true, "c0"};
  start.successors = {{1, "gpu-02", "10.0.4.12", 40123}, {2, "gpu-03", "fd00::13", 40124}};
  CHECK(round_trip(start) == Message(start));
  CHECK_THAT(encode(start), ContainsSubstring("\"type\":\"round\",\"round\":5"));
}

TEST_CASE("report preserves every field, and every node state has a name") {
  for (const auto& [state, word] : names_of(NodeState{})) {
    const Report report{Round(5), state, 40124, full_exit()};
    CHECK(round_trip(report) == Message(report));
    CHECK_THAT(encode(report), ContainsSubstring(std::string(word)));
  }
}

TEST_CASE("an exit preserves its status, and every source of evidence has a name") {
  Report report{Round(5), NodeState::kFailed, 40124, full_exit()};
  using Core = ExitStatus::Core;
  for (const ExitStatus& status :
       {ExitStatus::exited(0), ExitStatus::exited(255), ExitStatus::signaled(9),
        ExitStatus::signaled(6, Core::kDumped)}) {
    report.failure->status = status;
    CHECK(round_trip(report) == Message(report));
  }
  for (const auto& [source, word] : names_of(EvidenceSource{})) {
    report.failure->source = source;
    CHECK(round_trip(report) == Message(report));
    CHECK_THAT(encode(report), ContainsSubstring(std::string(word)));
  }
}

TEST_CASE("a failure without its evidence is malformed") {
  Report report{Round(5), NodeState::kFailed, 40124, std::nullopt};
  CHECK_THAT(decode(encode(report)).error().sentence,
             ContainsSubstring("field \"failure\" is missing in \"report\""));
  report.state = NodeState::kRunning;
  CHECK(round_trip(report) == Message(report));
}

TEST_CASE("an exit of a peer that sends no evidence is read, and none is written where none is") {
  Report report{Round(5), NodeState::kFailed, 40124, full_exit()};
  report.failure->evidence = {};
  report.failure->given_up.reset();
  CHECK_THAT(encode(report), !ContainsSubstring("evidence"));
  CHECK(round_trip(report) == Message(report));
  report.failure->evidence.memory.limit = 0;
  CHECK(round_trip(report) == Message(report));
}

TEST_CASE("more file systems than allowed are cut by the sender and refused by the receiver") {
  Report report{Round(5), NodeState::kFailed, 40124, full_exit()};
  report.failure->evidence.disks.assign(kDisksMax + 1, {"/data", 1, 1, 1});
  std::string body = encode(report);
  CHECK(std::get<Report>(*decode(body)).failure->evidence.disks.size() == kDisksMax);
  const std::string list = "\"disks\":[";
  body.insert(body.find(list) + list.size(), R"({"path":"/","bytes":1,"free_bytes":1},)");
  CHECK_THAT(decode(body).error().sentence, ContainsSubstring("more than 8 entries"));
}

TEST_CASE("the largest stop fits in a frame") {
  const std::string longest(100'000, '\x01');
  RunFailure failure;
  failure.first = full_exit();
  failure.first.worker.host = failure.first.log = failure.no_restart = longest;
  failure.repeated = failure.no_retry = longest;
  failure.first.lines.assign(50, std::string(10'000, '\x01'));
  failure.first.evidence.disks.assign(kDisksMax, {longest, 1, 1, 1});
  failure.first.evidence.core_pattern = failure.first.evidence.telling_line = longest;
  failure.first.evidence.steps = longest;
  Finding& finding = failure.finding.emplace();
  finding.code = finding.text = finding.likely = finding.others = longest;
  finding.ranks.assign(1'000, 1 << 28);
  finding.evidence.assign(50, longest);
  const Done known{5, longest, failure, longest};
  const std::string body = encode(Stop{Round(5), 10, Milliseconds(1), longest, known});
  CHECK(body.size() <= kFrameBytesMax);
  CHECK(decode(body).has_value());
}

TEST_CASE("stop preserves every field") {
  const Done known{5, "rank 1 failed", RunFailure{full_exit(), Round(5)}};
  const Stop stop{Round(5), 10, Milliseconds(600'000), "gpu-01 left", known};
  CHECK(round_trip(stop) == Message(stop));
  Stop requested = stop;
  requested.restarts = 3;
  requested.requested = true;
  CHECK(round_trip(requested) == Message(requested));
  std::string body = encode(requested);
  body.replace(body.rfind("true"), 4, "\"no\"");
  CHECK_THAT(decode(body).error().sentence, ContainsSubstring("requested"));
}

TEST_CASE("stopped preserves every field") {
  const Stopped stopped{
      Round(5), Milliseconds(1400), 2, 7, {full_facts(), RankFacts()}, {full_wait()}, full_exit(),
      3,        Milliseconds(1000)};
  CHECK(round_trip(stopped) == Message(stopped));
}

TEST_CASE("a stopped of a peer that sends no facts is read, and none are written where none are") {
  const Stopped stopped{Round(5), Milliseconds(1400), 2, 7};
  CHECK_THAT(encode(stopped), !ContainsSubstring("ranks") && !ContainsSubstring("failure"));
  CHECK(round_trip(stopped) == Message(stopped));
}

TEST_CASE("the largest stopped fits in a frame") {
  const std::string longest(100'000, '\x01');
  RankFacts facts = full_facts();
  facts.state = facts.waits_in = longest;
  facts.complaint->line = facts.complaint->operation = facts.complaint->place = longest;
  facts.complaint->accused.assign(1'000, 1 << 28);
  WorkerExit exit = full_exit();
  exit.worker.host = exit.log = longest;
  exit.lines.assign(50, longest);
  exit.evidence.disks.assign(kDisksMax, {longest, 1, 1, 1});
  exit.evidence.core_pattern = exit.evidence.telling_line = exit.evidence.steps = longest;
  exit.given_up.reset();
  facts.channel = facts.store.address = longest;
  facts.store.ports.assign(100, 65'535);
  StoreWait wait = full_wait();
  wait.address = wait.key = longest;
  const std::string body =
      encode(Stopped{Round(5), Milliseconds(1), 2, 7, {500, facts}, {500, wait}, exit});
  CHECK(body.size() <= kFrameBytesMax);
  CHECK(std::get<Stopped>(*decode(body)).ranks.size() == kRankFactsMax);
}

TEST_CASE("ranks that no run can have are refused") {
  std::string body =
      encode(Stopped{Round(5), Milliseconds(1), 2, 7, {full_facts()}, {}, std::nullopt});
  body.replace(body.find("[1,3]"), 5, "[1,-3]");
  CHECK_THAT(decode(body).error().sentence, ContainsSubstring("accused"));
}

TEST_CASE("leave preserves every field") {
  const Leave leave{143, "agent got SIGTERM", Round(3), true, true};
  CHECK(round_trip(leave) == Message(leave));
}

TEST_CASE("let_go preserves every field") {
  const LetGo let_go{"the run continues on 3 nodes"};
  CHECK(round_trip(let_go) == Message(let_go));
}

TEST_CASE("done preserves every field, with and without a failure") {
  const RunFailure failure{full_exit(),
                           Round(2),
                           15,
                           1,
                           62,
                           "rank 3 (gpu-02) failed, too: exit code 1",
                           Milliseconds(1400),
                           "all 3 restarts are used",
                           Finding{"W-PEER", "rank 1 is stopped", {1}, {"a", "b"}, "c", "d"},
                           "",
                           "",
                           Milliseconds(1000)};
  const Done failed{139, "rank 12 failed", failure, "0123abcd"};
  CHECK(round_trip(failed) == Message(failed));
  const Done good{0, "64 ranks ended with 0"};
  CHECK(round_trip(good) == Message(good));
  Done left{143, "gpu-07 leaves"};
  left.node_lost = true;
  CHECK(round_trip(left) == Message(left));
}

TEST_CASE("reconnecting preserves its reason") {
  const Reconnecting reconnecting{"no heartbeat for 5 s"};
  CHECK(round_trip(reconnecting) == Message(reconnecting));
}

TEST_CASE("beat contains only its type, or a number that is sent back") {
  CHECK(encode(Beat{}) == R"({"type":"beat"})");
  CHECK(round_trip(Beat{7}) == Message(Beat{7}));
}

TEST_CASE("settled preserves its round and its author") {
  const Settled settled{{Round(5), "c2"}};
  CHECK(round_trip(settled) == Message(settled));
}

TEST_CASE("lead preserves every field") {
  const Lead lead{RunId("7f3a"), Round(5), 40124};
  CHECK(round_trip(lead) == Message(lead));
  CHECK_FALSE(decode(encode(Lead{RunId("7f3a"), Round(0), 40124})).has_value());
  const Lead with_origin{RunId("7f3a"), Round(5), 29400, "o", "f"};
  CHECK(round_trip(with_origin) == Message(with_origin));
}

TEST_CASE("a probe preserves its nonce, run and round") {
  const Probe probe{"1b4e28ba-2fa1-41d2-883f-0016d3cca427", "7f3a", true};
  CHECK(round_trip(probe) == Message(probe));
}

TEST_CASE("resigned preserves its reason") {
  const Resigned resigned{"gpu-01 left: SIGTERM received", true};
  CHECK(round_trip(resigned) == Message(resigned));
}

TEST_CASE("moved preserves its place") {
  const Moved moved{"10.0.4.12", 40124};
  CHECK(round_trip(moved) == Message(moved));
  CHECK_FALSE(decode(encode(Moved{"10.0.4.12", 0})).has_value());
}

TEST_CASE("a round and a claim of a peer that knows no succession are read") {
  StartRound start;
  start.stamp = {Round(5), "c2"};
  start.master_address = "10.0.4.11";
  start.master_port = 41207;
  const std::string bytes = encode(start);
  CHECK(bytes.find("succession") == std::string::npos);
  CHECK(std::get<StartRound>(*decode(bytes)).succession == Succession{});
}

TEST_CASE("more successors than allowed are cut by the sender and refused by the receiver") {
  Waiting waiting;
  waiting.successors.assign(kSuccessorsMax + 1, {1, "gpu-02", "10.0.4.12", 40123});
  const auto cut = std::get<Waiting>(round_trip(waiting));
  CHECK(cut.successors.size() == kSuccessorsMax);
}

TEST_CASE("unknown preserves its sentence") {
  const Unknown unknown{"this version knows no message \"dance\""};
  CHECK(round_trip(unknown) == Message(unknown));
}

TEST_CASE("unknown fields are ignored") {
  const auto message =
      decode(R"({"type":"leave","exit_code":1,"reason":"x","round":0,"mood":{"a":[1]}})");
  REQUIRE(message.has_value());
  CHECK(*message == Message(Leave{1, "x"}));
}

TEST_CASE("an unknown message is distinguished from a malformed one") {
  const auto unknown = decode(R"({"type":"dance"})");
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().kind == ErrorKind::kUnsupported);
  const auto malformed = decode(R"({"type":"leave"})");
  REQUIRE(malformed.has_error());
  CHECK(malformed.error().kind == ErrorKind::kUsage);
  CHECK_THAT(malformed.error().sentence, ContainsSubstring("\"exit_code\" is missing"));
}

TEST_CASE("text that is not UTF-8 is cleaned for the peer") {
  const auto back = std::get<Leave>(round_trip(Leave{1, "bad \xff byte"}));
  CHECK(back.reason == "bad \xEF\xBF\xBD byte");
}

TEST_CASE("signal preserves every field, also without a sender or a host") {
  const PassSignal passed{Round(5), 10, "scancel (pid 12)", "gpu-03"};
  CHECK(round_trip(passed) == Message(passed));
  const PassSignal forced{Round(5), 10, "scancel (pid 12)", "gpu-03", true};
  CHECK(round_trip(forced) == Message(forced));
  CHECK(round_trip(PassSignal{Round(5), 64}) == Message(PassSignal{Round(5), 64}));
  CHECK_THAT(encode(passed), ContainsSubstring("\"type\":\"signal\",\"round\":5"));
  CHECK_FALSE(decode(encode(PassSignal{Round(5), 65})).has_value());
}

TEST_CASE("quiet and hang preserve every field, also without a number") {
  for (const std::optional<int> echo : {std::optional<int>(7), std::optional<int>()}) {
    const Quiet quiet{Round(5), Milliseconds(60'000), echo};
    CHECK(round_trip(quiet) == Message(quiet));
    CHECK(round_trip(Hang{Round(5), echo}) == Message(Hang{Round(5), echo}));
  }
  CHECK_THAT(encode(Quiet{Round(5), Milliseconds(9)}),
             ContainsSubstring("\"type\":\"quiet\",\"round\":5,\"lasts_ms\":9"));
  CHECK_FALSE(decode(encode(Hang{Round(5), 0})).has_value());
}
