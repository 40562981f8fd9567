// Why the store closes a connection. The protocol has no error reply, and SET-like calls even
// succeed once after a close, so this log sentence is the only way to learn the cause. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/opcode.hpp"

namespace ddprun::store {

enum class Reason : std::uint8_t {
  kNotAStoreClient,  // the first bytes match no dialect: a port scan, HTTP, TLS, ...
  kWrongMagic,       // VALIDATE with a wrong magic number
  kUnknownOpcode,
  kKeyTooLong,          // Limits::key_bytes
  kValueTooLong,        // Limits::value_bytes
  kTooManyKeys,         // Limits::keys_per_request
  kRequestTooLong,      // Limits::request_bytes
  kStoreFull,           // Limits::store_bytes
  kShareFull,           // the connection has added more than half of Limits::store_bytes
  kAddressShareFull,    // connections of its address have added more than three quarters of it
  kTooManyStoredKeys,   // Limits::keys
  kTooManyWaits,        // Limits::waits
  kTooManyReplies,      // Limits::reply_bytes
  kTooManyConnections,  // Limits::connections
  kNotANumber,          // ADD or BARRIER on a value that is not a 64-bit number
  kSumOverflows,        // ADD or BARRIER overflows 64 bits; the value is unchanged
  kTorchrun,            // an agent of torchrun, where that is refused
  kStranger,            // an address of no node of the run
  kOtherUser,           // a process of another user of this machine
  kBusyWaiting,         // a request that cannot be served while the connection's WAIT is pending
};

struct Refusal {
  explicit Refusal(Reason why) : reason(why) {}
  Refusal(Reason why, std::uint64_t measured) : reason(why), value(measured) {}
  Reason reason;
  std::uint64_t value = 0;   // the announced or received number, if the reason has one
  std::optional<Opcode> op;  // nullopt before an opcode was decoded
};

/// "SET announces a value of 9000000 bytes, more than value_bytes = 8388608".
[[nodiscard]] std::string to_text(const Refusal& refusal, const Limits& limits);

}  // namespace ddprun::store
