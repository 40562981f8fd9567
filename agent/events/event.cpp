#include "agent/events/event.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "agent/report/lines.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace json = boost::json;

namespace {

std::string quoted_text(const std::string& text) {
  return json::serialize(json::string(clean_utf8(text, kEventTextBytesMax)));
}

void clean(json::value& value) {
  if (value.is_string()) {
    value = clean_utf8(std::string(value.get_string()), kEventTextBytesMax);
  } else if (value.is_array()) {
    for (json::value& item : value.get_array()) clean(item);
  } else if (value.is_object()) {
    for (auto& member : value.get_object()) clean(member.value());
  }
}

std::string padded(unsigned number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

/// Milliseconds with three decimals: a double would be written as 1.2E3.
std::string milliseconds_text(Duration duration) {
  const auto all = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  const std::string rest = std::to_string(1000 + all % 1000);
  return std::to_string(all / 1000) + "." + rest.substr(1);
}

}  // namespace

std::int64_t RunEvent::number(std::string_view field) const {
  const json::value* value = fields.if_contains(field);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

json::object clean_texts(json::object object) {
  for (auto& member : object) clean(member.value());
  return object;
}

std::string date_text(WallTime when) {
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(when));
  return std::to_string(static_cast<int>(date.year())) + "-" +
         padded(static_cast<unsigned>(date.month())) + "-" +
         padded(static_cast<unsigned>(date.day())) + "T" + time_text(when);
}

std::string event_line(const RunEvent& event, const EventStamp& stamp) {
  std::string line = "{\"n\":" + std::to_string(stamp.number) + ",\"time\":\"" +
                     date_text(stamp.time) + "\",\"ms\":" + milliseconds_text(stamp.since_start) +
                     ",\"run\":" + quoted_text(stamp.run) + ",\"host\":" + quoted_text(stamp.host) +
                     ",\"round\":" + std::to_string(event.round.value()) + ",\"event\":\"" +
                     std::string(event.name) + "\"";
  const std::string members = json::serialize(clean_texts(event.fields));
  line += members == "{}" ? members.substr(1) : "," + members.substr(1);
  return line + "\n";
}

}  // namespace ddprun
