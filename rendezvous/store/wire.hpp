// The incremental parser of c10d requests, both dialects. Bytes may come cut anywhere, or many
// requests at once: each byte is looked at once, parsing goes on where it stopped, and every length
// and count is checked against its limit before anything is allocated for it. Pure: no socket, no
// log.
//
// Ownership: request() borrows from the input that completed it, until the next call of next().
// When next() says kNeedMore inside a request, call suspend() before the input goes away. One
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/opcode.hpp"
#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/request.hpp"

namespace ddprun::store {

/// What VALIDATE carries.
inline constexpr std::uint32_t kMagic = 0x3C85F7CE;

class Parser {
 public:
  enum class Result { kNeedMore, kRequest, kRefused };

  /// Both must outlive the parser.
  Parser(const Limits& limits, Memory& memory);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// Consumes bytes from the front of `input` up to the end of one request.
  [[nodiscard]] Result next(std::string_view& input);
  /// After kRequest.
  [[nodiscard]] Request& request() { return request_; }
  /// After kRefused; the parser is of no further use.
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }

  /// True when no byte of a further request has been consumed: nothing is kept here but the
  /// dialect.
  [[nodiscard]] bool between_requests() const { return step_ == Step::kOpcode; }
  /// Takes into own memory what the unfinished request borrows. False: the store is full, see
  /// refusal().
  [[nodiscard]] bool suspend();

  /// Where the rest of a long value may be received to directly; empty where that does not apply.
  [[nodiscard]] std::span<char> direct();
  /// That many bytes of direct() were received. next() completes the request.
  void direct_received(std::size_t count);

  [[nodiscard]] Dialect dialect() const { return dialect_; }
  /// Makes a parser that stands between requests serve another connection.
  void serve(Dialect dialect);

 private:
  enum class Step : std::uint8_t {
    kOpcode,
    kFirstWord,      // after a first byte 00: the magic, or half the key length of a legacy SET
    kFirstWordHigh,  // the other half
    kU32,
    kNumber,
    kCount,
    kKeyLength,
    kKey,
    kValueLength,
    kValue,
    kDone,
  };
  enum class Progress { kMoved, kStarved, kRefused };

  Progress advance(std::string_view& input);
  Progress take_opcode(std::string_view& input);
  Progress take_first_word(std::string_view& input);
  Progress take_u32(std::string_view& input);
  Progress take_count(std::string_view& input);
  Progress take_length(std::string_view& input);
  Progress take_key(std::string_view& input);
  Progress take_value(std::string_view& input);
  bool take_fixed(std::string_view& input, unsigned width, std::uint64_t& number);
  Progress begin(Opcode op);
  Progress announce(std::uint64_t length, std::size_t limit, Reason reason);
  Progress refuse(Refusal refusal);
  void key_complete();
  void value_complete(Payload payload);
  void reset();
  [[nodiscard]] bool key_list() const { return shape_ == Shape::kKeys || shape_ == Shape::kPairs; }

  const Limits& limits_;
  Memory& memory_;
  Dialect dialect_ = Dialect::kUndecided;
  Step step_ = Step::kOpcode;
  Shape shape_ = Shape::kNothing;
  bool expected_seen_ = false;  // COMPARE_SET: the next value is `desired`
  unsigned fixed_bytes_ = 0;    // of an integer that came in pieces
  std::uint64_t fixed_ = 0;
  std::uint64_t length_ = 0;      // announced, of the current key or value
  std::uint64_t left_ = 0;        // of it still to come
  std::uint64_t items_left_ = 0;  // of a list
  std::uint64_t announced_ = 0;   // bytes of the whole request so far
  std::size_t values_owned_ = 0;  // MULTI_SET: so many at the front borrow nothing
  std::size_t held_ = 0;          // taken from the budget besides Values
  std::string key_text_;          // a single key that came in pieces
  Value partial_;                 // a value that comes in pieces
  Request request_;
  Refusal refusal_{Reason::kUnknownOpcode};
};

}  // namespace ddprun::store
