// The requests of the c10d store: their commands, in both wire encodings, and their fields, which
// are views into the receive buffer, or shared Values if the bytes arrived in pieces. Pure.
//
// PyTorch 2.1 and later ("modern") and 1.9 to 2.0 ("legacy") send the same fields under different
// opcodes; the first bytes of a connection determine the dialect (wire.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/value.hpp"

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

/// Identifies a connection of the server. Never reused.
enum class ConnectionId : std::uint64_t {};

/// A received value: a view into the receive buffer, or an owned block.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::string_view bytes) : borrowed_(bytes) {}
  explicit Payload(Value block) : owned_(std::move(block)) {}

  [[nodiscard]] std::string_view view() const { return owned_ ? owned_.view() : borrowed_; }
  [[nodiscard]] bool owned() const { return static_cast<bool>(owned_); }
  /// Moves the unshared block out; null if the bytes are borrowed.
  [[nodiscard]] Value take() { return std::move(owned_); }
  /// Copies borrowed bytes into a block. Returns false if the budget does not allow it.
  [[nodiscard]] bool own(Memory& memory) {
    if (!owned_) owned_ = Value::copy_of(borrowed_, memory);
    return owned();
  }

 private:
  std::string_view borrowed_;
  Value owned_;
};

/// A list of keys in one buffer, without an allocation per key.
class KeyList {
 public:
  void clear() {
    text_.clear();
    ends_.clear();
  }
  /// Clears and frees the capacity.
  void free() {
    std::string().swap(text_);
    std::vector<std::size_t>().swap(ends_);
  }
  void add(std::string_view part) { text_.append(part); }
  void end_key() { ends_.push_back(text_.size()); }

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(text_).substr(begin, ends_[index] - begin);
  }
  [[nodiscard]] std::size_t memory() const {
    return text_.capacity() + ends_.capacity() * sizeof(std::size_t);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

/// Valid until the next call of Parser::next().
struct Request {
  Opcode op = Opcode::kPing;
  Dialect dialect = Dialect::kModern;
  std::string_view key;         // of commands with one key
  Payload value;                // SET, APPEND, QUEUE_PUSH; COMPARE_SET: expected
  Payload desired;              // COMPARE_SET
  std::int64_t number = 0;      // ADD: delta, BARRIER: world size, PING: nonce
  KeyList keys;                 // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::vector<Payload> values;  // MULTI_SET: one per key
};

}  // namespace ddprun::store
