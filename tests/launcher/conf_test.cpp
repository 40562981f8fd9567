// --rdzv-conf: what a value looks like, and what each key does where.
#include "base/limits.hpp"
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Launch elastic_conf(const std::string& conf) {
  return launch_of(
      {"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=far", "--rdzv-conf", conf, "W"});
}

Launch static_conf(const std::string& conf) {
  return launch_of({"--nnodes=2", "--master-addr=node-1", "--rdzv-conf", conf, "W"});
}

}  // namespace

TEST_CASE("the flag --rdzv-conf is pairs with values") {
  for (const std::string bad : {"a", "=", "a=", "a=1,", ",a=1", "=1", "a=1,,b=2"}) {
    INFO(bad);
    CHECK_THAT(refusal_of({"--rdzv-conf", bad, "W"}).sentence,
               ContainsSubstring("is not KEY=VALUE"));
  }
}

TEST_CASE("times of --rdzv-conf have units if one likes, and bounds") {
  const RendezvousConfig config =
      *elastic_conf(
           "join_timeout=10m, last_call_timeout = 1.5,keep_alive_interval=250ms,"
           "keep_alive_max_attempt=4,coordinator_timeout=90s")
           .config.rendezvous;
  CHECK(config.join_timeout == seconds(600));
  CHECK(config.last_call_timeout == milliseconds(1500));
  CHECK(config.keep_alive_interval == milliseconds(250));
  CHECK(config.keep_alive_max_attempt == 4);
  CHECK(config.coordinator_timeout == seconds(90));
  for (const std::string bad :
       {"join_timeout=0", "timeout=soon", "keep_alive_max_attempt=1.5", "keep_alive_interval=0",
        "keep_alive_max_attempt=0", "keep_alive_max_attempt=1001", "cas_backoff_max_seconds=-1",
        "join_timeout=8761h", "keep_alive_interval=0.0005", "is_host=maybe", "is_host=2x",
        "store_type=redis"}) {
    INFO(bad);
    CHECK_THAT(refusal_of({"--rdzv-conf", bad, "W"}).sentence, ContainsSubstring(bad));
  }
}

TEST_CASE("without --rdzv-conf the limits are torchrun's, but for quicker keep-alives") {
  const RendezvousConfig config = *elastic_conf("").config.rendezvous;
  CHECK(config.join_timeout == seconds(600));
  CHECK(config.last_call_timeout == seconds(30));
  CHECK(config.keep_alive_interval == seconds(1));
  CHECK(config.keep_alive_max_attempt == 5);
  CHECK(config.coordinator_timeout == seconds(60));
  CHECK(static_conf("").config.rendezvous->join_timeout == seconds(900));
}

TEST_CASE("the static backend's timeout limits the wait for nodes, as join_timeout does") {
  CHECK(static_conf("timeout=7").config.rendezvous->join_timeout == seconds(7));
  CHECK(static_conf("timeout=7").notes.empty());
  CHECK(static_conf("join_timeout=8").config.rendezvous->join_timeout == seconds(8));
  const auto both = static_conf("timeout=7,join_timeout=8");
  CHECK(both.config.rendezvous->join_timeout == seconds(8));
  REQUIRE(both.notes.size() == 1);
  CHECK_THAT(both.notes[0], ContainsSubstring("timeout not used: join_timeout is given too"));
}

TEST_CASE("a key without a counterpart costs one line with the reason, and the run continues") {
  for (const std::string key :
       {"close_timeout", "heartbeat_timeout", "read_timeout", "cas_backoff_max_seconds"}) {
    INFO(key);
    const std::string conf = key + "=5";
    for (const auto& notes : {elastic_conf(conf).notes, static_conf(conf).notes}) {
      REQUIRE(notes.size() == 1);
      CHECK_THAT(notes[0], ContainsSubstring("--rdzv-conf " + key + " not used: "));
    }
  }
  CHECK_THAT(elastic_conf("timeout=5").notes.at(0), ContainsSubstring("join_timeout limits"));
  CHECK_THAT(static_conf("last_call_timeout=5").notes.at(0), ContainsSubstring("no more"));
  CHECK(elastic_conf("store_type=tcp,last_call_timeout=5").notes.empty());
  for (const std::string time : {"0", "0.5", "3s", "500ms"}) {
    INFO(time);
    CHECK(elastic_conf("cas_backoff_max_seconds=" + time).notes.size() == 1);
  }
}

TEST_CASE("a single node waits for no other, so known keys are only checked") {
  CHECK(launch_of({"--rdzv-conf= join_timeout = 10m , read_timeout=9", "W"}).notes.empty());
  CHECK(launch_of({"--rdzv-conf=is_host=1,timeout=900", "--master-port=7", "W"}).notes.empty());
}

TEST_CASE("unknown --rdzv-conf keys are named beside the known ones, and the run continues") {
  for (const Words& mode : {Words{}, Words{"--nnodes=2", "--master-addr=node-1"}}) {
    Words words = mode;
    words.insert(words.end(), {"--rdzv-conf=a=b=c,join_timeout=5,zap=1", "W"});
    const auto launch = launch_of(words);
    CHECK(launch.notes.empty());
    REQUIRE(launch.warnings.size() == 1);
    CHECK_THAT(launch.warnings[0], ContainsSubstring("unknown keys: a, zap"));
    CHECK_THAT(launch.warnings[0], ContainsSubstring("last_call_timeout"));
    CHECK_THAT(launch.warnings[0], ContainsSubstring("is_host"));
  }
}

