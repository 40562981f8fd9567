// Restarts, stops, spares, and --warm with --preload.
#include <signal.h>

#include "tests/launcher/fake_machine.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using std::chrono::seconds;

TEST_CASE("restarts are a number from 0") {
  CHECK(config_of({"W"}).stopping.max_restarts == 0);
  CHECK(config_of({"--max-restarts=3", "W"}).stopping.max_restarts == 3);
  CHECK_THAT(refusal_of({"--max-restarts=-1", "W"}).sentence,
             ContainsSubstring("--max-restarts=-1"));
  CHECK_THAT(refusal_of({"--max-restarts=99999999999", "W"}).sentence,
             ContainsSubstring("a whole number, 0 to 2147483647"));
}

TEST_CASE("the monitor interval is checked although nothing polls") {
  CHECK_THAT(refusal_of({"--monitor-interval=0", "W"}).sentence, ContainsSubstring("above 0"));
  CHECK_THAT(refusal_of({"--monitor-interval=-2", "W"}).sentence, ContainsSubstring("above 0"));
  CHECK(config_of({"--monitor-interval=5", "W"}).workers.count == 1);
}

TEST_CASE("the shutdown time-out is the option, else the variable, else 30 seconds") {
  const FakeMachine two = with_variables({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "2"}});
  CHECK(config_of({"W"}).stopping.shutdown_timeout == seconds(30));
  CHECK(config_of({"W"}, two).stopping.shutdown_timeout == seconds(2));
  CHECK(config_of({"--shutdown-timeout=5", "W"}, two).stopping.shutdown_timeout == seconds(5));
  CHECK(config_of({"--shutdown-timeout=0", "W"}).stopping.shutdown_timeout == seconds(0));
}

TEST_CASE("the time of a stop may have a unit") {
  CHECK(config_of({"--shutdown-timeout=1m", "W"}).stopping.shutdown_timeout == seconds(60));
  CHECK(config_of({"--straggler-timeout=2h", "W"}).stopping.straggler_timeout == seconds(7200));
  const FakeMachine variable = with_variables({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "90s"}});
  CHECK(config_of({"W"}, variable).stopping.shutdown_timeout == seconds(90));
}

