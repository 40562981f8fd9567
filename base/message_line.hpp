// The form of ddprun's own messages. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprun {

/// `ddprun: note [CODE] text`; with an empty code `ddprun: note: text`, under the name that this
/// program was called by (program_name.hpp). The text is made printable.
[[nodiscard]] std::string note_line(std::string_view code, std::string_view text);
[[nodiscard]] std::string warning_line(std::string_view code, std::string_view text);
[[nodiscard]] std::string error_line(std::string_view code, std::string_view text);

/// The length of "ddprun: " at the beginning of an error_line() of this or of another ddprun,
/// whatever name that was called by; 0 for any other line.
[[nodiscard]] std::size_t own_error_prefix(std::string_view line);

}  // namespace ddprun
