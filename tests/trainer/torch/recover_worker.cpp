// The trainer told of new worlds by a test instead of a launcher: one line per world on stdin,
// "ROUND RANK SIZE PORT". MOMENT=NAME:STEP makes the process end itself with SIGKILL there;
// MOMENT=NAME:STEP:leave makes it believe there that a peer is gone, :damage changes a weight.
// Before it waits for a world it prints "waits for a world", and at the end "computed N steps".
// WORLDS_GROW: no rank of a world is lost before the next one.
#include <ATen/core/grad_mode.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "trainer/error.hpp"
#include "trainer/train/session.hpp"
#include "trainer/train/training.hpp"
#include "worker_api/worker.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::trainer;

constexpr int kWaitMs = 120'000;
constexpr int kAbandonMs = 10;

class WorldsOnStdin final : public WorldSource {
 public:
  explicit WorldsOnStdin(WorkerEnvironment start) : world_(std::move(start)) {
    std::thread([this] { abandon_lost(); }).detach();
  }

  std::optional<WorkerEnvironment> next() override {
    std::printf("waits for a world\n");
    std::fflush(stdout);
    if (!readable(kWaitMs)) return std::nullopt;
    const std::lock_guard lock(reading_);
    while (readable(0)) {  // of several the last
      std::istringstream line(read_line());
      line >> world_.round >> world_.rank >> world_.world_size >> world_.master_port;
      if (!line) return std::nullopt;
    }
    return world_;
  }

  bool pending() override { return readable(0); }

 private:
  /// As the library does when ddprun pushes a round: Gloo leaves a rank to its time-out whose peer
  /// dies in the middle of a message.
  [[noreturn]] void abandon_lost() {
    while (true) {
      if (!readable(-1)) continue;
      {
        const std::lock_guard lock(reading_);
        if (pending()) static_cast<void>(abandon_sockets());
      }
      ::poll(nullptr, 0, kAbandonMs);
    }
  }

  static bool readable(int timeout_ms) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    return ::poll(&in, 1, timeout_ms) == 1;
  }
  static std::string read_line() {
    std::string line;
    for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  WorkerEnvironment world_;
  std::mutex reading_{};  // the world that is on stdin is not taken meanwhile
};

constexpr std::array kNames{"forward", "reduce",   "reduced",  "updated", "join",
                            "joined",  "transfer", "received", "verified"};

MomentWatch watch_of(const char* plan) {
  std::istringstream words(plan != nullptr ? plan : "");
  std::string name, step, action;
  std::getline(words, name, ':');
  std::getline(words, step, ':');
  std::getline(words, action);
  if (name.empty()) return {};
  return [=, done = false](Moment moment, Session& session) mutable {
    const auto now = session.state.step;
    if (done || name != kNames.at(static_cast<std::size_t>(moment)) || now < std::stoull(step))
      return;
    done = true;
    if (action == "leave") throw LostPeer("pretended");
    if (action == "damage") {
      const at::NoGradGuard no_grad;
      session.model.parameters().back().tensor[0].add_(1);  // of the bias
      return;
    }
    std::raise(SIGKILL);
  };
}

}  // namespace

int main(int argc, char** argv) {
  ignore_sigpipe();
  std::string problem;
  const auto world = read_worker_environment(problem);
  if (!world) return 2;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto options = std::get<TrainerOptions>(parse_options(arguments, {}));
    auto& worlds = *new WorldsOnStdin(*world);  // never destroyed: its thread does not end
    int steps = 0;
    const auto watch = watch_of(std::getenv("MOMENT"));
    run_training(options, *world, &worlds, [&](Moment moment, Session& session) {
      if (moment == Moment::kForward) ++steps;
      if (watch) watch(moment, session);
    });
    std::printf("computed %d steps\n", steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recover_worker: %s\n", error.what());
    return 1;
  }
  return 0;
}
