#include "rendezvous/store/request.hpp"

#include <array>

namespace ddprun::store {

namespace {

struct Verb {
  std::string_view name;
  Shape shape;
};

// Indexed by Opcode.
constexpr std::array<Verb, 20> kVerbs{{
    {"VALIDATE", Shape::kU32},
    {"SET", Shape::kKeyValue},
    {"COMPARE_SET", Shape::kKeyValueValue},
    {"GET", Shape::kKey},
    {"ADD", Shape::kKeyNumber},
    {"CHECK", Shape::kKeys},
    {"WAIT", Shape::kKeys},
    {"GETNUMKEYS", Shape::kNothing},
    {"DELETE_KEY", Shape::kKey},
    {"APPEND", Shape::kKeyValue},
    {"MULTI_GET", Shape::kKeys},
    {"MULTI_SET", Shape::kPairs},
    {"CANCEL_WAIT", Shape::kNothing},
    {"PING", Shape::kU32},
    {"QUEUE_PUSH", Shape::kKeyValue},
    {"QUEUE_POP", Shape::kKey},
    {"QUEUE_LEN", Shape::kKey},
    {"LIST_KEYS", Shape::kNothing},
    {"BARRIER", Shape::kKeyNumber},
    {"WATCH_KEY", Shape::kKey},
}};

// Indexed by the byte on the wire. Released legacy clients send no opcode above 8.
constexpr std::array<Opcode, 9> kLegacy{
    Opcode::kSet,  Opcode::kCompareSet, Opcode::kGet,      Opcode::kAdd,      Opcode::kCheck,
    Opcode::kWait, Opcode::kGetNumKeys, Opcode::kWatchKey, Opcode::kDeleteKey};

}  // namespace

std::optional<Opcode> opcode_of(std::uint8_t byte, Dialect dialect) {
  if (dialect == Dialect::kLegacy) {
    if (byte < kLegacy.size()) return kLegacy[byte];
    return std::nullopt;
  }
  if (byte <= static_cast<std::uint8_t>(Opcode::kBarrier)) return static_cast<Opcode>(byte);
  return std::nullopt;
}

Shape shape_of(Opcode op) {
  return kVerbs[static_cast<std::size_t>(op)].shape;
}

std::string_view name_of(Opcode op) {
  return kVerbs[static_cast<std::size_t>(op)].name;
}

}  // namespace ddprun::store
