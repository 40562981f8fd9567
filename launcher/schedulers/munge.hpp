// Credentials of munge, which authenticates users in a cluster of Slurm: how a secret passes
// through what is not encrypted, as the input and the environment that srun brings to each node.
// libmunge is loaded when there is a credential. Thread rule: the launcher's thread, which waits
// for munged.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/secret.hpp"

namespace ddprun {

/// What the credential `given` contains, or `given` itself where it is none. `shown`: where it
/// comes from, for the sentence. Refuses one of another user, one that other users could open, and
/// one that is not encrypted (kUsage). Fails with kSystem where libmunge or munged is missing.
[[nodiscard]] Result<SharedSecret> open_credential(SharedSecret given, const std::string& shown);

}  // namespace ddprun
