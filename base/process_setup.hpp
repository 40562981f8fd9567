// Set-up of each ddprun process that listens or supervises. Thread rule: the main thread, before it
// creates any other.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace ddprun {

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed: otherwise a socket would
/// get that number, and what is printed would go to a peer, or a worker inherit it. Ignores SIGPIPE
/// and SIGXFSZ, so that writing to a closed console or a file at its size limit is an error of
/// write(), and resets SIGCHLD to its default, because exit statuses are lost if it is ignored.
void prepare_process();

/// The signals that this process was started with as ignored (`nohup`, `trap '' USR1`): ddprun and
/// its workers leave them so. To be called first before any disposition is changed.
[[nodiscard]] const sigset_t& ignored_at_start();

/// Unblocks `signals`: a signal mask is inherited over exec, and a blocked stop signal would never
/// arrive. Call it after their handlers are installed, so that a pending signal is handled instead
/// of ending the process.
void unblock_signals(const std::vector<int>& signals);

/// Raises the soft limit on descriptors to the hard one: each client of a server needs a
/// descriptor, and the usual soft limit of a shell is 1024. No code of ddprun loops over all
/// descriptors up to the limit. Returns the previous limit, which children get back; nullopt if it
/// cannot be read.
std::optional<rlimit> raise_descriptor_limit();

/// How many descriptors the clients of this process may take, so that `reserve` are left for its
/// own; at least half of the limit.
std::size_t descriptors_for_clients(std::size_t reserve);

}  // namespace ddprun
