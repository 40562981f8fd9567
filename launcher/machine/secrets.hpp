// The secret of a user in the home directory, which runs over several nodes take by themselves:
// with a home that all nodes share they are closed without an option. Thread rule: the launcher's
// thread.
#pragma once

#include <string>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

namespace ddprun {

/// What --rdzv-secret-file takes in its place: no secret, whatever is at home.
inline constexpr std::string_view kNoSecret = "off";

/// `$XDG_CONFIG_HOME/ddprun/secret`, else `~/.config/ddprun/secret`; empty without a home.
[[nodiscard]] std::string home_secret_path(const Environment& environment);
/// Null: there is none. Fails as read_secret() does, also where other users may read it.
[[nodiscard]] Result<SharedSecret> read_home_secret(const Environment& environment);
/// Makes one, random, that no other user can read, in directories that no other user can enter.
/// Returns its path. Fails with kUsage if there is one, otherwise kSystem.
[[nodiscard]] Result<std::string> make_home_secret(const Environment& environment);

// Credentials of munge, which authenticates users in a cluster of Slurm: how a secret passes
// through what is not encrypted, as the input and the environment that srun brings to each node.
// libmunge is loaded when there is a credential. Thread rule: the launcher's thread, which waits
// for munged.

/// What the credential `given` contains, or `given` itself where it is none. `shown`: where it
/// comes from, for the sentence. Refuses one of another user, one that other users could open, and
/// one that is not encrypted (kUsage). Fails with kSystem where libmunge or munged is missing.
[[nodiscard]] Result<SharedSecret> open_credential(SharedSecret given, const std::string& shown);

}  // namespace ddprun
