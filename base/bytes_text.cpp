#include "base/bytes_text.hpp"

#include <array>
#include <string_view>

namespace ddprun {

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 1;
  std::int64_t size = 1024;
  while (unit + 1 < kUnits.size() && bytes / 1024 >= size) {
    size *= 1024;
    ++unit;
  }
  const std::int64_t whole = bytes / size;
  const auto tenths =
      static_cast<std::uint64_t>(bytes % size) * 10 / static_cast<std::uint64_t>(size);
  std::string text = std::to_string(whole);
  if (tenths > 0 && whole < 1000) text += "." + std::to_string(tenths);
  return text + " " + std::string(kUnits.at(unit));
}

}  // namespace ddprun
