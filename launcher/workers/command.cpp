#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/limits.hpp"
#include "base/printable.hpp"
#include "launcher/options/values.hpp"
#include "launcher/workers/config.hpp"
#include "launcher/workers/run_path_text.hpp"

namespace ddprun {

namespace {

/// As under torchrun: "-" is a script on stdin, and behind a "--" an option of the interpreter,
/// such as -c, may take the place of the script.
bool is_for_python(const std::string& name) {
  return name.starts_with('-');
}

/// A wrapper may run Python elsewhere, in a container for example, where the script is.
bool runs_here(const std::string& interpreter) {
  const std::string name = interpreter.substr(interpreter.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

/// In the default mode: the program that runs without Python, if `name` is one.
std::optional<std::string> own_program(const std::string& name, const Machine& machine) {
  if (name.ends_with(".py") || is_for_python(name)) return std::nullopt;
  const bool has_folder = name.find('/') != std::string::npos;
  switch (machine.inspect(name)) {
    case FileKind::kProgram:
      return has_folder ? name : "./" + name;
    case FileKind::kPythonScript:
    case FileKind::kNotExecutable:
    case FileKind::kOther:
      return std::nullopt;
    // A name is looked up on PATH when the worker is started, which also reports a missing
    // program.
    case FileKind::kMissing:
      return name;
  }
  return std::nullopt;
}

constexpr std::string_view kPython = "python";

/// Without the folders before it: "/data/run-1/" is "run-1".
std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (path == "/" || slash == std::string_view::npos) return std::string(path);
  return std::string(path.substr(slash + 1));
}

bool is_python(std::string_view program) {
  return program.starts_with(kPython) &&
         program.find_first_not_of("0123456789.", kPython.size()) == std::string_view::npos;
}

/// What it does is in the script, the module or the text that it is given.
bool is_interpreter(std::string_view program) {
  constexpr std::array<std::string_view, 8> kShells{"sh",  "bash", "dash",  "zsh",
                                                    "env", "node", "julia", "Rscript"};
  return is_python(program) || std::find(kShells.begin(), kShells.end(), program) != kShells.end();
}

/// Of "--node_rank" and "--node-rank": names whose value differs from node to node.
bool names_own_value(std::string_view option) {
  constexpr std::array<std::string_view, 5> kNames{"node-rank", "machine-rank", "local-addr",
                                                   "host", "hostname"};
  if (!option.starts_with('-')) return false;
  while (option.starts_with('-')) option.remove_prefix(1);
  std::string name(option);
  std::replace(name.begin(), name.end(), '_', '-');
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string value_without_place(const std::string& value, const std::string& host_name) {
  if (!host_name.empty() && value == host_name) return "*";
  return value.starts_with('/') ? last_part(value) : value;
}

/// A word and, where it has the form NAME=VALUE, the value alone.
std::string argument(const std::string& word, const std::string& host_name) {
  const auto equals = word.find('=');
  if (equals == std::string::npos) return value_without_place(word, host_name);
  const std::string name = word.substr(0, equals);
  if (names_own_value(name)) return name + "=*";
  return name + "=" + value_without_place(word.substr(equals + 1), host_name);
}

/// The word that names the script in "python -u script ..."; none with -m and -c.
std::size_t script_place(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" || command[i] == "-c") break;
    if (!command[i].starts_with('-')) return i;
  }
  return command.size();
}

std::vector<std::string> compared_words(const std::vector<std::string>& command,
                                        const std::string& host_name) {
  std::vector<std::string> words;
  std::string program = last_part(command.front());
  const bool python = is_python(program);
  const std::size_t script = python ? script_place(command) : 0;
  words.push_back(python ? std::string(kPython) : std::move(program));
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (i < script && command[i] == "-u") continue;  // added by the launcher
    if (i == script) {
      words.push_back(last_part(command[i]));
    } else {
      words.push_back(names_own_value(command[i - 1]) ? "*" : argument(command[i], host_name));
    }
  }
  return words;
}

/// The words that say which program it is; the others are its arguments.
std::size_t count_program_words(const std::vector<std::string>& words) {
  std::size_t count = 1;
  if (!is_interpreter(words.front())) return count;
  while (count < words.size() && words[count].starts_with('-')) {
    const bool is_last = words[count] == "-m" || words[count] == "-c";
    ++count;
    if (is_last) break;
  }
  return std::min(count + 1, words.size());
}

/// FNV-1a over the words and their ends.
std::uint64_t digest(std::span<const std::string> words) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto take = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  for (const std::string& word : words) {
    for (const char c : word) take(c);
    take('\0');
  }
  return hash;
}

std::string hexadecimal(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 0xFU];
  return text;
}

