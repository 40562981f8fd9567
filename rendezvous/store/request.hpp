// A parsed request: its fields are views into the receive buffer, or shared Values if the bytes
// arrived in pieces. Valid until the parser's next call of next(). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/opcode.hpp"
#include "rendezvous/store/value.hpp"

namespace ddprun::store {

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
