// What `ddprun explain` tells of the events of a run.
#include "agent/explain/explain.hpp"

#include "agent/events/event.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/explained.hpp"

using namespace ddprun;
using explain::NodeRecord;

namespace json = boost::json;

namespace {

const std::string kEndUnknown = "its end is not recorded";
const std::string kMayRun =
    "ddprun still runs, or was killed, or its host was lost, or its file could not be written\n";
const std::string kNoEndAfter = "the record has no end after ";

/// The file of one node.
class File {
 public:
  File(std::string host, int node, std::string run = "7f3a")
      : host_(std::move(host)), node_(node), run_(std::move(run)) {}

  File& at(double ms, int round, const char* name, json::object fields = {}) {
    EventStamp stamp{++number_, WallTime(), std::chrono::microseconds(static_cast<long>(ms * 1000)),
                     run_, host_};
    text_ += event_line({name, Round(round), std::move(fields)}, stamp);
    return *this;
  }
  File& round(double ms, int round, const char* cause, const std::string& text, int nodes = 1) {
    return at(ms, round, "round",
              {{"cause", cause},
               {"text", text},
               {"restarts", round - 1},
               {"node", node_},
               {"nodes", nodes},
               {"first_rank", node_ * 2},
               {"world_size", nodes * 2}});
  }
  File& starts(double first, double all, int round) {
    at(first, round, "worker_started", {{"rank", node_ * 2}});
    at(all, round, "worker_started", {{"rank", node_ * 2 + 1}});
    return at(all, round, "all_running", {{"workers", 2}});
  }
  File& exits(double ms, int round, int rank, int code, int sent = 0) {
    return at(ms, round, "worker_exited",
              {{"rank", rank}, {"exit_code", code}, {"signal", 0}, {"sent_signal", sent}});
  }
  File& fails(double ms, int round, int rank) {
    return at(ms, round, "first_failure",
              {{"code", "W-EXIT"},
               {"text", "ended with exit code 3"},
               {"exit", json::object{{"rank", rank}, {"pid", 77}, {"host", host_}}}});
  }
  File& hangs(double ms, int round) {
    return at(ms, round, "first_failure",
              {{"code", "HANG"},
               {"text", "no rank has made progress for 4 s"},
               {"exit", json::object{{"rank", node_ * 2},
                                     {"pid", 77},
                                     {"host", host_},
                                     {"given_up", json::object{{"code", "HANG"}}}}}});
  }
  File& ends_round(double ms, int round, int stopped) {
    return at(ms, round, "round_ended", {{"state", "failed"}, {"stopped", stopped}, {"killed", 0}});
  }
  File& end(double ms, int round, const char* outcome, int code) {
    return at(ms, round, "end",
              {{"outcome", outcome}, {"exit_code", code}, {"text", "all is said"}});
  }
  File& steps(double ms, int round, int first, int last, int first_ago, int last_ago) {
    return at(ms, round, "steps",
              {{"workers", 2},
               {"first_step", first},
               {"last_step", last},
               {"first_ago_ms", first_ago},
               {"last_ago_ms", last_ago}});
  }
  File& lose_lines(int count) {
    number_ += static_cast<std::uint64_t>(count);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] NodeRecord record() const { return explain::read_record(host_ + ".jsonl", text_); }

 private:
  std::string host_;
  int node_;
  std::string run_;
  std::uint64_t number_ = 0;
  std::string text_;
};

File restarted_once() {
  File file("gpu-01", 0);
  file.at(0, 0, "start").round(1, 1, "first", "round 1").starts(3, 5, 1);
  file.exits(1005, 1, 1, 3).at(1006, 1, "stop_began", {{"signal", 15}}).fails(1007, 1, 1);
  file.round(1008, 2, "restart", "restart 1 of 1, round 2").exits(1050, 1, 0, 0, 15);
  file.ends_round(1056, 1, 1).starts(1066, 1070, 2);
  file.exits(2000, 2, 0, 0).exits(2010, 2, 1, 0).end(2011, 2, "succeeded", 0);
  return file;
}

std::string explained(const std::vector<NodeRecord>& records) {
  CHECK(test::contradiction_in(records).empty());
  const auto text = explain::explain(records);
  REQUIRE(text.has_value());
  return *text;
}

}  // namespace

