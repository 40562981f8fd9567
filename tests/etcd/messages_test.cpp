// What etcd's gateway is sent, and what of its answers is read. The answers are those of etcd 3.4.
#include "rendezvous/etcd/messages.hpp"

#include "rendezvous/etcd/record_json.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::etcd;

namespace {

const Keys kKeys = keys_of("/ddprun", "job");

/// The answer of a look that found this coordinator and no record.
std::string looked(const std::string& kv) {
  return R"({"header":{"revision":"12"},"succeeded":true,"responses":[{"response_range":{"kvs":[)" +
         kv + R"(],"count":"1"}},{"response_range":{"header":{"revision":"12"}}}]})";
}

}  // namespace

TEST_CASE("base64 is the standard one, with padding") {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {std::string("\0\xff\xfe", 3), "AP/+"}}) {
    CHECK(base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  for (const char* bad : {"Z", "Zg=", "Zg", "Z!==", "===="}) CHECK(!from_base64(bad));
}

TEST_CASE("a campaign creates the key only if there is none") {
  CHECK(kKeys.leader == "/ddprun/job/coordinator");
  CHECK(kKeys.record == "/ddprun/job/run");
  const std::string body = campaign_body(kKeys, 9, {"id", "10.0.0.1", 4711}, 17);
  CHECK_THAT(body, ContainsSubstring(R"("target":"MOD","result":"EQUAL","mod_revision":"17")"));
  CHECK_THAT(body, ContainsSubstring(R"("target":"VERSION","result":"EQUAL","version":"0")"));
  CHECK_THAT(body, ContainsSubstring(R"("lease":"9")"));
}

TEST_CASE("a leader's key is read as it was written") {
  const std::string value = base64(R"({"agent":"id","host":"10.0.0.1","port":4711})");
  const std::string kv =
      R"({"key":"a","create_revision":"7","mod_revision":"7","version":"1","value":")" + value +
      R"(","lease":"99"})";
  const auto look = read_look(looked(kv));
  REQUIRE(look);
  CHECK(look->revision == 12);
  CHECK(look->key == LeaderKey{{"id", "10.0.0.1", 4711}, 7, 99});
  const auto none = read_look(R"({"header":{"revision":"12"}})");
  REQUIRE(none);
  CHECK(!none->key);
  CHECK(!read_look("404 page not found"));
  CHECK(!read_look("{}"));

  const auto put =
      read_watch(R"({"result":{"header":{"revision":"8"},"events":[{"kv":)" + kv + "}]}}");
  REQUIRE(put);
  CHECK(put->key == look->key);
  const auto gone = read_watch(R"({"result":{"header":{"revision":"9"},"events":[)"
                               R"({"type":"DELETE","kv":{"key":"a","mod_revision":"9"}}]}})");
  REQUIRE(gone);
  CHECK(gone->changed);
  CHECK(!gone->key);
  const auto created = read_watch(R"({"result":{"header":{"revision":"9"},"created":true}})");
  REQUIRE(created);
  CHECK(!created->changed);
  CHECK(created->ended.empty());
  const auto compacted = read_watch(
      R"({"result":{"header":{"revision":"9"},"canceled":true,"compact_revision":"8"}})");
  REQUIRE(compacted);
  CHECK(compacted->ended == "the revision was compacted");
}

TEST_CASE("a value that ddprun did not write is a leader without an address") {
  const auto look = read_look(looked(R"({"create_revision":"1","value":"aGVsbG8="})"));
  REQUIRE(look);
  REQUIRE(look->key);
  CHECK(look->key->leader.host.empty());
  CHECK(look->key->leader.port == 0);
}

