// Limits of the control socket; what happens beyond a limit stands beside it.
#pragma once

#include <chrono>
#include <cstddef>

namespace ddprun::control {

// One request, a line of JSON; a longer one is refused and the connection closed.
inline constexpr std::size_t kRequestBytesMax = 4096;
// Nesting of a request's JSON.
inline constexpr std::size_t kRequestDepthMax = 4;
// From accepting a connection until its request is read, and from then until the answer is; then
// it is closed.
inline constexpr std::chrono::seconds kRequestMax{5};
// Connections served at a time; others wait in the kernel's queue.
inline constexpr std::size_t kConnectionsMax = 32;
// Connections that wait in the kernel's queue; a client beyond that waits, or gives up.
inline constexpr int kBacklog = 64;
// How long accepting pauses when the process has no descriptor left.
inline constexpr std::chrono::seconds kAcceptPause{1};
// What a client reads of what a ddprun that does not answer has written about itself.
inline constexpr std::size_t kAboutBytesMax = 64 * 1024;
// What a client reads of an answer; a longer one is an error.
inline constexpr std::size_t kAnswerBytesMax = 64 * 1024 * 1024;
// How long a client waits for the answer of one ddprun.
inline constexpr std::chrono::seconds kAnswerMax{3};

}  // namespace ddprun::control
