// RunEvent: one transition of a run on this node, as a line of events.jsonl (docs/EVENTS.md). Pure.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

// One text in a line of events.jsonl or in result.json; a longer one is cut.
inline constexpr std::size_t kEventTextBytesMax = 4096;

struct RunEvent {
  std::string_view name{};  // a literal: "worker_exited"
  Round round{0};           // 0: of no round
  boost::json::object fields{};

  /// Of this field; 0: it has none of this name.
  [[nodiscard]] std::int64_t number(std::string_view field) const;
};

/// Where and when an event was recorded.
struct EventStamp {
  std::uint64_t number = 0;  // from 1; a gap in the file stands for lines that were lost
  WallTime time{};           // by the clock of the host
  Duration since_start{};    // of ddprun, by the monotonic clock
  std::string run{};
  std::string host{};
};

/// One JSON object and a newline. Text that is not UTF-8 is cleaned, and cut at kEventTextBytesMax,
/// so that no name of a process and no output can forge a line.
[[nodiscard]] std::string event_line(const RunEvent& event, const EventStamp& stamp);

/// The same for all texts in an object, with the same limit.
[[nodiscard]] boost::json::object clean_texts(boost::json::object object);

/// "2026-11-22T11:02:41.118Z".
[[nodiscard]] std::string date_text(WallTime when);

}  // namespace ddprun
