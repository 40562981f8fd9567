// `ddprun explain DIR...`.
#include "agent/explain/explain.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "launcher/commands/commands.hpp"

namespace ddprun::commands {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCode = "EXPLAIN";
constexpr const char* kEventsName = "events.jsonl";
constexpr std::size_t kFilesMax = 16384;  // one for each node, of more runs than one has

/// A file of events, a run's directory, or a --log-dir with directories of runs.
std::vector<std::string> files_at(const std::string& place) {
  std::error_code why;
  if (fs::is_regular_file(place, why)) return {place};
  std::vector<std::string> files;
  const fs::path own = fs::path(place) / kEventsName;
  if (fs::is_regular_file(own, why)) return {own.string()};
  for (fs::directory_iterator entry(place, why), end; !why && entry != end; entry.increment(why)) {
    const fs::path file = entry->path() / kEventsName;
    std::error_code ignored;  // what cannot be looked at is not there
    if (fs::is_regular_file(file, ignored) && files.size() < kFilesMax) {
      files.push_back(file.string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> read_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::error_code why;
  const auto size = fs::file_size(path, why);
  if (!file || why || size > explain::kFileBytesMax) {
    return Error{ErrorKind::kSystem, "cannot read " + path + (why || !file ? "" : ": too large")};
  }
  text.resize(size);
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// A record on a full disk may lack its end, whatever became of ddprun.
bool is_on_full_disk(const std::string& path) {
  constexpr std::uintmax_t kFull = 64 * 1024;  // bytes that are free, at most
  std::error_code why;
  const fs::space_info space = fs::space(path, why);
  return !why && space.available < kFull;
}

}  // namespace

int explain_run(const Arguments& arguments, const Environment&) {
  if (arguments.empty()) return misuse("explain needs the log directory of a run");
  std::vector<explain::NodeRecord> records;
  for (const std::string& place : arguments) {
    const auto files = files_at(place);
    if (files.empty()) {
      return fail("there is no " + std::string(kEventsName) + " in " + place +
                      "; name the directory that --log-dir made for the run",
                  kCode);
    }
    for (const std::string& path : files) {
      const auto text = read_events(path);
      if (!text) return fail(text.error().sentence, kCode);
      records.push_back(explain::read_record(path, *text));
      records.back().disk_full = is_on_full_disk(path);
    }
  }
  const auto explained = explain::explain(std::move(records));
  return explained ? print(*explained) : fail(explained.error().sentence, kCode);
}

}  // namespace ddprun::commands
