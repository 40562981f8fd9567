#include "rendezvous/store/wire.hpp"

#include <cstring>

namespace ddprun::store {

namespace {

// With at least this many bytes missing, a value is received directly into its block.
constexpr std::uint64_t kDirectThreshold = 16 * 1024;
// Capacity of lists that is kept for the next request; more is freed.
constexpr std::size_t kKeptListCapacity = 64 * 1024;
// Size of a length field, as counted in Limits::request_bytes.
constexpr std::uint64_t kLengthBytes = 8;

}  // namespace

Parser::Parser(const Limits& limits, Memory& memory) : limits_(limits), memory_(memory) {}

Parser::~Parser() {
  memory_.give_back(held_);
}

void Parser::serve(Dialect dialect) {
  DDPRUN_ASSERT(between_requests() || step_ == Step::kDone);
  if (step_ == Step::kDone) reset();
  dialect_ = dialect;
}

Parser::Result Parser::next(std::string_view& input) {
  if (step_ == Step::kDone) reset();
  while (step_ != Step::kDone) {
    const Progress progress = advance(input);
    if (progress == Progress::kStarved) return Result::kNeedMore;
    if (progress == Progress::kRefused) return Result::kRefused;
  }
  return Result::kRequest;
}

Parser::Progress Parser::advance(std::string_view& input) {
  switch (step_) {
    case Step::kOpcode:
      return take_opcode(input);
    case Step::kFirstWord:
    case Step::kFirstWordHigh:
      return take_first_word(input);
    case Step::kU32:
      return take_u32(input);
    case Step::kCount:
      return take_count(input);
    case Step::kKeyLength:
    case Step::kValueLength:
      return take_length(input);
    case Step::kKey:
      return take_key(input);
    case Step::kValue:
      return take_value(input);
    case Step::kNumber: {
      std::uint64_t number = 0;
      if (!take_fixed(input, 8, number)) return Progress::kStarved;
      request_.number = static_cast<std::int64_t>(number);
      step_ = Step::kDone;
      return Progress::kMoved;
    }
    case Step::kDone:
      break;
  }
  DDPRUN_ASSERT(step_ != Step::kDone);
  return Progress::kRefused;
}

Parser::Progress Parser::take_opcode(std::string_view& input) {
  if (input.empty()) return Progress::kStarved;
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  if (dialect_ == Dialect::kUndecided) {
    if (byte == 0) {
      step_ = Step::kFirstWord;
      return Progress::kMoved;
    }
    if (!opcode_of(byte, Dialect::kLegacy)) return refuse(Refusal(Reason::kNotAStoreClient, byte));
    dialect_ = Dialect::kLegacy;
  }
  const auto op = opcode_of(byte, dialect_);
  if (!op) return refuse(Refusal(Reason::kUnknownOpcode, byte));
  return begin(*op);
}

// A modern VALIDATE and a legacy SET both start with 00. Read as a length the magic number exceeds
// 1 GB, so the following word distinguishes them.
Parser::Progress Parser::take_first_word(std::string_view& input) {
  std::uint64_t word = 0;
  if (!take_fixed(input, 4, word)) return Progress::kStarved;
  if (step_ == Step::kFirstWordHigh) {
    if (word != 0) return refuse(Refusal(Reason::kNotAStoreClient, 0));
    step_ = Step::kKey;
    return Progress::kMoved;
  }
  if (word == kMagic) {
    dialect_ = Dialect::kModern;
    step_ = Step::kOpcode;
    return Progress::kMoved;
  }
  if (word == 0 || word > limits_.key_bytes) return refuse(Refusal(Reason::kNotAStoreClient, 0));
  dialect_ = Dialect::kLegacy;
  const Progress progress = begin(Opcode::kSet);
  length_ = left_ = word;
  announced_ = word + kLengthBytes;
  step_ = Step::kFirstWordHigh;
  return progress;
}

Parser::Progress Parser::begin(Opcode op) {
  request_.op = op;
  request_.dialect = dialect_;
  shape_ = shape_of(op);
  switch (shape_) {
    case Shape::kNothing:
      step_ = Step::kDone;
      break;
    case Shape::kU32:
      step_ = Step::kU32;
      break;
    case Shape::kKeys:
    case Shape::kPairs:
      step_ = Step::kCount;
      break;
    case Shape::kKey:
    case Shape::kKeyValue:
    case Shape::kKeyValueValue:
    case Shape::kKeyNumber:
      step_ = Step::kKeyLength;
      break;
  }
  return Progress::kMoved;
}

Parser::Progress Parser::take_u32(std::string_view& input) {
  std::uint64_t number = 0;
  if (!take_fixed(input, 4, number)) return Progress::kStarved;
  if (request_.op == Opcode::kValidate) {
    if (number != kMagic) return refuse(Refusal(Reason::kWrongMagic, number));
    step_ = Step::kOpcode;  // has no reply, so it is not passed on
    return Progress::kMoved;
  }
  request_.number = static_cast<std::int64_t>(number);
  step_ = Step::kDone;
  return Progress::kMoved;
}

Parser::Progress Parser::take_count(std::string_view& input) {
  std::uint64_t count = 0;
  if (!take_fixed(input, 8, count)) return Progress::kStarved;
  if (count > limits_.keys_per_request) return refuse(Refusal(Reason::kTooManyKeys, count));
  items_left_ = count;
  step_ = count == 0 ? Step::kDone : Step::kKeyLength;
  return Progress::kMoved;
}

Parser::Progress Parser::take_length(std::string_view& input) {
  std::uint64_t length = 0;
  if (!take_fixed(input, 8, length)) return Progress::kStarved;
  if (step_ == Step::kKeyLength) {
    step_ = Step::kKey;
    return announce(length, limits_.key_bytes, Reason::kKeyTooLong);
  }
  step_ = Step::kValue;
  return announce(length, limits_.value_bytes, Reason::kValueTooLong);
}

Parser::Progress Parser::announce(std::uint64_t length, std::size_t limit, Reason reason) {
  if (length > limit) return refuse(Refusal(reason, length));
  announced_ += length + kLengthBytes;
  if (announced_ > limits_.request_bytes) {
    return refuse(Refusal(Reason::kRequestTooLong, announced_));
  }
  length_ = left_ = length;
  return Progress::kMoved;
}

Parser::Progress Parser::take_key(std::string_view& input) {
  const std::string_view part = input.substr(0, left_);
  input.remove_prefix(part.size());
  left_ -= part.size();
  if (key_list()) {
    request_.keys.add(part);
  } else if (left_ == 0 && part.size() == length_) {
    request_.key = part;
  } else {
    key_text_.append(part);
  }
  if (left_ > 0) return Progress::kStarved;
  key_complete();
  return Progress::kMoved;
}

void Parser::key_complete() {
  if (!key_list() && !key_text_.empty()) request_.key = key_text_;
  switch (shape_) {
    case Shape::kKey:
      step_ = Step::kDone;
      return;
    case Shape::kKeyNumber:
      step_ = Step::kNumber;
      return;
    case Shape::kKeys:
      request_.keys.end_key();
      step_ = --items_left_ == 0 ? Step::kDone : Step::kKeyLength;
      return;
    case Shape::kPairs:
      request_.keys.end_key();
      break;
    default:
      break;
  }
  step_ = Step::kValueLength;
}

Parser::Progress Parser::take_value(std::string_view& input) {
  if (!partial_ && input.size() >= left_) {
    const std::string_view whole = input.substr(0, left_);
    input.remove_prefix(whole.size());
    value_complete(Payload(whole));
    return Progress::kMoved;
  }
  while (left_ > 0 && !input.empty()) {
    const std::span<char> room = partial_.writable(length_, memory_);
    if (room.empty()) return refuse(Refusal(Reason::kStoreFull, memory_.used() + left_));
    const std::string_view part = input.substr(0, room.size());
    std::memcpy(room.data(), part.data(), part.size());
    partial_.written(part.size());
    left_ -= part.size();
    input.remove_prefix(part.size());
  }
  if (left_ > 0) return Progress::kStarved;
  value_complete(Payload(std::move(partial_)));
  return Progress::kMoved;
}

void Parser::value_complete(Payload payload) {
  partial_ = Value();
  if (shape_ == Shape::kPairs) {
    request_.values.push_back(std::move(payload));
    step_ = --items_left_ == 0 ? Step::kDone : Step::kKeyLength;
  } else if (shape_ == Shape::kKeyValueValue && !expected_seen_) {
    request_.value = std::move(payload);
    expected_seen_ = true;
    step_ = Step::kValueLength;
  } else {
    (shape_ == Shape::kKeyValueValue ? request_.desired : request_.value) = std::move(payload);
    step_ = Step::kDone;
  }
}

bool Parser::take_fixed(std::string_view& input, unsigned width, std::uint64_t& number) {
  while (fixed_bytes_ < width) {
    if (input.empty()) return false;
    fixed_ |= std::uint64_t{static_cast<std::uint8_t>(input.front())} << (8 * fixed_bytes_);
    ++fixed_bytes_;
    input.remove_prefix(1);
  }
  number = fixed_;
  fixed_ = 0;
  fixed_bytes_ = 0;
  return true;
}

Parser::Progress Parser::refuse(Refusal refusal) {
  refusal_ = refusal;
  const bool inside = step_ != Step::kOpcode && step_ != Step::kFirstWord;
  if (inside && dialect_ != Dialect::kUndecided) refusal_.op = request_.op;
  return Progress::kRefused;
}

bool Parser::suspend() {
  if (between_requests()) return true;
  if (!key_list() && key_text_.empty() && !request_.key.empty()) {
    key_text_ = request_.key;
    request_.key = key_text_;
  }
  bool room = true;
  if (expected_seen_) room = request_.value.own(memory_);
  for (; room && values_owned_ < request_.values.size(); ++values_owned_) {
    room = request_.values[values_owned_].own(memory_);
  }
  const std::size_t now_held = sizeof(Parser) + key_text_.capacity() + request_.keys.memory() +
                               request_.values.capacity() * sizeof(Payload);
  if (room && now_held > held_) {
    room = memory_.try_take(now_held - held_);
    if (room) held_ = now_held;
  }
  if (!room) (void)refuse(Refusal(Reason::kStoreFull, memory_.used() + now_held));
  return room;
}

std::span<char> Parser::direct() {
  if (step_ != Step::kValue || left_ < kDirectThreshold) return {};
  return partial_.writable(length_, memory_);
}

void Parser::direct_received(std::size_t count) {
  DDPRUN_ASSERT(count <= left_);
  partial_.written(count);
  left_ -= count;
}

void Parser::reset() {
  memory_.give_back(held_);
  held_ = 0;
  step_ = Step::kOpcode;
  expected_seen_ = false;
  announced_ = 0;
  values_owned_ = 0;
  key_text_.clear();
  request_.key = {};
  request_.value = Payload();
  request_.desired = Payload();
  request_.values.clear();
  request_.keys.clear();
  if (request_.keys.memory() > kKeptListCapacity) request_.keys.free();
  if (request_.values.capacity() * sizeof(Payload) > kKeptListCapacity) {
    std::vector<Payload>().swap(request_.values);
  }
}

}  // namespace ddprun::store
