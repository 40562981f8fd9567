// HOST[:PORT], [V6] and [V6]:PORT. Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace ddprun {

struct Endpoint {
  std::string host;
  std::optional<std::uint16_t> port;
};

/// `name` is what the option is called in the sentence of an error.
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name);

/// A port number 0..65535.
[[nodiscard]] std::optional<std::uint16_t> parse_port(const std::string& text);

}  // namespace ddprun
