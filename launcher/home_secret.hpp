// The secret of a user in the home directory, which runs over several nodes take by themselves:
// with a home that all nodes share they are closed without an option. Thread rule: the launcher's
// thread.
#pragma once

#include <string>

#include "base/environment.hpp"
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

}  // namespace ddprun
