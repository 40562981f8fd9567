// The command of a worker, and what nodes of one run compare of it.
#include <algorithm>

#include "base/limits.hpp"
#include "launcher/workers/config.hpp"
#include "tests/launcher/fake_machine.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {
Words command(const Words& words, const FakeMachine& machine = FakeMachine()) {
  return config_of(words, machine).workers.command;
}

FakeMachine with_file(const std::string& path, FileKind kind) {
  FakeMachine machine;
  machine.files[path] = kind;
  return machine;
}
}  // namespace

TEST_CASE("a .py file runs under python3 -u, its arguments unchanged") {
  CHECK(command({"train.py", "--lr", "0.1", "-m"}) ==
        Words{"python3", "-u", "train.py", "--lr", "0.1", "-m"});
}

TEST_CASE("the script that Python runs is known, so that a missing one is told before it starts") {
  const auto script = [](const Words& words) { return config_of(words).workers.script; };
  CHECK(command({"missing.py"}) == Words{"python3", "-u", "missing.py"});
  CHECK(script({"missing.py", "--lr", "0.1"}) == "missing.py");
  CHECK(script({"-m", "missing.py"}).empty());
  CHECK(script({"--no-python", "missing.py"}).empty());
  CHECK(script({"missing"}).empty());
}

TEST_CASE("a program that is not executable is Python's, as in torchrun, and a note says so") {
  const FakeMachine machine = with_file("./train", FileKind::kNotExecutable);
  CHECK(command({"./train"}, machine) == Words{"python3", "-u", "./train"});
  const auto notes = launch_of({"./train"}, machine).notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], ContainsSubstring(kTryChmod));
  CHECK(launch_of({"a.py"}, with_file("a.py", FileKind::kNotExecutable)).notes.empty());
}

TEST_CASE("a .py file stays Python's even when it could run by itself") {
  CHECK(command({"train.py"}, with_file("train.py", FileKind::kProgram))[0] == "python3");
}

TEST_CASE("a module runs under python -u -m") {
  CHECK(command({"-m", "pkg.mod", "-m", "a"}) ==
        Words{"python3", "-u", "-m", "pkg.mod", "-m", "a"});
  CHECK(command({"W.py"}, with_variables({{"PET_MODULE", "1"}})) ==
        Words{"python3", "-u", "-m", "W.py"});
}

TEST_CASE("the interpreter is PYTHON_EXEC, else the active environment's, else python3") {
  FakeMachine machine = with_variables(
      {{"PYTHON_EXEC", "/opt/py"}, {"VIRTUAL_ENV", "/venv"}, {"CONDA_PREFIX", "/conda"}});
  machine.files["/venv/bin/python"] = FileKind::kProgram;
  machine.files["/conda/bin/python"] = FileKind::kProgram;
  CHECK(command({"a.py"}, machine)[0] == "/opt/py");
  machine.variables.erase("PYTHON_EXEC");
  CHECK(command({"a.py"}, machine)[0] == "/venv/bin/python");
  machine.variables.erase("VIRTUAL_ENV");
  CHECK(command({"a.py"}, machine)[0] == "/conda/bin/python");
  machine.files.erase("/conda/bin/python");
  CHECK(command({"a.py"}, machine)[0] == "python3");
}

TEST_CASE("ddprun in a virtual environment runs that environment's Python") {
  FakeMachine machine = with_variables({{"PYTHON_EXEC", "/opt/py"}, {"VIRTUAL_ENV", "/venv"}});
  machine.files["/venv/bin/python"] = FileKind::kProgram;
  machine.folder = "/own/bin";
  machine.files["/own/bin/python"] = FileKind::kProgram;
  machine.files["/own/pyvenv.cfg"] = FileKind::kOther;
  CHECK(command({"a.py"}, machine)[0] == "/opt/py");
  machine.variables.erase("PYTHON_EXEC");
  CHECK(command({"a.py"}, machine)[0] == "/own/bin/python");
  machine.files.erase("/own/pyvenv.cfg");  // the bin of a system, of conda
  CHECK(command({"a.py"}, machine)[0] == "/venv/bin/python");
}

TEST_CASE("a script is looked for unless PYTHON_EXEC is a wrapper, which may find it elsewhere") {
  const auto script = [](const std::string& python) {
    return config_of({"a.py"}, with_variables({{"PYTHON_EXEC", python}})).workers.script;
  };
  CHECK(script("/opt/bin/python3.11") == "a.py");
  CHECK(script("pypy3") == "a.py");
  CHECK(script("/opt/in-container.sh").empty());
}

TEST_CASE("an empty PYTHON_EXEC is refused, but only where Python is needed") {
  const FakeMachine machine = with_variables({{"PYTHON_EXEC", ""}});
  CHECK_THAT(refusal_of({"a.py"}, machine).sentence, ContainsSubstring("PYTHON_EXEC"));
  CHECK(command({"--no-python", "/bin/true"}, machine) == Words{"/bin/true"});
}

