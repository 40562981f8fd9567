#include "agent/warm/core/stock.hpp"

#include "agent/warm/processes.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::warm {
namespace {

Start a_start() {
  Start start;
  start.program = "/usr/bin/python3";
  start.argv = {"python3", "-u", "train.py"};
  start.environment = {{"RANK", "0"}, {"OMP_NUM_THREADS", "1"}, {"DDPRUN_WORKER", "ab/1/0"}};
  start.inherited = {{"umask", "0022"}, {"working directory", "/data"}};
  return start;
}

TEST_CASE("what differs from rank to rank and from round to round does not matter to a template") {
  Start wanted = a_start();
  for (const char* name :
       {"RANK", "LOCAL_RANK", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "DDPRUN_ROUND"}) {
    wanted.environment[name] = "7";
    CHECK(is_late(name));
  }
  CHECK(difference(a_start(), wanted).empty());
  CHECK(common_environment(wanted.environment) == Environment{{"OMP_NUM_THREADS", "1"}});
}

TEST_CASE("any other variable, the command and all that is inherited must be the template's") {
  Start wanted = a_start();
  wanted.environment["OMP_NUM_THREADS"] = "2";
  CHECK(difference(a_start(), wanted) == "OMP_NUM_THREADS");
  wanted = a_start();
  wanted.environment["AAA"] = "";
  CHECK(difference(a_start(), wanted) == "AAA");
  CHECK(difference(wanted, a_start()) == "AAA");
  wanted = a_start();
  wanted.environment["ZZZ"] = "";
  CHECK(difference(a_start(), wanted) == "ZZZ");
  CHECK(difference(wanted, a_start()) == "ZZZ");
  wanted = a_start();
  wanted.argv.back() = "other.py";
  CHECK(difference(a_start(), wanted) == "the command line");
  wanted = a_start();
  wanted.program = "/opt/bin/python3";
  CHECK(difference(a_start(), wanted) == "the interpreter");
  wanted = a_start();
  wanted.inherited["umask"] = "0077";
  CHECK(difference(a_start(), wanted) == "the umask");
}

TEST_CASE("a file that cannot be read is not called a script") {
  CHECK(check_binary("/proc/self/exe").has_value());
  const auto missing = check_binary("/no/such/python");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().sentence == "cannot open /no/such/python: No such file or directory");
  CHECK_FALSE(check_binary("/proc/self/status").has_value());
}

}  // namespace
}  // namespace ddprun::warm
