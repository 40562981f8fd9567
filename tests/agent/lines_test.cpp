// The messages of the agent that are one line each.
#include "agent/report/lines.hpp"

#include <signal.h>

#include "base/format.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using namespace std::chrono_literals;

TEST_CASE("the last steps of a rank and of the others are one line, where they are known") {
  CHECK(steps_text(Rank(3), 1041, {1042, 1042}) == "rank 3 last finished step 1041, others 1042");
  CHECK(steps_text(Rank(3), 1041, {1042, 1040}) ==
        "rank 3 last finished step 1041, others 1040 to 1042");
  CHECK(steps_text(Rank(3), std::nullopt, {7}) == "rank 3 finished no step, others 7");
  CHECK(steps_text(Rank(3), 5, {}) == "rank 3 last finished step 5");
  CHECK(steps_text(Rank(3), std::nullopt, {}).empty());
}

TEST_CASE("a death, a restart, a stop and the end are one line each") {
  WorkerExit exit;
  exit.worker = {Rank(12), LocalRank(4), 48213, "gpu-02"};
  CHECK(death_line(exit, 1) ==
        "ddprun: warning [W-EXIT] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1; "
        "stopping 1 other rank");
  // A witness is not named as if it were the cause, and has the code of the report to come.
  exit.complaint.emplace().kind = ComplaintKind::kRendezvous;
  CHECK(
      death_line(exit, 1) ==
      "ddprun: warning [W-RENDEZVOUS] rank 12 (local 4, pid 48213) on gpu-02 ended with exit code "
      "1 after other ranks did not arrive; stopping 1 other rank");
  exit.complaint->kind = ComplaintKind::kLostPeer;
  exit.status = ExitStatus::signaled(SIGABRT);
  CHECK(death_line(exit, 0) ==
        "ddprun: warning [W-PEER] rank 12 (local 4, pid 48213) on gpu-02 died of SIGABRT" +
            std::string(after_text(ComplaintKind::kLostPeer)));
  CHECK(restart_line("restart 1 of 3, round 2") ==
        "ddprun: note [RESTART] restart 1 of 3, round 2");
  CHECK(done_line({"", 2, RestartCount(1), 3h + 12min}) ==
        "ddprun: done: all 2 ranks exited with code 0 after 3 h 12 min; 1 restart");
  CHECK(stop_line({SIGINT, "", true}, 8, 30s) ==
        "ddprun: note [INT] stopping 8 ranks (Ctrl-C); press Ctrl-C again to kill immediately");
  CHECK(stop_line({SIGTERM}, 8, 30s) ==
        "ddprun: note [STOP] SIGTERM received, stopping 8 ranks, shutdown timeout 30 s");
  CHECK(stopped_line(SIGTERM, {8, 2, 0, 30s}) ==
        "ddprun: note [STOP] 8 ranks gone after 30 s, 2 needed SIGKILL; exit 143");
  CHECK(stopped_line(SIGTERM, {7, 0, 1, 40s}) ==
        "ddprun: note [STOP] 7 ranks gone after 40 s, 1 still alive; exit 143");
  CHECK(stopped_line(SIGTERM, {0, 0, 1, 40s}) ==
        "ddprun: note [STOP] 1 rank still alive after 40 s; exit 143");
  CHECK(stopped_line(SIGTERM, {2, 0, 0, 300us}) ==
        "ddprun: note [STOP] 2 ranks gone at once; exit 143");
  CHECK(stopped_line(SIGTERM, {}) == "ddprun: note [STOP] no rank was running; exit 143");
}

TEST_CASE("what the workers had started and ddprun ended is told in one line") {
  CHECK(cleanup_line({8, 64, 0, 900ms}) ==
        "ddprun: note [CLEANUP] 8 workers + 64 descendants gone " + span_text("in", 900ms));
  CHECK(cleanup_line({0, 1, 0, 900ms}) ==
        "ddprun: note [CLEANUP] 1 descendant gone " + span_text("in", 900ms));
  CHECK(cleanup_line({1, 2, 1, 12s}) ==
        "ddprun: note [CLEANUP] 1 worker + 2 descendants, 1 still alive after 12 s");
}

