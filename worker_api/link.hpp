// The link of this process to its agent: made by the first call that needs it. One that the agent
// has refused or closed is made again, with the same page. Thread rule: any thread. Ownership: the
// process's; a forked process shares page and socket. Errors: no page, or one that no agent reads;
// it is tried again, at most once a second, after 1, 2, 4 ... 32 s if the agent closes each link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

/// The page, or null: there is no ddprun, or it could not be reached so far. Without a system call
/// but for one look a second at the link, and an attempt to make it again.
[[nodiscard]] LinkPage* page();
/// The same without an attempt to connect. Async-signal-safe.
[[nodiscard]] LinkPage* known_page();
/// Sends a packet if there is room for it. Returns 0, ENOTCONN or EAGAIN.
int send_packet(PacketKind kind, const void* content = nullptr, std::size_t size = 0);
/// The connection of a page, -1: none. Only the watcher reads it (watcher.cpp): without one there,
/// readable means that the page has changed.
[[nodiscard]] int link_socket();
/// Of a page: whether the agent has closed the link.
[[nodiscard]] bool link_has_ended();
/// From now on only renew_link() makes it again: the agent has to know that the worker survives.
void keep_link();
/// Of the worker itself, after keep_link(): whether its agent may accept another link.
[[nodiscard]] bool may_renew_link();
/// In the place of a link that has ended, if it may; says that the worker survives.
void renew_link();
/// Whether this process is the worker itself, and not one below it. Connects.
[[nodiscard]] bool is_worker_itself();
inline constexpr std::int64_t kMillisecond = 1'000'000;
// Between attempts while the agent closes each link, twice as long each time: it looks up who
// connects.
inline constexpr std::int64_t kPauseMin = 1000 * kMillisecond;
inline constexpr std::int64_t kPauseMax = 32 * kPauseMin;
/// As packets and the store have numbers.
template <class Integer>
std::array<std::uint8_t, sizeof(Integer)> little_endian(Integer value) {
  std::array<std::uint8_t, sizeof(Integer)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return bytes;
}
template <class Integer>
Integer from_little_endian(const std::uint8_t* bytes) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i)
    value |= static_cast<Integer>(Integer{bytes[i]} << (8 * i));
  return value;
}
/// Nanoseconds of CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t monotonic_now();

}  // namespace ddprun::worker_link