/// For users: words with blanks are quoted.
std::string readable(const std::vector<std::string>& words) {
  const bool bare_python = words.size() == 1;
  std::string text;
  for (std::size_t i = words.front() == kPython && !bare_python ? 1 : 0; i < words.size(); ++i) {
    const bool quoted = words[i].empty() || words[i].find_first_of(" \t\n'\"") < words[i].size();
    text += (text.empty() ? "" : " ") + (quoted ? "'" + words[i] + "'" : words[i]);
  }
  return clean_utf8(printable(text), kCommandBytesMax);
}

}  // namespace

Result<PythonChoice> choose_python(const Machine& machine) {
  const Environment& environment = machine.environment();
  if (const auto found = environment.find("PYTHON_EXEC"); found != environment.end()) {
    if (!found->second.empty()) return PythonChoice{found->second, "from PYTHON_EXEC"};
    return usage("PYTHON_EXEC is set, but empty; name an interpreter in it, or unset it");
  }
  // As the torchrun of a virtual environment runs its Python, whatever environment is active.
  const std::string own = machine.program_folder();
  if (machine.is_plain_file(own.substr(0, own.rfind('/')) + "/pyvenv.cfg") &&
      machine.inspect(own + "/python") != FileKind::kMissing) {
    return PythonChoice{own + "/python", "of the virtual environment that ddprun is in"};
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string folder = value_or(environment, variable, "");
    const std::string python = folder + "/bin/python";
    if (!folder.empty() && machine.inspect(python) != FileKind::kMissing) {
      return PythonChoice{python, std::string("from ") + variable};
    }
  }
  return PythonChoice{"python3", "the one in PATH"};
}

std::vector<std::string> shown_command(const std::vector<std::string>& command) {
  std::vector<std::string> shown = command;
  const auto code = std::find(shown.begin(), shown.end(), kRunPathText);
  if (code == shown.end()) return shown;
  *shown.erase(code - 1) = "--run-path";  // "-c" before it
  return shown;
}

std::vector<std::string> unused_with_run_path(const WorkerRequest& request) {
  std::vector<std::string> notes;
  if (!request.run_path.value) return notes;
  for (const Setting<bool>* other : {&request.module, &request.no_python}) {
    if (!other->value) continue;
    notes.push_back(other->name + " not used: " + request.run_path.name +
                    " runs a file with Python");
  }
  return notes;
}

Result<WorkerCommand> worker_command(const WorkerRequest& request, const Machine& machine) {
  const std::vector<std::string>& program = request.program;
  const bool run_path = request.run_path.value;
  const bool module = request.module.value && !run_path;
  const bool no_python = request.no_python.value && !run_path;
  if (module && no_python) {
    return usage(request.module.name + " and " + request.no_python.name +
                 " exclude each other: a module needs Python");
  }
  if (no_python && request.local_rank_argument) {
    return usage(request.no_python.name + " needs --use-env here: a program that is not Python " +
                 "gets no --local-rank");
  }
  WorkerCommand command;
  std::optional<std::string> own;
  if (no_python)
    own = program[0];
  else if (!module && !run_path)
    own = own_program(program[0], machine);
  if (own) {
    command.argv = {*own};
    command.reason = "runs without Python";
  } else {
    auto python = choose_python(machine);
    if (!python) return python.error();
    command.argv = {python->path, "-u"};
    command.reason = std::move(python->reason);
    if (module) command.argv.emplace_back("-m");
    if (run_path) command.argv.insert(command.argv.end(), {"-c", std::string(kRunPathText)});
    command.argv.push_back(program[0]);
    const bool is_file = !module && !is_for_python(program[0]);
    if (is_file && runs_here(python->path)) command.script = program[0];
  }
  if (request.local_rank_argument) command.argv.emplace_back("--local-rank=${local_rank}");
  command.argv.insert(command.argv.end(), program.begin() + 1, program.end());
  return command;
}

std::string script_note(const std::string& script, const Machine& machine) {
  if (script.ends_with(".py") || machine.inspect(script) != FileKind::kNotExecutable) return {};
  return script +
         " is a program for something other than Python, but it is not executable, so "
         "Python runs it, as under torchrun; try chmod +x on it";
}

CommandIdentity identify_command(const std::vector<std::string>& command,
                                 const std::string& host_name) {
  const std::vector<std::string> words = compared_words(command, host_name);
  const auto program = std::span(words).first(count_program_words(words));
  return {hexadecimal(digest(words)), hexadecimal(digest(program)), readable(words)};
}

}  // namespace ddprun
