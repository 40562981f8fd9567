// Where the control sockets of a user's runs on this machine are: a directory that no other user
// can enter. Thread rule: none; the calls may take as long as the file system does. Errors: kSystem
// with the directory and the reason.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun::control {

/// A socket that listens under a name; the file is removed by remove().
struct Listener {
  int descriptor = -1;  // the caller's
  std::string path;
};

/// $XDG_RUNTIME_DIR/ddprun if it can be made, else /tmp/ddprun-UID, or as
/// private_directory_at(). `about` is for those who find
/// the socket when it does not answer; it stays out if there is no room for it.
[[nodiscard]] Result<Listener> listen(const Environment& environment, const std::string& about);
void remove(const std::string& path);
/// What the ddprun of a socket wrote about itself; empty: nothing.
[[nodiscard]] std::string read_about(const std::string& path);
/// The process that serves a socket; 0: its name does not say.
[[nodiscard]] pid_t owner_of(const std::string& path);

/// The paths of all sockets in the directories of this user, also where XDG_RUNTIME_DIR was set
/// when a run was started and is not set now.
[[nodiscard]] std::vector<std::string> list_sockets(const Environment& environment);

/// A ddprun that was killed before its socket listened leaves PID-NONCE`suffix`.new.
[[nodiscard]] bool is_unfinished_of_ended(const std::string& name, const std::string& suffix);

/// Connects within `seconds`: the descriptor, which is the caller's, or -1 with errno. The file of
/// a ddprun that was killed is removed.
[[nodiscard]] int connect(const std::string& path, int seconds);

/// Whether `directory` is one, belongs to this user and is closed to all others; the sentence says
/// what is wrong.
[[nodiscard]] Result<void> check_private(const std::string& directory);

/// `wanted`, made if it is not there. Where another user has made it, or it is not closed to
/// others, one that begins with `wanted`-: an older one of this user, or a new one of a random
/// name, which no other user can take beforehand.
[[nodiscard]] Result<std::string> private_directory_at(const std::string& wanted);

}  // namespace ddprun::control
