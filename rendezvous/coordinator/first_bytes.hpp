// Detects the protocol of a connection from its first bytes. Pure functions.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::coordinator {

enum class Speaks {
  kUnknownYet,  // the bytes so far match several protocols
  kAgent,
  kHttp,
  kTls,    // an agent with a secret or a certificate
  kStore,  // anything else: the store refuses non-c10d bytes
};

// No request of the store's protocol starts with a letter.
inline constexpr std::array<std::pair<std::string_view, Speaks>, 9> kFirstBytes{{
    {{protocol::kMagic, sizeof(protocol::kMagic)}, Speaks::kAgent},
    {"\x16", Speaks::kTls},  // a record of a handshake; no opcode of the store
    {"GET ", Speaks::kHttp},
    {"HEAD", Speaks::kHttp},
    {"POST", Speaks::kHttp},
    {"PUT ", Speaks::kHttp},
    {"DELE", Speaks::kHttp},
    {"PATC", Speaks::kHttp},
    {"OPTI", Speaks::kHttp},
}};

[[nodiscard]] constexpr Speaks protocol_of(std::string_view first) {
  if (first.empty()) return Speaks::kUnknownYet;
  for (const auto& [bytes, speaks] : kFirstBytes) {
    if (first.starts_with(bytes)) return speaks;
    if (bytes.starts_with(first)) return Speaks::kUnknownYet;
  }
  return Speaks::kStore;
}

}  // namespace ddprun::coordinator
