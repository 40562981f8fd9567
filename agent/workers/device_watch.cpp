#include "agent/workers/device_watch.hpp"

#include <pwd.h>
#include <spdlog/logger.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "agent/devices/nvml.hpp"
#include "agent/events/run_events.hpp"
#include "agent/proc/process_table.hpp"
#include "base/clock.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// A wait that lasts longer is told.
constexpr Duration kDeviceQuietMax = std::chrono::seconds(1);
// The driver is asked again after these times, each twice the one before.
constexpr Duration kDeviceLookMin = std::chrono::milliseconds(5);
constexpr Duration kDeviceLookMax = std::chrono::milliseconds(320);

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr const char* kDriver = "/dev/nvidiactl";
constexpr Duration kAnswerMin = std::chrono::seconds(1);  // for each look, also for the last

// Where no driver is loaded, NVML would start a program to load it.
std::string library_of(const Environment& environment) {
  const auto named = environment.find("DDPRUN_NVML");
  if (named != environment.end()) return named->second;
  return ::access(kDriver, F_OK) == 0 ? kLibrary : "";
}

// Closed by the end of the process: to close it may hang with the driver, and while it is open the
// GPUs stay initialized where no daemon sees to that, so that workers start sooner.
const Nvml* open_nvml(const std::string& library) {
  static const Nvml* const nvml = Nvml::open(library).release();
  return nvml;
}

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

class DeviceLook {
 public:
  explicit DeviceLook(const DeviceQuestion& question)
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

/// Processes of this run on any GPU, others on those that its workers may use. Blocks as long as
/// the driver does.
DeviceHolders device_holders(const Nvml& nvml, const DeviceQuestion& question) {
  const DeviceLook look(question);
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

}  // namespace

DeviceWatch::DeviceWatch(Inputs inputs) : inputs_(std::move(inputs)) {
  question_.visible_devices = inputs_.visible_devices;
  question_.nonce = inputs_.nonce;
}

DeviceWatch::~DeviceWatch() {
  if (thread_) thread_->abandon();
}

void DeviceWatch::round_over(Round round, std::vector<WorkerName> workers,
                             std::vector<std::string> kept) {
  question_.kept = std::move(kept);
  question_.round = round;
  question_.workers = std::move(workers);
}

bool DeviceWatch::may_be_held() const {
  const bool hidden = question_.visible_devices == "";
  if (driver_given_up_ || hidden || question_.workers.empty()) return false;
  return !library_of(inputs_.environment).empty();
}

asio::awaitable<DeviceWatch::Answer> DeviceWatch::ask(TimePoint deadline) {
  std::function<Answer()> job = [library = library_of(inputs_.environment), question = question_] {
    const Nvml* const nvml = open_nvml(library);
    if (nvml == nullptr) return Answer{Answer::Driver::kMissing, {}, {}};
    return Answer{Answer::Driver::kAnswers, device_holders(*nvml, question), nvml->lost_gpus()};
  };
  if (!thread_) thread_.emplace(inputs_.executor);
  auto answer = co_await run_on<Answer>(*thread_, std::move(job), deadline);
  if (!answer) answer.emplace();
  co_return std::move(*answer);
}

asio::awaitable<void> DeviceWatch::wait_until_released(Round next, std::function<bool()> wanted) {
  const TimePoint began = Clock::now();
  const TimePoint deadline = began + kDeviceReleaseMax;
  if (inputs_.waits) {
    inputs_.waits->begin(WaitLine::Of::kGpus, [=] { return GpuWait{began, deadline}; });
  }
  asio::steady_timer again(inputs_.executor);
  bool told = false;
  for (Duration pause = kDeviceLookMin; wanted(); pause = std::min(2 * pause, kDeviceLookMax)) {
    // A driver that has answered so far is not said to hang because the last look began late.
    Answer answer = co_await ask(std::max(deadline, Clock::now() + kAnswerMin));
    const Duration waited = Clock::now() - began;
    if (!wanted()) break;
    if (answer.driver != Answer::Driver::kAnswers) {
      give_up_driver(next, answer.driver, waited);
      break;
    }
    warn_of_lost(answer.lost);
    std::erase_if(answer.holders,
                  [this](const DeviceHolder& holder) { return is_known_stranger(holder); });
    const DeviceHolders held = waited_for(answer.holders, waited);
    if (held.empty() || Clock::now() + pause >= deadline) {
      end_wait(next, answer.holders, waited, told);
      break;
    }
    if (!told && waited >= kDeviceQuietMax) {
      inputs_.logger.info(gpu_wait_line(held));
      told = true;
    }
    again.expires_after(pause);
    boost::system::error_code why;
    co_await again.async_wait(asio::redirect_error(asio::use_awaitable, why));
  }
  if (inputs_.waits) inputs_.waits->end(WaitLine::Of::kGpus);
}

void DeviceWatch::warn_of_lost(const std::vector<int>& gpus) {
  for (const int gpu : gpus) {
    if (lost_.insert(gpu).second) inputs_.logger.warn(gpu_lost_line(gpu));
  }
}

bool DeviceWatch::is_known_stranger(const DeviceHolder& holder) const {
  const bool may_be =
      holder.kind == DeviceHolder::Kind::kStranger || holder.kind == DeviceHolder::Kind::kHidden;
  return may_be && strangers_.count({holder.gpu, holder.pid}) != 0;
}

void DeviceWatch::end_wait(Round next, const DeviceHolders& holders, Duration waited, bool told) {
  const DeviceHolders held = waited_for(holders, waited);
  const DeviceHolders strangers = strangers_among(holders, waited);
  for (const DeviceHolder& stranger : strangers) strangers_.emplace(stranger.gpu, stranger.pid);
  if (!strangers.empty()) inputs_.logger.info(gpu_strangers_line(strangers));
  if (!held.empty()) {
    inputs_.logger.warn(gpu_held_line(held, waited, next));
  } else if (told) {
    inputs_.logger.info(gpu_released_line(waited));
  }
  const char* state = held.empty() ? "released" : "held";
  inputs_.events.record(gpu_release_event(next, state, waited, holders_text(held)));
}

void DeviceWatch::give_up_driver(Round next, Answer::Driver driver, Duration waited) {
  driver_given_up_ = true;
  if (driver == Answer::Driver::kMissing) return;
  inputs_.logger.warn(gpu_no_answer_line(waited, next));
  inputs_.events.record(gpu_release_event(next, "no_answer", waited, ""));
}

}  // namespace ddprun
