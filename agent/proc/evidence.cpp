#include "agent/proc/evidence.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/files.hpp"
#include "agent/proc/process_table.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace {

// Cgroups above a worker; deeper ones are not looked at.
constexpr std::size_t kLevelsMax = 32;
// Paths taken from the output of a worker.
constexpr std::size_t kPathsMax = 3;
// Records of the kernel's log that are looked at.
constexpr int kLogRecordsMax = 100'000;

/// A small file of the kernel; empty when it cannot be read.
std::string read_small(const std::string& path) {
  return read_beginning(path, 16 * 1024).value_or("");
}

Amount number_in(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (why == std::errc::result_out_of_range) return std::numeric_limits<std::int64_t>::max();
  if (why != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

/// The number behind `name` at the beginning of a line.
Amount number_after(std::string_view text, std::string_view name) {
  const auto value = value_of(text, name);
  return value ? number_in(*value) : std::nullopt;
}

/// From the cgroup of this process to the root of the hierarchy.
std::vector<std::string> folders_of(const std::string& mounts, const std::string& ours,
                                    std::string_view controller) {
  std::vector<std::string> folders;
  const auto place = controller_place(mounts, ours, controller);
  if (!place) return folders;
  std::string folder = place->folder;
  while (folders.size() < kLevelsMax && folder.size() >= place->mount.size()) {
    folders.push_back(folder);
    folder.resize(folder.rfind('/'));
  }
  return folders;
}

Amount kills_in(const std::string& folder) {
  if (const auto v2 = number_after(read_small(folder + "/memory.events"), "oom_kill ")) return v2;
  return number_after(read_small(folder + "/memory.oom_control"), "oom_kill ");
}

Amount kills_of(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (const Amount kills = kills_in(folder)) return kills;
  }
  return std::nullopt;
}

Amount kills_of_host() {
  return number_after(read_small("/proc/vmstat"), "oom_kill ");
}

/// Version 1 writes "no limit" as a number near the largest.
Amount real_limit(const Amount& limit) {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

Amount number_of(const std::string& folder, const char* v2, const char* v1) {
  if (const Amount number = number_in(read_small(folder + "/" + v2))) return number;
  return number_in(read_small(folder + "/" + v1));
}

void read_smallest_limit(const std::vector<std::string>& folders, MemoryEvidence& memory) {
  for (const std::string& folder : folders) {
    const Amount limit = real_limit(number_of(folder, "memory.max", "memory.limit_in_bytes"));
    if (!limit || (memory.limit && *memory.limit <= *limit)) continue;
    memory.limit = limit;
    memory.peak = number_of(folder, "memory.peak", "memory.max_usage_in_bytes");
  }
}

Amount kilobytes_after(std::string_view text, std::string_view name) {
  const Amount kilobytes = number_after(text, name);
  return kilobytes ? Amount(*kilobytes * 1024) : std::nullopt;
}

/// utime and stime, in ticks.
Amount processor_seconds(const std::string& text) {
  const Stat stat(text);
  const long ticks = ::sysconf(_SC_CLK_TCK);
  if (stat.fields() < 15 || ticks <= 0) return std::nullopt;
  return (stat[14] + stat[15] + ticks / 2) / ticks;
}

/// `path`, or the nearest folder above it that is there.
std::optional<struct statvfs> ask(std::string& path) {
  struct statvfs status = {};
  for (std::size_t level = 0; level < kLevelsMax; ++level) {
    if (::statvfs(path.c_str(), &status) == 0) return status;
    const auto slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) return std::nullopt;
    path.resize(slash);
  }
  return std::nullopt;
}

std::int64_t bytes_of(fsblkcnt_t blocks, unsigned long size) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (size != 0 && blocks > static_cast<fsblkcnt_t>(kMost) / size) return kMost;
  return static_cast<std::int64_t>(blocks * size);
}

}  // namespace

MemoryBaseline read_memory_baseline() {
  MemoryBaseline baseline;
  const std::string mounts = read_small("/proc/self/mountinfo");
  const std::string ours = read_small("/proc/self/cgroup");
  baseline.memory_folders = folders_of(mounts, ours, "memory");
  baseline.process_folders = folders_of(mounts, ours, "pids");
  baseline.covers_subtree =
      !baseline.memory_folders.empty() &&
      ::access((baseline.memory_folders.front() + "/cgroup.controllers").c_str(), F_OK) == 0;
  baseline.kills = kills_of(baseline.memory_folders);
  baseline.host_kills = kills_of_host();
  return baseline;
}

MemoryEvidence read_memory(const MemoryBaseline& baseline, const std::string& leaf) {
  MemoryEvidence memory;
  memory.kills_cover_subtree = baseline.covers_subtree;
  memory.kills_before = baseline.kills;
  if (baseline.kills) memory.kills_after = kills_of(baseline.memory_folders);
  memory.host_kills_before = baseline.host_kills;
  if (baseline.host_kills) memory.host_kills_after = kills_of_host();
  std::vector<std::string> folders = baseline.memory_folders;
  if (!leaf.empty()) {
    folders.insert(folders.begin(), leaf);
    const Amount own = kills_in(leaf);
    // Else one of its own, or none: a shared cgroup above may have moved for another worker.
    if (own && *own > 0) {
      memory.kills_before = 0;
      memory.kills_after = own;
      memory.kills_cover_subtree = true;
    }
  }
  read_smallest_limit(folders, memory);
  const std::string host = read_small("/proc/meminfo");
  memory.host_total = kilobytes_after(host, "MemTotal:");
  memory.host_available = kilobytes_after(host, "MemAvailable:");
  return memory;
}

