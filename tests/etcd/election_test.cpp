// Election, one answer at a time.
#include "rendezvous/etcd/election.hpp"

#include <algorithm>

#include "tests/etcd/options.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::etcd;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// One Election whose questions the test answers.
class Desk {
 public:
  explicit Desk(ElectionOptions options = options_of("a")) : election(std::move(options), now) {
    take(election.begin(now));
  }
  void feed(const Event& event) { take(election.step(event, now)); }
  void after(Duration time) {
    now += time;
    feed(Tick{});
  }
  /// The last action of this type; none since forget(): nullopt.
  template <class T>
  std::optional<T> last() const {
    for (auto it = actions.rbegin(); it != actions.rend(); ++it) {
      if (const auto* found = std::get_if<T>(&*it)) return *found;
    }
    return std::nullopt;
  }
  void forget() { actions.clear(); }
  void lead() {
    feed(Looked{last<AskLook>()->id, {std::nullopt, 10}});
    after(milliseconds(10));
    feed(Granted{last<AskGrant>()->id, {77, kTtl}});
    CampaignAnswer won;
    won.won = true;
    won.revision = 11;
    feed(Campaigned{last<AskCampaign>()->id, won});
    REQUIRE(last<Lead>());
    forget();
  }
  [[nodiscard]] bool acts() const { return now < election.acts_until(); }

  TimePoint now{seconds(1000)};
  Election election;
  Actions actions;

 private:
  void take(const Actions& more) { actions.insert(actions.end(), more.begin(), more.end()); }
};

LeaderKey key_of(const std::string& agent, Revision term = 20) {
  return {{agent, "10.0.0.2", 4711}, term, 5};
}

}  // namespace

TEST_CASE("the first node without a leader campaigns, and acts from the grant of its lease on") {
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10}});
  CHECK(desk.last<AskWatch>()->from == 11);
  CHECK(!desk.last<AskGrant>());
  desk.after(milliseconds(10));
  const TimePoint asked = desk.now;
  desk.now += milliseconds(300);
  desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
  CHECK(desk.last<AskCampaign>()->lease == 77);
  CampaignAnswer won;
  won.won = true;
  won.revision = 11;
  won.record = RecordKey{RunRecord{7, 2}, 9};
  desk.now += milliseconds(300);
  desk.feed(Campaigned{desk.last<AskCampaign>()->id, won});
  CHECK(desk.last<Lead>()->term == 11);
  CHECK(desk.last<Lead>()->record == RunRecord{7, 2});
  CHECK(desk.election.acts_until() == asked + kTtl - seconds(1));
}

TEST_CASE("a node that finds a leader follows it, and needs no lease") {
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {key_of("b"), 30}});
  CHECK(desk.last<Follow>()->leader == key_of("b").leader);
  desk.after(seconds(3));
  CHECK(!desk.last<AskGrant>());
  SECTION("it campaigns when the watch says that the key is gone") {
    desk.feed(Watched{desk.last<AskWatch>()->id, std::nullopt});
    CHECK(!desk.last<Follow>()->leader);
    desk.after(milliseconds(10));
    CHECK(desk.last<AskGrant>());
  }
  SECTION("and not if another node was faster") {
    desk.feed(Watched{desk.last<AskWatch>()->id, std::nullopt});
    desk.feed(Watched{desk.last<AskWatch>()->id, key_of("c", 40)});
    CHECK(desk.last<Follow>()->leader == key_of("c").leader);
    desk.after(milliseconds(10));
    CHECK(!desk.last<AskGrant>());
  }
  SECTION("a watch that ends, by compaction for example, is begun again behind a look") {
    desk.feed(WatchEnded{desk.last<AskWatch>()->id, "the revision was compacted"});
    desk.forget();
    desk.after(seconds(1));
    desk.feed(Looked{desk.last<AskLook>()->id, {key_of("b"), 90}});
    CHECK(desk.last<AskWatch>()->from == 91);
    CHECK(!desk.last<Follow>());
  }
}