TEST_CASE("the flag --no-python runs the program itself") {
  CHECK(command({"--no-python", "echo", "hi"}) == Words{"echo", "hi"});
  CHECK(command({"--no-python", "train.py"}) == Words{"train.py"});
}

TEST_CASE("an executable that is not Python just runs") {
  CHECK(command({"/bin/echo", "hi"}, with_file("/bin/echo", FileKind::kProgram)) ==
        Words{"/bin/echo", "hi"});
  CHECK(command({"worker"}, with_file("worker", FileKind::kProgram)) == Words{"./worker"});
}

TEST_CASE("stdin and an option of the interpreter in the script's place are Python's") {
  CHECK(command({"-", "a"}) == Words{"python3", "-u", "-", "a"});
  CHECK(command({"--", "-c", "print(1)"}) == Words{"python3", "-u", "-c", "print(1)"});
  CHECK(config_of({"-"}).workers.script.empty());
}

TEST_CASE("a name that is not a file here is searched on PATH") {
  CHECK(command({"python", "train.py"}) == Words{"python", "train.py"});
  CHECK(command({"no/such/program"}) == Words{"no/such/program"});
}

TEST_CASE("a Python script, a directory, an archive and a text are Python's, as in torchrun") {
  for (const FileKind kind : {FileKind::kPythonScript, FileKind::kOther}) {
    CHECK(command({"tool"}, with_file("tool", kind)) == Words{"python3", "-u", "tool"});
  }
}

TEST_CASE("as torch.distributed.launch it passes the local rank first, unless --use-env is given") {
  const FakeMachine machine;
  const auto launch = [&](const Words& words) {
    return std::get<Launch>(value_of(configure(words, machine, Called::kLaunch)));
  };
  CHECK(launch({"a.py", "x"}).config.workers.command ==
        Words{"python3", "-u", "a.py", "--local-rank=${local_rank}", "x"});
  CHECK(launch({"-m", "a", "x"}).config.workers.command ==
        Words{"python3", "-u", "-m", "a", "--local-rank=${local_rank}", "x"});
  CHECK(launch({"--use-env", "a.py", "x"}).config.workers.command ==
        Words{"python3", "-u", "a.py", "x"});
  CHECK(launch({"--use_env", "--no-python", "a"}).config.workers.command == Words{"a"});
  REQUIRE(launch({"a.py"}).warnings.size() == 1);
  CHECK_THAT(launch({"a.py"}).warnings[0], ContainsSubstring("deprecated"));
  CHECK_THAT(error_of(configure({"--no-python", "a"}, machine, Called::kLaunch)).sentence,
             ContainsSubstring("--use-env"));
}

TEST_CASE("the last part of the program's name says how it was called") {
  CHECK(called_as("/opt/bin/torchrun") == Called::kTorchrun);
  CHECK(called_as("torchrun") == Called::kTorchrun);
  CHECK(called_as("./ddprun-launch") == Called::kLaunch);
  for (const char* other : {"ddprun", "/torchrun/ddprun", "torchrun-2", "", "/"}) {
    CHECK(called_as(other) == Called::kDdprun);
  }
}

TEST_CASE("with --run-path Python runs the file by runpy, whatever it is") {
  const Words words = command({"--run-path", "/data/train.py", "x"});
  REQUIRE(words.size() == 6);
  CHECK(Words(words.begin(), words.begin() + 3) == Words{"python3", "-u", "-c"});
  CHECK_THAT(words[3], ContainsSubstring("runpy.run_path"));
  CHECK(words[3].find('$') == std::string::npos);  // macros
  CHECK(Words(words.begin() + 4, words.end()) == Words{"/data/train.py", "x"});
  CHECK(command({"--run-path", "/bin/echo"}, with_file("/bin/echo", FileKind::kProgram))[0] ==
        "python3");
  CHECK(config_of({"--run-path", "/data/train.py", "x"}).workers.identity.text ==
        "--run-path train.py x");
}

TEST_CASE("the flag --run-path takes precedence over --module and --no-python, which is noted") {
  const Launch launch = launch_of({"--run-path", "-m", "--no-python", "train.py"});
  CHECK(launch.config.workers.command == command({"--run-path", "train.py"}));
  CHECK(std::count_if(launch.notes.begin(), launch.notes.end(), [](const std::string& note) {
          return note.find("--run-path") != std::string::npos;
        }) == 2);
  CHECK(launch_of({"train.py"}).notes.empty());
}

TEST_CASE("a module without Python is refused, both options named") {
  const auto sentence = refusal_of({"-m", "--no-python", "x"}).sentence;
  CHECK_THAT(sentence, ContainsSubstring("--module"));
  CHECK_THAT(sentence, ContainsSubstring("--no-python"));
}

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
