// A JSON string from any bytes. Own code instead of Boost.JSON: this library ends up in training
// programs, which must not get a second Boost, and Boost.JSON does not check UTF-8 when it writes.
#pragma once

#include <string>

namespace ddprun {

/// `bytes` in double quotes, escaped; each byte that is not part of valid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_text(const std::string& bytes);

}  // namespace ddprun