TEST_CASE("a node that may not lead only follows") {
  ElectionOptions options = options_of("a");
  options.may_lead = false;
  Desk desk(options);
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10}});
  desk.after(seconds(1));
  CHECK(!desk.last<AskGrant>());
}

TEST_CASE("a leader renews its lease, and each renewal counts from when it was asked for") {
  Desk desk;
  desk.lead();
  desk.after(kTtl / 3);
  const TimePoint asked = desk.now;
  const auto renew = desk.last<AskRenew>();
  REQUIRE(renew);
  CHECK(renew->lease == 77);
  desk.now += seconds(1);
  desk.feed(Renewed{renew->id, kTtl});
  CHECK(desk.election.acts_until() == asked + kTtl - seconds(1));
}

TEST_CASE("a leader that slept past its lease acts no more, and asks before it acts again") {
  Desk desk;
  desk.lead();
  desk.now += seconds(30);
  CHECK(!desk.acts());
  desk.feed(Tick{});
  REQUIRE(desk.last<AskRenew>());
  SECTION("the lease has expired") {
    desk.feed(Renewed{desk.last<AskRenew>()->id, Duration(0)});
    CHECK(desk.last<StepDown>());
    CHECK(!desk.acts());
  }
  SECTION("another node leads") {
    desk.feed(Looked{desk.last<AskLook>()->id, {key_of("b"), 30}});
    CHECK(desk.last<StepDown>());
    CHECK(desk.last<Follow>()->leader == key_of("b").leader);
  }
  SECTION("the lease is renewed, and the key is still its own") {
    desk.feed(Looked{desk.last<AskLook>()->id, {key_of("a", 11), 30}});
    desk.feed(Renewed{desk.last<AskRenew>()->id, kTtl});
    CHECK(!desk.acts());
    CHECK(!desk.last<Act>());
    desk.feed(Looked{desk.last<AskLook>()->id, {key_of("a", 11), 31}});
    CHECK(desk.last<Act>());
    CHECK(desk.acts());
  }
}

TEST_CASE("a leader whose servers have no quorum stays, does not act, and says so once") {
  Desk desk;
  desk.lead();
  for (int i = 0; i < 600; ++i) {
    desk.after(milliseconds(200));
    for (const auto& id : {desk.last<AskRenew>() ? desk.last<AskRenew>()->id : 0,
                           desk.last<AskLook>() ? desk.last<AskLook>()->id : 0}) {
      desk.feed(Failed{id, "h1:2379: no leader", Reach::kServer});
    }
  }
  CHECK(!desk.acts());
  CHECK(!desk.last<StepDown>());
  CHECK(std::count_if(desk.actions.begin(), desk.actions.end(), [](const Action& action) {
          return std::holds_alternative<Note>(action);
        }) == 1);
  CHECK_THAT(desk.last<Note>()->text, ContainsSubstring("no leader"));
  CHECK(desk.last<Await>());
  desk.after(seconds(2));
  desk.feed(Renewed{desk.last<AskRenew>()->id, kTtl});
  desk.feed(Looked{desk.last<AskLook>()->id, {key_of("a", 11), 30}});
  desk.after(seconds(1));
  if (desk.last<AskLook>()) desk.feed(Looked{desk.last<AskLook>()->id, {key_of("a", 11), 30}});
  CHECK(desk.last<Act>());
  CHECK_THAT(desk.last<Note>()->text, ContainsSubstring("answers again"));
}

TEST_CASE("a leader that reaches no server at all steps down after coordinator_timeout") {
  Desk desk;
  desk.lead();
  for (int i = 0; i < 320; ++i) {
    desk.after(milliseconds(200));
    if (desk.last<AskRenew>()) {
      desk.feed(Failed{desk.last<AskRenew>()->id, "h1:2379: connection refused", Reach::kNone});
    }
  }
  CHECK(desk.last<StepDown>());
}

