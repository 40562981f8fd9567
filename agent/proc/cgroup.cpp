#include "agent/proc/cgroup.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>

#include "agent/proc/files.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace {

// What is read of a file of /proc or of a cgroup at most: pids of about 100,000 processes; more are
// not seen until these are gone.
constexpr std::size_t kCgroupFileBytesMax = 1024 * 1024;

constexpr std::string_view kRunPrefix = "ddprun.";

std::optional<std::string> read_whole(const std::string& path) {
  return read_beginning(path, kCgroupFileBytesMax);
}

/// Whether the kernel took it.
bool write_to(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.number() >= 0 && write_all(file.number(), text) == 0;
}

/// The first line of `text`, which loses it.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const auto end = line.find(' ');
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return fields;
}

/// mountinfo writes a space in a path as \040.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int code = 0;
    const char* const digits = text.data() + at + 1;
    const bool escaped = text[at] == '\\' && text.size() - at > 3 &&
                         std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3;
    plain += escaped ? static_cast<char>(code) : text[at];
    if (escaped) at += 3;
  }
  return plain;
}

struct Mount {
  std::string root;  // the part of the hierarchy that is seen there
  std::string point;
};

bool lists(std::string_view commas, std::string_view word) {
  const std::string all = "," + std::string(commas) + ",";
  return all.find("," + std::string(word) + ",") != std::string::npos;
}

// `36 35 0:41 ROOT POINT rw,... shared:9 - cgroup2 SOURCE OPTIONS`. An empty controller: of v2.
std::optional<Mount> mount_of(std::string_view line, std::string_view controller) {
  const auto fields = fields_of(line);
  for (std::size_t at = 6; at + 1 < fields.size(); ++at) {
    if (fields[at] != "-") continue;
    const bool v1 = !controller.empty();
    if (fields[at + 1] != (v1 ? "cgroup" : "cgroup2")) return std::nullopt;
    if (v1 && (at + 3 >= fields.size() || !lists(fields[at + 3], controller))) return std::nullopt;
    return Mount{without_escapes(fields[3]), without_escapes(fields[4])};
  }
  return std::nullopt;
}

std::optional<ControllerPlace> place_below(std::string_view mountinfo, std::string_view ours,
                                           std::string_view controller) {
  // Of another cgroup namespace, or removed.
  if (ours.empty() || ours.starts_with("/..") || ours.ends_with(" (deleted)")) return std::nullopt;
  while (!mountinfo.empty()) {
    const auto mount = mount_of(take_line(mountinfo), controller);
    if (!mount) continue;
    const std::string root = mount->root == "/" ? "" : mount->root;
    std::string_view below = ours;
    if (!below.starts_with(root)) continue;
    below.remove_prefix(root.size());
    if (!below.empty() && below.front() != '/') continue;
    return ControllerPlace{mount->point + std::string(below == "/" ? "" : below), mount->point};
  }
  return std::nullopt;
}

std::optional<double> positive_number(std::string_view text) {
  long long number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number <= 0) return std::nullopt;
  return static_cast<double>(number);
}

// "150000 100000" or "max 100000"; in v1 two files, and -1 for no quota.
std::optional<double> quota_in(const std::string& folder) {
  std::string quota;
  std::string period;
  if (const auto both = read_whole(folder + "/cpu.max")) {
    const auto blank = both->find(' ');
    if (blank == std::string::npos) return std::nullopt;
    quota = both->substr(0, blank);
    period = both->substr(blank + 1);
  } else {
    quota = read_whole(folder + "/cpu.cfs_quota_us").value_or("");
    period = read_whole(folder + "/cpu.cfs_period_us").value_or("");
  }
  const auto time = positive_number(quota);
  const auto of = positive_number(period);
  if (!time || !of) return std::nullopt;
  return *time / *of;
}

template <class Visit>
void for_each_directory(const std::string& path, Visit visit) {
  for_each_entry(path, [&](const dirent& entry) {
    if (entry.d_type == DT_DIR && entry.d_name[0] != '.') visit(std::string(entry.d_name));
    return true;
  });
}

/// Containers may share a hierarchy, and all have a process of this number: so the name has the
/// number of the PID namespace too.
std::string prefix_of_run(pid_t owner) {
  struct stat status = {};
  const bool known = ::stat("/proc/self/ns/pid", &status) == 0;
  const std::string of_namespace = known ? std::to_string(status.st_ino) : "0";
  return std::string(kRunPrefix) + std::to_string(owner) + "-" + of_namespace + "-";
}

bool is_run_cgroup(std::string_view name) {
  return name.starts_with(kRunPrefix) && name.find('-') != std::string_view::npos;
}

/// The one this process is in if that has such a name already, or else a new one below it.
std::optional<Cgroup> run_cgroup(const std::string& nonce) {
  auto ours = Cgroup::of_this_process();
  if (!ours || is_run_cgroup(ours->name())) return ours;
  return ours->make(prefix_of_run(::getpid()) + nonce);
}

}  // namespace