TEST_CASE("explain tells the first cause, what it stopped, each phase of the recovery") {
  CHECK(explained({restarted_once().record()}) ==
        "run 7f3a: succeeded with exit code 0; 2 rounds, 1 restart, 1 record\n"
        "first restart: rank 1 (pid 77) on gpu-01: [W-EXIT] ended with exit code 3, in round 1\n"
        "blast radius: stopped 1 of 2 ranks, on 1 node\n"
        "all ranks alive: for 1.9 s of 2.0 s, 96.0 %; no steps are recorded, so goodput is not "
        "known\n"
        "round 1: 2 ranks on 1 node, all running for 1 s\n"
        "  then          restart 1 of 1, round 2\n"
        "  failure       rank 1 (pid 77) on gpu-01: [W-EXIT] ended with exit code 3\n"
        "  stopped       1 of 2 ranks, on 1 node\n"
        "  recovery      detect 1.0 ms, stop 50 ms, rendezvous 0.0 ms, start 10 ms, spawn 4.0 ms; "
        "65 ms without all ranks\n"
        "round 2: 2 ranks on 1 node, all running for 930 ms\n"
        "  then          all is said\n");
}

TEST_CASE("explain tells the first restart and, apart from it, what ended the run") {
  File file("gpu-01", 0);
  file.at(0, 0, "start").round(1, 1, "first", "round 1").starts(3, 5, 1);
  file.exits(1005, 1, 1, 3).fails(1007, 1, 1).ends_round(1008, 1, 0);
  file.round(1008, 2, "restart", "restart 1 of 1, round 2").starts(1010, 1012, 2);
  file.exits(2000, 2, 0, 3).fails(2001, 2, 0).ends_round(2010, 2, 0).end(2011, 2, "failed", 3);
  const std::string text = explained({file.record()});
  CHECK_THAT(text, ContainsSubstring("first restart: rank 1 (pid 77) on gpu-01: "));
  CHECK_THAT(text, ContainsSubstring("first cause: rank 0 (pid 77) on gpu-01: "));
}

TEST_CASE("explain counts as training what follows when all ranks have taken the round") {
  File file("gpu-01", 0);
  file.at(0, 0, "start").round(1, 1, "first", "round 1").starts(3, 5, 1);
  file.exits(1005, 1, 1, 3).fails(1007, 1, 1).ends_round(1008, 1, 0);
  file.round(1008, 2, "restart", "restart 1 of 2, round 2").at(1009, 2, "worker_kept");
  file.starts(1010, 1011, 2).at(61011, 2, "kill_began").exits(61012, 2, 0, 0, 9);
  CHECK_THAT(explained({file.record()}),
             ContainsSubstring("round 2: 2 ranks on 1 node, never all "));
  file.at(61013, 2, "worker_started").at(61020, 2, "recovered").exits(64020, 2, 0, 3);
  file.fails(64022, 2, 0).end(64023, 2, "failed", 3);
  const std::string text = explained({file.record()});
  CHECK_THAT(text, ContainsSubstring("round 2: 2 ranks on 1 node, all running for 3 s"));
  CHECK_THAT(text, ContainsSubstring("spawn 1.0 ms, join 1 min; 1 min without all ranks"));
  CHECK_THAT(text, ContainsSubstring("all ranks alive: for 4 s of 1 min 4 s, "));
}

TEST_CASE("explain merges nodes by round, whatever their clocks and the order of the files") {
  const std::string reason = "round 1 -> 2: restart 1 of 3: rank 3 (gpu-02) failed: exit code 3";
  File one("gpu-01", 0);
  one.round(1, 1, "first", "round 1: all 2 nodes joined", 2).starts(2, 3, 1);
  one.round(503, 2, "restart", reason, 2).at(504, 1, "stop_began").ends_round(505, 1, 2);
  one.starts(506, 507, 2).end(900, 2, "succeeded", 0);
  File two("gpu-02", 1);
  two.round(3600001, 1, "first", "round 1: all 2 nodes joined", 2).starts(3600002, 3600013, 1);
  two.exits(3600503, 1, 3, 3).fails(3600504, 1, 3).at(3600504, 1, "stop_began");
  two.round(3600505, 2, "restart", reason, 2).ends_round(3600510, 1, 1);
  two.starts(3600511, 3600512, 2).end(3600900, 2, "succeeded", 0);
  const std::string text = explained({one.record(), two.record()});
  CHECK(text == explained({two.record(), one.record()}));
  CHECK_THAT(text, ContainsSubstring("first restart: rank 3 (pid 77) on gpu-02: "));
  CHECK_THAT(text, ContainsSubstring("stopped 3 of 4 ranks, on 2 nodes\n"));
  CHECK_THAT(text, ContainsSubstring("round 1: 4 ranks on 2 nodes, all running for 490 ms\n"));
  CHECK_THAT(text, ContainsSubstring("  then          " + reason + "\n"));
}

