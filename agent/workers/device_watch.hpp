// DeviceWatch: before a round starts on a node where an earlier one ended, waits until the driver
// has released the GPUs of those workers, within kDeviceReleaseMax. Before the second round here
// nothing is loaded; without a driver nothing ever is. Once loaded NVML stays so: closing it may
// hang. Processes are recognised by pid, not the memory by its amount: other jobs may share a GPU.
// In some containers the driver lists pids of the host, so an unknown one is awaited once, for a
// second. Thread rule: the io_context's thread; the driver, which may hang, is asked on another
// one. Ownership: one for each process; it outlives the rounds, and a question that hangs is left
// to itself.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/events/events.hpp"
#include "agent/output/wait_line.hpp"
#include "agent/watch/device_release.hpp"
#include "base/environment.hpp"
#include "base/worker_exit.hpp"
#include "net/disk_thread.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

/// What has to be known to tell whose the processes on the GPUs of this node are.
struct DeviceQuestion {
  std::vector<WorkerName> workers{};             // of the round before, which have ended
  Round round{0};                                // that round
  std::vector<std::string> kept{};               // marks of workers that are in the next round, too
  std::optional<std::string> visible_devices{};  // CUDA_VISIBLE_DEVICES of this node
  std::string nonce{};                           // of this process, in worker_mark()
};

class DeviceWatch {
 public:
  struct Inputs {
    boost::asio::any_io_executor executor;
    const Environment& environment;
    spdlog::logger& logger;
    EventLog& events;
    std::string nonce;                           // of this process, in the marks of its workers
    std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES of the workers
    std::shared_ptr<WaitLine> waits{};           // null: no terminal shows the wait
  };
  explicit DeviceWatch(Inputs inputs);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  /// A round has ended here; its workers that have ended, with their pids. `kept`: the marks of
  /// those that the next round takes over.
  void round_over(Round round, std::vector<WorkerName> workers, std::vector<std::string> kept);
  /// Whether there may be something to wait for.
  [[nodiscard]] bool may_be_held() const;
  /// Completes when the GPUs are released, or at the limit, and says so if that took long. After
  /// `wanted` became false nothing is said, and it completes soon.
  [[nodiscard]] boost::asio::awaitable<void> wait_until_released(Round next,
                                                                 std::function<bool()> wanted);

 private:
  struct Answer {
    enum class Driver { kAnswers, kMissing, kHangs };
    Driver driver = Driver::kHangs;
    DeviceHolders holders{};
    std::vector<int> lost{};
  };
  [[nodiscard]] boost::asio::awaitable<Answer> ask(TimePoint deadline);
  [[nodiscard]] bool is_known_stranger(const DeviceHolder& holder) const;
  void warn_of_lost(const std::vector<int>& gpus);
  void end_wait(Round next, const DeviceHolders& holders, Duration waited, bool told);
  void give_up_driver(Round next, Answer::Driver driver, Duration waited);

  Inputs inputs_;
  std::optional<DiskThread> thread_{};  // from the first question on
  DeviceQuestion question_{};
  bool driver_given_up_ = false;               // it is missing, or hangs
  std::set<int> lost_{};                       // GPUs that were told
  std::set<std::pair<int, int>> strangers_{};  // GPU and pid of those that were told
};

}  // namespace ddprun