TEST_CASE("files that are left in /dev/shm are counted and named, the first of many") {
  CHECK(shared_names_line({"psm_1a2b"}, 1048576) ==
        "ddprun: note [CLEANUP] 1 file appeared in /dev/shm during the run and is open in no "
        "process: psm_1a2b (1 MiB); remove it unless another program keeps data there");
  const std::string many =
      shared_names_line({"a", "b", "c\nddprun: done", "d", "e", "f", "g"}, 512);
  CHECK_THAT(many, ContainsSubstring("7 files appeared"));
  CHECK_THAT(many, ContainsSubstring("c\\nddprun: done"));
  CHECK_THAT(many, ContainsSubstring(", e and 2 more (512 B); remove them"));
}

TEST_CASE("what SIGKILL does not end is told with what it waits for and the GPUs it holds") {
  const Unkillable stuck{{Rank(2), LocalRank(2), 6612, "gpu-04"},
                         "",
                         {{6612, "python3", 'D', "nvidia_ioctl", {"/dev/nvidia2"}}}};
  CHECK_THAT(unkillable_line(stuck),
             ContainsSubstring("evidence  pid 6612 (python3): state D in nvidia_ioctl, holds "
                               "/dev/nvidia2"));
  CHECK_THAT(unkillable_line(stuck), ContainsSubstring("likely    driver or fabric fault"));
  const Unkillable disk{
      {Rank(2), LocalRank(2), 6612, "gpu-04"}, "", {{6612, "a\nddprun: done", 'D', "", {}}}};
  CHECK_THAT(unkillable_line(disk), ContainsSubstring("a\\nddprun: done): state D"));
  CHECK_THAT(unkillable_line(disk), !ContainsSubstring("likely"));
}

TEST_CASE("a closed terminal is told with what to do about it") {
  const ReceivedSignal hangup{SIGHUP, "", true};
  CHECK_THAT(stop_line(hangup, 8, 30s), ContainsSubstring("[HUP] " + kTerminalClosed));
  CHECK_THAT(stop_line(hangup, 8, 30s), ContainsSubstring("\n  try       nohup"));
}

TEST_CASE("a stop names the process that sent the signal, on one line whatever it is called") {
  CHECK(stop_line({SIGTERM, "slurmstepd (pid 4021)"}, 64, 600s) ==
        "ddprun: note [STOP] SIGTERM from slurmstepd (pid 4021), stopping 64 ranks, shutdown "
        "timeout 10 min");
  CHECK_THAT(stop_line({SIGINT, "timeout (pid 7)"}, 1, 30s),
             ContainsSubstring("stopping 1 rank (SIGINT from timeout (pid 7)); press"));
  CHECK_THAT(
      stop_line({SIGHUP, "bash (pid 7)"}, 1, 30s),
      ContainsSubstring("[HUP] SIGHUP from bash (pid 7), as of a closed terminal; stopping"));
  CHECK(received_text({SIGTERM, "a\nddprun: done (pid 7)"}) ==
        "SIGTERM from a\\nddprun: done (pid 7)");
}

TEST_CASE("a stop that takes long is told with its time and the ranks that still run") {
  CHECK(countdown_line(540s, {Rank(0), Rank(8), Rank(16)}) ==
        "ddprun: note [STOP] 9 min left: 3 ranks still running: 0, 8, 16");
  const std::vector<Rank> many(64, Rank(3));
  CHECK(countdown_line(10s, many) ==
        "ddprun: note [STOP] 10 s left: 64 ranks still running: 3, 3, 3, 3, 3, 3, 3, 3, ...");
}

TEST_CASE("Ctrl-Z says what is stopped, and what the other nodes make of it") {
  CHECK(pause_line({SIGTSTP, "", true}, {2, std::nullopt}) ==
        "ddprun: note [PAUSE] Ctrl-Z: 2 ranks are stopped with ddprun; fg continues them");
  CHECK_THAT(pause_line({SIGTSTP, "bash (pid 7)"}, {1, 5s}),
             ContainsSubstring("SIGTSTP from bash (pid 7): 1 rank is stopped with ddprun") &&
                 ContainsSubstring("; the other nodes lose this node after 5 s"));
  CHECK(pause_line({SIGTSTP, "", true}, {0, std::nullopt}) ==
        "ddprun: note [PAUSE] Ctrl-Z: ddprun is stopped; fg continues it");
  CHECK(resume_line(3s) == "ddprun: note [PAUSE] continued after 3 s");
}