TEST_CASE("the record is written once at a time, and a failed write is repeated") {
  Desk desk;
  desk.lead();
  desk.feed(RecordChanged{{1, 0}});
  const auto first = desk.last<AskRecord>();
  REQUIRE(first);
  CHECK(first->term == 11);
  CHECK(first->record == RunRecord{1, 0});
  desk.forget();
  desk.feed(RecordChanged{{2, 1}});
  CHECK(!desk.last<AskRecord>());
  CHECK(!desk.election.is_recorded());
  desk.feed(Failed{first->id, "no answer", Reach::kServer});
  desk.after(seconds(1));
  REQUIRE(desk.last<AskRecord>());
  CHECK(desk.last<AskRecord>()->record == RunRecord{2, 1});
  desk.feed(Recorded{desk.last<AskRecord>()->id});
  CHECK(desk.election.is_recorded());
  SECTION("a leader that was replaced learns it from its write") {
    desk.feed(RecordChanged{{3, 1}});
    desk.feed(Recorded{desk.last<AskRecord>()->id, false});
    CHECK(desk.last<StepDown>());
  }
}

TEST_CASE("what etcd has of the record is told once it has it") {
  Desk desk;
  desk.lead();
  desk.feed(RecordChanged{{1, 0}});
  CHECK(!desk.last<Kept>());
  desk.feed(Recorded{desk.last<AskRecord>()->id});
  REQUIRE(desk.last<Kept>());
  CHECK(desk.last<Kept>()->record == RunRecord{1, 0});
  desk.forget();
  desk.feed(RecordChanged{{2, 0}});
  const auto second = desk.last<AskRecord>();
  desk.feed(RecordChanged{{3, 0}});
  desk.feed(Recorded{second->id});
  CHECK(!desk.last<Kept>());  // it is not the last one
  desk.feed(Recorded{desk.last<AskRecord>()->id});
  CHECK(desk.last<Kept>()->record == RunRecord{3, 0});
}

TEST_CASE("a record that changed behind the back of its coordinator is written again") {
  Desk desk;
  desk.lead();
  desk.feed(RecordChanged{{1, 0}});
  const auto first = desk.last<AskRecord>();
  desk.feed(Failed{first->id, "no answer", Reach::kServer});
  desk.feed(RecordChanged{{2, 0}});
  desk.after(seconds(1));
  const auto second = desk.last<AskRecord>();
  CHECK(second->record_revision == first->record_revision);
  desk.feed(Recorded{second->id, true, false, 15});  // the first one came after all
  CHECK(!desk.last<Kept>());
  const auto third = desk.last<AskRecord>();
  CHECK(third->record_revision == 15);
  CHECK(third->record == RunRecord{2, 0});
  desk.feed(Recorded{third->id, true, true, 16});
  CHECK(desk.last<Kept>()->record == RunRecord{2, 0});
}

TEST_CASE("a new coordinator keeps the record of a run that lives, and leaves a verdict as it is") {
  const bool over = GENERATE(false, true);
  RunRecord record{7, 2};
  if (over) record.over = RunRecord::Verdict{3, "rank 0 failed", 2};
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10, RecordKey{record, 9}}});
  desk.after(milliseconds(10));
  desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
  CHECK(desk.last<AskCampaign>()->record_revision == 9);
  desk.feed(
      Campaigned{desk.last<AskCampaign>()->id, {true, std::nullopt, RecordKey{record, 9}, 11}});
  REQUIRE(desk.last<Lead>());
  CHECK(desk.last<AskRecord>().has_value() == !over);
}

TEST_CASE("a node knows what it takes over: a record that changed meanwhile is read first") {
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10, RecordKey{RunRecord{1, 0}, 9}}});
  desk.after(milliseconds(10));
  desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
  const auto first = desk.last<AskCampaign>();
  desk.feed(Campaigned{first->id, {false, std::nullopt, RecordKey{RunRecord{2, 1}, 15}, 16}});
  const auto second = desk.last<AskCampaign>();
  CHECK(second->id != first->id);
  CHECK(second->lease == 77);
  CHECK(second->record_revision == 15);
  CHECK(!desk.last<Lead>());
}

