// Writes the fields of one message into a JSON object, cleaned and cut to what a Reader accepts.
// Internal to the codec.
#pragma once

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "rendezvous/protocol/fields.hpp"
#include "rendezvous/protocol/names.hpp"

namespace ddprun::protocol {

class Writer {
 public:
  explicit Writer(boost::json::object& object) : object_(object) {}

  void number(std::string_view name, int value, int, int) { object_[name] = value; }
  void number(std::string_view name, std::uint16_t value, int, int) { object_[name] = value; }
  template <class Tag>
  void number(std::string_view name, const Strong<Tag, int>& value, int, int) {
    object_[name] = value.value();
  }
  void optional_number(std::string_view name, const std::optional<int>& value, int, int) {
    if (value) object_[name] = *value;
  }
  void amount(std::string_view name, std::int64_t value) {
    object_[name] = std::max<std::int64_t>(value, 0);
  }
  void amount(std::string_view name, const Amount& value) {
    if (value) amount(name, *value);
  }
  /// Written only if it is not 0.
  void count(std::string_view name, int value, int high) {
    if (value != 0) number(name, value, 0, high);
  }
  /// Written only if it is set.
  void flag(std::string_view name, bool value) {
    if (value) object_[name] = true;
  }
  void duration(std::string_view name, Milliseconds value) {
    object_[name] = std::clamp(value, Milliseconds(0), kDurationMax).count();
  }
  /// Written only if it is not 0.
  void span(std::string_view name, Milliseconds value) {
    if (value.count() > 0) duration(name, value);
  }
  void optional_duration(std::string_view name, const std::optional<Milliseconds>& value) {
    if (value) duration(name, *value);
  }
  void wall_time(std::string_view name, const WallTime& value) {
    object_[name] =
        std::clamp(value.time_since_epoch(), std::chrono::milliseconds(0), kWallTimeMax).count();
  }
  void exit_status(const ExitStatus& status) {
    object_["exit_code"] = status.code();
    object_["signal"] = status.signal();
    flag("core_dumped", status.dumped_core());
  }
  void name(std::string_view name, const std::string& value) { string(name, value, kNameBytesMax); }
  template <class Tag>
  void name(std::string_view name, const Strong<Tag, std::string>& value) {
    string(name, value.value(), kNameBytesMax);
  }
  void maybe_empty(std::string_view name, const std::string& value) {
    string(name, value, kNameBytesMax);
  }
  void maybe_host(std::string_view name, const std::string& value) { maybe_empty(name, value); }
  /// Written only if it is not empty.
  void short_text(std::string_view name, const std::string& value) {
    if (!value.empty()) string(name, value, kWordBytesMax);
  }
  void optional_text(std::string_view name, const std::string& value) {
    if (!value.empty()) text(name, value);
  }
  void text(std::string_view name, const std::string& value) { string(name, value, kTextBytesMax); }

  template <class Enum>
  void word(std::string_view name, Enum value) {
    object_[name] = name_of(value);
  }

  template <class Value>
  void object(std::string_view name, const Value& value) {
    boost::json::object inner;
    Writer writer(inner);
    fields(writer, value);
    object_[name] = std::move(inner);
  }
  template <class Value>
  void optional_object(std::string_view name, const std::optional<Value>& value) {
    if (value) object(name, *value);
  }
  /// Written only if something in it is.
  template <class Value>
  void part(std::string_view name, const Value& value) {
    boost::json::object inner;
    Writer writer(inner);
    fields(writer, value);
    if (!inner.empty()) object_[name] = std::move(inner);
  }
  /// The first `count_max`; written only if there are any.
  template <class Value>
  void objects(std::string_view name, const std::vector<Value>& values, std::size_t count_max) {
    boost::json::array items;
    for (const Value& value : values) {
      if (items.size() == count_max) break;
      Writer writer(items.emplace_back(boost::json::object()).get_object());
      fields(writer, value);
    }
    if (!items.empty()) object_[name] = std::move(items);
  }
  /// The first `count_max`; written only if there are any.
  void numbers(std::string_view name, const std::vector<int>& values, int, std::size_t count_max) {
    boost::json::array items;
    for (const int value : values) {
      if (items.size() == count_max) break;
      items.emplace_back(value);
    }
    if (!items.empty()) object_[name] = std::move(items);
  }
  /// The first `count_max`; written only if there are any.
  void words(std::string_view name, const std::vector<std::string>& values, std::size_t count_max) {
    boost::json::array items;
    for (const std::string& value : values) {
      if (items.size() == count_max) break;
      items.emplace_back(clean_utf8(value, kWordBytesMax));
    }
    if (!items.empty()) object_[name] = std::move(items);
  }
  /// The last `count_max` lines: the end of a traceback is the most informative.
  void lines(std::string_view name, const std::vector<std::string>& values, std::size_t count_max) {
    boost::json::array items;
    const std::size_t skipped = values.size() - std::min(values.size(), count_max);
    for (std::size_t i = skipped; i < values.size(); ++i) {
      items.emplace_back(clean_utf8(values[i], kTextBytesMax));
    }
    object_[name] = std::move(items);
  }

 private:
  void string(std::string_view name, const std::string& value, std::size_t bytes_max) {
    object_[name] = clean_utf8(value, bytes_max);
  }

  boost::json::object& object_;
};

}  // namespace ddprun::protocol