TEST_CASE("explain names other ranks that failed by themselves, not those that were stopped") {
  for (const int sent : {0, 15}) {
    File file("gpu-01", 0);
    file.round(1, 1, "first", "round 1", 1).starts(2, 3, 1).exits(500, 1, 1, 255).fails(501, 1, 1);
    file.exits(604, 1, 0, 1, sent).ends_round(700, 1, 0).end(900, 1, "failed", 255);
    const std::string other = "  also failed   rank 0 on gpu-01: exit code 1, 104 ms later\n";
    CHECK((explained({file.record()}).find(other) != std::string::npos) == (sent == 0));
  }
}

TEST_CASE("explain counts the ranks that it does not name") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1", 1).starts(2, 3, 1).exits(500, 1, 1, 255).fails(501, 1, 1);
  for (const int rank : {2, 3, 4, 5, 6}) file.exits(600 + rank, 1, rank, 1, 0);
  file.ends_round(700, 1, 0).end(900, 1, "failed", 255);
  const std::string text = explained({file.record()});
  CHECK_THAT(text, ContainsSubstring("also failed   rank 4 on gpu-01"));
  CHECK_THAT(text, ContainsSubstring("  also failed   2 more ranks\n"));
}

TEST_CASE(
    "explain tells of a rank that had raised what the verdict says, where none failed by itself") {
  const std::string also = "rank 0: its last words, 1.1 s before, were \"ValueError\"";
  for (const int sent : {0, 15}) {
    File file("gpu-01", 0);
    file.round(1, 1, "first", "round 1", 1).starts(2, 3, 1).exits(500, 1, 1, 4).fails(501, 1, 1);
    file.exits(604, 1, 0, 1, sent).ends_round(700, 1, 0);
    const json::object first{{"rank", 1}, {"pid", 77}, {"host", "gpu-01"}, {"exit_code", 4}};
    file.at(710, 0, "verdict",
            {{"exit_code", 4},
             {"text", "rank 1 failed"},
             {"failure", json::object{{"first", first}, {"round", 1}, {"also", also}}}});
    const std::string text = explained({file.end(900, 1, "failed", 4).record()});
    CHECK((text.find("  others        " + also + "\n") != std::string::npos) == (sent != 0));
  }
}

TEST_CASE("explain names a rank of another node that failed by itself") {
  File one("gpu-01", 0);
  one.round(1, 1, "first", "round 1", 2).starts(2, 3, 1).exits(500, 1, 1, 7).fails(501, 1, 1);
  one.ends_round(700, 1, 1).end(900, 1, "failed", 7);
  File two("gpu-02", 1);
  two.round(1, 1, "first", "round 1", 2).starts(2, 3, 1).exits(604, 1, 2, 9);
  two.exits(605, 1, 3, 1, 15).ends_round(700, 1, 1).end(900, 1, "failed", 7);
  const std::string text = explained({one.record(), two.record()});
  CHECK_THAT(text, ContainsSubstring("  also failed   rank 2 on gpu-02: exit code 9\n"));
  CHECK_THAT(text, !ContainsSubstring("also failed   rank 3"));
}

