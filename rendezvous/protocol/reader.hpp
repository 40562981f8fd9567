// Reads the fields of one JSON object into a message; after the first error all later fields are
// skipped. Internal to the codec.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "rendezvous/protocol/fields.hpp"
#include "rendezvous/protocol/names.hpp"

namespace ddprun::protocol {

class Reader {
 public:
  Reader(const boost::json::object& object, std::string& error) : object_(object), error_(error) {}

  void number(std::string_view name, int& value, int low, int high) {
    value = static_cast<int>(integer(name, low, high));
  }
  void number(std::string_view name, std::uint16_t& value, int low, int high) {
    value = static_cast<std::uint16_t>(integer(name, low, high));
  }
  template <class Tag>
  void number(std::string_view name, Strong<Tag, int>& value, int low, int high) {
    value = Strong<Tag, int>(static_cast<int>(integer(name, low, high)));
  }
  void optional_number(std::string_view name, std::optional<int>& value, int low, int high) {
    if (object_.contains(name)) value = static_cast<int>(integer(name, low, high));
  }
  /// Bytes or a count, without an upper bound.
  void amount(std::string_view name, std::int64_t& value) {
    value = integer(name, 0, std::numeric_limits<std::int64_t>::max());
  }
  void amount(std::string_view name, Amount& value) {
    if (object_.contains(name)) amount(name, value.emplace());
  }
  void flag(std::string_view name, bool& value);
  /// 0 where it is absent.
  void count(std::string_view name, int& value, int high) {
    if (object_.contains(name)) number(name, value, 0, high);
  }
  void count(std::string_view name, std::uint16_t& value, int high) {
    if (object_.contains(name)) number(name, value, 0, high);
  }
  void duration(std::string_view name, Milliseconds& value) {
    value = Milliseconds(integer(name, 0, kDurationMax.count()));
  }
  void span(std::string_view name, Milliseconds& value) {
    if (object_.contains(name)) duration(name, value);
  }
  void optional_duration(std::string_view name, std::optional<Milliseconds>& value) {
    if (object_.contains(name)) duration(name, value.emplace());
  }
  void wall_time(std::string_view name, WallTime& value) {
    value = WallTime(std::chrono::milliseconds(integer(name, 0, kWallTimeMax.count())));
  }
  /// One of "exit_code" and "signal" is 0.
  void exit_status(ExitStatus& status);
  void name(std::string_view name, std::string& value) { string(name, value, 1, kNameBytesMax); }
  template <class Tag>
  void name(std::string_view name, Strong<Tag, std::string>& value) {
    std::string text;
    identifier(name, text);
    value = Strong<Tag, std::string>(std::move(text));
  }
  void maybe_empty(std::string_view name, std::string& value) {
    string(name, value, 0, kNameBytesMax);
  }
  /// The address of a host, or empty.
  void maybe_host(std::string_view name, std::string& value);
  void short_text(std::string_view name, std::string& value) {
    if (object_.contains(name)) string(name, value, 0, kWordBytesMax);
  }
  void optional_text(std::string_view name, std::string& value) {
    if (object_.contains(name)) text(name, value);
  }
  void text(std::string_view name, std::string& value) { string(name, value, 0, kTextBytesMax); }

  template <class Enum>
  void word(std::string_view name, Enum& value) {
    std::string text;
    string(name, text, 1, kNameBytesMax);
    if (!error_.empty()) return;
    for (const auto& [key, word] : names_of(value)) {
      if (word == text) {
        value = key;
        return;
      }
    }
    fail(name, "is not a word this version knows");
  }

  template <class Value>
  void object(std::string_view name, Value& value) {
    const boost::json::value* found = find(name);
    if (found == nullptr) return;
    const boost::json::object* inner = found->if_object();
    if (inner == nullptr) return fail(name, "is not an object");
    Reader reader(*inner, error_);
    fields(reader, value);
  }
  template <class Value>
  void optional_object(std::string_view name, std::optional<Value>& value) {
    if (object_.contains(name)) object(name, value.emplace());
  }
  /// A part of a message that is absent where it says nothing.
  template <class Value>
  void part(std::string_view name, Value& value) {
    if (object_.contains(name)) object(name, value);
  }
  template <class Value>
  void objects(std::string_view name, std::vector<Value>& values, std::size_t count_max) {
    if (!object_.contains(name)) return;
    const boost::json::array* items = array(name, count_max);
    if (items == nullptr) return;
    for (const boost::json::value& item : *items) {
      const boost::json::object* inner = item.if_object();
      if (inner == nullptr) return fail(name, "holds something that is not an object");
      Reader reader(*inner, error_);
      fields(reader, values.emplace_back());
    }
  }
  /// From 0 to `high`.
  void numbers(std::string_view name, std::vector<int>& values, int high, std::size_t count_max);
  void lines(std::string_view name, std::vector<std::string>& values, std::size_t count_max);
  /// Absent where there are none.
  void words(std::string_view name, std::vector<std::string>& values, std::size_t count_max);

 private:
  [[nodiscard]] const boost::json::value* find(std::string_view name);
  [[nodiscard]] const boost::json::array* array(std::string_view name, std::size_t count_max);
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high);
  void identifier(std::string_view name, std::string& value);
  void string(std::string_view name, std::string& value, std::size_t bytes_min,
              std::size_t bytes_max);
  void fail(std::string_view name, std::string_view what);

  const boost::json::object& object_;
  std::string& error_;
};

}  // namespace ddprun::protocol