std::optional<ControllerPlace> controller_place(std::string_view mountinfo,
                                                std::string_view self_cgroup,
                                                std::string_view controller) {
  std::string_view unified;
  while (!self_cgroup.empty()) {
    const std::string_view line = take_line(self_cgroup);
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) unified = path;
    if (lists(controllers, controller)) return place_below(mountinfo, path, controller);
  }
  return place_below(mountinfo, unified, "");
}

std::optional<std::string> cgroup_place(std::string_view mountinfo, std::string_view self_cgroup) {
  const auto place = controller_place(mountinfo, self_cgroup, "");
  return place ? std::optional<std::string>(place->folder) : std::nullopt;
}

std::optional<double> cpu_quota(const std::string& root) {
  const auto place = controller_place(read_whole(root + "/proc/self/mountinfo").value_or(""),
                                      read_whole(root + "/proc/self/cgroup").value_or(""), "cpu");
  if (!place) return std::nullopt;
  std::optional<double> least;
  for (std::string folder = place->folder; folder.size() >= place->mount.size();
       folder.resize(folder.rfind('/'))) {
    const auto quota = quota_in(root + folder);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

std::optional<Cgroup> Cgroup::of_this_process() {
  const char* const off = std::getenv("DDPRUN_NO_CGROUP");
  if (off != nullptr && std::string_view(off) == "1") return std::nullopt;
  auto place = cgroup_place(read_whole("/proc/self/mountinfo").value_or(""),
                            read_whole("/proc/self/cgroup").value_or(""));
  if (!place) return std::nullopt;
  return Cgroup(std::move(*place));
}

std::optional<Cgroup> Cgroup::make(const std::string& name) const {
  Cgroup made(path_ + "/" + name);
  if (::mkdir(made.path_.c_str(), 0755) != 0) return std::nullopt;
  // In a threaded part of the hierarchy a new cgroup takes no process.
  const auto type = read_whole(made.path_ + "/cgroup.type");
  const std::string procs = made.path_ + "/cgroup.procs";
  if (type == "domain\n" && ::access(procs.c_str(), W_OK) == 0) return made;
  ::rmdir(made.path_.c_str());
  return std::nullopt;
}

int Cgroup::open() const {
  return ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool Cgroup::take(pid_t process) const {
  return write_to(path_ + "/cgroup.procs", std::to_string(process));
}

void Cgroup::kill() const {
  if (write_to(path_ + "/cgroup.kill", "1")) return;
  for (const pid_t member : members()) {
    if (member > 0) ::kill(member, SIGKILL);
  }
}

bool Cgroup::populated() const {
  const auto events = read_whole(path_ + "/cgroup.events");
  if (!events) return errno != ENOENT;
  return events->find("populated 1") != std::string::npos;
}

std::vector<pid_t> Cgroup::members() const {
  std::vector<pid_t> all;
  const std::string text = read_whole(path_ + "/cgroup.procs").value_or("");
  for (std::string_view lines = text; !lines.empty();) {
    const std::string_view line = take_line(lines);
    pid_t member = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), member).ec == std::errc()) {
      all.push_back(member);
    }
  }
  for_each_directory(path_, [&](const std::string& name) {
    const auto below = Cgroup(path_ + "/" + name).members();
    all.insert(all.end(), below.begin(), below.end());
  });
  return all;
}

bool Cgroup::remove() const {
  if (::rmdir(path_.c_str()) == 0 || errno == ENOENT) return true;
  for_each_directory(path_, [&](const std::string& name) { Cgroup(path_ + "/" + name).remove(); });
  return ::rmdir(path_.c_str()) == 0 || errno == ENOENT;
}

std::vector<Cgroup> run_cgroups_of(pid_t owner) {
  std::vector<Cgroup> found;
  const auto ours = Cgroup::of_this_process();
  if (!ours) return found;
  const std::string prefix = prefix_of_run(owner);
  for_each_directory(ours->path(), [&](const std::string& name) {
    if (name.starts_with(prefix)) found.emplace_back(ours->path() + "/" + name);
  });
  return found;
}

RunCgroup::RunCgroup(const std::string& nonce)
    : ours_(Cgroup::of_this_process()), cgroup_(run_cgroup(nonce)) {}

RunCgroup::~RunCgroup() {
  if (!cgroup_ || cgroup_->path() == ours_->path()) return;
  cgroup_->remove();
  remove_stale_run_cgroups(*ours_);
}

void remove_stale_run_cgroups(const Cgroup& parent) {
  for_each_directory(parent.path(), [&](const std::string& name) {
    if (!is_run_cgroup(name)) return;
    pid_t owner = 0;
    const char* const digits = name.c_str() + kRunPrefix.size();
    if (std::from_chars(digits, name.c_str() + name.size(), owner).ec != std::errc()) return;
    if (::kill(owner, 0) == 0 || errno != ESRCH) return;
    // One of another PID namespace may be in use: the kernel removes none that is.
    const Cgroup stale(parent.path() + "/" + name);
    if (!stale.populated()) stale.remove();
  });
}

}  // namespace ddprun
