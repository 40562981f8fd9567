#include "agent/output/log_tree.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "agent/proc/program.hpp"
#include "base/format.hpp"
#include "base/limits.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporaryStem = "torchelastic_";
constexpr mode_t kOwnerOnly = 0700;            // in a directory that all users share
constexpr mode_t kByUmask = 0777;              // for the user, and for programs that collect logs
constexpr const char* kReportStem = "report";  // what the console did not take
constexpr std::size_t kRunNameBytesMax = 200;  // a file name has at most 255 bytes

Error cannot_make(const std::string& path, int error) {
  return system_refused("cannot make the log directory " + path, error);
}

Error wrong_log_dir(const Error& why) {
  return {ErrorKind::kUsage, why.sentence + " (--log-dir)"};
}

// A new directory <stem><8 letters> in `parent`.
Result<Directory> make_unique(const Directory& parent, const std::string& stem, mode_t mode) {
  Directory made;
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kUniqueNamesMax; ++tries) {
    error = made.make_in(parent, stem + random_letters(), mode);
  }
  if (error == 0) return made;
  return cannot_make(parent.path() + "/" + stem + "...", error);
}

Result<Directory> open_temporary_parent(const std::string& folder) {
  std::error_code ignored;  // without a working directory open fails
  Directory parent;
  const int error = parent.open(fs::absolute(folder, ignored).string());
  if (error != 0) return cannot_make(parent.path() + "/" + kTemporaryStem + "...", error);
  if (parent.is_foreign_to_root()) return Error{ErrorKind::kSystem, parent.foreign_sentence()};
  return parent;
}

Result<Directory> make_temporary_in(const std::string& folder) {
  auto parent = open_temporary_parent(folder);
  if (!parent) return parent.error();
  return make_unique(*parent, kTemporaryStem, kOwnerOnly);
}

/// Of the folders for temporary files the first with which `use` succeeds, or its first error.
template <class Found>
Result<Found> in_first_folder(const std::string& tmpdir,
                              const std::function<Result<Found>(const std::string&)>& use) {
  Error first;
  for (const std::string& folder : {tmpdir, std::string("/tmp"), std::string("/var/tmp")}) {
    auto found = use(folder);
    if (found) return found;
    if (first.sentence.empty()) first = found.error();
  }
  first.sentence += "; set TMPDIR or --log-dir to a directory that can be written";
  return first;
}

// What is there, under a shorter name. ".." behind a symbolic link leads to where that link points.
fs::path shortened(const fs::path& path, std::error_code& why) {
  const bool goes_up = std::find(path.begin(), path.end(), "..") != path.end();
  if (goes_up) return fs::canonical(path, why);
  const fs::path normal = path.lexically_normal();  // of "logs/" and "logs/." with its last slash
  return normal.has_filename() ? normal : normal.parent_path();
}

Result<Directory> make_given(const std::string& dir) {
  std::error_code why;
  fs::path path = fs::absolute(dir, why);
  if (!why && fs::exists(path, why) && !fs::is_directory(path, why)) {
    return Error{ErrorKind::kUsage, "--log-dir " + dir + " is a file; name a directory"};
  }
  if (!why) fs::create_directories(path, why);
  if (!why) path = shortened(path, why);
  Directory base;
  const int error = why ? why.value() : base.open(path.string());
  if (error != 0) return wrong_log_dir(cannot_make(path.string(), error));
  return base;
}

