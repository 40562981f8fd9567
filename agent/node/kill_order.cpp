#include "agent/node/kill_order.hpp"

#include <signal.h>

#include "base/assert.hpp"
#include "base/limits.hpp"
#include "base/pipe_end.hpp"

namespace ddprun {

StopOrder next_stop_order(StopStage reached, const StopRule& rule) {
  DDPRUN_ASSERT(reached != StopStage::kAbandoned);
  switch (reached) {
    case StopStage::kNone:
      if (rule.spare > Duration::zero()) return {StopStage::kSpared, 0, rule.spare};
      [[fallthrough]];
    case StopStage::kSpared:
      return {StopStage::kSignalled, rule.signal, rule.grace};
    case StopStage::kSignalled:
      if (rule.stacks && rule.grace > Duration::zero()) {
        return {StopStage::kAsked, 0, kStacksBeforeKill};
      }
      [[fallthrough]];
    case StopStage::kAsked:
      return {StopStage::kKilled, SIGKILL, kPipeEndWait};
    case StopStage::kKilled:
      return {StopStage::kSwept, SIGKILL, kWaitAfterKill};
    case StopStage::kSwept:
    case StopStage::kAbandoned:
      break;
  }
  return {StopStage::kAbandoned, 0, Duration::zero()};
}

bool is_forced_stop(int signal) {
  return signal != SIGHUP;
}

}  // namespace ddprun
