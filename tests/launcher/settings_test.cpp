// Command line over environment over default, what each value must look like, and its origin.
#include "launcher/options/settings.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"
#include "tests/launcher/outcome.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Result<Settings> merged(const Words& words, const Environment& environment = {}) {
  return Settings::merge(value_of(scan(words)), environment);
}

Settings accepted(const Words& words, const Environment& environment = {}) {
  return value_of(merged(words, environment));
}

std::string settings_refusal(const Words& words, const Environment& environment = {}) {
  return error_of(merged(words, environment)).sentence;
}

}  // namespace

TEST_CASE("the command line beats the environment, which beats the default") {
  const Environment two{{"PET_NPROC_PER_NODE", "2"}};
  CHECK(accepted({"W"}).text(OptionId::kNprocPerNode) == "1");
  CHECK(accepted({"W"}, two).text(OptionId::kNprocPerNode) == "2");
  CHECK(accepted({"--nproc-per-node=3", "W"}, two).text(OptionId::kNprocPerNode) == "3");
}

TEST_CASE("the last of a repeated option wins") {
  CHECK(accepted({"--role=a", "--role=b", "W"}).text(OptionId::kRole) == "b");
}

TEST_CASE("a wrong value is refused even when a later one would hide it") {
  CHECK_THAT(settings_refusal({"--start-method=zzz", "--start-method=fork", "W"}),
             ContainsSubstring("zzz"));
}

TEST_CASE("every option with a variable reads it") {
  for (const auto& option : all_options()) {
    const std::string name = variable_name(option);
    if (name.empty() || option.id == OptionId::kConfig) continue;  // that one is read: its test
    const bool flag = option.value == OptionValue::kFlag;
    const bool choice = option.value == OptionValue::kChoice;
    const std::string value =
        choice ? std::string(option.choices.substr(option.choices.rfind(',') + 1)) : "1";
    INFO(name);
    const auto settings = accepted({"W"}, {{name, value}});
    CHECK(settings.given(option.id));
    CHECK(settings.text(option.id) == value);
    CHECK(settings.on(option.id) == (flag || value == "1"));
    CHECK_THAT(settings.origin(option.id).shown(), ContainsSubstring(name));
  }
}

TEST_CASE("variables are spelled in capitals with underscores") {
  CHECK(variable_name(spec_of(OptionId::kNprocPerNode)) == "PET_NPROC_PER_NODE");
  CHECK(variable_name(spec_of(OptionId::kConsole)) == "DDPRUN_CONSOLE");
  CHECK(variable_name(spec_of(OptionId::kLogsSpecs)).empty());
}

TEST_CASE("options without a variable ignore one that looks like theirs") {
  for (const std::string name :
       {"PET_LOGS_SPECS", "PET_NUMA_BINDING", "PET_PRINT_COMPLETION", "PET_USE_ENV", "PET_HELP"}) {
    CHECK(merged({"W"}, {{name, "1"}}).has_value());
  }
}

TEST_CASE("flags in the environment are words as well as numbers") {
  for (const std::string on : {"1", "2", "true", "Yes", "ON", " 1 "}) {
    CHECK(accepted({"W"}, {{"PET_STANDALONE", on}}).on(OptionId::kStandalone));
  }
  for (const std::string off : {"0", "false", "No", "off"}) {
    CHECK_FALSE(accepted({"W"}, {{"PET_STANDALONE", off}}).on(OptionId::kStandalone));
  }
  CHECK_THAT(settings_refusal({"W"}, {{"PET_STANDALONE", "maybe"}}),
             ContainsSubstring("PET_STANDALONE='maybe'"));
  CHECK_THAT(settings_refusal({"W"}, {{"PET_STANDALONE", ""}}),
             ContainsSubstring("PET_STANDALONE"));
}

TEST_CASE("an invalid number is a usage error wherever it came from") {
  const std::string not_whole = " is not a whole number";
  CHECK(settings_refusal({"--max-restarts=x", "W"}) == "--max-restarts='x'" + not_whole);
  CHECK(settings_refusal({"W"}, {{"PET_MAX_RESTARTS", "abc"}}) ==
        "PET_MAX_RESTARTS='abc'" + not_whole);
  CHECK_THAT(settings_refusal({"W"}, {{"PET_MAX_RESTARTS", ""}}),
             ContainsSubstring("whole number"));
  CHECK_THAT(settings_refusal({"--master-port=1.5", "W"}), ContainsSubstring("whole number"));
  CHECK_THAT(settings_refusal({"--monitor-interval=fast", "W"}), ContainsSubstring("not a number"));
  CHECK(accepted({"--max-restarts=3", "W"}, {{"PET_MAX_RESTARTS", "abc"}})
            .integer(OptionId::kMaxRestarts) == 3);
}

TEST_CASE("a value outside its choices lists them") {
  CHECK(settings_refusal({"--start-method=zzz", "W"}) ==
        "--start-method='zzz' is not one of spawn, fork, forkserver");
  CHECK_THAT(settings_refusal({"--numa-binding=foo", "W"}),
             ContainsSubstring("node, socket, exclusive"));
  CHECK_THAT(settings_refusal({"--console=loud", "W"}),
             ContainsSubstring("raw, quoted, prefix, rank0"));
}

TEST_CASE("whole numbers are read as Python reads them") {
  CHECK(parse_integer(" 12 ") == 12);
  CHECK(parse_integer("+3") == 3);
  CHECK(parse_integer("-4") == -4);
  CHECK(parse_integer("1_000") == 1000);
  CHECK(parse_integer("007") == 7);
  for (const std::string bad :
       {"", " ", "1.0", "0x10", "1_", "_1", "1__0", "+-1", "9e3", "99999999999999999999"}) {
    INFO(bad);
    CHECK_FALSE(parse_integer(bad));
  }
}

TEST_CASE("fractions are read without a locale, and infinity is no number of seconds") {
  CHECK(parse_number("0.5") == 0.5);
  CHECK(parse_number("1e-3") == 0.001);
  CHECK(parse_number(".5") == 0.5);
  for (const std::string bad : {"", "inf", "nan", "1,5", "0x1p3", "1s"}) {
    INFO(bad);
    CHECK_FALSE(parse_number(bad));
  }
}

TEST_CASE("times have units") {
  using std::chrono::milliseconds;
  CHECK(parse_time("600") == milliseconds(600'000));
  CHECK(parse_time("1.5") == milliseconds(1'500));
  CHECK(parse_time("90s") == milliseconds(90'000));
  CHECK(parse_time("10m") == milliseconds(600'000));
  CHECK(parse_time("2h") == milliseconds(7'200'000));
  CHECK(parse_time("250ms") == milliseconds(250));
  CHECK(parse_time("1.001") == milliseconds(1'001));
  for (const std::string bad : {"", "-1", "-1ms", "s", "5d", "1e300", "ten"}) {
    INFO(bad);
    CHECK_FALSE(parse_time(bad));
  }
}

TEST_CASE("no time is 0 with any unit, and so is less than a millisecond") {
  for (const std::string none : {"0", "0s", "0ms", "0.0h", "0.1ms", "0.0005", "1e-9"}) {
    INFO(none);
    CHECK(parse_time(none) == Duration(0));
    CHECK_FALSE(parse_positive_time(none));
  }
  CHECK(parse_positive_time("1ms") == std::chrono::milliseconds(1));
}

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