TEST_CASE("explain blames no rank for a hang, and tells it once for all nodes") {
  File one("gpu-01", 0);
  File two("gpu-02", 1);
  for (File* file : {&one, &two}) {
    file->round(1, 1, "first", "round 1: all 2 nodes joined", 2).starts(2, 3, 1);
    file->hangs(503, 1).at(504, 1, "stop_began").ends_round(505, 1, 2).end(900, 1, "failed", 114);
  }
  const std::string text = explained({one.record(), two.record()});
  CHECK_THAT(text, ContainsSubstring(
                       "\nfirst cause: [HANG] no rank has made progress for 4 s, in round 1\n"));
  CHECK_THAT(text,
             ContainsSubstring("\n  failure       [HANG] no rank has made progress for 4 s\n"));
  CHECK_THAT(text, !ContainsSubstring("also failed"));
  CHECK_THAT(text, !ContainsSubstring("rank 0"));
}

TEST_CASE("explain names what the coordinator found, and the witness as the first to complain") {
  const std::string found = "a collective gave up after 4 s; rank 0 (local 0) on gpu-01 is odd";
  File one("gpu-01", 0);
  File two("gpu-02", 1);
  for (File* file : {&one, &two}) {
    file->round(1, 1, "first", "round 1: all 2 nodes joined", 2).starts(2, 3, 1);
    file->fails(503, 1, file == &one ? 0 : 2).at(504, 1, "stop_began").ends_round(505, 1, 1);
    file->at(506, 0, "verdict",
             {{"exit_code", 3},
              {"text", found + "; no restart left"},
              {"failure",
               json::object{{"round", 1},
                            {"code", "W-COLLECTIVE"},
                            {"first", json::object{{"rank", 2}, {"pid", 77}, {"host", "gpu-02"}}},
                            {"finding", json::object{{"text", found}}}}}});
    file->end(900, 1, "failed", 3);
  }
  const std::string text = explained({one.record(), two.record()});
  const std::string witness = "rank 2 (pid 77) on gpu-02: [W-EXIT] ended with exit code 3\n";
  CHECK_THAT(text, ContainsSubstring("\nfirst cause: [W-COLLECTIVE] " + found +
                                     ", in round 1\nfirst to complain: " + witness));
  CHECK_THAT(text, ContainsSubstring("\n  failure       [W-COLLECTIVE] " + found +
                                     "\n  complained    " + witness + "  also failed   rank 0 "));
}

TEST_CASE("explain says what is missing: a node, an end, lines, a part of a line") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1", 2).starts(2, 3, 1).lose_lines(3).exits(9, 1, 0, 1);
  const std::string whole = file.text();
  auto record = explain::read_record("a", whole + whole.substr(0, 40));
  const std::string text = explained({record});
  CHECK_THAT(text, ContainsSubstring(kEndUnknown));
  CHECK_THAT(text, ContainsSubstring(kNoEndAfter + "1970-01-01T00:00:00.000Z: " + kMayRun));
  CHECK_THAT(text, ContainsSubstring("3 events missing in a\n"));
  CHECK_THAT(text, ContainsSubstring("1 line unreadable in a\n"));
  CHECK_THAT(text, ContainsSubstring("1 node of 2 left no record here\n"));
}

TEST_CASE("explain says of a record on a full disk that it may be incomplete, and no more") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1);
  NodeRecord record = file.record();
  record.disk_full = true;
  CHECK_THAT(explained({record}),
             ContainsSubstring(kNoEndAfter + "1970-01-01T00:00:00.000Z: its file system is "
                                             "full, so that it may be incomplete\n"));
}

