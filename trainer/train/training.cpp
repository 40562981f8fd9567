#include "trainer/train/training.hpp"

#include <c10/util/Exception.h>

#include "trainer/device/accelerator.hpp"
#include "trainer/error.hpp"
#include "trainer/train/loop.hpp"
#include "trainer/train/resume.hpp"

namespace ddprun::trainer {

namespace {

// Gloo and NCCL report a lost peer only in the text of the error; anything else is an error of this
// rank.
bool blames_a_peer(const std::exception& error) {
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return true;
  const std::string what = error.what();
  for (const char* sign : {"gloo", "Gloo", "NCCL", "Connection closed by peer", "reset by peer"}) {
    if (what.find(sign) != std::string::npos) return true;
  }
  return false;
}

/// One world, to the end of the run. Throws LostPeer if another rank is gone.
void run_in(Session& session, const WorkerEnvironment& world) {
  try {
    session.join(world);
    start(session);
    train(session);
    session.group->leave_together();
  } catch (const TrainerError&) {
    throw;
  } catch (const std::exception& error) {
    const auto where = "step " + std::to_string(session.state.step) + ": ";
    const auto what = first_line(error.what());
    if (!blames_a_peer(error)) throw TrainerError("failed at " + where + what);
    throw LostPeer("lost the connection to another rank at " + where + what);
  }
}

std::unique_ptr<Session> new_session(const TrainerOptions& options, const WorkerEnvironment& world,
                                     WorldSource* worlds, const MomentWatch& watch) {
  auto session = std::make_unique<Session>(options, world);
  session->worlds = worlds;
  session->watch = watch;
  return session;
}

}  // namespace

void run_training(const TrainerOptions& options, std::optional<WorkerEnvironment> world,
                  WorldSource* worlds, const MomentWatch& watch) {
  set_threads(options, world.value_or(WorkerEnvironment{}));
  std::unique_ptr<Session> session;
  if (!world) {
    // A device is chosen with the place.
    if (!built_with_cuda()) session = new_session(options, {}, worlds, watch);
    if (session) session->warm_up();
    world = worlds->next();
    if (!world) return;
    set_threads(options, *world);
  }
  if (!session) session = new_session(options, *world, worlds, watch);
  for (auto current = *world;;) {
    try {
      run_in(*session, current);
      return;
    } catch (const LostPeer&) {
      if (worlds == nullptr) throw;
      session->recovery.failed = RecoveryClock::Clock::now();
      session->leave();  // first, because it frees ranks that wait for this one
      session->recovery.left = RecoveryClock::Clock::now();
      const auto next = worlds->next();
      if (!next) throw;
      session->recovery.told = RecoveryClock::Clock::now();
      current = *next;
    }
    // What a new process has received in part is not a state to begin with.
    if (!session->whole) session = new_session(options, current, worlds, watch);
  }
}

}  // namespace ddprun::trainer