TEST_CASE("the winner of a campaign reads what is known of the run") {
  const std::string record =
      base64(R"({"round":7,"restarts":2,"over":{"exit_code":3,"text":"rank 0 failed","nodes":4}})");
  const auto won =
      read_campaign(std::string(R"({"header":{"revision":"21"},"succeeded":true,"responses":[)") +
                    R"({"response_put":{"header":{"revision":"21"}}},)" +
                    R"({"response_range":{"header":{"revision":"21"},"kvs":[{"value":")" + record +
                    R"(","mod_revision":"19"}],"count":"1"}}]})");
  REQUIRE(won);
  CHECK(won->won);
  CHECK(won->revision == 21);
  REQUIRE(won->record);
  CHECK(won->record->record == RunRecord{7, 2, RunRecord::Verdict{3, "rank 0 failed", 4}});
  CHECK(won->record->revision == 19);
  const auto lost = read_campaign(R"({"header":{"revision":"21"},"responses":[{"response_range":)"
                                  R"({"kvs":[{"create_revision":"5","value":"e30="}]}}]})");
  REQUIRE(lost);
  CHECK(!lost->won);
  REQUIRE(lost->key);
  CHECK(lost->key->term == 5);
}

TEST_CASE("a record is read as it was written") {
  RunRecord record{9, 1};
  RunRecord::Agreed agreed;
  protocol::Terms& terms = agreed.terms;
  terms.nodes_min = 2;
  terms.nodes_max = 4;
  terms.max_restarts = 3;
  terms.join_timeout = std::chrono::seconds(600);
  terms.last_call_timeout = std::chrono::seconds(30);
  terms.keep_alive_interval = std::chrono::milliseconds(400);
  terms.keep_alive_max_attempt = 5;
  terms.commands_may_differ = true;
  terms.hang_timeout = std::chrono::minutes(5);
  agreed.fingerprint = "f1";
  agreed.host = "gpu-01";
  agreed.address = "10.0.0.9";
  record.agreed = agreed;
  record.before = {{4, {3, "rank 0 failed", 2, 17}}, {6, {0, "", 1}}};
  CHECK(record_of(to_json(record)) == record);
  record.over = RunRecord::Verdict{0, "all ranks exited with code 0", 4, 21};
  CHECK(record_of(to_json(record)) == record);
}

TEST_CASE("terms that no run can have are none") {
  RunRecord record{9, 1};
  record.agreed = RunRecord::Agreed{};
  CHECK(record_of(to_json(record)).agreed);
  record.agreed->terms.join_timeout = protocol::Milliseconds(0);
  CHECK(!record_of(to_json(record)).agreed);
  CHECK(record_of(boost::json::array()) == RunRecord{});
}

TEST_CASE("leases, tokens and refusals are read") {
  CHECK(read_grant(R"({"header":{},"ID":"7587848390000000000","TTL":"5"})")->lease ==
        7'587'848'390'000'000'000);
  CHECK(read_renewal("{\"result\":{\"header\":{},\"ID\":\"7\",\"TTL\":\"5\"}}\n") ==
        Duration(std::chrono::seconds(5)));
  CHECK(read_renewal(R"({"result":{"header":{},"ID":"7"}})") == Duration(0));
  CHECK(!read_renewal("{}"));
  CHECK(read_token(R"({"header":{},"token":"abc.8"})") == "abc.8");
  const auto written = read_recorded(R"({"header":{"revision":"9"},"succeeded":true})");
  REQUIRE(written);
  CHECK(written->written);
  CHECK(written->record_revision == 9);
  const auto other =
      read_recorded(R"({"header":{"revision":"9"},"responses":[{"response_range":{"kvs":[)"
                    R"({"create_revision":"5","value":"e30="}]}},)"
                    R"({"response_range":{"kvs":[{"mod_revision":"8","value":"e30="}]}}]})");
  REQUIRE(other);
  CHECK(!other->written);
  CHECK(other->key->term == 5);
  CHECK(other->record_revision == 8);
  const auto refusal =
      read_refusal(R"({"error":"etcdserver: user name is empty","message":"the same","code":3})");
  REQUIRE(refusal);
  CHECK(refusal->code == 3);
  CHECK(refusal->text == "etcdserver: user name is empty");
}