TEST_CASE("a signal that came directly and through the front is one, two of either kind are two") {
  using Way = SignalPairs::Way;
  const TimePoint start{};
  SignalPairs pairs;
  CHECK_FALSE(pairs.completes_pair(SIGTERM, Way::kDirect, start));
  CHECK(pairs.completes_pair(SIGTERM, Way::kForwarded, start + 1s));
  CHECK_FALSE(pairs.completes_pair(SIGTERM, Way::kForwarded, start + 1s));
  CHECK_FALSE(pairs.completes_pair(SIGINT, Way::kDirect, start + 1s));
  CHECK(pairs.completes_pair(SIGTERM, Way::kDirect, start + 2s));

  CHECK_FALSE(pairs.completes_pair(SIGINT, Way::kDirect, start + 1100ms));  // two Ctrl-C
  CHECK_FALSE(pairs.completes_pair(SIGQUIT, Way::kForwarded, start));
  CHECK_FALSE(pairs.completes_pair(SIGQUIT, Way::kForwarded, start + 10ms));
  CHECK_FALSE(pairs.completes_pair(SIGHUP, Way::kForwarded, start));
  CHECK_FALSE(pairs.completes_pair(SIGHUP, Way::kDirect, start + 1001ms));
}

TEST_CASE("the start says what runs, what differs from the defaults, and where the logs are") {
  StartFacts one;
  one.version = "0.1.0";
  one.run = RunId("7f3a");
  one.workers = 2;
  one.shutdown_timeout = 30s;
  CHECK(start_line(one) == "ddprun 0.1.0 run 7f3a: 2 ranks");
  one.run = RunId("d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2");
  one.max_restarts = 3;
  CHECK(start_line(one).size() <= 80);
  one.run = RunId("7f3a");
  one.log_dir = "/logs/7f3a";
  one.shutdown_timeout = 90s;
  CHECK(start_line(one) ==
        "ddprun 0.1.0 run 7f3a: 2 ranks, max restarts 3, shutdown timeout 1 min 30 s\n"
        "  logs      /logs/7f3a");
  one.shutdown_timeout = 30s;
  CHECK(start_line(one) == "ddprun 0.1.0 run 7f3a: 2 ranks, max restarts 3, logs /logs/7f3a");
}

TEST_CASE("no line of the start is wider than 80 columns") {
  StartFacts start;
  start.version = "10.11.12";
  start.run = RunId("d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2");
  start.workers = 64;
  start.nodes = NodesFacts{2, 4, "gpu-node-0123.region:29400", NodesFacts::At::kThisNode};
  start.log_dir = "/tmp/ddprun-Ab3x/d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2_xk3mlu9q";
  start.shutdown_timeout = 90s;
  start.max_restarts = 100;
  CHECK(start_line(start) ==
        "ddprun 10.11.12 run d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2: 64 ranks here\n"
        "  nodes     2 to 4 nodes, coordinator gpu-node-0123.region:29400 (this node)\n"
        "  limits    max restarts 100, shutdown timeout 1 min 30 s\n"
        "  logs      /tmp/ddprun-Ab3x/d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2_xk3mlu9q");
}

TEST_CASE("the lines of a node among several") {
  StartFacts start;
  start.version = "0.1.0";
  start.run = RunId("7f3a");
  start.nodes = NodesFacts{2, 4, "gpu-01:29400", NodesFacts::At::kThisNode};
  start.workers = 8;
  start.log_dir = "/logs";
  start.shutdown_timeout = 30s;
  start.max_restarts = 3;
  CHECK(start_line(start) ==
        "ddprun 0.1.0 run 7f3a: 8 ranks here, max restarts 3\n"
        "  nodes     2 to 4 nodes, coordinator gpu-01:29400 (this node)\n"
        "  logs      /logs");
  start.nodes = NodesFacts{4, 4, "gpu-01:29400"};
  start.max_restarts = 0;
  CHECK(start_line(start) ==
        "ddprun 0.1.0 run 7f3a: 4 nodes, coordinator gpu-01:29400, 8 ranks here\n"
        "  logs      /logs");
  CHECK(run_note("lost gpu-02") == "ddprun: note [RUN] lost gpu-02");
  const std::string done =
      "ddprun: done: all 4 ranks on 2 nodes exited with code 0 after 12 s; 0 restarts";
  const std::string text = "all 4 ranks on 2 nodes exited with code 0; 0 restarts";
  CHECK(done_line({text, 2, RestartCount(0), 12s}) == done);
  CHECK(done_line({text, 2, RestartCount(0), 12s, NodePart::kSpare}) ==
        "ddprun: done: " + text + "; this node was a spare: its workers never started");
  CHECK(leaving_line({SIGTERM}) == "ddprun: note [STOP] SIGTERM received, leaving the run");
  CHECK(left_line(SIGINT) == "ddprun: note [STOP] left the run, no worker was running; exit 130");
}
