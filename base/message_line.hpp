// The form of ddprun's own messages. Pure, no thread rule.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

/// `ddprun: note [CODE] text`; with an empty code `ddprun: note: text`. The text is made printable.
[[nodiscard]] std::string note_line(std::string_view code, std::string_view text);
[[nodiscard]] std::string warning_line(std::string_view code, std::string_view text);
[[nodiscard]] std::string error_line(std::string_view code, std::string_view text);

}  // namespace ddprun