TEST_CASE("explain without the record of the node of a failure tells what the verdict says of it") {
  const json::object first{{"rank", 3},      {"pid", 78},   {"host", "gpu-02"},
                           {"exit_code", 1}, {"signal", 0}, {"after_ms", 1640}};
  File one("gpu-01", 0);
  one.round(1, 1, "first", "round 1: all 2 nodes joined", 2).starts(2, 3, 1);
  one.at(1700, 1, "stop_ordered", {{"text", "rank 3 (gpu-02) failed: exit code 1"}});
  one.at(2700, 1, "stop_began")
      .ends_round(2705, 1, 2)
      .at(2706, 0, "verdict",
          {{"exit_code", 1},
           {"text", "rank 3 (gpu-02) failed: exit code 1"},
           {"failure", json::object{{"round", 1}, {"code", "W-EXIT"}, {"first", first}}}});
  one.end(2710, 1, "failed", 1);
  const std::string text = explained({one.record()});
  const std::string culprit = "rank 3 (pid 78) on gpu-02: [W-EXIT] ended with exit code 1";
  CHECK_THAT(text, ContainsSubstring("first cause: " + culprit + ", in round 1\n"));
  CHECK_THAT(text, ContainsSubstring("stopped at least 2 of 4 ranks, on 1 node\n"));
  CHECK_THAT(text, ContainsSubstring("all ranks alive: for 1.6 s of 2.7 s, 60.5 %; "));
  CHECK_THAT(text, ContainsSubstring("round 1: 4 ranks on 2 nodes, all running for 1.6 s\n"));
  File two("gpu-02", 1);
  two.round(1, 1, "first", "round 1: all 2 nodes joined", 2).starts(2, 3, 1);
  two.exits(1500, 1, 3, 1).fails(1501, 1, 3).ends_round(1502, 1, 1).end(2711, 1, "failed", 1);
  const std::string both = explained({one.record(), two.record()});
  CHECK_THAT(both, ContainsSubstring("round 1: 4 ranks on 2 nodes, all running for 1.5 s\n"));
  CHECK_THAT(both, ContainsSubstring("stopped 3 of 4 ranks, on 2 nodes\n"));
}

TEST_CASE("explain counts up to the exit of a witness, which is recorded when it was heard") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1).exits(10503, 1, 0, 1);
  file.at(10504, 1, "first_failure",
          {{"code", "W-PEER"},
           {"text", "ended with exit code 1"},
           {"exit", json::object{{"rank", 0}, {"pid", 77}, {"since_start_ms", 10003}}}});
  file.ends_round(10505, 1, 1).end(10506, 1, "failed", 1);
  CHECK_THAT(explained({file.record()}), ContainsSubstring("all running for 10 s\n"));
}

TEST_CASE("explain counts no time after the order to stop, whatever ranks have as grace") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1", 2).starts(2, 3, 1);
  file.at(1003, 1, "stop_ordered", {{"text", "lost gpu-02"}}).at(3000, 1, "stop_began");
  file.ends_round(3001, 1, 2).end(3002, 1, "failed", 1);
  CHECK_THAT(explained({file.record()}), ContainsSubstring("all running for 1 s\n"));
}

TEST_CASE("explain takes the break of a record for no end: other nodes bound the round") {
  File killed("gpu-01", 0);
  killed.round(1, 1, "first", "round 1", 2).starts(40, 50, 1);
  const std::string alone = explained({killed.record()});
  CHECK_THAT(alone, ContainsSubstring("all ranks alive: for 0.0 ms at least; the end of a round is "
                                      "not recorded; no steps are recorded"));
  CHECK_THAT(alone, ContainsSubstring("all running from 50 ms on; " + kEndUnknown + "\n"));
  File other("gpu-02", 1);
  other.round(1, 1, "first", "round 1", 2).starts(2, 100, 1).at(4100, 1, "stop_began");
  other.ends_round(4150, 1, 2).end(5000, 1, "failed", 1);
  const std::string both = explained({killed.record(), other.record()});
  CHECK_THAT(both, ContainsSubstring(" 4 s of 5 s, 80.0 %; "));
  CHECK_THAT(both, ContainsSubstring("4 ranks on 2 nodes, all running for 4 s\n"));
}

TEST_CASE("explain tells what workers had started, and what is still alive") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1).exits(9, 1, 0, 1).fails(9, 1, 0);
  file.at(60, 1, "cleanup",
          {{"workers", 1}, {"descendants", 3}, {"still_alive", 1}, {"text", "rank 1\nforged"}});
  file.ends_round(61, 1, 1).end(62, 1, "failed", 1);
  CHECK_THAT(explained({file.record()}),
             ContainsSubstring("  cleanup       3 descendants of workers ended; still alive after "
                               "SIGKILL: rank 1\\nforged\n"));
}

TEST_CASE("explain names the signal of a run that was stopped") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1);
  file.at(9, 0, "signal", {{"name", "SIGTERM"}, {"action", "stop"}}).end(10, 1, "stopped", 143);
  CHECK_THAT(explained({file.record()}),
             ContainsSubstring("first cause: ddprun on gpu-01 received SIGTERM\n"));
}

