// Typed values and their origins, for sentences about them.
#include "launcher/request/request.hpp"

#include "tests/launcher/outcome.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Request request_of(Words words, const Environment& environment = {}) {
  words.emplace_back("W");
  const auto line = value_of(scan(words));
  const auto settings = value_of(Settings::merge(line, environment));
  return value_of(parse_request(settings, line.program, environment));
}

}  // namespace

TEST_CASE("a value has the name of its option or variable, and knows whether it was given") {
  const Environment variables{{"PET_NNODES", "2:4"}};
  const auto by_default = request_of({}).rendezvous.nodes;
  CHECK_FALSE(by_default.given);
  CHECK(by_default.shown() == "--nnodes=1:1");
  const auto by_variable = request_of({}, variables).rendezvous.nodes;
  CHECK(by_variable.given);
  CHECK(by_variable.shown() == "PET_NNODES=2:4");
  CHECK(by_variable.value.max == 4);
  const auto by_option = request_of({"--nnodes=3"}, variables).rendezvous.nodes;
  CHECK(by_option.quoted() == "--nnodes='3'");
  CHECK(by_option.value.min == 3);
}

TEST_CASE("a flag is shown by its name") {
  CHECK(request_of({"--standalone"}).rendezvous.standalone.shown() == "--standalone");
  const Environment variables{{"PET_STANDALONE", "yes"}};
  CHECK(request_of({}, variables).rendezvous.standalone.shown() == "PET_STANDALONE");
}

TEST_CASE("a scheduler supplies only what was not given, under its own name") {
  auto asked = request_of({"--rdzv-id=mine"}).rendezvous;
  supply(asked.nodes, {2, 2}, "2", "Slurm step 9.0");
  CHECK(asked.nodes.given);
  CHECK(asked.nodes.shown() == "Slurm step 9.0's --nnodes=2");
  supply<std::string>(asked.run_id, "9.0", "9.0", "Slurm step 9.0");
  CHECK(asked.run_id.shown() == "--rdzv-id=mine");
}

TEST_CASE("given names are listed in the order of the candidates") {
  const auto asked = request_of({"--master-port=7", "--rdzv-id=x", "--rdzv-backend=c10d"});
  const auto& rendezvous = asked.rendezvous;
  CHECK(given_names({&rendezvous.master_addr}).empty());
  CHECK(given_names({&rendezvous.run_id, &rendezvous.master_addr, &rendezvous.backend,
                     &rendezvous.master_port}) == "--rdzv-id, --rdzv-backend and --master-port");
  CHECK(rendezvous.backend.value == Backend::kC10d);
}

TEST_CASE("an endpoint that is unused is not parsed") {
  const Words bad{"--rdzv-endpoint=not an endpoint"};
  CHECK_FALSE(request_of({"--standalone", bad[0]}).rendezvous.endpoint.value);
  CHECK(request_of({"--standalone", bad[0]}).rendezvous.endpoint.given);
}

TEST_CASE(
    "the value of --http is an address with a port; torchrun's variable is a port on every "
    "address") {
  CHECK_FALSE(request_of({}).http);
  const auto http = request_of({"--http=[::1]:9400"}).http;
  REQUIRE(http);
  CHECK(http->address == "::1");
  CHECK(http->port == 9400);
  CHECK(request_of({"--http=localhost:0"}).http->address == "127.0.0.1");
  const Environment variable{{"TORCHELASTIC_HEALTH_CHECK_PORT", "8080"}};
  const auto inherited = request_of({}, variable).http;
  REQUIRE(inherited);
  CHECK(inherited->address.empty());
  CHECK(inherited->port == 8080);
  CHECK(request_of({"--http=127.0.0.1:1"}, variable).http->port == 1);
  CHECK(request_of({}, variable).notes.empty());
  CHECK(request_of({}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", ""}}).notes.empty());
  for (const std::string ignored : {"0", "no", "99999"}) {
    const Request request = request_of({}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", ignored}});
    CHECK_FALSE(request.http);
    CHECK(request.notes ==
          Words{"TORCHELASTIC_HEALTH_CHECK_PORT='" + ignored +
                "' is not a port from 1 to 65535: ignored, there is no health check here"});
    CHECK(request_of({"--http=127.0.0.1:1"}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", ignored}})
              .notes.empty());
  }
  for (const std::string bad : {"9400", ":9400", "gpu-01:9400", "127.0.0.1", "127.0.0.1:x"}) {
    INFO(bad);
    const auto line = value_of(scan({"--http=" + bad, "W"}));
    const auto settings = value_of(Settings::merge(line, {}));
    const auto refused = parse_request(settings, line.program, {});
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().sentence, ContainsSubstring("--http"));
  }
}
