// What every process of ours that listens or supervises puts in order about itself at its start.
// Thread rule: the main thread, before any other exists.
#pragma once

#include <vector>

namespace ddprun {

/// Lets `signals` in again where the parent had blocked them: a mask is inherited over exec, and a
/// blocked stop signal would never arrive. Call it once their handlers are installed, so that one
/// that was pending is handled instead of ending the process.
void unblock_signals(const std::vector<int>& signals);

}  // namespace ddprun