std::string file_name_of(const RunId& run_id) {
  std::string name = run_id.value().substr(0, kRunNameBytesMax);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

/// 0, or the error with which a directory could not be made in this one.
int why_not_in(const std::string& directory) {
  struct stat status = {};
  if (::stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) return ENOTDIR;
  return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

Result<std::string> look_at_given(const std::string& dir, const std::string& stem) {
  std::error_code why;
  fs::path path = fs::absolute(dir, why);
  fs::path there = path;
  while (!fs::exists(there, why) && there.has_relative_path()) there = there.parent_path();
  if (there != path) {
    const int error = why_not_in(there.string());
    if (error != 0) return wrong_log_dir(cannot_make(path.string(), error));
    return path.string();
  }
  auto base = make_given(dir);  // which is there
  if (!base) return base.error();
  const int error = why_not_in(base->path());
  if (error != 0) return wrong_log_dir(cannot_make(base->path() + "/" + stem + "...", error));
  return base->path();
}

Result<std::string> look_for_temporary(const std::string& tmpdir) {
  const auto look_in = [](const std::string& folder) -> Result<std::string> {
    auto parent = open_temporary_parent(folder);
    if (!parent) return parent.error();
    const int error = why_not_in(parent->path());
    if (error != 0) return cannot_make(parent->path() + "/" + kTemporaryStem + "...", error);
    return parent->path();
  };
  return in_first_folder<std::string>(tmpdir, look_in);
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

AttemptLogs::AttemptLogs(Directory directory)
    : directory_(directory.path()),
      opened_(std::make_shared<const Directory>(std::move(directory))) {}

Result<std::shared_ptr<LogFile>> AttemptLogs::create(const std::string& path,
                                                     const DiskThread& disk,
                                                     std::uint64_t bytes_max) const {
  const std::string name = path.substr(directory_.size() + 1);
  const auto slash = name.find('/');
  std::shared_ptr<const Directory> directory = opened_;
  if (slash != std::string::npos) {
    auto of_rank = std::make_shared<Directory>();
    const int error = of_rank->open_in(*opened_, name.substr(0, slash));
    if (error != 0) return system_refused("cannot write the log file " + path, error);
    directory = std::move(of_rank);
  }
  const std::string file = name.substr(slash + 1);  // npos + 1 is 0
  if (bytes_max == 0) return LogFile::create(*directory, file, disk);
  return LogFile::create_ring(std::move(directory), file, bytes_max, disk);
}

std::string AttemptLogs::of(LocalRank rank, const char* name) const {
  if (rank == kNoRank) return here(name);
  return files() ? directory_ + "/" + std::to_string(rank.value()) + "/" + name : "";
}

std::string AttemptLogs::stacks_file(std::chrono::milliseconds after) const {
  return here(("stacks-" + seconds_text(after) + "s.txt").c_str());
}

std::string AttemptLogs::here(const char* name) const {
  return files() ? directory_ + "/" + name : "";
}

std::string LogTreeOptions::place() const {
  if (!dir.empty()) return dir;
  return tmpdir.empty() ? "/tmp" : tmpdir;
}

Result<LogTree> LogTree::open(const LogTreeOptions& options) {
  LogTree tree(options);
  const auto opened = tree.open_base();
  if (!opened) return opened.error();
  return tree;
}

Result<std::string> LogTree::look(const LogTreeOptions& options) {
  if (options.dir == "/dev/null") return std::string();
  if (options.dir.empty()) return look_for_temporary(options.place());
  return look_at_given(options.dir, file_name_of(options.run_id) + "_");
}

LogTree LogTree::open_later(const LogTreeOptions& options) {
  LogTree tree(options);
  tree.later_ = true;
  return tree;
}

Result<void> LogTree::open_base() {
  if (options_.dir == "/dev/null") return {};
  kind_ = options_.dir.empty() ? Base::kTemporary : Base::kGiven;
  auto base = options_.dir.empty() ? in_first_folder<Directory>(place(), make_temporary_in)
                                   : make_given(options_.dir);
  if (!base) return base.error();
  base_ = std::move(*base);
  return {};
}

std::string LogTree::foreign_sentence() const {
  const bool foreign = files() && kind_ == Base::kGiven && base_.is_foreign_to_root();
  return foreign ? "--log-dir " + base_.foreign_sentence() : "";
}

Result<void> LogTree::make_run_directory() {
  auto made = make_unique(base_, file_name_of(options_.run_id) + "_", kByUmask);
  if (!made) return kind_ == Base::kGiven ? wrong_log_dir(made.error()) : made.error();
  run_ = std::move(*made);
  return {};
}

Result<void> LogTree::make_run_directory_again() {
  auto made = make_run_directory();
  if (made) return {};
  const auto opened = open_base();  // that is gone, too
  if (!opened) return opened.error();
  return make_run_directory();
}

/// Returns 0 or errno.
int LogTree::make_attempt_directory(Directory& attempt, RestartCount restart_count,
                                    Round round) const {
  const std::string first = "attempt_" + std::to_string(restart_count.value());
  const std::string second = first + "_round_" + std::to_string(round.value());
  int error = attempt.make_in(run_, first, kByUmask);
  for (int number = 1; error == EEXIST && number <= kUniqueNamesMax; ++number) {
    const std::string name = number == 1 ? second : second + "_" + std::to_string(number);
    error = attempt.make_in(run_, name, kByUmask);
  }
  return error;
}

Result<AttemptLogs> LogTree::attempt(RestartCount restart_count, Round round, int workers) {
  if (std::exchange(later_, false)) {
    const auto opened = open_base();
    if (!opened) return opened.error();
  }
  if (!files()) return AttemptLogs();
  const bool made_before = run_.is_open();
  if (!made_before) {
    const auto made = make_run_directory();
    if (!made) return made.error();
  }
  Directory attempt;
  int error = make_attempt_directory(attempt, restart_count, round);
  if (made_before && (error == ENOENT || error == ESTALE)) {
    const auto made = make_run_directory_again();
    if (!made) return made.error();
    error = make_attempt_directory(attempt, restart_count, round);
  }
  if (error != 0) {
    return cannot_make(run_.path() + "/attempt_" + std::to_string(restart_count.value()), error);
  }
  for (int rank = 0; rank < workers; ++rank) {
    Directory of_rank;
    error = of_rank.make_in(attempt, std::to_string(rank), kByUmask);
    if (error != 0) return cannot_make(attempt.path() + "/" + std::to_string(rank), error);
  }
  has_attempt_ = true;
  return AttemptLogs(std::move(attempt));
}

Result<AttemptLogs> LogTree::spare(int number) {
  if (!files()) return AttemptLogs();
  const auto made = run_.is_open() ? Result<void>() : make_run_directory();
  if (!made) return made.error();
  Directory own;
  const std::string name = "spare_" + std::to_string(number);
  const int error = own.make_in(run_, name, kByUmask);
  if (error != 0) return cannot_make(run_.path() + "/" + name, error);
  return AttemptLogs(std::move(own));
}

// A worker may have made something under the first name.
Result<std::string> LogTree::keep_report(const std::string& text) {
  if (!files()) return Error{ErrorKind::kSystem, "there is no log directory (--log-dir /dev/null)"};
  const Directory& folder = run_.is_open() ? run_ : base_;
  std::string name = std::string(kReportStem) + ".txt";
  int file = folder.create_file(name, 0);
  for (int tries = 1; file < 0 && errno == EEXIST && tries < kUniqueNamesMax; ++tries) {
    name = std::string(kReportStem) + "_" + random_letters() + ".txt";
    file = folder.create_file(name, 0);
  }
  const int error = file < 0 ? errno : write_all(file, text);
  const std::string path = folder.path() + "/" + name;
  if (file >= 0) ::close(file);
  if (error != 0) return system_refused("cannot write " + path, error);
  ending_ = Ending::kKeep;
  return path;
}

Result<std::shared_ptr<LogFile>> LogTree::create(const std::string& name, const DiskThread& disk) {
  const auto made = run_.is_open() ? Result<void>() : make_run_directory();
  if (!made) return made.error();
  return LogFile::create(run_, name, disk);
}

Result<void> LogTree::keep_file(const std::string& name, const std::string& text) {
  const auto made = run_.is_open() ? Result<void>() : make_run_directory();
  if (!made) return made.error();
  const std::string unfinished = "." + name + "." + random_letters();
  const int file = run_.create_file(unfinished, 0);
  int error = file < 0 ? errno : write_all(file, text);
  if (file >= 0) ::close(file);
  const int at = run_.descriptor();
  if (error == 0 && ::renameat(at, unfinished.c_str(), at, name.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlinkat(at, unfinished.c_str(), 0);
  return system_refused("cannot write " + run_.path() + "/" + name, error);
}

bool LogTree::stays() const {
  if (!files() || kind_ != Base::kTemporary || ending_ == Ending::kKeep) return files();
  return ending_ == Ending::kDiscardIfEmpty && holds_something(base());
}

void LogTree::finish() {
  if (!files() || stays()) return;
  std::error_code ignored;  // a leftover temporary file is not an error
  fs::remove_all(base(), ignored);
}

}  // namespace ddprun
