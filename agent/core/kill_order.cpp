#include "agent/core/kill_order.hpp"

#include <signal.h>

#include "agent/core/limits.hpp"
#include "base/assert.hpp"

namespace ddprun {

StopOrder next_stop_order(StopStage reached, const StopRule& rule) {
  DDPRUN_ASSERT(reached != StopStage::kAbandoned);
  switch (reached) {
    case StopStage::kNone:
      return {StopStage::kSignalled, rule.signal, rule.grace};
    case StopStage::kSignalled:
      if (rule.stacks && rule.grace > Duration::zero()) {
        return {StopStage::kAsked, 0, kStacksBeforeKill};
      }
      [[fallthrough]];
    case StopStage::kAsked:
      return {StopStage::kKilled, SIGKILL, kWaitAfterKill};
    case StopStage::kKilled:
    case StopStage::kAbandoned:
      break;
  }
  return {StopStage::kAbandoned, 0, Duration::zero()};
}

bool is_forced_stop(int signal) {
  return signal != SIGHUP;
}

}  // namespace ddprun