TEST_CASE("a campaign that was won too long ago is given back") {
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10}});
  desk.after(milliseconds(10));
  desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
  desk.now += kTtl;
  desk.feed(Campaigned{desk.last<AskCampaign>()->id, {true, std::nullopt, std::nullopt, 11}});
  CHECK(!desk.last<Lead>());
  CHECK(desk.last<Revoke>()->lease == 77);
}

TEST_CASE("a node with other terms than the run's does not campaign, and says so") {
  ElectionOptions options = options_of("a");
  options.bars = [](const RunRecord& record) {
    return record.over ? std::nullopt : std::optional<std::string>("other terms");
  };
  Desk desk(options);
  const RecordKey lives{RunRecord{1, 0}, 9};
  SECTION("not while another node coordinates") {
    desk.feed(Looked{desk.last<AskLook>()->id, {key_of("b"), 10, lives}});
    CHECK(!desk.last<Bar>());
    const RequestId watch = desk.last<AskWatch>()->id;
    desk.forget();
    desk.feed(Watched{watch, std::nullopt});  // it may be over by now: that is looked up first
    CHECK(!desk.last<Bar>());
    REQUIRE(desk.last<AskLook>());
    desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 12, lives}});
    CHECK(desk.last<Bar>()->why == "other terms");
  }
  SECTION("at once if none does") {
    desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10, lives}});
    CHECK(desk.last<Bar>()->why == "other terms");
    desk.after(seconds(1));
    CHECK(!desk.last<AskGrant>());
  }
  SECTION("but when the run is over it may begin another one") {
    RecordKey over = lives;
    over.record.over = RunRecord::Verdict{3, "rank 0 failed", 2};
    desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10, over}});
    CHECK(!desk.last<Bar>());
    desk.after(milliseconds(10));
    CHECK(desk.last<AskGrant>());
  }
  SECTION("nor if it learns that from a campaign") {
    desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10}});
    desk.after(milliseconds(10));
    desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
    desk.feed(Campaigned{desk.last<AskCampaign>()->id, {false, std::nullopt, lives, 16}});
    CHECK(desk.last<Bar>()->why == "other terms");
    CHECK(!desk.last<Lead>());
  }
}

TEST_CASE("a campaign whose answer is lost is given back") {
  Desk desk;
  desk.feed(Looked{desk.last<AskLook>()->id, {std::nullopt, 10}});
  desk.after(milliseconds(10));
  desk.feed(Granted{desk.last<AskGrant>()->id, {77, kTtl}});
  desk.feed(Failed{desk.last<AskCampaign>()->id, "no answer", Reach::kServer});
  desk.after(seconds(1));
  LeaderKey own = key_of("a");
  own.lease = 77;
  desk.feed(Looked{desk.last<AskLook>()->id, {own, 30}});
  CHECK(desk.last<Revoke>()->lease == 77);
  CHECK(!desk.last<Lead>());
}

TEST_CASE("a wrong password ends the agent at its start, and not later") {
  Desk desk;
  desk.feed(Failed{desk.last<AskLook>()->id, "wrong password", Reach::kServer, true});
  CHECK(desk.last<Refuse>()->why == "wrong password");
  Desk leader;
  leader.lead();
  leader.after(kTtl / 3);
  leader.feed(Failed{leader.last<AskRenew>()->id, "wrong password", Reach::kServer, true});
  CHECK(!leader.last<Refuse>());
}

TEST_CASE("a leader that resigns gives its lease back, and does nothing more") {
  Desk desk;
  desk.lead();
  desk.feed(Resign{});
  CHECK(desk.last<StepDown>());
  CHECK(desk.last<Revoke>()->lease == 77);
  desk.forget();
  desk.after(seconds(60));
  CHECK(desk.actions.empty());
}
