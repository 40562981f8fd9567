// Incremental parser of c10d requests in both dialects. Input may be split anywhere or contain many
// requests: each byte is examined once, parsing resumes where it stopped, and every length and
// count is checked against its limit before anything is allocated for it. Pure: no socket, no log.
//
// Ownership: request() borrows from the input that completed it until the next call of next(). When
// next() returns kNeedMore inside a request, call suspend() before the input is invalidated. Thread
// rule: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/request.hpp"

namespace ddprun::store {

/// The magic number in VALIDATE.
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
  /// Valid after kRequest.
  [[nodiscard]] Request& request() { return request_; }
  /// Valid after kRefused; the parser must not be used further.
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }

  /// True if no byte of the next request has been consumed: the parser holds no state but the
  /// dialect.
  [[nodiscard]] bool between_requests() const { return step_ == Step::kOpcode; }
  /// Copies what the unfinished request borrows. Returns false if the store is full; see refusal().
  [[nodiscard]] bool suspend();

  /// The buffer into which the rest of a long value can be received directly; empty if there is
  /// none.
  [[nodiscard]] std::span<char> direct();
  /// Commits `count` bytes received into direct(). next() completes the request.
  void direct_received(std::size_t count);

  [[nodiscard]] Dialect dialect() const { return dialect_; }
  /// Reuses a parser that is between requests for another connection.
  void serve(Dialect dialect);

 private:
  enum class Step : std::uint8_t {
    kOpcode,
    kFirstWord,  // after a first byte 00: the magic number, or the low half of a legacy SET's key
                 // length
    kFirstWordHigh,  // the high half
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
  unsigned fixed_bytes_ = 0;    // received bytes of an integer that arrives in pieces
  std::uint64_t fixed_ = 0;
  std::uint64_t length_ = 0;      // announced length of the current key or value
  std::uint64_t left_ = 0;        // bytes of it not yet received
  std::uint64_t items_left_ = 0;  // remaining items of a list
  std::uint64_t announced_ = 0;   // announced bytes of the request so far
  std::size_t values_owned_ = 0;  // MULTI_SET: number of leading values that are owned
  std::size_t held_ = 0;          // bytes charged to the budget besides Values
  std::string key_text_;          // a single key that arrived in pieces
  Value partial_;                 // a value that arrives in pieces
  Request request_;
  Refusal refusal_{Reason::kUnknownOpcode};
};

}  // namespace ddprun::store
