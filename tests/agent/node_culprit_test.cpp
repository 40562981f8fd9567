// Ranks that complain of ranks on another node: the report names the culprit, not the witness.
#include <signal.h>

#include "tests/agent/cluster.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const std::string kGloo = "[../third_party/gloo/gloo/transport/tcp/";
const std::string kTimesOut =
    "echo 'RuntimeError: " + kGloo +
    "unbound_buffer.cc:81] Timed out waiting 4000ms for recv operation to complete' >&2; exit 3; ";
const std::string kLosesPeer =
    "echo 'RuntimeError: " + kGloo +
    "pair.cc:534] Connection closed by peer [127.0.0.1]:5731' >&2; exit 3; ";
const std::string kAwaitOther = "until [ -s $DIR/other ]; do sleep 0.01; done; ";
const std::string kTellOther = "echo 1 > $DIR/other; ";

/// Two nodes of one worker: `zero` is rank 0, `one` is rank 1.
struct TwoRanks {
  Cluster cluster{Cluster::Coordinator::kFirstAgent};
  std::string report;

  TwoRanks(const std::string& zero, const std::string& one, int exit_code) {
    const std::string script = "if [ $RANK = 0 ]; then " + zero + "else " + one + "fi";
    auto& first = cluster.start(1, "2:2", script, {"node_rank=0"});
    auto& second = cluster.start(1, "2:2", script, {"node_rank=1"});
    const auto second_end = second.wait();
    const auto first_end = first.wait();
    report = first.err();
    INFO(report << "\nthe other node:\n" << second.err());
    CHECK(second_end == ExitStatus::exited(exit_code));
    CHECK(first_end == ExitStatus::exited(exit_code));
    const std::string headline = "ddprun: error [W-";
    REQUIRE(report.find(headline) != std::string::npos);
    report = report.substr(report.find(headline));
    CHECK_THAT(second.err(), ContainsSubstring(report.substr(0, report.find('\n'))));
  }
};

}  // namespace

TEST_CASE("a stopped rank is named by the report of the other node, whose rank timed out") {
  const TwoRanks run(kAwaitOther + kTimesOut, kTellOther + "kill -STOP $$$$; ", 3);
  CHECK_THAT(run.report, ContainsSubstring("[W-COLLECTIVE]"));
  CHECK_THAT(run.report, ContainsSubstring("; rank 1 (local 0, pid "));
  CHECK_THAT(run.report, ContainsSubstring(kOddOneOut + "\n"));
  CHECK_THAT(run.report, ContainsSubstring("evidence  rank 1 is stopped (state T)\n"));
}

TEST_CASE("a rank that exited with 0 too early is named by the report of the other node") {
  const TwoRanks run(kAwaitOther + kLosesPeer, kTellOther + "exit 0; ", 3);
  CHECK_THAT(run.report, ContainsSubstring("[W-PEER]"));
  CHECK_THAT(run.report, ContainsSubstring("evidence  rank 1 exited with code 0\n"));
}

TEST_CASE("a rank that lost its peer ends first: the peer that was killed is the first failure") {
  const TwoRanks run(kTellOther + kLosesPeer, kAwaitOther + "kill -KILL $$$$; ", 137);
  CHECK_THAT(run.report, ContainsSubstring("[W-KILLED] rank 1 "));
}
