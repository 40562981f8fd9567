// The file of --config: what it may say, what takes precedence over it, how mistakes are named.
#include "launcher/options/settings.hpp"

#include <filesystem>
#include <fstream>

#include "base/limits.hpp"
#include "tests/agent/command.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/launcher/schedulers/captured.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

class File {
 public:
  explicit File(const std::string& content) { std::ofstream(path_) << content; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Words with(Words words) const {
    words.insert(words.begin(), "--config=" + path_);
    return words;
  }

 private:
  TemporaryDirectory directory_;
  std::string path_ = directory_.file("run.toml");
};

/// The text of the one option that the file sets.
std::string text_of_only(const std::string& content) {
  const auto values = value_of(parse_config("run.toml", content));
  REQUIRE(values.size() == 1);
  return values.front().text;
}

std::string mistake_in(const std::string& content) {
  return error_of(parse_config("run.toml", content)).sentence;
}

}  // namespace

TEST_CASE("a key of more parts than a stack is deep is refused before it is read") {
  const auto of_parts = [](std::size_t parts, const std::string& before = "") {
    std::string key = "a";
    for (std::size_t i = 0; i < parts; ++i) key += ".a";
    return "tee = \"3\"\n" + before + key;
  };
  const std::string wrong = "run.toml:2: more than 1000 dots in one key or text";
  CHECK(mistake_in(of_parts(224'000) + " = 1\n") == wrong);
  CHECK(mistake_in(of_parts(224'000, "[") + "]\n") == wrong);
  CHECK(mistake_in(of_parts(kConfigKeyPartsMax + 1, "x = {") + " = 1}\n") == wrong);
  CHECK_THAT(mistake_in(of_parts(kConfigKeyPartsMax) + " = 1\n"), ContainsSubstring("is a table"));
}

TEST_CASE("a file sets options by their long names, with the types of TOML") {
  const File file(
      "# a comment\n"
      "nproc-per-node = 3\n"
      "max_restarts = 2\n"
      "role = \"trainer\"\n"
      "no-python = true\n"
      "standalone = false\n"
      "tee = \"3\"\n"
      "hang-timeout = 600.5\n"
      "signals-to-handle = [\"SIGTERM\", \"SIGUSR1\"]\n"
      "warm = true\n");
  const LaunchConfig config = config_of(file.with({"W"}));
  CHECK(config.workers.count == 3);
  CHECK(config.stopping.max_restarts == 2);
  CHECK(config.workers.role == "trainer");
  CHECK(config.workers.command == Words{"W"});
  CHECK(config.log.tee.all == Streams::kBoth);
  CHECK(config.stopping.hang_timeout == std::chrono::milliseconds(600500));
  CHECK(config.stopping.signals_text == "SIGTERM,SIGUSR1");
  CHECK(config.warm);
}

TEST_CASE("every option that starts a run may stand in a file") {
  for (const OptionSpec& option : all_options()) {
    std::string value = "\"x\"";
    if (option.value == OptionValue::kFlag) value = "true";
    if (option.value == OptionValue::kInteger) value = "1";
    if (option.value == OptionValue::kNumber) value = "0.5";
    const std::string line = std::string(option.name) + " = " + value;
    INFO(line);
    const bool action =
        option.value == OptionValue::kAction || option.value == OptionValue::kChoiceAction;
    if (action || option.id == OptionId::kConfig || option.id == OptionId::kDryRun) {
      CHECK_THAT(mistake_in(line), ContainsSubstring("belongs on the command line"));
    } else {
      const auto values = value_of(parse_config("run.toml", line));
      REQUIRE(values.size() == 1);
      CHECK(values.front().id == option.id);
    }
  }
}

TEST_CASE("values of a file are what would be typed") {
  CHECK(text_of_only("warm = \"demand\"") == "demand");
  CHECK(text_of_only("warm = true") == "on");
  CHECK(text_of_only("warm = false").empty());
  CHECK(text_of_only("standalone = false").empty());
  CHECK(text_of_only("monitor-interval = 1") == "1");
  CHECK(text_of_only("monitor-interval = 0.1") == "0.1");
  CHECK(text_of_only("local-ranks-filter = [0, 1]") == "0,1");
  CHECK(text_of_only("hosts = []").empty());
  CHECK(text_of_only("rdzv-conf = \"join_timeout=5,is_host=1\"") == "join_timeout=5,is_host=1");
  CHECK(value_of(parse_config("run.toml", "")).empty());
}

TEST_CASE("a command line and a variable take precedence over the file") {
  const File file("max-restarts = 1\nrole = \"file\"\nno-python = true\nnproc-per-node = 2\n");
  FakeMachine machine = with_variables({{"PET_ROLE", "variable"}, {"PET_MAX_RESTARTS", "2"}});
  machine.variables.emplace("PET_NO_PYTHON", "0");
  const LaunchConfig config = config_of(file.with({"--max-restarts=3", "W.py"}), machine);
  CHECK(config.stopping.max_restarts == 3);
  CHECK(config.workers.role == "variable");
  CHECK(config.workers.count == 2);
  CHECK(config.workers.command.back() == "W.py");
  CHECK(config.workers.command.front() != "W.py");
}

TEST_CASE("a variable names the file as well") {
  const File file("max-restarts = 1\n");
  const auto machine = with_variables({{"DDPRUN_CONFIG", file.path()}});
  CHECK(config_of({"W"}, machine).stopping.max_restarts == 1);
}

TEST_CASE("a scheduler takes precedence over the nodes of a file, and nothing else does") {
  const File file("nnodes = 1\nstandalone = true\nmax-restarts = 1\nrdzv-id = \"file\"\n");
  FakeMachine machine;
  machine.variables = captured("slurm-step-node0");
  const Launch launch = launch_of(file.with({"W"}), machine);
  REQUIRE(launch.config.rendezvous);
  CHECK(launch.config.rendezvous->nodes_max == 2);
  CHECK(launch.config.run_id.value() == "9.0");
  CHECK(launch.config.stopping.max_restarts == 1);
  CHECK(launch.notes.size() == 4);  // precedence_test.cpp
  CHECK(!launch_of(file.with({"W"})).config.rendezvous);
  CHECK_THAT(refusal_of(file.with({"--nnodes=3", "W"}), machine).sentence,
             ContainsSubstring("--nnodes=3, but Slurm step 9.0 has 2 nodes"));
}

TEST_CASE("as many workers as a file has devices start, whatever a scheduler says") {
  const File file("gpus = \"1,0\"\n");
  FakeMachine machine;
  machine.variables = captured("slurm-step-node0");
  machine.variables["SLURM_GPUS_ON_NODE"] = "3";
  machine.gpus = 3;
  for (const std::string index : {"0", "1", "2"}) {
    machine.choosable.push_back({index, "GPU-" + index, "0000:0" + index + ":00.0"});
  }
  CHECK(launch_of(file.with({"W"}), machine).config.workers.count == 2);
}

TEST_CASE("a mistake in a file is one sentence with file and line") {
  CHECK(mistake_in("\nnproc_per_nod = 2") ==
        "run.toml:2: unknown option nproc_per_nod; did you mean --nproc-per-node?");
  CHECK(mistake_in("zzz = 1") == "run.toml:1: unknown option zzz; ddprun --help lists all");
  CHECK(mistake_in("max-restarts = 3\nmax_restarts = 5") ==
        "run.toml:2: max_restarts is in run.toml:1 already");
  CHECK(mistake_in("max-restarts = \"3\"") ==
        "run.toml:1: max-restarts takes a whole number, not a string");
  CHECK(mistake_in("module = 1") == "run.toml:1: module takes true or false, not a whole number");
  CHECK(mistake_in("role = true") ==
        "run.toml:1: role takes a string, a whole number or an array of them, not true or false");
  CHECK_THAT(mistake_in("rdzv-id = 1.10"), ContainsSubstring("not a fraction"));
  CHECK_THAT(mistake_in("hang-timeout = true"), ContainsSubstring("takes a string, a number or"));
  CHECK(mistake_in("log-dir = \"a\\u0000b\"") ==
        "run.toml:1: log-dir has a NUL character, which no option can have");
  CHECK(mistake_in("restart = 1979-05-27") ==
        "run.toml:1: restart takes a string, not a date or time");
  CHECK_THAT(mistake_in("\n[run]\nnnodes = 2"), ContainsSubstring("run.toml:2: run is a table; "));
  CHECK_THAT(mistake_in("hosts = [\"a,b\", \"c\"]"),
             ContainsSubstring("run.toml:1: hosts has a value that is neither"));
  CHECK_THAT(mistake_in("hosts = [[\"a\"]]"), ContainsSubstring("run.toml:1: hosts has a value"));
  CHECK_THAT(mistake_in("\n\nnnodes ="), ContainsSubstring("run.toml:3: this is not TOML: "));
  CHECK_THAT(mistake_in("[$x]"), ContainsSubstring("run.toml:1: this is not TOML: "));
  CHECK_THAT(mistake_in("[[$x]]"), ContainsSubstring("run.toml:1: this is not TOML: "));
  CHECK_THAT(mistake_in("nnodes = 1\nnnodes = 2"),
             ContainsSubstring("run.toml:2: this is not TOML: "));
  CHECK_THAT(mistake_in(std::string("role = \"\xff\"")),
             ContainsSubstring("run.toml:1: this is not"));
}

TEST_CASE("a value that is wrong on a command line is named with its line of the file") {
  const File file("max-restarts = -1\n");
  CHECK_THAT(refusal_of(file.with({"W"})).sentence,
             ContainsSubstring(file.path() + ":1: max-restarts=-1 "));
  const File choice("restart = \"some\"\n");
  CHECK(refusal_of(choice.with({"W"})).sentence ==
        choice.path() + ":1: restart='some' is not one of all, failed");
}

TEST_CASE("an empty list of hosts or devices is refused as on a command line") {
  for (const std::string option : {"hosts", "gpus"}) {
    const File file(option + " = []\n");
    CHECK_THAT(refusal_of(file.with({"W"})).sentence,
               ContainsSubstring(file.path() + ":1: " + option + "=''"));
  }
}

TEST_CASE("a file that cannot be read is refused with the reason") {
  const TemporaryDirectory directory;
  const auto refused = [](const std::string& path) {
    return refusal_of({"--config", path, "W"}).sentence;
  };
  CHECK(refused(directory.file("none")) ==
        "--config: " + directory.file("none") + " cannot be read: No such file or directory");
  CHECK(refused("/proc/self/mem") == "--config: /proc/self/mem cannot be read: Input/output error");
  CHECK(refused(directory.path()) == "--config: " + directory.path() + " is not a regular file");
  const File file("nnodes = 1\n");
  std::filesystem::resize_file(file.path(), kConfigBytesMax + 1);
  CHECK_THAT(refused(file.path()), ContainsSubstring("larger than 1 MiB"));
  std::ofstream(file.path()) << std::string(kConfigBytesMax, '#');
  CHECK(config_of(file.with({"W"})).workers.count == 1);
}
