#include "launcher/commands/commands.hpp"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "agent/proc/program.hpp"
#include "base/descriptor.hpp"
#include "base/exit_status.hpp"
#include "base/message_line.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/scan.hpp"

namespace ddprun {

namespace commands {

namespace {

constexpr int kUsageCode = 2;

void print_message(const std::string& line) {
  static_cast<void>(write_all(STDERR_FILENO, line + "\n"));  // no other place is left to say so
}

}  // namespace

int print(const std::string& text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return kCommandDone;
  return fail(std::string("cannot write to standard output: ") + ::strerror(error));
}

void note(const std::string& sentence) {
  print_message(note_line("", sentence));
}

int fail(const std::string& sentence, const std::string& code) {
  print_message(error_line(code, sentence));
  return kCommandFailed;
}

int misuse(const std::string& sentence) {
  print_message(error_line("USAGE", sentence));
  return kUsageCode;
}

}  // namespace commands

namespace {

constexpr std::array<CommandSpec, 9> kCommands{{
    {"ps", "", "Lists the runs of this user on this machine.", commands::ps},
    {"status", "RUN [--json]",
     "Shows the ranks of a run on this machine and, on the node with its coordinator, all nodes.",
     commands::status},
    {"stacks", "RUN",
     "Saves the stacks of the ranks on this machine in the log directory, and groups the ranks by "
     "place. They continue.",
     commands::stacks},
    {"signal", "RUN SIGNAL [--force]",
     "Sends a signal to every rank on every node once: USR1, SIGUSR1 or 10. Refused if a rank here "
     "would end by it, unless forced.",
     commands::signal},
    {"stop", "RUN [--all-nodes] [--no-wait]",
     "Stops this node's part in a run, as SIGTERM to its ddprun does, waits until that has ended, "
     "and says whether the run continues on other nodes. With --all-nodes the run ends on all.",
     commands::stop},
    {"attach", "RUN",
     "Shows the output of a run that writes to a file (--detach, nohup, a batch job), from the "
     "last "
     "64 KiB on until the run ends. Ctrl-C detaches.",
     commands::attach},
    {"explain", "DIR...",
     "Tells from the events in the log directories of a run's nodes what failed first, what was "
     "stopped because of it, what each recovery cost, and how long all ranks ran.",
     commands::explain_run},
    {"config", "[OPTIONS] [--json]",
     "Shows every setting that a command line with these options has, its value, and where that "
     "comes from: command line, variable, scheduler, file or default. Starts nothing.",
     commands::config},
    {"secret", "[--new]",
     "Names the secret of this user, ~/.config/ddprun/secret, which runs over several nodes use by "
     "themselves; --new makes it. --rdzv-secret-file=off runs without.",
     commands::secret},
}};

constexpr std::size_t kColumns = 80;
constexpr std::size_t kIndent = 6;

/// Of a directory: one that Python would run.
bool is_program_here(const std::string& name) {
  struct stat facts = {};
  if (::stat(name.c_str(), &facts) != 0) return false;
  return !S_ISDIR(facts.st_mode) || ::stat((name + "/__main__.py").c_str(), &facts) == 0;
}

/// The command that a word probably means which is neither a command nor a program.
const CommandSpec* meant_by(std::string_view word) {
  const CommandSpec* best = nullptr;
  const bool is_file = word.find_first_of("./") != std::string_view::npos;
  if (is_file || word.starts_with('-')) return best;
  std::size_t best_distance = word.size();
  for (const CommandSpec& command : kCommands) {
    if (word.size() >= 3 && command.name.starts_with(word)) return &command;
    const std::size_t distance = edit_distance(word, command.name);
    if (!is_typing_mistake(word, distance) || distance >= best_distance) continue;
    best = &command;
    best_distance = distance;
  }
  return best;
}

/// Reports a mistyped command; nullopt: a program, as far as is known here.
std::optional<int> refuse_mistyped(const std::string& word, const char* const* environment_block) {
  const CommandSpec* meant = meant_by(word);
  if (meant == nullptr || is_program_here(word)) return std::nullopt;
  const auto path = value_or(read_environment(environment_block), "PATH", "");
  const auto program = find_program(word, path);
  if (program || program.error().kind != ErrorKind::kNotFound) return std::nullopt;
  const std::string command = "ddprun " + std::string(meant->name);
  static_cast<void>(
      commands::fail(program.error().sentence + "; did you mean " + command + "?", "EXEC"));
  return kExitNotFound;
}

int show_help(const CommandSpec& command) {
  return commands::print("ddprun " + usage_of(command) + "\n" +
                         wrapped(std::string(command.help), kIndent, kColumns));
}

}  // namespace

std::span<const CommandSpec> all_commands() {
  return kCommands;
}

std::optional<int> run_command(int argc, const char* const* argv,
                               const char* const* environment_block) {
  if (argc < 2) return std::nullopt;
  const std::string_view name(argv[1]);
  const auto known = std::find_if(kCommands.begin(), kCommands.end(),
                                  [name](const auto& command) { return command.name == name; });
  if (known == kCommands.end()) return refuse_mistyped(argv[1], environment_block);
  if (is_program_here(argv[1])) return std::nullopt;
  ::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write()
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  const auto asks_for_help = [](const std::string& word) {
    return word == "--help" || word == "-h";
  };
  if (std::any_of(arguments.begin(), arguments.end(), asks_for_help)) return show_help(*known);
  return known->run(arguments, read_environment(environment_block));
}

}  // namespace ddprun
