// Encodes arbitrary bytes as a JSON string. Not Boost.JSON: this library is linked into training
// programs, which may contain another Boost, and Boost.JSON does not validate UTF-8 when it
// serializes.
#pragma once

#include <string>

namespace ddprun {

/// Returns `bytes` quoted and escaped; each byte that is not part of valid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_text(const std::string& bytes);

}  // namespace ddprun
