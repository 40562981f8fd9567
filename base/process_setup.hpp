// What every process of ours that listens or supervises puts in order about itself at its start.
// Thread rule: the main thread, before any other exists.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <vector>

namespace ddprun {

/// Lets `signals` in again where the parent had blocked them: a mask is inherited over exec, and a
/// blocked stop signal would never arrive. Call it once their handlers are installed, so that one
/// that was pending is handled instead of ending the process.
void unblock_signals(const std::vector<int>& signals);

/// Raises the soft limit on descriptors to the hard one: every client of a server is a descriptor,
/// and a shell's usual 1024 would be the first limit to bite. Nothing of ours loops over all
/// descriptors up to the limit. Returns the limit as it was, which children get back; none when it
/// could not be read.
std::optional<rlimit> raise_descriptor_limit();

}  // namespace ddprun
