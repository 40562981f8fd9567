// What the command or its node is at fault for: a program, an interpreter, a library or a module
// that is missing; and launchers inside a worker.
#include <string>

#include "agent/report/text.hpp"
#include "agent/report/verdict/families.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

struct StartSymptom {
  int code = 0;           // the exit code that goes with it
  const char* text = "";  // in the line
};
// Shells, env(1), the dynamic loader and Python about a program that they cannot run.
constexpr StartSymptom kStartSymptoms[] = {
    {127, ": not found"},
    {127, ": command not found"},
    {127, ": No such file or directory"},
    {127, "error while loading shared libraries: "},
    {127, "symbol lookup error: "},
    {126, ": Permission denied"},
    {126, ": bad interpreter: "},
    {126, "cannot execute"},
    {126, ": Is a directory"},
    {126, "Exec format error"},
    {2, "can't open file "},
    {1, ": No module named "},
    {1, ": Error while finding module specification for "},
    {1, "' not found (required by "},
};

bool has(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

Verdict of_node(const WorkerExit& exit, const char* code, const std::string& what,
                std::string_view line) {
  Verdict verdict{code, what + " on " + exit.worker.host + ": " + std::string(line)};
  verdict.subject = Verdict::Subject::kNode;
  verdict.evidence = {who(exit.worker) + " " + ended_text(exit.status)};
  return verdict;
}

/// "foo" of "ModuleNotFoundError: No module named 'foo'".
std::string missing_module(std::string_view line) {
  const auto open = line.find('\'');
  const auto close = line.find('\'', open + 1);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  const std::string_view name = line.substr(open + 1, close - open - 1);
  constexpr std::string_view kOfNames =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  const bool sound = name.find_first_not_of(kOfNames) == std::string_view::npos;
  return sound ? std::string(name) : std::string();  // it goes into a command to try
}

/// "foo.train" of "python3: No module named foo.train", and of "Error while finding module
/// specification for 'foo.train' (ModuleNotFoundError: No module named 'foo')"; empty: none.
std::string module_of_command(std::string_view line) {
  constexpr std::string_view kPlain = ": No module named ";
  constexpr std::string_view kDotted = ": Error while finding module specification for ";
  if (const auto at = line.find(kDotted); at != std::string_view::npos) {
    return missing_module(line.substr(at + kDotted.size()));
  }
  const auto at = line.find(kPlain);
  if (at == std::string_view::npos) return {};
  const std::string_view name = line.substr(at + kPlain.size());
  return missing_module("'" + std::string(name.substr(0, name.find(';'))) + "'");
}

Verdict cannot_run(const WorkerExit& exit, std::string_view line) {
  Verdict verdict = of_node(exit, "EXEC", "cannot run the command", line);
  const std::string module = module_of_command(line);
  if (module.empty()) return verdict;
  verdict.advice = "start ddprun in the folder that has " + module +
                   ", or from the environment that has it, on every node; python -m " + module;
  return verdict;
}

std::optional<Verdict> judge_import(const WorkerExit& exit) {
  for (const auto& [line, is_certain] : telling_lines(exit)) {
    if (!is_certain) continue;
    const bool module = line.substr(0, 20) == "ModuleNotFoundError:";
    const bool library =
        line.substr(0, 12) == "ImportError:" && has(line, "cannot open shared object");
    if (!module && !library) continue;
    Verdict verdict = of_node(exit, "W-IMPORT", "an import fails", line);
    const std::string name = module ? missing_module(line) : "";
    if (!name.empty()) {
      verdict.likely = "the Python that runs on " + exit.worker.host + " does not have " + name;
      verdict.advice =
          "start ddprun from the environment that has it on every node; python -c 'import " + name +
          "'";
    }
    return verdict;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> judge_start(const WorkerExit& exit) {
  if (exit.status.by_signal()) return std::nullopt;
  const auto lines = telling_lines(exit);
  for (const StartSymptom& symptom : kStartSymptoms) {
    if (symptom.code != exit.status.code() || lines.empty()) continue;
    const std::string_view line = lines.front().text;
    const auto at = line.find(symptom.text);
    if (at == std::string_view::npos) continue;
    // An exception's line is not a program's, which may quote one behind its own words.
    if (has(line.substr(0, at + 2), "Error: ")) continue;
    return cannot_run(exit, line);
  }
  return judge_import(exit);
}

std::optional<Verdict> judge_nested(const WorkerExit& exit) {
  for (const auto& [line, is_certain] : telling_lines(exit)) {
    constexpr std::string_view kTorchrun = "torchrun: rank ";
    const std::size_t prefix = own_error_prefix(line);
    std::string inner;
    if (line.substr(0, kTorchrun.size()) == kTorchrun) {
      inner = "torchrun, which blames its " + std::string(line.substr(10));
    } else if (prefix > 0 && line.substr(prefix).starts_with("error [W-")) {
      // "first failure of the run" follows: of which run, this report says.
      inner = "ddprun, which says: " +
              std::string(line.substr(prefix, line.find(", first fail") - prefix));
    }
    if (inner.empty()) continue;
    return Verdict{"W-NESTED", ended_text(exit.status) + "; it runs " + inner};
  }
  return std::nullopt;
}

}  // namespace ddprun
