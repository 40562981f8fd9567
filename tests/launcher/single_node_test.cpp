// A single node: the standalone rules, static and c10d without other nodes.
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {
const std::string kUuid = FakeMachine().random_id();
}

TEST_CASE("a plain run is standalone: a run id of its own, loopback, a port the kernel picks") {
  for (const Words& words : {Words{"W"}, Words{"--standalone", "W"}, Words{"--nnodes=1:1", "W"}}) {
    const auto launch = launch_of(words);
    CHECK(launch.config.run_id.value() == kUuid);
    CHECK(launch.config.store.master_addr == "127.0.0.1");
    CHECK(launch.config.store.listen_addr == "127.0.0.1");
    CHECK(launch.config.store.master_port == 0);
    CHECK(launch.config.store.host == StoreHost::kAgent);
    CHECK(launch.notes.empty());
  }
}

TEST_CASE("an implied standalone run names unused options in one line") {
  const auto launch = launch_of({"--rdzv-id=foo", "--master-addr=node-1", "W"});
  CHECK(launch.config.run_id.value() == kUuid);
  CHECK(launch.config.store.master_addr == "127.0.0.1");
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--rdzv-id and --master-addr not used"));
  CHECK_THAT(launch.notes[0], ContainsSubstring("--master-port"));
}

TEST_CASE("an explicit standalone run replaces given values, with a note") {
  const auto launch = launch_of({"--standalone", "--rdzv-id=foo", "--rdzv-backend=static",
                                 "--rdzv-endpoint=far:1", "--master-port=7", "W"});
  const auto plain = launch_of({"--standalone", "--rdzv-backend=c10d", "W"});
  CHECK(plain.notes.empty());
  CHECK_THAT(launch_of({"--standalone", "--rdzv-backend=etcd", "W"}).notes.at(0),
             ContainsSubstring("--rdzv-backend not used"));
  CHECK(launch.config.run_id.value() == kUuid);
  CHECK(launch.config.store.master_port == 0);
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(
      launch.notes[0],
      ContainsSubstring("--rdzv-backend, --rdzv-endpoint, --rdzv-id and --master-port not used"));
}

TEST_CASE("an empty run id, whose variable was unset in the shell, is a new one") {
  for (const Words& words : {Words{"--rdzv-id=", "--master-port=7", "W"},
                             Words{"--rdzv-id=", "--rdzv-backend=c10d", "W"},
                             Words{"--rdzv-id=", "--rdzv-backend=c10d", "--rdzv-endpoint=far", "W"},
                             Words{"--rdzv-id=", "--hosts=node-1", "W"}}) {
    const auto launch = launch_of(words);
    CHECK(launch.config.run_id.value() == kUuid);
    CHECK(launch.preview.run_id_is_new);
  }
}

TEST_CASE("blanks around an endpoint or a master address are cut") {
  const auto endpoint = config_of({"--rdzv-endpoint", " localhost:29512 ", "W"});
  CHECK(endpoint.store.master_addr == "localhost");
  CHECK(endpoint.store.master_port == 29512);
  CHECK(config_of({"--master-port=7", "--master-addr", "node-1 ", "W"}).store.master_addr ==
        "node-1");
}

TEST_CASE("a master port makes the run static again") {
  const auto config = config_of({"--master-port=29511", "W"});
  CHECK(config.run_id.value() == "none");
  CHECK(config.store.master_addr == "127.0.0.1");
  CHECK(config.store.master_port == 29511);
  CHECK(config_of({"--master-port=29511", "--rdzv-id=foo", "W"}).run_id.value() == "foo");
  CHECK(config_of({"W"}, with_variables({{"PET_MASTER_PORT", "29511"}})).store.master_port ==
        29511);
  const auto named = config_of({"--master-port=29511", "--master-addr=node-1", "W"});
  CHECK(named.store.master_addr == "node-1");
  CHECK(named.store.listen_addr == "10.0.0.1");
}

TEST_CASE("a static endpoint is the workers' address and port") {
  const auto config = config_of({"--rdzv-endpoint=localhost:29512", "W"});
  CHECK(config.store.master_addr == "localhost");
  CHECK(config.store.listen_addr == "127.0.0.1");
  CHECK(config.store.master_port == 29512);
  CHECK(config.run_id.value() == "none");
}

TEST_CASE("a static endpoint needs a port") {
  CHECK_THAT(refusal_of({"--rdzv-endpoint=localhost", "W"}).sentence,
             ContainsSubstring("--master-port"));
}

TEST_CASE("c10d on one node keeps the run id and lets the kernel pick the port") {
  const auto launch =
      launch_of({"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", "--rdzv_id", "X",
                 "--nnodes", "1", "--nproc_per_node", "2", "--tee", "3", "--role", "", "W"});
  CHECK(launch.config.run_id.value() == "X");
  CHECK(launch.config.store.master_port == 0);
  CHECK(launch.config.workers.role.empty());
  CHECK(launch.config.workers.count == 2);
  CHECK(launch.config.log.tee.all == Streams::kBoth);
  CHECK(launch.notes.empty());
  CHECK(config_of({"--rdzv-backend=c10d", "W"}).run_id.value() == "none");
}

