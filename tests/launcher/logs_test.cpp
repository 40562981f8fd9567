// The log options.
#include "launcher/options/values.hpp"
#include "launcher/workers/config.hpp"
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;
using Parts = std::vector<std::string>;

TEST_CASE("one digit chooses streams for all local ranks") {
  const auto log = config_of({"-r", "3", "-t1", "W"}).log;
  CHECK(log.redirects.of(LocalRank(7)) == Streams::kBoth);
  CHECK(log.tee.of(LocalRank(0)) == Streams::kStdout);
  CHECK(config_of({"W"}).log.redirects.of(LocalRank(0)) == Streams::kNone);
}

TEST_CASE("a mapping chooses streams per local rank; the rest get none, the last of a rank wins") {
  const auto log = config_of({"-r", "0:1,1:2,0:3,12:1", "W"}).log;
  CHECK(log.redirects.of(LocalRank(0)) == Streams::kBoth);
  CHECK(log.redirects.of(LocalRank(1)) == Streams::kStderr);
  CHECK(log.redirects.of(LocalRank(2)) == Streams::kNone);
  CHECK(log.redirects.of(LocalRank(12)) == Streams::kStdout);
}

TEST_CASE("any other text for streams is refused with both forms") {
  for (const std::string bad :
       {"4", "0:4", "0:1,", "", "-1", "0:1, 1:2", "a:1", "0=1", "33", ":1"}) {
    INFO(bad);
    const auto sentence = refusal_of({"--redirects", bad, "W"}).sentence;
    CHECK_THAT(sentence, ContainsSubstring("--redirects='" + bad + "'"));
    CHECK_THAT(sentence, ContainsSubstring("0:3,1:2"));
    CHECK_THAT(refusal_of({"--tee=" + bad, "W"}).sentence,
               ContainsSubstring("--tee='" + bad + "'"));
  }
}

TEST_CASE("the log directory is absolute, empty or /dev/null") {
  CHECK(config_of({"--log-dir=logs", "W"}).log.dir == "/home/me/logs");
  CHECK(config_of({"--log-dir=/var/log/x", "W"}).log.dir == "/var/log/x");
  CHECK(config_of({"--log-dir=/dev/null", "W"}).log.dir == "/dev/null");
  CHECK(config_of({"W"}).log.dir.empty());
  FakeMachine machine;
  machine.files["/home/me/notes.txt"] = FileKind::kOther;
  CHECK_THAT(refusal_of({"--log-dir=notes.txt", "W"}, machine).sentence,
             ContainsSubstring("is a file"));
}

TEST_CASE("the prefix comes from the option, else torchrun's variable, else torchrun's default") {
  const FakeMachine with_variable =
      with_variables({{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "${rank}> "}});
  CHECK(config_of({"W"}).log.prefix_template == "[${role_name}${local_rank}]:");
  CHECK(config_of({"W"}, with_variable).log.prefix_template == "${rank}> ");
  CHECK(config_of({"--log-line-prefix-template=", "W"}, with_variable).log.prefix_template ==
        "${rank}> ");
  CHECK(config_of({"--log-line-prefix-template=x ", "W"}, with_variable).log.prefix_template ==
        "x ");
}

TEST_CASE("the console filter is a list of local ranks") {
  CHECK_FALSE(config_of({"W"}).log.console_ranks);
  const auto ranks = config_of({"--local-ranks-filter=0, 2", "W"}).log.console_ranks;
  REQUIRE(ranks);
  CHECK(*ranks == std::set<LocalRank>{LocalRank(0), LocalRank(2)});
  for (const std::string bad : {"x", "0,", ",", "0;1"}) {
    CHECK_THAT(refusal_of({"--local-ranks-filter=" + bad, "W"}).sentence,
               ContainsSubstring("list of local ranks"));
  }
}

