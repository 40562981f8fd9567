// Encodes c10d requests as a client sends them. For tests and benchmarks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/store/request.hpp"

namespace ddprun::store::requests {

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t at = 0; at < sizeof(Number); ++at) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * at) & 0xff);
  }
  return bytes;
}

inline std::string u32(std::uint32_t number) {
  return little_endian(number);
}
inline std::string i64(std::int64_t number) {
  return little_endian(number);
}
inline std::string u64(std::uint64_t number) {
  return little_endian(number);
}
inline std::string text(std::string_view bytes) {
  return u64(bytes.size()).append(bytes);
}

inline std::string op(Opcode code) {
  return std::string(1, static_cast<char>(code));
}
inline std::string byte(int value) {
  return std::string(1, static_cast<char>(value));
}

using Keys = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

inline std::string keys(const Keys& names) {
  std::string bytes = u64(names.size());
  for (const std::string& name : names) bytes += text(name);
  return bytes;
}

inline std::string validate() {
  return op(Opcode::kValidate) + u32(0x3C85F7CE);
}
inline std::string ping(std::uint32_t nonce) {
  return op(Opcode::kPing) + u32(nonce);
}
inline std::string set(std::string_view key, std::string_view value) {
  return op(Opcode::kSet) + text(key) + text(value);
}
inline std::string get(std::string_view key) {
  return op(Opcode::kGet) + text(key);
}
inline std::string add(std::string_view key, std::int64_t delta) {
  return op(Opcode::kAdd) + text(key) + i64(delta);
}
inline std::string compare_set(std::string_view key, std::string_view expected,
                               std::string_view desired) {
  return op(Opcode::kCompareSet) + text(key) + text(expected) + text(desired);
}
inline std::string check(const Keys& names) {
  return op(Opcode::kCheck) + keys(names);
}
inline std::string wait(const Keys& names) {
  return op(Opcode::kWait) + keys(names);
}
inline std::string get_num_keys() {
  return op(Opcode::kGetNumKeys);
}
inline std::string delete_key(std::string_view key) {
  return op(Opcode::kDeleteKey) + text(key);
}
inline std::string append(std::string_view key, std::string_view value) {
  return op(Opcode::kAppend) + text(key) + text(value);
}
inline std::string multi_get(const Keys& names) {
  return op(Opcode::kMultiGet) + keys(names);
}
inline std::string multi_set(const Pairs& pairs) {
  std::string bytes = op(Opcode::kMultiSet) + u64(pairs.size());
  for (const auto& [key, value] : pairs) bytes += text(key) + text(value);
  return bytes;
}
inline std::string cancel_wait() {
  return op(Opcode::kCancelWait);
}
inline std::string queue_push(std::string_view name, std::string_view value) {
  return op(Opcode::kQueuePush) + text(name) + text(value);
}
inline std::string queue_pop(std::string_view name) {
  return op(Opcode::kQueuePop) + text(name);
}
inline std::string queue_len(std::string_view name) {
  return op(Opcode::kQueueLen) + text(name);
}
inline std::string list_keys() {
  return op(Opcode::kListKeys);
}
inline std::string barrier(std::string_view key, std::int64_t world) {
  return op(Opcode::kBarrier) + text(key) + i64(world);
}

/// "01 0a ff" as bytes.
inline std::string hex(std::string_view digits) {
  std::string bytes;
  int high = -1;
  for (const char digit : digits) {
    if (digit == ' ' || digit == '\n') continue;
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    if (high < 0) {
      high = value;
    } else {
      bytes += static_cast<char>(high * 16 + value);
      high = -1;
    }
  }
  return bytes;
}

}  // namespace ddprun::store::requests
