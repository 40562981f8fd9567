#include "rendezvous/round/culprit.hpp"

#include <signal.h>

#include "rendezvous/round/culprit_text.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using std::chrono::milliseconds;

namespace {

/// The ranks of a failed round, as their agents see them; ranks 0 to 3 on "a", the others on "b".
class FailedRound {
 public:
  FailedRound& timed_out(int rank, const std::string& operation = "all_reduce",
                         const std::string& place = "train.py:310") {
    Complaint complaint = of(ComplaintKind::kCollective);
    complaint.operation = operation;
    complaint.place = place;
    return add(rank, RankEnd::kFailed, complaint);
  }
  FailedRound& watchdog(int rank, int sequence, const std::string& operation = "ALLREDUCE") {
    Complaint complaint = of(ComplaintKind::kCollective);
    complaint.operation = operation;
    complaint.sequence = sequence;
    return add(rank, RankEnd::kFailed, complaint);
  }
  FailedRound& lost_peer(int rank) {
    return add(rank, RankEnd::kFailed, of(ComplaintKind::kLostPeer));
  }
  FailedRound& no_rendezvous(int rank, std::vector<int> accused = {}) {
    Complaint complaint = of(ComplaintKind::kRendezvous);
    complaint.accused = std::move(accused);
    return add(rank, RankEnd::kFailed, complaint);
  }
  FailedRound& of_key(const std::string& key) {
    ranks_.back().facts.complaint->key = key;
    return *this;
  }
  FailedRound& differs(int rank, int other) {
    names(rank, {other});
    ranks_.back().facts.complaint->operation = "all_reduce";
    return *this;
  }
  FailedRound& names(int rank, std::vector<int> accused) {
    Complaint complaint = of(ComplaintKind::kCollective);
    complaint.operation = "monitoredBarrier";
    complaint.accused = std::move(accused);
    return add(rank, RankEnd::kFailed, complaint);
  }
  FailedRound& runs(int rank, const std::string& state, const std::string& call = "") {
    add(rank, RankEnd::kRuns, std::nullopt);
    ranks_.back().facts.state = state;
    ranks_.back().facts.waits_in = call;
    return *this;
  }
  /// The rank added last has connections to the store; without ports it has none.
  FailedRound& linked(std::vector<int> ports) {
    ranks_.back().facts.store = {true, "10.0.0.4", std::move(ports)};
    return *this;
  }
  FailedRound& raised(const std::string& exception) {
    ranks_.back().facts.raised = exception;
    return *this;
  }
  FailedRound& still_runs() {
    ranks_.back().facts.end = RankEnd::kRuns;
    return *this;
  }
  FailedRound& channel(const std::string& name) {
    ranks_.back().facts.channel = name;
    return *this;
  }
  FailedRound& used(milliseconds cpu) {
    ranks_.back().facts.cpu = cpu;
    ranks_.back().facts.watched = milliseconds(500);
    return *this;
  }
  FailedRound& waiting_in_store(int port, const std::string& key, int keys = 1) {
    waits_.push_back({"10.0.0.4", port, key, keys, milliseconds(3'000)});
    return *this;
  }
  FailedRound& finished(int rank) {
    add(rank, RankEnd::kSucceeded, std::nullopt);
    ranks_.back().facts.exited = milliseconds(4'000);
    return *this;
  }
  FailedRound& failed(int rank) { return add(rank, RankEnd::kFailed, std::nullopt); }
  FailedRound& of_world(int size) {
    world_size_ = size;
    return *this;
  }

  /// With the complaint of the first rank that was added.
  [[nodiscard]] std::optional<Finding> find() const {
    WorkerExit first;
    first.worker = {ranks_.front().facts.rank, LocalRank(0), 100, "a"};
    first.complaint = ranks_.front().facts.complaint;
    const int size = world_size_ == 0 ? static_cast<int>(ranks_.size()) : world_size_;
    std::vector<RankOnHost> ranks = ranks_;
    join_waits(ranks, waits_);
    return find_culprit(first, ranks, size);
  }
  [[nodiscard]] std::vector<int> culprits() const {
    const auto finding = find();
    REQUIRE(finding);
    return finding->ranks;
  }

 private:
  static Complaint of(ComplaintKind kind) {
    Complaint complaint;
    complaint.kind = kind;
    complaint.line = "what it printed";
    complaint.limit = milliseconds(600'000);
    return complaint;
  }
  FailedRound& add(int rank, RankEnd end, std::optional<Complaint> complaint) {
    RankOnHost added;
    added.facts.rank = Rank(rank);
    added.facts.local_rank = LocalRank(rank % 4);
    added.facts.pid = 100 + rank;
    added.facts.end = end;
    added.facts.complaint = std::move(complaint);
    added.host = rank < 4 ? "a" : "b";
    ranks_.push_back(std::move(added));
    return *this;
  }

  std::vector<RankOnHost> ranks_;
  std::vector<StoreWait> waits_;
  int world_size_ = 0;
};

using Numbers = std::vector<int>;
const Numbers kUndecided{};

}  // namespace

TEST_CASE("a collective that gave up: the rank that is unlike the others is the culprit") {
  const auto ranks = [] { return FailedRound(); };
  // Stopped, on either node, whatever the number of witnesses.
  CHECK(ranks().timed_out(0).runs(1, "T").culprits() == Numbers{1});
  CHECK(ranks().timed_out(0).runs(1, "T").runs(2, "S", "futex").culprits() == Numbers{1});
  CHECK(ranks().timed_out(0).timed_out(2).runs(5, "T").culprits() == Numbers{5});
  CHECK(ranks().timed_out(0).runs(1, "t").runs(2, "S", "futex").culprits() == Numbers{1});
  CHECK(ranks().timed_out(0).runs(1, "T").finished(2).culprits() == Numbers{1});
  // Exited with 0 too early.
  CHECK(ranks().timed_out(0).finished(1).runs(2, "S", "futex").culprits() == Numbers{1});
  CHECK(ranks().timed_out(3).timed_out(4).finished(0).finished(1).culprits() == Numbers{0, 1});
  // In the kernel.
  CHECK(ranks().timed_out(0).runs(1, "D").runs(2, "S", "futex").culprits() == Numbers{1});
  // Asleep, or waits for something that is no collective.
  CHECK(ranks().timed_out(0).timed_out(1).runs(2, "S", "clock_nanosleep").culprits() == Numbers{2});
  CHECK(ranks().timed_out(0).runs(1, "S", "clock_nanosleep").runs(2, "S", "futex").culprits() ==
        Numbers{1});
  CHECK(ranks().timed_out(0).timed_out(1).runs(2, "S", "read").runs(3, "S", "futex").culprits() ==
        Numbers{2});
  // Merely slow: it computes.
  CHECK(ranks().timed_out(0).timed_out(1).runs(2, "R").culprits() == Numbers{2});
  // Nothing is known of it but that it says nothing.
  CHECK(ranks().timed_out(0).runs(1, "").culprits() == Numbers{1});
  CHECK(ranks().timed_out(0).timed_out(1).timed_out(2).runs(3, "").runs(4, "").culprits() ==
        Numbers{3, 4});
}

TEST_CASE("a collective that gave up: a rank that a barrier names is the culprit") {
  CHECK(FailedRound().names(0, {1}).names(2, {0}).runs(1, "S", "futex").culprits() == Numbers{1});
  CHECK(FailedRound().names(0, {1, 3}).runs(1, "R").runs(2, "S").runs(3, "R").culprits() ==
        Numbers{1, 3});
  // It gave up as well: a witness, whatever another one says.
  CHECK(FailedRound().names(0, {1}).timed_out(1).runs(2, "T").culprits() == Numbers{2});
}

TEST_CASE("a collective that gave up: the lowest number, or another collective") {
  CHECK(FailedRound().watchdog(0, 7).watchdog(1, 6).watchdog(2, 7).culprits() == Numbers{1});
  CHECK(FailedRound().watchdog(1, 6).watchdog(0, 7).culprits() == Numbers{1});
  CHECK(FailedRound().watchdog(0, 7).watchdog(1, 7).runs(2, "R").culprits() == Numbers{2});
  CHECK(FailedRound().watchdog(0, 7).watchdog(1, 7, "BROADCAST").watchdog(2, 7).culprits() ==
        Numbers{1});
  CHECK(FailedRound().timed_out(0).timed_out(1, "barrier", "train.py:22").timed_out(2).culprits() ==
        Numbers{1});
  CHECK(FailedRound()
            .timed_out(0)
            .timed_out(1, "all_reduce", "train.py:22")
            .timed_out(2)
            .culprits() == Numbers{1});
  // Half of them behind the other half: one is behind, or one is ahead.
  CHECK(FailedRound().watchdog(0, 7).watchdog(1, 7).watchdog(2, 6).watchdog(3, 6).culprits() ==
        Numbers{2, 3});
  CHECK(FailedRound().watchdog(0, 7).watchdog(1, 6).watchdog(2, 6).culprits() == kUndecided);
}

TEST_CASE("a collective that gave up: undecided where the facts do not tell") {
  CHECK(FailedRound().timed_out(0).timed_out(1).timed_out(2).culprits() == kUndecided);
  CHECK(FailedRound().timed_out(0).timed_out(1, "barrier").culprits() == kUndecided);
  CHECK(FailedRound().timed_out(0).runs(1, "S", "futex").runs(2, "S", "futex").culprits() ==
        kUndecided);
  CHECK(FailedRound().timed_out(0).runs(1, "S").runs(2, "S").runs(3, "S").culprits() == kUndecided);
  // A node did not say what its ranks do.
  CHECK(FailedRound().timed_out(0).timed_out(1, "barrier").timed_out(2).of_world(4).culprits() ==
        kUndecided);
  const auto finding = FailedRound().timed_out(0).timed_out(1).find();
  CHECK(finding->text ==
        "a collective gave up after 10 min; the facts do not tell which rank is "
        "the cause");
  CHECK_THAT(finding->likely, ContainsSubstring("different collectives"));
  CHECK(finding->others.empty());
  const auto several =
      FailedRound().no_rendezvous(0).of_key("a, b").raised("E").runs(1, "T").find();
  CHECK(several->ranks == kUndecided);
  CHECK(
      several->text.ends_with("not all keys that it waited for were set in the store (\"a, b\")"));
}

TEST_CASE("a lost connection: the rank that exited with 0 is the culprit, and no other") {
  CHECK(FailedRound().lost_peer(0).finished(1).lost_peer(2).culprits() == Numbers{1});
  CHECK(FailedRound().lost_peer(0).finished(4).runs(2, "S", "futex").culprits() == Numbers{4});
  CHECK(FailedRound().lost_peer(0).runs(1, "S", "futex").culprits() == kUndecided);
  CHECK(FailedRound().lost_peer(0).lost_peer(1).culprits() == kUndecided);
  const auto finding = FailedRound().lost_peer(0).finished(1).find();
  CHECK(finding->code == "W-PEER");
  CHECK(finding->text ==
        "the others lost their connection to rank 1 (local 1, pid 101) on a, which had exited with "
        "code 0");
}

TEST_CASE("a lost connection: a rank that has raised and is slow to exit is the culprit") {
  FailedRound ranks = FailedRound().lost_peer(1).runs(2, "S", "futex").runs(0, "S", "nanosleep");
  CHECK(ranks.culprits() == kUndecided);
  ranks.raised("ValueError: true cause");
  CHECK(ranks.culprits() == Numbers{0});
  const auto finding = ranks.find();
  CHECK(finding->text.ends_with(
      "rank 0 (local 0, pid 100) on a, which had raised an exception and not exited yet"));
  CHECK(finding->evidence[0] ==
        "rank 0 sleeps in nanosleep (state S) after its traceback: ValueError: true cause");
  CHECK(FailedRound().lost_peer(1).finished(2).runs(0, "S").raised("E").culprits() == Numbers{2});
  CHECK(FailedRound().timed_out(1).runs(2, "S").runs(0, "S").raised("E").culprits() == Numbers{0});
}

TEST_CASE("a rank that waited for the others while it handled its own exception is the culprit") {
  const char* const own = "ValueError: NaN in gradients";
  FailedRound ranks = FailedRound().timed_out(0).timed_out(1, "barrier", "train.py:8").raised(own);
  ranks.timed_out(2);
  CHECK(ranks.culprits() == Numbers{1});
  CHECK(ranks.find()->evidence[0] ==
        "rank 1 raised ValueError: NaN in gradients, and then waited in barrier (train.py:8)");
  const FailedRound lost = FailedRound().lost_peer(0).lost_peer(1).raised(own).runs(2, "S");
  CHECK(lost.culprits() == Numbers{1});
  CHECK_FALSE(lost.find()->text.ends_with("not exited yet"));
  FailedRound all = FailedRound().timed_out(0).raised("E").timed_out(1).raised("E");
  CHECK(all.culprits() == kUndecided);
  CHECK(all.runs(2, "T").culprits() == Numbers{2});
  CHECK(FailedRound().timed_out(0).raised("E").runs(1, "T").culprits() == Numbers{1});
  CHECK(FailedRound().timed_out(0).raised("E").runs(1, "S", "futex").culprits() == Numbers{0});
  const FailedRound busy =
      FailedRound().timed_out(0).raised("E").runs(1, "R").used(milliseconds(490));
  CHECK(busy.culprits() == Numbers{1});
  const FailedRound named =
      FailedRound().names(0, {2}).raised("E").timed_out(1).runs(2, "S", "futex");
  CHECK(named.culprits() == Numbers{2});
}

TEST_CASE("a key of the program that no rank sets is told, and no rank is blamed for it") {
  const auto finding =
      FailedRound().no_rendezvous(0).of_key("best_ckpt").runs(1, "S", "clock_nanosleep").find();
  REQUIRE(finding);
  CHECK(finding->ranks == kUndecided);
  CHECK(finding->text ==
        "rank 0 (a) gave up after 10 min: no rank had set the key \"best_ckpt\" of the store");
  CHECK(finding->others.empty());
}

TEST_CASE("a connection that was lost to a rank that gave up waiting is its consequence") {
  const FailedRound ranks = FailedRound().lost_peer(2).timed_out(0).runs(1, "T");
  CHECK(ranks.culprits() == Numbers{1});
  CHECK(ranks.find()->code == "W-COLLECTIVE");
  CHECK(FailedRound().lost_peer(4).names(0, {1}).runs(1, "S").culprits() == Numbers{1});
}

TEST_CASE("ranks that never arrived are named with what they do") {
  CHECK(FailedRound().no_rendezvous(0, {1}).runs(1, "S", "clock_nanosleep").culprits() ==
        Numbers{1});
  CHECK(FailedRound().no_rendezvous(0, {1}).no_rendezvous(2, {1}).finished(1).culprits() ==
        Numbers{1});
  CHECK(FailedRound().no_rendezvous(0).no_rendezvous(1).runs(2, "R").culprits() == Numbers{2});
  CHECK(FailedRound().no_rendezvous(0).no_rendezvous(1).culprits() == kUndecided);
  const auto finding = FailedRound().no_rendezvous(0, {1}).runs(1, "S", "clock_nanosleep").find();
  CHECK(finding->code == "W-RENDEZVOUS");
  CHECK(finding->text ==
        "the ranks did not all arrive after 10 min; rank 1 (local 1, pid 101) on "
        "a did not arrive");
  CHECK(finding->evidence.front() == "rank 1 sleeps in clock_nanosleep (state S)");
}

TEST_CASE("a rank without a connection to the store is the one that did not arrive") {
  const auto waits = [] {
    return FailedRound()
        .no_rendezvous(0)
        .runs(1, "S", "futex")
        .linked({})
        .runs(2, "S", "poll")
        .linked({41, 42})
        .waiting_in_store(42, "k");
  };
  CHECK(waits().culprits() == Numbers{1});
  const auto finding = waits().find();
  CHECK(finding->evidence[1] ==
        "rank 2 waits in the store for key \"k\" for 3 s; rank 1 is" + test::kNotConnected);
  CHECK(finding->likely == "it has not called init_process_group");
  // None of the others is connected either: they use another store, or it says nothing.
  const auto none = [] {
    return FailedRound().no_rendezvous(0).runs(1, "S", "futex").linked({}).runs(2, "S", "futex");
  };
  CHECK(none().linked({}).culprits() == kUndecided);
  // What cannot be looked at is neither absent nor connected.
  CHECK(none().culprits() == kUndecided);
  CHECK(FailedRound().no_rendezvous(0).runs(1, "S").runs(2, "S").culprits() == kUndecided);
  // One that has exited has no connection, and is the culprit for that.
  CHECK(FailedRound().no_rendezvous(0).runs(1, "S").linked({}).finished(2).culprits() ==
        Numbers{2});
}

TEST_CASE("a complaint names one missing rank, the store shows the others") {
  const auto ranks = [] {
    return FailedRound().no_rendezvous(0, {1}).runs(1, "S", "clock_nanosleep").linked({});
  };
  const auto finding = ranks().runs(2, "S", "poll").linked({42}).runs(3, "S").linked({}).find();
  CHECK(finding->ranks == Numbers{1, 3});
  CHECK_THAT(finding->text, ContainsSubstring("ranks 1, 3 (a) did not arrive"));
  CHECK(finding->likely == "they have not called init_process_group");
  // None is connected: that says nothing of the others.
  CHECK(ranks().runs(2, "S").linked({}).culprits() == Numbers{1});
  // The one that is named is there, so that another thing keeps it.
  CHECK(FailedRound()
            .no_rendezvous(0, {1})
            .runs(1, "S")
            .linked({41})
            .runs(2, "S")
            .linked({})
            .culprits() == Numbers{1});
}

TEST_CASE("a rank that gave up waiting in the store is not said to have stayed away from it") {
  const auto finding = FailedRound()
                           .no_rendezvous(0)
                           .runs(1, "S", "futex")
                           .linked({})
                           .no_rendezvous(2)
                           .still_runs()
                           .linked({})
                           .runs(3, "S", "poll")
                           .linked({43})
                           .find();
  CHECK(finding->evidence[1] == "rank 1 is" + test::kNotConnected);
}

TEST_CASE("of ranks that are there, the one that waits for no key keeps the others waiting") {
  CHECK(FailedRound()
            .no_rendezvous(0)
            .runs(1, "S", "futex")
            .linked({41})
            .runs(2, "S", "poll")
            .linked({42})
            .waiting_in_store(42, "k")
            .culprits() == Numbers{1});
}

TEST_CASE("a rank that waits in the store while the others are in a collective is the culprit") {
  const auto ranks = [](const std::string& key) {
    return FailedRound()
        .timed_out(0)
        .runs(1, "S", "poll")
        .linked({41})
        .runs(2, "S", "poll")
        .linked({42})
        .waiting_in_store(41, key, 3);
  };
  CHECK(ranks("no rank sets this").culprits() == Numbers{1});
  // One that is elsewhere keeps it waiting.
  CHECK(ranks("k").runs(3, "S", "clock_nanosleep").culprits() == Numbers{3});
  // A key is foreign text, and ends neither its quotes nor the line.
  CHECK_THAT(ranks("a\" is fine\n").find()->evidence[1],
             ContainsSubstring("rank 1 waits in the store for key \"a' is fine\\n\" and 2 others"));
  // A client at another address is no rank that is known.
  CHECK(FailedRound()
            .timed_out(0)
            .runs(1, "S", "poll")
            .runs(2, "S", "poll")
            .waiting_in_store(41, "k")
            .culprits() == kUndecided);
}

TEST_CASE("a rank that computes while its peers sleep is on its way to them") {
  const auto ranks = [](milliseconds used) {
    return FailedRound()
        .timed_out(0)
        .runs(1, "S", "futex")
        .used(used)
        .runs(2, "S", "futex")
        .used(milliseconds(0));
  };
  CHECK(ranks(milliseconds(480)).culprits() == Numbers{1});
  CHECK(ranks(milliseconds(480)).find()->evidence[0] ==
        "rank 1 waits in futex (state S, 480 ms of CPU in the last 500 ms)");
  CHECK(ranks(milliseconds(20)).culprits() == kUndecided);
  // It may have been busy with something else for a while.
  CHECK(ranks(milliseconds(480)).runs(3, "S", "futex").used(milliseconds(100)).culprits() ==
        kUndecided);
  // NCCL waits with a busy loop.
  CHECK(FailedRound()
            .watchdog(0, 7)
            .runs(1, "S", "futex")
            .used(milliseconds(500))
            .runs(2, "S", "futex")
            .used(milliseconds(0))
            .culprits() == kUndecided);
}

TEST_CASE("where the system call may not be read, the wait channel tells a sleep") {
  FailedRound ranks = FailedRound().timed_out(0);
  ranks.runs(1, "S").channel("hrtimer_nanosleep").runs(2, "S").channel("futex_wait_queue");
  CHECK(ranks.culprits() == Numbers{1});
  CHECK(ranks.find()->evidence[0] == "rank 1 sleeps in hrtimer_nanosleep (state S)");
}

TEST_CASE("a failure of its own needs no finding") {
  CHECK_FALSE(FailedRound().failed(0).runs(1, "T").find());
  CHECK_FALSE(FailedRound().timed_out(0).of_world(1).find());
}

TEST_CASE("a later failure of its own is the cause of a complaint, and no other is") {
  WorkerExit witness;
  witness.complaint.emplace().kind = ComplaintKind::kLostPeer;
  WorkerExit own;
  own.status = ExitStatus::signaled(SIGKILL);
  CHECK(is_cause(own, witness));
  CHECK_FALSE(is_cause(witness, own));
  CHECK_FALSE(is_cause(witness, witness));
  CHECK_FALSE(is_cause(own, own));
  own.status = ExitStatus::exited(0);
  CHECK_FALSE(is_cause(own, witness));
}

TEST_CASE("a finding says who is the culprit, what shows it, and that the others are witnesses") {
  const auto finding =
      FailedRound().timed_out(0).timed_out(2).timed_out(3).runs(4, "T").timed_out(1).find();
  CHECK(finding->code == "W-COLLECTIVE");
  CHECK(finding->text ==
        "a collective gave up after 10 min; rank 4 (local 0, pid 104) on b" + test::kOddOneOut);
  CHECK(finding->evidence == std::vector<std::string>{"rank 4 is stopped (state T)",
                                                      "ranks 0-3 wait in all_reduce (train.py:310)",
                                                      "rank 0 said: what it printed"});
  CHECK(finding->likely == "something stopped it: SIGSTOP, a debugger, the batch system");
  CHECK(finding->others == "ranks 0-3 gave up afterwards; they are witnesses, not the cause");
}

TEST_CASE("a finding of many ranks is short") {
  FailedRound ranks;
  for (int rank = 0; rank < 500; ++rank) ranks.timed_out(rank);
  for (int rank = 500; rank < 540; rank += 2) ranks.runs(rank, "S", "call" + std::to_string(rank));
  const auto finding = ranks.find();
  REQUIRE(finding);
  CHECK(finding->evidence.size() <= kFindingLinesMax);
  CHECK_THAT(finding->text, ContainsSubstring("and 12 others"));
}

TEST_CASE("lists of ranks show ranges") {
  CHECK(rank_list({3}) == "rank 3");
  CHECK(rank_list({4, 0, 1, 2}) == "ranks 0-2, 4");
  CHECK(rank_list({0, 1}) == "ranks 0, 1");
}

TEST_CASE("of ranks that disagree the one that most others name is the odd one out") {
  const auto finding = FailedRound().differs(0, 2).differs(1, 2).differs(2, 0).differs(3, 2).find();
  REQUIRE(finding);
  CHECK(finding->code == "W-COLLECTIVE");
  CHECK(finding->ranks == std::vector<int>{2});
  CHECK_THAT(finding->text, ContainsSubstring("the ranks disagree; rank 2 "));
  CHECK_THAT(finding->others, ContainsSubstring("ranks 0, 1, 3 gave up"));
  CHECK(FailedRound().differs(0, 1).differs(1, 0).culprits().empty());  // one of two
  const auto unheard = FailedRound().differs(0, 1).differs(1, 0).runs(2, "R").find();
  REQUIRE(unheard);
  CHECK(unheard->ranks.empty());
  CHECK_THAT(unheard->text, ContainsSubstring("the ranks disagree; the "));
  // A monitored barrier: rank 0 names the one that is late, and all others rank 0.
  CHECK(FailedRound().names(0, {1}).names(1, {0}).names(2, {0}).names(3, {0}).culprits().empty());
}

TEST_CASE("an exception in a thread is told, and does not decide") {
  const auto finding = FailedRound()
                           .timed_out(0)
                           .timed_out(2)
                           .runs(1, "S", "futex")
                           .raised("in a thread: E: x")
                           .find();
  REQUIRE(finding);
  CHECK(finding->ranks == std::vector<int>{1});
  CHECK_THAT(finding->evidence.front(), ContainsSubstring("after an exception in a thread: E: x"));
  const auto sleeps = FailedRound()
                          .timed_out(0)
                          .runs(1, "S", "futex")
                          .raised("in a thread: E: x")
                          .runs(2, "S", "clock_nanosleep")
                          .timed_out(3)
                          .culprits();
  CHECK(sleeps == std::vector<int>{2});
}

TEST_CASE("the rank that sleeps while the others lose their connections is the odd one out") {
  const auto finding =
      FailedRound().lost_peer(0).lost_peer(1).lost_peer(2).runs(3, "S", "clock_nanosleep").find();
  REQUIRE(finding);
  CHECK(finding->code == "W-PEER");
  CHECK(finding->ranks == std::vector<int>{3});
  CHECK_THAT(finding->evidence.front(), ContainsSubstring("rank 3 sleeps in clock_nanosleep"));
  CHECK(FailedRound().lost_peer(0).lost_peer(1).runs(3, "S", "futex").culprits().empty());
  CHECK(FailedRound().lost_peer(0).runs(3, "S", "clock_nanosleep").culprits().empty());
}