TEST_CASE("explain refuses records of two runs") {
  const std::string two = explain::explain({restarted_once().record(),
                                            File("gpu-02", 1, "other").at(0, 0, "start").record()})
                              .error()
                              .sentence;
  CHECK_THAT(two, ContainsSubstring("of run other; "));
  const auto twice = explain::explain({restarted_once().record(), restarted_once().record()});
  CHECK_THAT(twice.error().sentence, ContainsSubstring("are both of node 0"));
}

TEST_CASE(
    "explain takes any bytes: nothing in a record forges a line or costs more than its size") {
  File file("gpu\n01", 0);
  file.round(1, 1, "first", "round 1").fails(5, 1, 0);
  file.round(6, 2, "restart", "evil\nrun 1: succeeded");
  std::string text = file.text();
  text += R"({"event":"round","round":1e300,"n":-5,"ms":"x"})"
          "\n"
          R"({"event":"round","round":2147483647,"nodes":99999999999,"world_size":-1,"ms":1e308})"
          "\n" +
          std::string(100, '[') + "\n" + std::string(2 * explain::kLineBytesMax, '"') +
          "\n\xff\xfe\0\n{\"event\":[]}\n[]\n";
  const std::string said = explained({explain::read_record("x\ny", text)});
  CHECK_THAT(said, ContainsSubstring("evil\\nrun 1: succeeded"));
  CHECK_THAT(said, ContainsSubstring("gpu\\n01"));
  CHECK(said.size() < 4000);
}

TEST_CASE("explain says of a run that lives what its records prove, and no more") {
  const std::string grew = "round 1 -> 2: gpu-03 joined";
  const std::string drained = "round 2 -> 3: gpu-02 (ranks 2-3) left: SIGTERM from ddprun stop";
  File one("gpu-01", 0);
  one.at(0, 0, "start", {{"nodes_max", 4}}).round(1, 1, "first", "all 2 nodes joined", 2);
  one.starts(2, 3, 1).at(1000, 1, "stop_began").round(1001, 2, "node_joined", grew, 3);
  one.ends_round(1010, 1, 2).starts(1011, 1012, 2).at(2000, 2, "stop_began");
  one.round(2001, 3, "node_lost", drained, 2).ends_round(2010, 2, 2).starts(2011, 2012, 3);
  File two("gpu-02", 1);
  two.at(0, 0, "start", {{"nodes_max", 4}}).round(5, 1, "first", "all 2 nodes joined", 2);
  two.starts(6, 7, 1).at(1004, 1, "stop_began").round(1005, 2, "node_joined", grew, 3);
  two.ends_round(1014, 1, 2).starts(1015, 1016, 2);
  two.at(1999, 0, "signal", {{"name", "SIGTERM"}, {"action", "stop"}});
  two.at(2000, 2, "stop_began").ends_round(2010, 2, 2);
  two.at(2011, 0, "let_go", {{"text", "the run continues on 2 nodes"}});
  two.end(2012, 2, "stopped", 143);
  File three("gpu-03", 2);
  three.at(0, 0, "start", {{"nodes_max", 4}}).round(2, 2, "node_joined", grew, 3);
  three.starts(3, 4, 2).at(1000, 2, "stop_began").round(1001, 3, "node_lost", drained, 2);
  three.ends_round(1002, 2, 2).starts(1003, 1004, 3);
  const std::string text = explained({one.record(), two.record(), three.record()});
  CHECK_THAT(text, ContainsSubstring("run 7f3a: " + kEndUnknown + "; 3 rounds, "));
  CHECK_THAT(text, ContainsSubstring("first restart: " + drained + ", in round 2\n"));
  CHECK_THAT(text, ContainsSubstring("note: gpu-02: left in round 2 with exit code 143, after "
                                     "SIGTERM; then the run continues on 2 nodes\n"));
  CHECK_THAT(text, ContainsSubstring(kMayRun));
  CHECK_THAT(text, !ContainsSubstring("note: gpu-02: " + kNoEndAfter));
  const std::string last = text.substr(text.find("round 3: "));
  CHECK_THAT(last, !ContainsSubstring("SIGTERM"));
  CHECK_THAT(last, !ContainsSubstring("all is said"));
}

