// ddprun. Thread rule: the process has one thread until run_agent() (agent/run.hpp).
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "agent/output/log.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/proc/file_text.hpp"
#include "agent/report/error_file.hpp"
#include "agent/run.hpp"
#include "base/message_line.hpp"
#include "base/program_name.hpp"
#include "base/secret.hpp"
#include "base/write_all.hpp"
#include "launcher/commands/table.hpp"
#include "launcher/configure.hpp"
#include "launcher/detach.hpp"
#include "launcher/dry_run.hpp"
#include "launcher/front/front.hpp"
#include "launcher/local_coordinator.hpp"
#include "launcher/machine/this_machine.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"
#include "launcher/workers/config.hpp"

namespace ddprun {
namespace {

constexpr std::size_t kColumnsOffTerminal = 80;
constexpr const char* kVersionText = "ddprun " DDPRUN_VERSION "\n";

std::size_t terminal_columns(const Environment& environment) {
  const auto columns = parse_integer(value_or(environment, "COLUMNS", ""));
  if (columns && *columns > 0) return static_cast<std::size_t>(*columns);
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kColumnsOffTerminal;
}

/// What cannot be written is dropped, because no other descriptor is left to report it on.
void print_error(const std::string& line) {
  static_cast<void>(write_all(STDERR_FILENO, line + "\n"));
}

const char* code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "USAGE";
    case ErrorKind::kUnsupported:
      return "UNSUPPORTED";
    case ErrorKind::kNoScript:
    case ErrorKind::kNotFound:
    case ErrorKind::kNotExecutable:
      return "EXEC";
    case ErrorKind::kPortTaken:
      return "NET-PORT";
    case ErrorKind::kSystem:
      return "SYSTEM";
  }
  return "SYSTEM";
}

/// An outer launcher reads the reason from its error file, as from a worker.
void write_outer_error_file(const Environment& environment, const std::string& sentence) {
  const std::string path = value_or(environment, "TORCHELASTIC_ERROR_FILE", "");
  if (path.empty()) return;
  std::signal(SIGPIPE, SIG_IGN);  // a FIFO without a reader is an error, not fatal
  const auto left = leave_file(path, own_error_file(sentence, std::time(nullptr)));
  if (!left) print_error(warning_line("ERROR-FILE", left.error().sentence));
}

int refuse(const Error& error, const Environment& environment, const char* code = nullptr) {
  print_error(error_line(code == nullptr ? code_of(error.kind) : code, error.sentence));
  write_outer_error_file(environment, error.sentence);
  return exit_code_of(error.kind);
}

/// A script that saves the text must learn that it is incomplete.
int print(const std::string& text, const Environment& environment) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return 0;
  return refuse(
      {ErrorKind::kSystem, "cannot write to standard output: " + std::string(std::strerror(error))},
      environment);
}

int start(const Launch& launch, const Environment& environment) {
  const auto logger = make_logger();
  if (launch.config.log.verbosity == Verbosity::kQuiet) logger->set_level(spdlog::level::warn);
  for (const std::string& warning : launch.warnings) {
    logger->warn(warning_line("", warning));
  }
  for (const std::string& note : launch.notes) {
    logger->info(note_line("", note));
  }
  if (launch.answer != Launch::Answer::kRun) {
    const auto logs = LogTree::look(
        {launch.config.log.dir, value_or(environment, "TMPDIR", ""), launch.config.run_id});
    if (!logs && launch.config.log.asks_for_files()) {
      return refuse(logs.error(), environment, "START");
    }
    const auto text = dry_run(launch, environment, logs ? *logs : "");
    return text ? print(*text, environment) : refuse(text.error(), environment);
  }
  return run_agent(
      launch.config, environment, *logger,
      [&](const auto& executor) { return start_local_coordinator(executor, launch, *logger); },
      coordinator_opener(launch, *logger));
}

// By the same name: what is written to it is in one order.
bool shows_stdout_too() {
  struct stat out = {};
  struct stat err = {};
  if (::fstat(STDOUT_FILENO, &out) != 0 || ::fstat(STDERR_FILENO, &err) != 0) return false;
  return out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/// What `ddprun` does below the front, from its arguments to its exit code. Help and version go to
/// standard output; every message to standard error.
int run(int argc, const char* const* argv, const char* const* environment_block,
        const UserProcess& user, Called called) {
  const ThisMachine machine(read_environment(environment_block), user);
  const Environment& environment = machine.environment();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  auto intent = configure(words, machine, called);
  if (!intent) return refuse(intent.error(), environment);
  if (auto* launch = std::get_if<Launch>(&*intent)) {
    launch->config.pid = user.pid;
    launch->config.started = user.started;
    const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
    const std::string why =
        choose_console(launch->config, environment, on_terminal && shows_stdout_too());
    if (launch->config.log.verbosity == Verbosity::kVerbose) {
      for (std::string& line : decisions(*launch, environment, why)) {
        launch->notes.push_back(std::move(line));
      }
    }
    auto password = read_etcd_password(launch->config);
    if (!password) return refuse(password.error(), environment);
    launch->config.on_terminal = on_terminal;
    launch->config.log.draws_waits = on_terminal && may_draw_waits(launch->config.log, environment);
    return start(*launch, environment);
  }
  if (const auto* completion = std::get_if<ShowCompletion>(&*intent)) {
    return print(completion_script(completion->shell, program_name(), all_commands()), environment);
  }
  const bool help = std::holds_alternative<ShowHelp>(*intent);
  return print(help ? help_text(terminal_columns(environment), all_commands()) : kVersionText,
               environment);
}

}  // namespace
}  // namespace ddprun

int main(int argc, char** argv) {
  ddprun::SharedSecret secret = ddprun::take_secret_variable(environ);
  const ddprun::Called called = ddprun::called_as(argc > 0 ? argv[0] : "");
  ddprun::set_program_name(ddprun::name_of(called));
  if (called == ddprun::Called::kDdprun) {
    if (const auto code = ddprun::run_command(argc, argv, environ)) return *code;
  }
  ddprun::UserProcess user = ddprun::this_process();
  user.secret = std::move(secret);
  if (const auto code = ddprun::detach(argc, argv, environ, user)) return *code;
  return ddprun::run_below_front(argc, argv,
                                 [&] { return ddprun::run(argc, argv, environ, user, called); });
}