TEST_CASE("a single node notes that it does not use a c10d endpoint with a port") {
  const auto launch = launch_of({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29400", "W"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--rdzv-endpoint=localhost:29400 not used"));
}

TEST_CASE("the workers of one node meet at loopback if the given address is not this machine's") {
  const FakeMachine variable = with_variables({{"PET_MASTER_ADDR", "far"}});
  for (const Launch& launch :
       {launch_of({"--master-port=1", "--master-addr=far", "W"}),
        launch_of({"--master-port=1", "W"}, variable), launch_of({"--rdzv-endpoint=far:1", "W"}),
        launch_of({"--standalone", "--local-addr=far", "W"})}) {
    CHECK(launch.config.store.master_addr == "127.0.0.1");
    CHECK(launch.config.store.listen_addr == "127.0.0.1");
    REQUIRE(launch.notes.size() == 1);
    CHECK(launch.notes[0] ==
          "far is not an address of this machine: the workers of its one node use 127.0.0.1");
  }
}

TEST_CASE("a host without 127.0.0.1 uses its other loopback address") {
  FakeMachine machine;
  machine.addresses = {{"localhost", "::1"}};
  CHECK(config_of({"W"}, machine).store.master_addr == "::1");
  CHECK(config_of({"W"}, machine).store.listen_addr == "::1");
}

TEST_CASE("a node's number without a number of nodes costs one line") {
  const auto launch = launch_of({"--node-rank=1", "W"});
  REQUIRE(launch.notes.size() == 1);
  CHECK_THAT(launch.notes[0], ContainsSubstring("--node-rank=1 not used"));
  CHECK_THAT(launch.notes[0], ContainsSubstring("--nnodes"));
}

TEST_CASE("the option --local-addr is the workers' MASTER_ADDR, except with a fixed address") {
  const auto config = config_of({"--standalone", "--local-addr=node-1", "W"});
  CHECK(config.store.master_addr == "node-1");
  CHECK(config.store.listen_addr == "10.0.0.1");
  const auto fixed = launch_of({"--master-port=7", "--local-addr=node-1", "W"});
  CHECK(fixed.config.store.master_addr == "127.0.0.1");
  REQUIRE(fixed.notes.size() == 1);
  CHECK_THAT(fixed.notes[0], ContainsSubstring("--local-addr not used"));
}

TEST_CASE("sharing the store can be turned off with c10d, as in torchrun") {
  const FakeMachine off = with_variables({{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}});
  CHECK(config_of({"W"}, off).store.host == StoreHost::kWorkerZero);
  CHECK(config_of({"--rdzv-backend=c10d", "W"}, off).store.host == StoreHost::kWorkerZero);
  CHECK(config_of({"--master-port=7", "W"}, off).store.host == StoreHost::kAgent);
}

TEST_CASE("a number of nodes is N or MIN:MAX with 0 < MIN <= MAX") {
  for (const std::string bad :
       {"2:1", "0", "1:2:3", "x", "", "1:", ":1", "-1", "1.5", "65537", "1:99999999999"}) {
    CHECK_THAT(refusal_of({"--nnodes=" + bad, "W"}).sentence,
               ContainsSubstring("--nnodes='" + bad + "'"));
  }
  CHECK_THAT(refusal_of({"W"}, with_variables({{"PET_NNODES", ""}})).sentence,
             ContainsSubstring("PET_NNODES=''"));
}

TEST_CASE(
    "the flag --standalone with two nodes is refused at once instead of waiting for the second") {
  const auto error = refusal_of({"--standalone", "--nnodes=2", "W"});
  CHECK(error.kind == ErrorKind::kUsage);
  CHECK_THAT(error.sentence, ContainsSubstring("--standalone is one node, but --nnodes=2"));
}

TEST_CASE("a backend that is not there is refused with what takes its place") {
  for (const char* etcd : {"--rdzv-backend=etcd", "--rdzv-backend=etcd-v2"}) {
    CHECK_THAT(refusal_of({etcd, "W"}).sentence, ContainsSubstring("--rdzv-backend=etcd-v3"));
  }
  CHECK_THAT(refusal_of({"--rdzv-backend=zeus", "W"}).sentence,
             ContainsSubstring("not one of static, c10d"));
}

TEST_CASE("a port outside 0..65535 and a second node's rank are refused") {
  CHECK_THAT(refusal_of({"--master-port=65536", "W"}).sentence, ContainsSubstring("0 to 65535"));
  CHECK_THAT(refusal_of({"--master-port", "-1", "W"}).sentence, ContainsSubstring("0 to 65535"));
  CHECK_THAT(refusal_of({"--master-port=7", "--node-rank=1", "W"}).sentence,
             ContainsSubstring("--node-rank=1"));
}
