#include "rendezvous/coordinator/live_runs.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/limits.hpp"
#include "base/printable.hpp"
#include "base/random_uuid.hpp"
#include "base/secret.hpp"
#include "rendezvous/round/rounds.hpp"

namespace ddprun::coordinator {

namespace json = boost::json;

namespace {

using Lineages = std::map<std::string, std::string>;  // by run id

constexpr std::size_t kFileBytesMax = 16 * 1024 * 1024;
constexpr const char* kRuns = "runs";
constexpr const char* kRunId = "run_id";
constexpr const char* kLineage = "lineage";

std::string why_not(int error) {
  return ::strerror(error);
}

/// Who could write the file could name a lineage of their own.
Result<std::string> read_own_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::string();
  if (file < 0) return Error{ErrorKind::kSystem, printable(path) + ": " + why_not(errno)};
  struct stat status {};
  std::string text;
  Result<std::string> read = text;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    read = Error{ErrorKind::kSystem, printable(path) + " is not a file of this user"};
  } else if (const auto safe = refuse_exposed(status, path, "file"); !safe) {
    read = safe.error();
  } else {
    text.resize(std::min(static_cast<std::size_t>(status.st_size), kFileBytesMax));
    const ssize_t count = ::read(file, text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    read = std::move(text);
  }
  ::close(file);
  return read;
}

std::optional<std::string> field(const json::object& object, const char* name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const auto& text = value->get_string();
  if (text.empty() || text.size() > kNameBytesMax) return std::nullopt;
  return std::string(text.data(), text.size());
}

/// What is no record of a run is left out.
std::optional<Lineages> parse(const std::string& text) {
  boost::system::error_code error;
  const json::value document = json::parse(text, error);
  if (error || !document.is_object()) return std::nullopt;
  const json::value* const runs = document.get_object().if_contains(kRuns);
  if (runs == nullptr || !runs->is_array()) return std::nullopt;
  Lineages lineages;
  for (const json::value& one : runs->get_array()) {
    if (!one.is_object()) continue;
    auto run = field(one.get_object(), kRunId);
    auto lineage = field(one.get_object(), kLineage);
    if (run && lineage) lineages.emplace(std::move(*run), std::move(*lineage));
  }
  return lineages;
}

Result<Lineages> read_lineages(const std::string& path) {
  const auto text = read_own_file(path);
  if (!text) return text.error();
  if (text->empty()) return Lineages();
  auto lineages = parse(*text);
  if (lineages) return std::move(*lineages);
  return Error{ErrorKind::kSystem, printable(path) + " is damaged"};
}

/// Whole or not at all, whenever this process is killed; no file without a text. Returns 0 or
/// errno.
int replace_file(const std::string& path, const std::string& text) {
  if (text.empty()) return ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
  std::error_code ignored;  // open() tells
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());
  const int file = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int error = write_all(file, text);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(unfinished.c_str());
  return error;
}

std::string state_directory() {
  const auto value = [](const char* name) -> std::string {
    const char* const text = std::getenv(name);
    return text != nullptr && *text == '/' ? text : "";
  };
  const std::string of_unit = value("STATE_DIRECTORY");
  if (!of_unit.empty()) return of_unit.substr(0, of_unit.find(':'));
  if (const std::string state = value("XDG_STATE_HOME"); !state.empty()) return state + "/ddprun";
  const std::string home = value("HOME");
  return home.empty() ? "" : home + "/.local/state/ddprun";
}

}  // namespace

LiveRuns::LiveRuns(std::string path, DiskThread thread, Warn warn)
    : path_(std::move(path)),
      thread_(std::move(thread)),
      warn_(std::move(warn)),
      next_save_(thread_.executor()) {
  auto lineages = read_lineages(path_);
  if (!lineages) warn_("runs before this start are not known: " + lineages.error().sentence);
  if (!lineages) return;
  for (auto& [run, lineage] : *lineages) {
    if (runs_.size() >= kLiveRunsMax) break;
    runs_.emplace(run, Live{std::move(lineage), true});
  }
}

bool LiveRuns::had_round(const RunId& run) const {
  const auto found = runs_.find(run.value());
  return found != runs_.end() && found->second.is_from_file;
}

bool LiveRuns::is_held_back(const protocol::Hello& hello, TimePoint now) {
  if (!had_round(hello.run_id)) return false;
  if (awaited_until_ == TimePoint()) awaited_until_ = now + kMembersAwaited;
  return now < awaited_until_ && !is_member(hello);
}

bool LiveRuns::is_member(const protocol::Hello& hello) const {
  return hello.claim && had_round(hello.run_id) &&
         round::lineage_of(hello.claim->stamp.author) == runs_.at(hello.run_id.value()).lineage;
}

std::string LiveRuns::lineage_for(const protocol::Hello& hello) const {
  return is_member(hello) ? runs_.at(hello.run_id.value()).lineage : random_uuid();
}

void LiveRuns::keep(const RunId& run, const std::string& lineage) {
  Live& live = runs_[run.value()];
  live.is_from_file = false;
  if (live.lineage == lineage) return;
  live.lineage = lineage;
  save();
}

void LiveRuns::forget(const RunId& run, const std::string& lineage) {
  const auto found = runs_.find(run.value());
  if (found == runs_.end() || found->second.lineage != lineage) return;
  runs_.erase(found);
  save();
}

// What changes while the file is written is written after it: so many runs that begin at once are
// few writes.
void LiveRuns::save() {
  is_stale_ = is_saving_;
  if (std::exchange(is_saving_, true)) return;
  if (hurries_ || quota_.try_take(Clock::now())) return write();
  next_save_.expires_after(kSaveInterval);
  next_save_.async_wait([waiting = weak_from_this()](const boost::system::error_code& error) {
    const auto self = waiting.lock();
    if (!error && self) self->write();
  });
}

void LiveRuns::write() {
  is_stale_ = false;
  json::array runs;
  for (const auto& [run, live] : runs_) {
    if (live.is_from_file && runs_.size() > kLiveRunsMax) continue;
    runs.push_back(json::object{{kRunId, run}, {kLineage, live.lineage}});
  }
  const auto error = std::make_shared<int>(0);
  std::string text;
  if (!runs.empty()) text = json::serialize(json::object{{kRuns, std::move(runs)}}) + "\n";
  thread_.post([error, path = path_, text = std::move(text)] { *error = replace_file(path, text); },
               [error, waiting = weak_from_this()] {
                 if (const auto self = waiting.lock()) self->written(*error);
               });
}

void LiveRuns::hurry() {
  hurries_ = true;
  if (next_save_.cancel() > 0) write();
}

void LiveRuns::written(int error) {
  is_saving_ = false;
  if (error != 0 && !std::exchange(has_warned_, true)) {
    warn_("cannot keep which runs there are in " + path_ + ": " + why_not(error));
  }
  if (is_stale_) save();
}

std::string live_runs_path(const std::string& bind, std::uint16_t port) {
  const std::string directory = state_directory();
  if (directory.empty() || port == 0) return "";
  char host[256] = {};  // a home may be shared by hosts
  if (::gethostname(host, sizeof host - 1) != 0) return "";
  return directory + "/rdzvd-" + host + "-" + bind + "-" + std::to_string(port) + ".json";
}

}  // namespace ddprun::coordinator
