// The format of durations in all messages. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

/// "20 ms", "1.4 s", "30 s", "1 min 7 s", "5 min", "3 h 12 min": two figures or
/// units at most, rounded to the nearest; a duration configured in whole units is shown in them.
[[nodiscard]] std::string duration_text(Duration duration);

/// How long something took: "in 20 ms", with "after" "after 20 ms"; below a millisecond "at once".
[[nodiscard]] std::string span_text(std::string_view preposition, Duration duration);

/// The seconds alone, exact to the millisecond, as an option takes them: "90", "0.25".
[[nodiscard]] std::string seconds_text(Duration duration);

}  // namespace ddprun