Amount read_process_limit(const MemoryBaseline& baseline) {
  Amount smallest;
  for (const std::string& folder : baseline.process_folders) {
    const Amount limit = number_in(read_small(folder + "/pids.max"));
    if (limit && (!smallest || *limit < *smallest)) smallest = limit;
  }
  return smallest;
}

Amount read_kernel_log(pid_t process) {
  std::error_code unknown;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/pid", unknown);
  if (space != "pid:[4026531836]") return std::nullopt;  // the first one, which the log means
  const Descriptor log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (log.number() < 0) return std::nullopt;
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::int64_t kRecent = 60;  // seconds; the number may have been another's before
  const std::string killed = "Killed process " + std::to_string(process) + " (";
  std::array<char, 8192> record{};
  std::int64_t found = 0;
  ssize_t bytes = 0;
  for (int records = 0; records < kLogRecordsMax; ++records) {
    bytes = ::read(log.number(), record.data(), record.size());
    if (bytes < 0 && errno == EPIPE) continue;  // overwritten meanwhile: the next one follows
    if (bytes <= 0) break;
    const std::string_view text(record.data(), static_cast<std::size_t>(bytes));
    // `PRIORITY,NUMBER,MICROSECONDS,-;TEXT`
    const auto second = text.find(',', text.find(',') + 1);
    const Amount at = second < text.size() ? number_in(text.substr(second + 1)) : std::nullopt;
    const bool recent = at && *at / 1'000'000 + kRecent >= now.tv_sec;
    if (recent && text.find(killed) != std::string_view::npos) found = 1;
  }
  if (bytes < 0 && errno != EAGAIN && found == 0) return std::nullopt;
  return found;
}

LimitEvidence parse_limits(std::string_view text) {
  LimitEvidence limits;  // the soft ones, in the first column; absent: unlimited
  limits.known = text.starts_with("Limit ");
  limits.cpu_seconds = number_after(text, "Max cpu time");
  limits.file_bytes = number_after(text, "Max file size");
  limits.processes = number_after(text, "Max processes");
  limits.descriptors = number_after(text, "Max open files");
  limits.address_space = number_after(text, "Max address space");
  limits.core_bytes = number_after(text, "Max core file size");
  return limits;
}

std::string lowered_limits(const LimitEvidence& worker, const LimitEvidence& own) {
  std::string letters;
  const auto compare = [&](char letter, const Amount& its, const Amount& ours) {
    if (its && (!ours || *its < *ours)) letters += letter;
  };
  if (!worker.known || !own.known) return {};
  compare('c', worker.core_bytes, own.core_bytes);
  compare('f', worker.file_bytes, own.file_bytes);
  compare('n', worker.descriptors, own.descriptors);
  compare('t', worker.cpu_seconds, own.cpu_seconds);
  compare('u', worker.processes, own.processes);
  compare('v', worker.address_space, own.address_space);
  return letters;
}

LimitEvidence read_limits(pid_t process) {
  LimitEvidence limits = parse_limits(read_proc(process, "limits"));
  limits.cpu_used = processor_seconds(read_proc(process, "stat"));
  return limits;
}

std::vector<DiskEvidence> read_disks(const std::vector<std::string>& paths) {
  std::vector<DiskEvidence> disks;
  std::vector<dev_t> seen;
  for (std::string path : paths) {
    if (path.empty() || path.front() != '/' || disks.size() == kDisksMax) continue;
    const auto status = ask(path);
    struct stat place = {};
    if (!status || ::stat(path.c_str(), &place) != 0) continue;
    if (std::find(seen.begin(), seen.end(), place.st_dev) != seen.end()) continue;
    seen.push_back(place.st_dev);
    DiskEvidence disk{path,
                      bytes_of(status->f_blocks, status->f_frsize),
                      bytes_of(status->f_bavail, status->f_frsize),
                      {}};
    if (status->f_files > 0) disk.free_files = bytes_of(status->f_favail, 1);
    disks.push_back(std::move(disk));
  }
  return disks;
}

std::vector<std::string> quoted_paths(std::string_view output) {
  std::vector<std::string> paths;
  while (paths.size() < kPathsMax) {
    const auto open = output.rfind("'/");
    if (open == std::string_view::npos) break;
    const auto close = output.find('\'', open + 1);
    const auto newline = output.find('\n', open);
    if (close != std::string_view::npos && close < newline && close - open < 4096) {
      paths.emplace_back(output.substr(open + 1, close - open - 1));
    }
    output = output.substr(0, open);
  }
  return paths;
}

std::string read_core_pattern() {
  std::string pattern = read_small("/proc/sys/kernel/core_pattern");
  while (!pattern.empty() && pattern.back() == '\n') pattern.pop_back();
  return pattern;
}

}  // namespace ddprun
