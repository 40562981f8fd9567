// Makes any bytes fit for JSON: worker output and host names come from outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun::protocol {

/// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD, cut to at most
/// `bytes_max` bytes on a character boundary (a cut one ends in "…").
[[nodiscard]] std::string clean_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace ddprun::protocol
