// When two nodes run the same program.
#include "launcher/workers/config.hpp"

#include "base/limits.hpp"
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

constexpr const char* kHost = "gpu-01";

bool same(const Words& left, const Words& right) {
  return identify_command(left, kHost).fingerprint == identify_command(right, kHost).fingerprint;
}

std::string identity_text(const Words& command) {
  return identify_command(command, kHost).text;
}

}  // namespace

TEST_CASE("where a node has its Python and its script makes no other command") {
  const Words here{"python3", "-u", "train.py", "--lr", "1"};
  CHECK(same(here, {"/opt/x/bin/python3.11", "-u", "/home/me/src/train.py", "--lr", "1"}));
  CHECK(same(here, {"/usr/bin/python", "train.py", "--lr", "1"}));
  CHECK(same({"python3", "-u", "-m", "pkg.train"}, {"/opt/x/bin/python", "-u", "-m", "pkg.train"}));
  CHECK(same({"./train", "a"}, {"/opt/bin/train", "a"}));
  CHECK(same({"bash", "-c", "x"}, {"/bin/bash", "-c", "x"}));
}

TEST_CASE("arguments make no other program; a script, a module or the text of a shell does") {
  const auto program = [](const Words& words) { return identify_command(words, "gpu-01").program; };
  const std::string own = program({"python3", "-u", "train.py", "--bs", "64"});
  CHECK(program({"/opt/bin/python3.11", "-u", "/src/train.py", "--bs", "32"}) == own);
  CHECK(program({"python3", "-u", "eval.py", "--bs", "64"}) != own);
  CHECK(program({"python3", "-m", "a", "x"}) == program({"python3", "-m", "a", "y"}));
  CHECK(program({"python3", "-m", "a"}) != program({"python3", "-m", "b"}));
  CHECK(program({"bash", "-c", "echo 1"}) != program({"bash", "-c", "echo 2"}));
  CHECK(program({"bash", "run.sh", "1"}) == program({"bash", "run.sh", "2"}));
  CHECK(program({"./train", "1"}) == program({"/x/train", "2"}));
  CHECK(program({"./train"}) != program({"./eval"}));
}

TEST_CASE("another program, module, argument or order is another command") {
  const Words first{"python3", "-u", "train.py", "--config", "gpt"};
  for (const Words& other : std::vector<Words>{
           {"python3", "-u", "eval.py", "--config", "gpt"},
           {"python3", "-u", "train.py", "--config", "vit"},
           {"python3", "-u", "train.py", "--config"},
           {"python3", "-u", "train.py", "--config", "gpt", ""},
           {"python3", "-u", "train.py", "gpt", "--config"},
           {"python3", "-u", "train.py", "--config gpt"},
           {"python3", "-u", "-m", "train.py", "--config", "gpt"},
           {"train.py", "--config", "gpt"},
       }) {
    CAPTURE(other);
    CHECK_FALSE(same(first, other));
  }
  CHECK_FALSE(same({"bash", "-c", "echo 1"}, {"bash", "-c", "echo 2"}));
  CHECK_FALSE(same({"python3", "-c", "a()"}, {"python3", "-c", "b()"}));
}

TEST_CASE("a node's own paths, name and number are no part of the command") {
  CHECK(same({"t", "--data", "/srv/node1/cifar"}, {"t", "--data", "/local/cifar/"}));
  CHECK(same({"t", "--data=/srv/cifar"}, {"t", "--data=/local/cifar"}));
  CHECK(same({"t", "data.path=/srv/cifar"}, {"t", "data.path=/local/cifar"}));
  CHECK(same({"t", "--node_rank", "0"}, {"t", "--node_rank", "1"}));
  CHECK(same({"t", "--node-rank=0"}, {"t", "--node-rank=1"}));
  CHECK(identify_command({"t", "--name", "a"}, "a").fingerprint ==
        identify_command({"t", "--name", "b"}, "b").fingerprint);
  CHECK_FALSE(same({"t", "--data", "/srv/cifar"}, {"t", "--data", "/srv/mnist"}));
  CHECK_FALSE(same({"t", "--config", "a/x.yaml"}, {"t", "--config", "b/x.yaml"}));
  CHECK_FALSE(same({"t", "--rank", "0"}, {"t", "--rank", "1"}));
  for (const std::string word : {"-", "--", "=", "--=", "/", "//", "=/"}) {
    CHECK(same({"t", word, "x"}, {"t", word, "x"}));
  }
}

TEST_CASE("local ranks are filled in later, on every node alike") {
  CHECK(identity_text({"python3", "-u", "train.py", "--local-rank=${local_rank}"}) ==
        "train.py --local-rank=${local_rank}");
}

TEST_CASE("the text is what a person calls the command, on one line and bounded") {
  CHECK(identity_text({"/usr/bin/python3", "-u", "src/train.py", "--out", "/data/out"}) ==
        "train.py --out out");
  CHECK(identity_text({"python3", "-u", "-m", "pkg.train", "a b", ""}) == "-m pkg.train 'a b' ''");
  CHECK(identity_text({"python3"}) == "python");
  CHECK(identity_text({"sh", "-c", "a\n\x1b[2Jb"}) == "sh -c 'a\\n\\x1b[2Jb'");
  CHECK(identity_text({"sh", std::string(5000, 'x')}).size() <= kCommandBytesMax);
}

TEST_CASE("a command line's own identity goes to the agent") {
  FakeMachine machine;
  machine.name = "gpu-07";
  const auto config = config_of({"train.py", "--host-name-is", "gpu-07"}, machine);
  CHECK(config.workers.identity.text == "train.py --host-name-is *");
  CHECK_FALSE(config.workers.commands_may_differ);
  CHECK(config_of({"--allow-different-commands", "train.py"}).workers.commands_may_differ);
  machine.variables["DDPRUN_ALLOW_DIFFERENT_COMMANDS"] = "1";
  CHECK(config_of({"train.py"}, machine).workers.commands_may_differ);
}
