#include "agent/proc/log_tree.hpp"

#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "agent/proc/limits.hpp"
#include "agent/proc/log_file.hpp"
#include "agent/proc/spawn_error.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRandomLetters = 8;
constexpr mode_t kOwnerOnly = 0700;  // in a directory that everybody shares
constexpr mode_t kByUmask = 0777;    // where the user wants his logs, and whoever collects them
constexpr const char* kReportFile = "report.txt";  // what the console did not take
constexpr std::size_t kRunNameBytesMax = 200;      // a file name has at most 255 bytes

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::array<unsigned char, kRandomLetters> bytes = {};
  if (::getrandom(bytes.data(), bytes.size(), 0) < 0) bytes.fill(0);  // mkdir finds out
  std::string letters;
  for (const unsigned char byte : bytes) letters += kLetters[byte % kLetters.size()];
  return letters;
}

Error cannot_make(const std::string& path, int error) {
  return system_refused("cannot make the log directory " + path, error);
}

Error wrong_log_dir(const Error& why) {
  return {ErrorKind::kUsage, why.sentence + " (--log-dir)"};
}

// A new directory <stem><8 letters>.
Result<std::string> make_unique(const std::string& stem, mode_t mode) {
  for (int attempt = 0; attempt < kDirectoryNamesMax; ++attempt) {
    const std::string path = stem + random_letters();
    if (::mkdir(path.c_str(), mode) == 0) return path;
    if (errno != EEXIST) return cannot_make(path, errno);
  }
  return cannot_make(stem + "...", EEXIST);
}

Result<std::string> make_temporary(const std::string& tmpdir) {
  const std::vector<std::string> folders = {tmpdir.empty() ? "/tmp" : tmpdir, "/tmp", "/var/tmp"};
  Error first;
  for (const std::string& folder : folders) {
    std::error_code ignored;  // without a working directory mkdir fails below
    auto made = make_unique(fs::absolute(folder, ignored).string() + "/torchelastic_", kOwnerOnly);
    if (made) return made;
    if (first.sentence.empty()) first = made.error();
  }
  first.sentence += "; set TMPDIR or --log-dir to a directory that can be written";
  return first;
}

// What is there, under a shorter name. ".." behind a symbolic link leads to where that link points.
fs::path shortened(const fs::path& path, std::error_code& why) {
  const bool goes_up = std::find(path.begin(), path.end(), "..") != path.end();
  return goes_up ? fs::canonical(path, why) : path.lexically_normal();
}

Result<std::string> make_given(const std::string& dir) {
  std::error_code why;
  fs::path path = fs::absolute(dir, why);
  if (!why && fs::exists(path, why) && !fs::is_directory(path, why)) {
    return Error{ErrorKind::kUsage, "--log-dir " + dir + " is a file; name a directory"};
  }
  if (!why) fs::create_directories(path, why);
  if (!why) path = shortened(path, why);
  if (!why) return path.string();
  return wrong_log_dir(cannot_make(path.string(), why.value()));
}

std::string file_name_of(const RunId& run_id) {
  std::string name = run_id.value().substr(0, kRunNameBytesMax);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

bool holds_something(const std::string& directory) {
  std::error_code why;
  for (fs::recursive_directory_iterator entry(directory, why), end; !why && entry != end;
       entry.increment(why)) {
    if (entry->is_regular_file(why) && entry->file_size(why) > 0) return true;
  }
  return static_cast<bool>(why);  // what cannot be read is not thrown away
}

}  // namespace

std::string AttemptLogs::of(LocalRank rank, const char* name) const {
  return files() ? directory_ + "/" + std::to_string(rank.value()) + "/" + name : "";
}

std::string AttemptLogs::here(const char* name) const {
  return files() ? directory_ + "/" + name : "";
}

Result<LogTree> LogTree::open(const LogTreeOptions& options) {
  LogTree tree;
  tree.run_id_ = options.run_id;
  if (options.dir == "/dev/null") return tree;
  tree.kind_ = options.dir.empty() ? Base::kTemporary : Base::kGiven;
  auto base = options.dir.empty() ? make_temporary(options.tmpdir) : make_given(options.dir);
  if (!base) return base.error();
  tree.base_ = *base;
  return tree;
}

Result<AttemptLogs> LogTree::attempt(RestartCount restart_count, Round round, int workers) {
  if (!files()) return AttemptLogs();
  if (run_directory_.empty()) {
    auto made = make_unique(base_ + "/" + file_name_of(run_id_) + "_", kByUmask);
    if (!made) return kind_ == Base::kGiven ? wrong_log_dir(made.error()) : made.error();
    run_directory_ = *made;
  }
  const std::string first = run_directory_ + "/attempt_" + std::to_string(restart_count.value());
  const std::string second = first + "_round_" + std::to_string(round.value());
  std::string path = first;
  for (int number = 1; ::mkdir(path.c_str(), kByUmask) != 0; ++number) {
    if (errno != EEXIST || number > kDirectoryNamesMax) return cannot_make(path, errno);
    path = number == 1 ? second : second + "_" + std::to_string(number);
  }
  for (int rank = 0; rank < workers; ++rank) {
    const std::string folder = path + "/" + std::to_string(rank);
    if (::mkdir(folder.c_str(), kByUmask) != 0) return cannot_make(folder, errno);
  }
  return AttemptLogs(path);
}

Result<std::string> LogTree::keep_report(const std::string& text) {
  if (!files()) return Error{ErrorKind::kSystem, "there is no log directory (--log-dir /dev/null)"};
  const std::string& folder = run_directory_.empty() ? base_ : run_directory_;
  auto file = LogFile::open(folder + "/" + kReportFile);
  if (!file) return file.error();
  std::optional<Error> lost;
  file->append(text, [&](const std::string& why) { lost.emplace(ErrorKind::kSystem, why); });
  if (lost) return *lost;
  ending_ = Ending::kKeep;
  return file->path();
}

void LogTree::finish() {
  if (!files() || kind_ != Base::kTemporary || ending_ == Ending::kKeep) return;
  if (ending_ == Ending::kDiscardIfEmpty && holds_something(base_)) return;
  std::error_code ignored;  // a leftover temporary file is not an error
  fs::remove_all(base_, ignored);
}

}  // namespace ddprun
