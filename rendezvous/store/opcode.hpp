// The commands of the c10d store and their two wire encodings. Pure.
//
// PyTorch 2.1 and later ("modern") and 1.9 to 2.0 ("legacy") send the same fields under different
// opcodes; the first bytes of a connection determine the dialect (wire.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprun::store {

/// Values are the modern opcodes. kWatchKey exists only in the legacy dialect.
enum class Opcode : std::uint8_t {
  kValidate = 0,
  kSet = 1,
  kCompareSet = 2,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kGetNumKeys = 7,
  kDeleteKey = 8,
  kAppend = 9,
  kMultiGet = 10,
  kMultiSet = 11,
  kCancelWait = 12,
  kPing = 13,
  kQueuePush = 14,
  kQueuePop = 15,
  kQueueLen = 16,
  kListKeys = 17,
  kBarrier = 18,
  kWatchKey = 19,
};

enum class Dialect : std::uint8_t { kUndecided, kModern, kLegacy };

/// The fields that follow the opcode.
enum class Shape : std::uint8_t {
  kNothing,
  kU32,  // magic or nonce
  kKey,
  kKeyValue,
  kKeyValueValue,  // key, expected, desired
  kKeyNumber,      // key, i64
  kKeys,           // count, then keys
  kPairs,          // count, then key and value alternating
};

/// Decodes an opcode byte; nullopt if the dialect does not define it and the connection must be
/// closed.
[[nodiscard]] std::optional<Opcode> opcode_of(std::uint8_t byte, Dialect dialect);
[[nodiscard]] Shape shape_of(Opcode op);
/// "COMPARE_SET".
[[nodiscard]] std::string_view name_of(Opcode op);

}  // namespace ddprun::store
