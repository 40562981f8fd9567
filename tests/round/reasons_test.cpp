// The sentences operators see; log, status page and report print them unchanged.
#include "rendezvous/round/reasons.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

protocol::Terms terms_of(int least, int most) {
  protocol::Terms terms;
  terms.nodes_min = least;
  terms.nodes_max = most;
  terms.max_restarts = 3;
  return terms;
}

WorkerExit exit_of(int rank, const std::string& host) {
  WorkerExit exit;
  exit.worker.rank = Rank(rank);
  exit.worker.host = host;
  return exit;
}

}  // namespace

TEST_CASE("a lost node is named with its ranks and the evidence") {
  CHECK(reasons::lost({"gpu-07", "ranks 48-55", "connection closed"}) ==
        "lost gpu-07 (ranks 48-55): connection closed");
  CHECK(reasons::remain(7, terms_of(4, 8)) == "7 nodes remain (minimum 4)");
}

TEST_CASE("a restart says which rank failed, why, and how much of the budget is used") {
  CHECK(reasons::restart(exit_of(12, "gpu-03"), RestartCount(1), terms_of(2, 2), Duration(0)) ==
        "rank 12 (gpu-03) failed: exit code 1; restart 1 of 3");
  WorkerExit witness = exit_of(12, "gpu-03");
  witness.complaint.emplace().kind = ComplaintKind::kCollective;
  CHECK(reasons::failed(witness) ==
        "rank 12 (gpu-03) failed: exit code 1 after a collective with other ranks did not "
        "complete");
  protocol::Terms none = terms_of(2, 2);
  none.max_restarts = 0;
  CHECK(reasons::no_restart_left(none) == "restarts are off (--max-restarts)");
  CHECK(reasons::no_restart_left(terms_of(2, 2)) == "all 3 restarts are used");
  protocol::Terms one = terms_of(2, 2);
  one.max_restarts = 1;
  CHECK(reasons::no_restart_left(one) == "the only restart is used");
}

TEST_CASE("the wait says who is here, who is missing, and the end of it which option moves it") {
  const reasons::Absence absence{{"gpu-01", "gpu-02", "gpu-03"}, {3, 4}, "", 5};
  CHECK(reasons::waiting(absence, terms_of(5, 5)) ==
        "waiting for nodes: 3 of 5; connected: gpu-01..gpu-03; missing: node ranks 3, 4");
  CHECK(reasons::waiting({{"gpu-01"}, {1}, "", 2}, terms_of(2, 2)) ==
        "waiting for nodes: 1 of 2; connected: gpu-01; missing: node rank 1");
  CHECK(reasons::join_timeout(absence, terms_of(5, 5)) ==
        "only 3 of at least 5 nodes joined within 10 min; connected: gpu-01..gpu-03; missing: "
        "node ranks 3, 4; --rdzv-conf join_timeout=1200 waits longer");
}

TEST_CASE("silence names the options that set its limit") {
  CHECK(reasons::silent(terms_of(1, 1)) ==
        "no heartbeat for 5 s (--rdzv-conf keep_alive_interval=1,keep_alive_max_attempt=5)");
}

TEST_CASE("where one node stays, it coordinates the run") {
  CHECK(reasons::continues_elsewhere(1) ==
        "the run continues on 1 node, which becomes its coordinator");
}

TEST_CASE("a round says what it follows and why") {
  CHECK(reasons::round_started(Round(4), Round(5), "gpu-09 joined", 7, WorldSize(56)) ==
        "round 4 -> 5: gpu-09 joined; 56 ranks on 7 nodes");
}
