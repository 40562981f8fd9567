#include "launcher/detach.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "agent/proc/directory.hpp"
#include "base/environment.hpp"
#include "base/exit_code.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/write_all.hpp"
#include "launcher/front/front.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {
namespace {

// The shortest words that mean --detach and --config, which may name a file that has it.
constexpr std::array<std::string_view, 2> kShortest{"--det", "--conf"};
constexpr const char* kConfigVariable = "DDPRUN_CONFIG";
constexpr std::size_t kShownBytesMax = 65536;
// Names of the console file: the pid of the run is known once there is a process to write it.
constexpr const char* kOfCommand = "ddprun-start-";
constexpr const char* kOfRun = "ddprun-";

void say(const std::string& line) {
  static_cast<void>(write_all(STDERR_FILENO, line + "\n"));  // no other place is left to say so
}

int refuse_to_detach(const std::string& what, int error) {
  say(error_line("DETACH", what + ": " + ::strerror(error)));
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
  say(note_line("DETACH", "the run has ended; its output is in " + path));
  return run.exit_code;
}

}  // namespace

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
  say(note_line("DETACH", "run " + run.line + " continues in the background (pid " + pid +
                              "), with its output in " + path));
  say("  next      ddprun attach " + pid + " shows its output, ddprun stop " + pid + " ends it");
  return 0;
}

}  // namespace ddprun
