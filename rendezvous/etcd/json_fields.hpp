// Fields of etcd's answers, and of what ddprun has written there: what is missing or of another
// type counts as absent. Pure functions.
#pragma once

#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace ddprun::etcd {

namespace json = boost::json;

/// nullptr unless `value` is an object that has the field.
inline const json::value* field(const json::value* value, std::string_view name) {
  const auto* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

inline const json::value* element(const json::value* value, std::size_t index) {
  const auto* array = value == nullptr ? nullptr : value->if_array();
  return array == nullptr || index >= array->size() ? nullptr : &(*array)[index];
}

/// A number, as text or not; 0 if there is none.
inline std::int64_t integer(const json::value* value) {
  if (value == nullptr) return 0;
  if (const auto* whole = value->if_int64()) return *whole;
  const auto* text = value->if_string();
  if (text == nullptr) return 0;
  std::int64_t parsed = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, parsed);
  return error == std::errc() && stop == end ? parsed : 0;
}

inline std::string text_of(const json::value* value) {
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

inline bool is_true(const json::value* value) {
  const auto* flag = value == nullptr ? nullptr : value->if_bool();
  return flag != nullptr && *flag;
}

inline int small(const json::value* value) {
  const std::int64_t parsed = integer(value);
  const bool fits = parsed >= 0 && parsed <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(parsed) : 0;
}

}  // namespace ddprun::etcd