TEST_CASE("a console filter without a rank of this node shows none, as in torchrun, with a note") {
  for (const std::string beyond : {"-1", "1", "99999999"}) {
    const Launch launch = launch_of({"--local-ranks-filter=" + beyond, "W"});
    const auto& ranks = launch.config.log.console_ranks;
    REQUIRE(ranks);
    CHECK(ranks->count(LocalRank(0)) == 0);
    REQUIRE(launch.notes.size() == 1);
    CHECK_THAT(launch.notes[0], ContainsSubstring("names none of the 1 worker"));
  }
  CHECK(launch_of({"--local-ranks-filter=-1,0", "W"}).notes.empty());
}

TEST_CASE("filters are texts separated by commas, where two commas are one") {
  const auto log =
      config_of({"-t3", "--duplicate-stdout-filters=a,,b,c", "--duplicate-stderr-filters=x", "W"})
          .log;
  CHECK(log.stdout_filters == Parts{"a,b", "c"});
  CHECK(log.stderr_filters == Parts{"x"});
  CHECK(split_escaped_list("a,,,b") == Parts{"a,", "b"});
  CHECK(split_escaped_list("").empty());
}

TEST_CASE("filters without a tee'd stream have no effect, as in torchrun, and a note says so") {
  const auto note = [](const Words& words) {
    const auto notes = launch_of(words).notes;
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  };
  CHECK_THAT(note({"--duplicate-stdout-filters=a", "-r3", "W"}), ContainsSubstring("add --tee=1"));
  CHECK_THAT(note({"--duplicate-stderr-filters=a", "-t1", "W"}), ContainsSubstring("add --tee=2"));
  CHECK_THAT(note({"--duplicate-stdout-filters=a", "-t", "1:1", "W"}),
             ContainsSubstring("no worker's stream is tee'd"));
}

TEST_CASE("filters without a file to write are refused, as in torchrun") {
  CHECK_THAT(
      refusal_of({"--duplicate-stdout-filters=a", "-t3", "--log-dir=/dev/null", "W"}).sentence,
      ContainsSubstring("/dev/null"));
}

TEST_CASE("a log file has no limit unless it is given one of at least 4 MiB") {
  CHECK(config_of({"W"}).log.bytes_max == 0);
  CHECK(config_of({"--log-max=4194304", "W"}).log.bytes_max == 4 << 20);
  CHECK(config_of({"--log-max=64M", "W"}).log.bytes_max == 64 << 20);
  CHECK(config_of({"--log-max=1GiB", "W"}).log.bytes_max == 1 << 30);
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_LOG_MAX", "5M"}})).log.bytes_max == 5 << 20);
  for (const std::string bad :
       {"4194303", "3M", "0", "1GB", "M", "iB", "-5M", "1.5G", "x", "16777216T"}) {
    CHECK_THAT(refusal_of({"--log-max=" + bad, "W"}).sentence,
               ContainsSubstring("--log-max='" + bad + "' is not a size of at least 4M"));
  }
}

TEST_CASE("the look of the console is chosen unless it is given") {
  CHECK(config_of({"W"}).log.console == Console::kChosen);
  CHECK(config_of({"--console=raw", "W"}).log.console == Console::kRaw);
  CHECK(config_of({"--console=quoted", "W"}).log.console == Console::kQuoted);
  CHECK(config_of({"--console=prefix", "W"}).log.console == Console::kPrefix);
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_CONSOLE", "rank0"}})).log.console ==
        Console::kRank0);
}

