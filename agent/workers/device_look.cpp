#include "agent/workers/device_look.hpp"

#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "agent/proc/process_table.hpp"

namespace ddprun {

namespace {

using Kind = DeviceHolder::Kind;

constexpr ino_t kFirstPidNamespace = 0xEFFFFFFCU;  // PROC_PID_INIT_INO

// There the driver's pids are those of /proc.
bool sees_every_process() {
  struct stat its {};
  return ::stat("/proc/self/ns/pid", &its) == 0 && its.st_ino == kFirstPidNamespace;
}

std::string user_of(int pid) {
  struct stat its {};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &its) != 0) return {};
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(its.st_uid, &entry, buffer.data(), buffer.size(), &found) == 0 &&
                     found != nullptr;
  return known ? std::string(found->pw_name) : "uid " + std::to_string(its.st_uid);
}

class Look {
 public:
  explicit Look(const DeviceQuestion& question)
      : question_(question), sees_every_process_(sees_every_process()) {}

  /// None: of a worker that keeps what it holds.
  [[nodiscard]] std::optional<DeviceHolder> name(const GpuProcess& listed, int gpu) const {
    DeviceHolder holder;
    holder.gpu = gpu;
    holder.pid = listed.pid;
    holder.bytes = listed.bytes.value_or(0);
    const auto process = find_process(listed.pid);
    if (process && !process->ended && is_kept(listed.pid)) return std::nullopt;
    if (process && !process->ended) {
      holder.name = process->name;
      holder.user = user_of(listed.pid);
      holder.kind = is_of_this_run(listed.pid) ? Kind::kLeft : Kind::kStranger;
    } else if (const WorkerName* worker = worker_with(listed.pid)) {
      holder.kind = Kind::kWorker;
      holder.rank = worker->rank;
      holder.round = question_.round;
    } else {
      holder.kind = sees_every_process_ ? Kind::kEnded : Kind::kHidden;
    }
    return holder;
  }

 private:
  [[nodiscard]] const WorkerName* worker_with(int pid) const {
    const auto& workers = question_.workers;
    const auto found = std::find_if(workers.begin(), workers.end(),
                                    [pid](const WorkerName& worker) { return worker.pid == pid; });
    return found == workers.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_kept(int pid) const {
    if (question_.kept.empty()) return false;
    const std::string marks = environment_of(pid, "DDPRUN_WORKER") + ",";
    return std::any_of(question_.kept.begin(), question_.kept.end(), [&](const std::string& mark) {
      return marks.find(mark + ",") != std::string::npos;
    });
  }
  [[nodiscard]] bool is_of_this_run(int pid) const {
    return environment_of(pid, "DDPRUN_WORKER").find(question_.nonce + "/") != std::string::npos;
  }

  const DeviceQuestion& question_;
  bool sees_every_process_;
};

}  // namespace

DeviceHolders device_holders(const Nvml& nvml, const DeviceQuestion& question) {
  const Look look(question);
  const auto used = gpus_of_visible_devices(question.visible_devices, nvml.gpus());
  DeviceHolders holders;
  for (int index = 0; index < nvml.gpus().count; ++index) {
    const bool is_used = std::find(used.begin(), used.end(), index) != used.end();
    for (const GpuProcess& listed : nvml.processes_on(index)) {
      std::optional<DeviceHolder> holder = look.name(listed, nvml.number_of(index));
      if (!holder) continue;
      // CUDA may count GPUs in another order than the driver does.
      const bool is_ours = holder->kind == Kind::kWorker || holder->kind == Kind::kLeft;
      if (is_ours || is_used) holders.push_back(std::move(*holder));
    }
  }
  return holders;
}

}  // namespace ddprun
