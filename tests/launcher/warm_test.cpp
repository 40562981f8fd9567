// --warm and --preload.
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;
using std::chrono::seconds;

TEST_CASE("the option --warm is off unless it is given, and imports nothing first without a list") {
  CHECK_FALSE(config_of({"a.py"}).warm);
  CHECK_FALSE(config_of({"a.py"}, with_variables({{"DDPRUN_PRELOAD", "json"}})).warm);
  CHECK_FALSE(config_of({"--warm=0", "a.py"}).warm);
  CHECK(config_of({"--warm", "a.py"}).warm->preload.empty());
  CHECK_THAT(refusal_of({"--warm=first", "a.py"}).sentence, ContainsSubstring("--preload torch"));
  CHECK_THAT(refusal_of({"--preload=json", "a.py"}).sentence, ContainsSubstring("add --warm"));
}

TEST_CASE("the option --warm takes a time, first, demand and force, after = only") {
  const auto warm = config_of({"--warm", "--max-restarts=1", "--preload=json, a.b", "a.py"}).warm;
  REQUIRE(warm);
  CHECK(warm->preload == std::vector<std::string>{"json", "a.b"});
  CHECK_FALSE(warm->first);
  CHECK(warm->ahead);
  CHECK(warm->after == seconds(30));
  CHECK(warm->refused.empty());
  CHECK(config_of({"--warm=1", "a.py"}).warm->after == std::chrono::seconds(1));
  FakeMachine switched_on;
  switched_on.variables = {{"DDPRUN_WARM", "1"}};
  CHECK(config_of({"a.py"}, switched_on).warm->after == config_of({"--warm", "a.py"}).warm->after);
  const auto other = config_of({"--warm=5s,first,demand", "--preload=json", "a.py"}).warm;
  REQUIRE(other);
  CHECK(other->first);
  CHECK_FALSE(other->ahead);
  CHECK(other->after == seconds(5));
  CHECK(config_of({"a.py"}, with_variables({{"DDPRUN_WARM", "1"}, {"DDPRUN_PRELOAD", "json"}}))
            .warm.has_value());
  CHECK_THAT(refusal_of({"--warm=soon", "--preload=json", "a.py"}).sentence,
             ContainsSubstring("--warm=soon is not first, force, demand or a time"));
  for (const std::string wrong : {"a;b", "a b", ".a", "a..b"}) {
    CHECK_THAT(refusal_of({"--warm", "--preload=" + wrong, "a.py"}).sentence,
               ContainsSubstring("is no module's name"));
  }
}

TEST_CASE("workers start cold where a GPU is visible, unless that is forced") {
  FakeMachine machine;
  machine.gpus = 2;
  const Words words{"--warm", "--max-restarts=1", "a.py"};
  CHECK_THAT(config_of(words, machine).warm->refused, ContainsSubstring("2 GPUs are visible"));
  const Words forced{"--warm=force", "--max-restarts=1", "a.py"};
  CHECK(config_of(forced, machine).warm->refused.empty());
}

TEST_CASE("only programs under the Python that ddprun chooses get a template") {
  const Words other{"--warm", "--preload=json", "--no-python", "program", "-u", "x"};
  CHECK_THAT(config_of(other).warm->refused, ContainsSubstring("Python that ddprun chooses"));
  const Words module{"--warm", "--max-restarts=1", "--module", "pkg.mod"};
  CHECK(config_of(module).warm->refused.empty());
  const Words same{"--warm", "--max-restarts=1", "--no-python", "python3", "-u", "a.py"};
  CHECK(config_of(same).warm->refused.empty());
  // With -E or -I the interpreter ignores what ddprun puts into PYTHONPATH.
  const Words isolated{"--warm", "--max-restarts=1", "--no-python", "python3", "-u", "-E", "a.py"};
  CHECK_THAT(config_of(isolated).warm->refused, ContainsSubstring("Python that ddprun chooses"));
  const Words by_path{"--warm", "--max-restarts=1", "--run-path", "a.py"};
  CHECK_THAT(config_of(by_path).warm->refused, ContainsSubstring("--run-path starts"));
}

TEST_CASE("a run without restarts needs no template, but for its first round") {
  CHECK_THAT(config_of({"--warm", "a.py"}).warm->refused, ContainsSubstring("--max-restarts is 0"));
  CHECK(config_of({"--warm=first", "--preload=json", "a.py"}).warm->refused.empty());
}
