// Limits of the link between agent and coordinator, in addition to base/limits.hpp. What exceeds a
// limit is refused with a sentence; nothing is allocated before its size is checked.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/limits.hpp"
#include "base/rank_facts.hpp"
#include "base/store_facts.hpp"
#include "base/worker_exit.hpp"

namespace ddprun::protocol {

// One frame's body; a longer one closes the connection before a byte of it is stored.
inline constexpr std::size_t kFrameBytesMax = 1024 * 1024;
// A sentence or a line of worker output; the encoder cuts longer ones, the decoder refuses them.
inline constexpr std::size_t kTextBytesMax = 4096;
// A word of a system: an operation, a state, a system call.
inline constexpr std::size_t kWordBytesMax = 64;
// Nesting of a message's JSON.
inline constexpr std::size_t kDepthMax = 8;
// Fields and items of a message, those that are not known included: each costs the reader time and
// memory before it can be ignored.
inline constexpr std::size_t kValuesMax = 16 * 1024;
// Fields of one object of a message. The hash of its table is public: of more, a peer could choose
// keys that all collide.
inline constexpr std::size_t kFieldsMax = 128;
// Agents of one run; one more is refused.
inline constexpr int kAgentsPerRunMax = kNodesMax;
// Rounds of one run; 2^30 rounds of 1 ms each last twelve days.
inline constexpr int kRoundMax = 1 << 30;
// Questions of one coordinator, which are counted from 1 again.
inline constexpr int kEchoMax = 1 << 30;
// What nodes may let each other wait for the verdict while their workers end; the workers of each
// have all of its --shutdown-timeout.
inline constexpr std::chrono::milliseconds kStopWaitMax = std::chrono::hours(1);
// Addresses of a node in its hello: more are not told. Of all nodes in a round: where they are
// more, the store of the round accepts every address.
inline constexpr std::size_t kAddressesMax = 64;
inline constexpr std::size_t kStorePeersMax = 8'192;
// Nodes that may follow a coordinator; with more losses than this at once the run ends.
inline constexpr std::size_t kSuccessorsMax = 8;
// Times of day: the end of the year 9999.
inline constexpr std::chrono::milliseconds kWallTimeMax{253'402'300'799'999};

// A control character takes six bytes in JSON. A stop has the most: a reason, a verdict with its
// text, and in it a failure with its lines, its log, its evidence, its finding, what it repeats and
// a few names.
static_assert(6 * kTextBytesMax * (kReportLinesMax + kFindingLinesMax + 11) +
                      6 * kNameBytesMax * (4 + kDisksMax) +
                      kStackGroupsMax * (6 * kNameBytesMax + 16 * kGroupRanksMax + 64) + 8192 <
                  kFrameBytesMax,
              "the largest message fits in a frame, even if every byte is escaped");

static_assert((kWordBytesMax - 16 + 3) * kStorePeersMax + 6 * kTextBytesMax +
                      6 * (3 + 2 * kSuccessorsMax) * kNameBytesMax + 8192 <
                  kFrameBytesMax,
              "so does a round with the addresses of all nodes, none of which has to be escaped");

// The failure in it is an exit: no rank in it was given up.
static_assert(6 * kTextBytesMax * (kReportLinesMax + 5) + 6 * kNameBytesMax * (5 + kDisksMax) +
                      kRankFactsMax * (6 * (kNameBytesMax + 7 * kWordBytesMax) + 1024) +
                      kStoreWaitsMax * (6 * 2 * kWordBytesMax + 256) + 8192 <
                  kFrameBytesMax,
              "so does a stopped with the facts of all ranks, the waits and one failure");

static_assert(kStorePeersMax <= kValuesMax / 2, "so do the addresses of the nodes of a round");
static_assert(kRankFactsMax * (32 + kStorePortsMax + kAccusedMax) + kStoreWaitsMax * 6 +
                      kStackGroupsMax * (4 + kGroupRanksMax) + 256 <
                  kValuesMax / 2,
              "a later version may add as many fields again");

}  // namespace ddprun::protocol