TEST_CASE("keys of --rdzv-conf that have an option of their own are refused") {
  CHECK_THAT(refusal_of({"--rdzv-conf=run_id=x", "W"}).sentence,
             ContainsSubstring("use --rdzv-id"));
  CHECK_THAT(refusal_of({"--rdzv-conf=max_nodes=2", "W"}).sentence,
             ContainsSubstring("use --nnodes"));
}

TEST_CASE("with store_type=file the nodes that name one file use the address of the first one") {
  const Words words{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file",
                    "--rdzv-endpoint=/data/store", "W"};
  FakeMachine first;
  first.addresses["10.0.0.1"] = "10.0.0.1";
  const Launch host = launch_of(words, first);
  REQUIRE(host.coordinator);
  CHECK(host.config.rendezvous->coordinator.host == "10.0.0.1");
  const int port = host.config.rendezvous->coordinator.port;
  CHECK(port >= 21000);
  CHECK(first.agreed == std::map<std::string, std::string>{
                            {"/data/store none", "node-1 10.0.0.1:" + std::to_string(port)}});
  FakeMachine second;
  second.name = "node-2";
  second.addresses = {{"node-2", "10.0.0.2"}};
  second.agreed = first.agreed;
  const Launch other = launch_of(words, second);
  CHECK_FALSE(other.coordinator);
  CHECK(other.config.rendezvous->coordinator.host == "10.0.0.1");
  CHECK(other.config.rendezvous->coordinator.port == port);
  second.agreed = {{"/data/store none", "node-1 127.0.0.1:7"}};
  CHECK_THAT(refusal_of(words, second).sentence, ContainsSubstring("pass --local-addr on node-1"));
  second.agreed = {{"/data/store none", "node-1"}};
  CHECK_THAT(refusal_of(words, second).sentence, ContainsSubstring("its line node-1"));
  FakeMachine debian;  // its own name is loopback, which only the others know better
  debian.addresses = {{"localhost", "127.0.0.1"}, {"node-1", "127.0.1.1"}};
  CHECK(launch_of(words, debian).config.rendezvous->coordinator.host == "node-1");
}

TEST_CASE("each run id has a line of its own in the file, whatever it is made of") {
  const FakeMachine machine;
  const std::vector<std::string> ids{"a b", "a_b", "a\\sb", "a  b"};
  for (const std::string& id : ids) {
    launch_of({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file",
               "--rdzv-endpoint=/data/store", "--rdzv-id=" + id, "W"},
              machine);
  }
  CHECK(machine.agreed.size() == ids.size());
  for (const auto& [line, offer] : machine.agreed)
    CHECK(std::count(line.begin(), line.end(), ' ') == 1);
}

TEST_CASE("a dry run names no coordinator that no node has offered yet") {
  const Words words{"--dry-run",
                    "--nnodes=2",
                    "--rdzv-backend=c10d",
                    "--rdzv-conf=store_type=file",
                    "--rdzv-endpoint=/data/store",
                    "W"};
  FakeMachine machine;
  CHECK(launch_of(words, machine).preview.coordinator_is_open);
  CHECK(machine.agreed.empty());
  machine.agreed = {{"/data/store none", "node-1 10.0.0.1:21001"}};
  const Launch known = launch_of(words, machine);
  CHECK_FALSE(known.preview.coordinator_is_open);
  CHECK(known.config.rendezvous->coordinator.port == 21001);
}

TEST_CASE("several nodes need the path of a file, a single one needs none") {
  const Words c10d{"--rdzv-backend=c10d", "--rdzv-conf=store_type=File"};
  Words several = c10d;
  several.insert(several.end(), {"--nnodes=2", "W"});
  CHECK_THAT(refusal_of(several).sentence, ContainsSubstring("pass it as --rdzv-endpoint"));
  Words one = c10d;
  one.insert(one.end(), {"--rdzv-endpoint=/data/store", "W"});
  const FakeMachine machine;
  CHECK_FALSE(config_of(one, machine).rendezvous);
  CHECK(machine.agreed.empty());
  CHECK_FALSE(config_of({"--rdzv-conf=store_type=file", "W"}).rendezvous);
}

TEST_CASE("the key is_host decides which node runs the coordinator, in torchrun's words and ours") {
  const auto plan_of = [](const std::string& endpoint, const std::string& value) {
    return launch_of({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint,
                      "--rdzv-conf=is_host=" + value, "W"})
        .coordinator;
  };
  for (const std::string yes : {"1", "true", "T", "yes", "y", "on"}) {
    INFO(yes);
    REQUIRE(plan_of("far", yes));
    CHECK(plan_of("far", yes)->need == CoordinatorPlan::Need::kMust);
  }
  for (const std::string no : {"0", "false", "f", "No", "n", "off"}) {
    INFO(no);
    CHECK_FALSE(plan_of("node-1", no));
  }
}
