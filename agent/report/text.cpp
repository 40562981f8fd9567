#include "agent/report/text.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>

#include "base/printable.hpp"

namespace ddprun {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string time_text(WallTime when) {
  const auto ms = duration_cast<milliseconds>(when.time_since_epoch()).count();
  const time_t seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03dZ", utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(ms % 1000));
  return text;
}

std::string who(const WorkerName& worker) {
  return "rank " + std::to_string(worker.rank.value()) + " (local " +
         std::to_string(worker.local_rank.value()) + ", pid " + std::to_string(worker.pid) +
         ") on " + printable(worker.host);
}

std::string steps_text(Rank rank, std::optional<std::int64_t> step,
                       const std::vector<std::int64_t>& others) {
  if (!step && others.empty()) return {};
  std::string text = "rank " + std::to_string(rank.value());
  text += step ? " last finished step " + std::to_string(*step) : " finished no step";
  if (others.empty()) return text;
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  text += ", others " + std::to_string(*least);
  return *least == *most ? text : text + " to " + std::to_string(*most);
}

std::string labelled(const std::string& label, const std::string& text) {
  return "\n  " + label + std::string(10 - label.size(), ' ') + printable(text);
}

}  // namespace ddprun