TEST_CASE("an invalid time-out is refused, from the variable too") {
  const std::string wrong = " must be 0 or more seconds, or have a unit: 90s, 10m";
  for (const std::string bad : {"--shutdown-timeout=-1", "--shutdown-timeout=",
                                "--shutdown-timeout=1d", "--straggler-timeout=-1"}) {
    CHECK(refusal_of({bad, "W"}).sentence == bad + wrong);
  }
  for (const std::string bad : {"-1", "soon", ""}) {
    CHECK_THAT(
        refusal_of({"W"}, with_variables({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", bad}})).sentence,
        ContainsSubstring("TORCH_ELASTIC_SHUTDOWN_TIMEOUT='" + bad + "'"));
  }
  CHECK_THAT(refusal_of({"--shutdown-timeout=999999999999", "W"}).sentence,
             ContainsSubstring("--shutdown-timeout=999999999999"));
}

TEST_CASE("the straggler time-out is 10 seconds unless it is given") {
  CHECK(config_of({"W"}).stopping.straggler_timeout == seconds(10));
  CHECK(config_of({"W"}, with_variables({{"PET_STRAGGLER_TIMEOUT", "3"}}))
            .stopping.straggler_timeout == seconds(3));
  for (const std::string none : {"0", "0s", "0ms", "0.0", "0.1ms"}) {
    CHECK(config_of({"--straggler-timeout=" + none, "W"}).stopping.straggler_timeout == seconds(0));
  }
}

TEST_CASE("the failure grace is 1 second unless it is given") {
  CHECK(config_of({"W"}).stopping.failure_grace == seconds(1));
  CHECK(config_of({"--failure-grace=1m", "W"}).stopping.failure_grace == seconds(60));
  CHECK(config_of({"--failure-grace=0", "W"}).stopping.failure_grace == seconds(0));
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_FAILURE_GRACE", "3"}})).stopping.failure_grace ==
        seconds(3));
  CHECK_THAT(refusal_of({"--failure-grace=soon", "W"}).sentence,
             ContainsSubstring("--failure-grace=soon"));
}

TEST_CASE("the limits of hangs and of early finishers are off, or a time above 0") {
  CHECK_FALSE(config_of({"W"}).stopping.hang_timeout);
  CHECK_FALSE(config_of({"W"}).stopping.finish_timeout);
  CHECK(config_of({"--hang-timeout=10m", "W"}).stopping.hang_timeout == std::chrono::minutes(10));
  CHECK(
      config_of({"W"}, with_variables({{"DDPRUN_FINISH_TIMEOUT", "90"}})).stopping.finish_timeout ==
      seconds(90));
  for (const std::string bad : {"0", "0s", "0.1ms", "-1", "soon", ""}) {
    CHECK_THAT(refusal_of({"--hang-timeout=" + bad, "W"}).sentence, ContainsSubstring(kNotATime));
  }
}

TEST_CASE("repeated failures end a run early only if --min-uptime says so") {
  CHECK_FALSE(config_of({"W"}).stopping.min_uptime);
  CHECK(config_of({"--min-uptime=60s", "W"}).stopping.min_uptime == seconds(60));
  CHECK(config_of({"W"}, with_variables({{"PET_MIN_UPTIME", "2m"}})).stopping.min_uptime ==
        seconds(120));
  for (const std::string wrong : {"0", "-1", "soon"}) {
    CHECK_THAT(refusal_of({"--min-uptime=" + wrong, "W"}).sentence,
               ContainsSubstring("--min-uptime=" + wrong + kNotATime));
  }
}

TEST_CASE("the default stop signals are torchrun's") {
  const auto config = config_of({"W"});
  CHECK(config.stopping.signals == std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  CHECK(config.stopping.signals_text == "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
}

TEST_CASE("signals are names; blanks around them are ignored, the text is kept as given") {
  const auto config = config_of({"--signals-to-handle= SIGUSR1 ,SIGTERM,SIGUSR1", "W"});
  CHECK(config.stopping.signals == std::vector<int>{SIGUSR1, SIGTERM});
  CHECK(config.stopping.signals_text == " SIGUSR1 ,SIGTERM,SIGUSR1");
}

TEST_CASE("an unknown signal costs one line, one that cannot be handled is refused") {
  const auto launch = launch_of({"--signals-to-handle=SIGTERM,SIGFOO,sigint", "W"});
  CHECK(launch.config.stopping.signals == std::vector<int>{SIGTERM});
  REQUIRE(launch.notes.size() == 2);
  CHECK_THAT(launch.notes[0], ContainsSubstring("unknown signal 'SIGFOO'"));
  CHECK_THAT(refusal_of({"--signals-to-handle=SIGKILL", "W"}).sentence,
             ContainsSubstring("SIGKILL"));
  CHECK_THAT(refusal_of({"--signals-to-handle=SIGSTOP", "W"}).sentence,
             ContainsSubstring("SIGSTOP"));
}

TEST_CASE("spares are for ranks that are kept, and refused without") {
  CHECK(config_of({"--restart=failed", "--spares=1024", "W"}).stopping.spares == 1024);
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_SPARES", "2"}})).stopping.spares == 0);
  for (const std::string wrong : {"-1", "1025"}) {
    CHECK_THAT(refusal_of({"--restart=failed", "--spares=" + wrong, "W"}).sentence,
               ContainsSubstring(", 0 to 1024"));
  }
  CHECK_THAT(refusal_of({"--spares=1", "W"}).sentence, ContainsSubstring("--restart=failed"));
}

TEST_CASE("spares of a run that cannot restart are noted") {
  const Words spares{"--restart=failed", "--spares=1", "W"};
  REQUIRE(launch_of(spares).notes.size() == 1);
  CHECK_THAT(launch_of(spares).notes[0], ContainsSubstring("--max-restarts is 0"));
  CHECK(launch_of({"--restart=failed", "--spares=1", "--max-restarts=1", "W"}).notes.empty());
}

TEST_CASE("a spare cannot be started with what only a place decides") {
  const Words spares{"--restart=failed", "--spares=1"};
  const auto with = [&spares](const Words& more) {
    Words words = spares;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  CHECK_THAT(refusal_of(with({"--virtual-local-rank", "W"})).sentence,
             ContainsSubstring("--virtual-local-rank"));
  CHECK_THAT(refusal_of(with({"W", "--gpu=${local_rank}"})).sentence,
             ContainsSubstring("--gpu=${local_rank} is different for each rank"));
  CHECK(config_of(with({"W", "$$local_rank"})).stopping.spares == 1);
}

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