TEST_CASE("labels are the default on a terminal that several ranks share, as torchrun elsewhere") {
  const auto chosen = [](const std::vector<std::string>& words, bool on_terminal) {
    auto config = config_of(words);
    ddprun::choose_console(config, {{"TERM", "xterm"}}, on_terminal);
    return config.log.console;
  };
  CHECK(chosen({"--nproc-per-node=2", "W"}, true) == Console::kRank0);
  CHECK(chosen({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node-1:7", "W"}, true) ==
        Console::kRank0);
  CHECK(chosen({"--nproc-per-node=2", "--log-dir=/logs", "W"}, true) == Console::kRank0);
  CHECK(chosen({"W"}, true) == Console::kQuoted);
  for (const std::string option :
       {"-r=1", "-t=3", "-t0:1", "--local-ranks-filter=0", "--console=quoted", "--compat"}) {
    INFO(option);
    CHECK(chosen({"--nproc-per-node=2", option, "W"}, true) == Console::kQuoted);
  }
  CHECK(chosen({"--nproc-per-node=2", "W"}, false) == Console::kQuoted);
  CHECK(chosen({"--nproc-per-node=2", "--console=rank0", "W"}, true) == Console::kRank0);
  CHECK(chosen({"--nproc-per-node=2", "--console=prefix", "W"}, false) == Console::kPrefix);
}

TEST_CASE("a command that is called torchrun looks as torchrun does") {
  auto config = std::get<Launch>(value_of(configure({"--nproc-per-node=2", "W"}, FakeMachine(),
                                                    Called::kTorchrun)))
                    .config;
  CHECK(ddprun::choose_console(config, {{"TERM", "xterm"}}, true) == "as under torchrun");
  CHECK(config.log.console == Console::kQuoted);
}

TEST_CASE("labels have colours on a terminal, without NO_COLOR") {
  const auto coloured = [](const ddprun::Environment& environment, bool on_terminal) {
    auto config = config_of({"W"});
    ddprun::choose_console(config, environment, on_terminal);
    return config.log.coloured;
  };
  CHECK(coloured({{"TERM", "xterm"}}, true));
  CHECK(coloured({{"TERM", "xterm"}, {"NO_COLOR", ""}}, true));
  CHECK_FALSE(coloured({{"TERM", "xterm"}}, false));
  CHECK_FALSE(coloured({{"TERM", "xterm"}, {"NO_COLOR", "1"}}, true));
  CHECK_FALSE(coloured({{"TERM", "dumb"}}, true));
  CHECK_FALSE(coloured({}, true));
}

TEST_CASE("how much ddprun writes is chosen, but not both at once") {
  using ddprun::Verbosity;
  CHECK(config_of({"W"}).log.verbosity == Verbosity::kUsual);
  CHECK(config_of({"-q", "W"}).log.verbosity == Verbosity::kQuiet);
  CHECK(config_of({"--verbose", "W"}).log.verbosity == Verbosity::kVerbose);
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_QUIET", "1"}})).log.verbosity ==
        Verbosity::kQuiet);
  CHECK(config_of({"W"}, with_variables({{"DDPRUN_VERBOSE", "0"}})).log.verbosity ==
        Verbosity::kUsual);
  const std::string both = " and --verbose exclude each other: leave one of them out";
  CHECK(refusal_of({"-q", "-v", "W"}).sentence == "--quiet" + both);
  CHECK(config_of({"-v", "W"}, with_variables({{"DDPRUN_QUIET", "1"}})).log.verbosity ==
        Verbosity::kVerbose);
  CHECK(config_of({"-q", "W"}, with_variables({{"DDPRUN_VERBOSE", "1"}})).log.verbosity ==
        Verbosity::kQuiet);
}

TEST_CASE("waits are drawn where a terminal can redraw a line and workers write through ddprun") {
  const auto drawn = [](const std::vector<std::string>& words, const std::string& terminal) {
    return ddprun::may_draw_waits(config_of(words).log, {{"TERM", terminal}});
  };
  CHECK(drawn({"W"}, "xterm"));
  CHECK_FALSE(drawn({"W"}, "dumb"));
  CHECK_FALSE(drawn({"--quiet", "W"}, "xterm"));
  CHECK_FALSE(drawn({"--console=raw", "W"}, "xterm"));
  CHECK_FALSE(drawn({"--redirects=2", "--console=quoted", "W"}, "xterm"));
  CHECK_FALSE(ddprun::may_draw_waits(config_of({"W"}).log, {}));
}
