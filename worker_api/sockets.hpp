// The sockets of a group of ranks: noted while the group is made, shut when its round is over. They
// are known by inode, not by number, which another file may have by then. Thread rule: any thread.
#pragma once

namespace ddprun::worker_link {

/// Whether a thread is between begin and end.
[[nodiscard]] bool notes_sockets();
/// While a round is pending: shuts what was noted, and what was made since begin.
void abandon_pending();

}  // namespace ddprun::worker_link