TEST_CASE("explain takes a node that joins for no cause") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1);
  file.round(500, 2, "node_joined", "round 1 -> 2: gpu-02 joined").starts(501, 502, 2);
  file.at(900, 0, "verdict", {{"exit_code", 0}, {"text", "all ranks exited with code 0"}});
  file.end(901, 2, "succeeded", 0);
  CHECK_THAT(explained({file.record()}), !ContainsSubstring("first cause"));
}

TEST_CASE("explain tells a verdict, not how a node that left ended") {
  File gone("gpu-00", 0);
  gone.at(0, 0, "start", {{"nodes_max", 2}}).round(1, 1, "first", "round 1", 2).starts(2, 3, 1);
  gone.at(9, 0, "signal", {{"name", "SIGTERM"}, {"action", "stop"}}).end(10, 1, "stopped", 143);
  File stays("gpu-01", 1);
  stays.at(0, 0, "start", {{"nodes_max", 2}}).round(1, 1, "first", "round 1", 2).starts(2, 3, 1);
  stays.round(11, 2, "node_lost", "gpu-00 left: SIGTERM").starts(12, 13, 2);
  stays.at(900, 0, "verdict", {{"exit_code", 0}, {"text", "all ranks exited with code 0"}});
  stays.end(901, 2, "succeeded", 0);
  CHECK_THAT(explained({gone.record(), stays.record()}),
             ContainsSubstring("run 7f3a: succeeded with exit code 0; "));
}

TEST_CASE("explain never tells more time in which all ranks ran than there was") {
  File first("gpu-01", 0);  // it is drained as the second one, which began later, takes over
  first.round(60000, 1, "first", "round 1", 1).starts(60001, 60002, 1);
  first.round(125000, 2, "node_joined", "gpu-02 joined", 2).starts(125001, 125002, 2);
  first.at(185000, 2, "stop_began").ends_round(185001, 2, 2).end(185002, 2, "stopped", 143);
  File second("gpu-02", 1);
  second.round(5, 2, "node_joined", "gpu-02 joined", 2).starts(6, 7, 2);
  second.at(60005, 2, "stop_began").round(60006, 3, "node_lost", "gpu-01 left", 1);
  second.ends_round(60007, 2, 2).starts(60008, 60009, 3).exits(128000, 3, 2, 0);
  second.at(128001, 0, "verdict", {{"exit_code", 0}, {"text", "done"}});
  second.end(128002, 3, "succeeded", 0);
  const std::string text = explained({first.record(), second.record()});
  CHECK_THAT(text, ContainsSubstring("all ranks alive: for 3 min 13 s of 4 min 13 s, 76.3 %"));
}

TEST_CASE("explain knows goodput by steps alone, each counted once") {
  File file("gpu-01", 0);
  file.at(0, 0, "start").round(1, 1, "first", "round 1").starts(2, 3, 1);
  file.exits(10000, 1, 1, 3).fails(10001, 1, 1).at(10002, 1, "stop_began");
  file.steps(10010, 1, 0, 40, 5010, 1010).ends_round(10010, 1, 1);  // a step each 100 ms, 5-9 s
  file.round(10011, 2, "restart", "restart 1 of 1").starts(10012, 10062, 2);
  file.exits(17900, 2, 0, 0).steps(18000, 2, 31, 60, 4000, 1000);  // 14-17 s
  file.at(18000, 0, "verdict", {{"exit_code", 0}, {"text", "done"}}).end(18000, 2, "succeeded", 0);
  const std::string text = explained({file.record()});
  CHECK_THAT(text, ContainsSubstring("goodput: steps took 6 s of 18 s, 33.3 %; 10 steps repeated "
                                     "later not counted\nall ranks alive: for 18 s of 18 s, "));
  CHECK_THAT(text, ContainsSubstring("; 62 ms without all ranks; 5 s without a step\n"));
}

TEST_CASE("explain says of which rounds no steps are recorded") {
  File file("gpu-01", 0);
  file.round(1, 1, "first", "round 1").starts(2, 3, 1).steps(5000, 1, 0, 40, 4500, 500);
  file.ends_round(5000, 1, 2).round(5001, 2, "restart", "restart 1 of 1").starts(5002, 5003, 2);
  CHECK_THAT(explained({file.record()}), ContainsSubstring("; none recorded in round 2\n"));
}
