// ddprun. Thread rule: the process has one thread until run_agent() (agent/run.hpp).
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/output/log.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/proc/files.hpp"
#include "agent/report/error_file.hpp"
#include "agent/run.hpp"
#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/exit_status.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/program_name.hpp"
#include "base/secret.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/configure.hpp"
#include "launcher/dry_run.hpp"
#include "launcher/front/front.hpp"
#include "launcher/local_coordinator.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"
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
  const auto* help = std::get_if<ShowHelp>(&*intent);
  if (help == nullptr) return print(kVersionText, environment);
  const std::size_t columns = terminal_columns(environment);
  return print(help->brief ? brief_help_text(columns) : help_text(columns, all_commands()),
               environment);
}

// --detach: the run continues in the background, and the command returns once all its workers were
// started.

// The shortest words that mean --detach and --config, which may name a file that has it.
constexpr std::array<std::string_view, 2> kShortest{"--det", "--conf"};
constexpr const char* kConfigVariable = "DDPRUN_CONFIG";
constexpr std::size_t kShownBytesMax = 65536;
// Names of the console file: the pid of the run is known once there is a process to write it.
constexpr const char* kOfCommand = "ddprun-start-";
constexpr const char* kOfRun = "ddprun-";

int refuse_to_detach(const std::string& what, int error) {
  print_error(error_line("DETACH", what + ": " + ::strerror(error)));
  return kExitFailure;
}

struct AskedToDetach {
  std::string dir;  // of the console file
  bool quiet = false;
  Origin secret_file;
};

/// None: the run is not to be detached. What is wrong with the options
/// the run itself says.
std::optional<AskedToDetach> asked_for(int argc, const char* const* argv,
                                       const char* const* environment) {
  const auto may_ask = [](const char* word) {
    return std::any_of(kShortest.begin(), kShortest.end(), [word](std::string_view shortest) {
      return std::string_view(word).starts_with(shortest);
    });
  };
  const bool asked = argc > 1 && std::any_of(argv + 1, argv + argc, may_ask);
  if (!asked && ::getenv(kConfigVariable) == nullptr) return std::nullopt;
  const auto line = scan(std::vector<std::string>(argv + 1, argv + argc));
  if (!line || line->action || line->program.empty()) return std::nullopt;
  auto settings = Settings::merge(*line, read_environment(environment));
  if (settings) settings->leave_out_excluded();
  const bool wanted = settings && settings->on(OptionId::kDetach);
  if (!wanted || settings->on(OptionId::kDryRun)) return std::nullopt;
  const std::string& dir = settings->text(OptionId::kLogDir);
  return AskedToDetach{dir.empty() || dir == "/dev/null" ? "." : dir,
                       settings->on(OptionId::kQuiet), settings->origin(OptionId::kRdzvSecretFile)};
}

std::filesystem::path console_file(const std::filesystem::path& folder, const char* kind, int pid) {
  return folder / (kind + std::to_string(pid) + ".out");
}

/// Makes a file that was not there: no file of another run is written. `path` is the name that it
/// has got in the end. Returns the descriptor; -1 and errno where none can be made.
int create_console(std::filesystem::path& path) {
  const std::filesystem::path wanted = path;
  int console = -1;
  for (int tries = 0; tries < kUniqueNamesMax; ++tries) {
    console = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (console >= 0 || errno != EEXIST) break;
    path = wanted;
    path.replace_filename(wanted.stem().string() + "_" + random_letters() + ".out");
  }
  return console;
}

int report_early_end(const front::Background& run, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool refused = run.exit_code == kExitUsage && text.starts_with(error_line("USAGE", ""));
  if (text.size() > kShownBytesMax) text.erase(0, text.size() - kShownBytesMax);
  const bool shown = write_all(STDERR_FILENO, text) == 0;  // else the file has it
  if (refused && shown && ::unlink(path.c_str()) == 0) return run.exit_code;
  print_error(note_line("DETACH", "the run has ended; its output is in " + path));
  return run.exit_code;
}

/// Where --detach is among the options: the exit code of the command in its own process; in that of
/// the run none, and `user` is that process, with the descriptor that gets the run id once all
/// workers of this node were started. The arguments are those of main().
std::optional<int> detach(int argc, const char* const* argv, const char* const* environment,
                          UserProcess& user) {
  const auto asked = asked_for(argc, argv, environment);
  if (!asked) return std::nullopt;
  const std::string& dir = asked->dir;
  std::error_code why;
  std::filesystem::create_directories(dir, why);
  if (why) return refuse_to_detach("cannot make " + printable(dir), why.value());
  const std::filesystem::path folder = std::filesystem::absolute(dir, why).lexically_normal();
  std::filesystem::path first = console_file(folder, kOfCommand, ::getpid());
  const int console = create_console(first);
  if (console < 0) return refuse_to_detach("cannot open " + printable(first.string()), errno);
  if (asked->secret_file.text == kSecretOnStdin) {
    user.secret_line = read_secret(asked->secret_file.text, asked->secret_file.shown());
  }
  const front::Background run = front::go_to_background(console);
  if (!run.is_parent) {
    const auto own = console_file(folder, kOfRun, ::getpid());
    // Where that is taken, in a container whose pids come again, it keeps its name.
    ::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, own.c_str(), RENAME_NOREPLACE);
    user.pid = ::getpid();
    user.started = run.started;
    return std::nullopt;
  }
  if (run.process == 0) {
    const int failed = errno;
    ::unlink(first.c_str());
    return refuse_to_detach("cannot start a process in the background", failed);
  }
  const bool renamed = !std::filesystem::exists(first, why);
  const std::string path = (renamed ? console_file(folder, kOfRun, run.process) : first).string();
  if (run.line.empty()) return report_early_end(run, path);
  if (asked->quiet) return 0;
  const std::string pid = std::to_string(run.process);
  print_error(note_line("DETACH", "run " + run.line + " continues in the background (pid " + pid +
                                      "), with its output in " + path));
  print_error("  next      ddprun attach " + pid + " shows its output, ddprun stop " + pid +
              " ends it");
  return 0;
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
