#include "agent/report/error_file.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace json = boost::json;

namespace {

// What is kept of each end of a message that is too long.
constexpr std::size_t kMessageEndBytes = 4096;
// The longest escape of a character in JSON is a surrogate pair of twelve.
constexpr std::size_t kEscapeBytesMax = 12;

/// A piece of a JSON string as text; it may begin or end within an escape.
std::string unescaped(std::string_view piece) {
  boost::system::error_code why;
  for (std::size_t first = 0; first < kEscapeBytesMax && first < piece.size(); ++first) {
    for (std::size_t last = 0; last < kEscapeBytesMax && first + last < piece.size(); ++last) {
      const std::string_view part = piece.substr(first, piece.size() - first - last);
      const json::value value = json::parse("\"" + std::string(part) + "\"", why);
      if (!why && value.is_string()) return std::string(value.get_string());
    }
  }
  return {};
}

/// The beginning of the string that follows the innermost "message" at the beginning.
std::string_view first_message(std::string_view text) {
  constexpr std::string_view kKey = "\"message\":";
  constexpr std::string_view kBlanks = " \t\r\n";
  auto at = text.substr(0, 256).find(kKey);
  for (int depth = 0; depth < 2 && at != std::string_view::npos; ++depth) {
    text.remove_prefix(at + kKey.size());
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.starts_with('"')) {
      text = text.substr(1, kMessageEndBytes);
      for (std::size_t end = 0; end < text.size(); end += text[end] == '\\' ? 2 : 1) {
        if (text[end] == '"') return text.substr(0, end);
      }
      return text;
    }
    at = text.substr(0, 256).find(kKey);
  }
  return {};
}

/// A record with the beginning of the message and the end of the callstack, which ends with the
/// message, from the first and the last bytes of a file. Null if it is not what the recorder
/// writes.
json::object abridged(const std::string& text) {
  const std::string begin = unescaped(first_message(text));
  constexpr std::string_view kAfterStack = "\", \"timestamp\": \"";
  const auto after = text.rfind(kAfterStack);
  if (begin.empty()) return {};
  std::string message = begin;
  std::string timestamp = "0";
  if (after != std::string::npos && after > kErrorFileBytesMax) {
    const std::size_t from = std::max(after - kMessageEndBytes, kErrorFileBytesMax);
    std::string_view stack = std::string_view(text).substr(from, after - from);
    constexpr std::string_view kStack = "\"py_callstack\": \"";
    const auto key = stack.rfind(kStack);
    if (key != std::string_view::npos) stack.remove_prefix(key + kStack.size());
    message += " ... " + unescaped(stack);
    const std::string_view rest = std::string_view(text).substr(after + kAfterStack.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits > 0) timestamp = rest.substr(0, digits);
  }
  return {{"message", {{"message", message}, {"extraInfo", {{"timestamp", timestamp}}}}}};
}

// Null when it is no JSON object with a message.
json::object parse_record(const std::string& text) {
  boost::system::error_code why;
  if (text.size() > kErrorFileBytesMax) return abridged(text);
  json::value value = json::parse(text, why);
  if (why || !value.is_object() || !value.get_object().contains("message")) return {};
  return std::move(value.get_object());
}

std::string string_at(const json::object& object, const char* name) {
  const json::value* found = object.if_contains(name);
  if (found == nullptr || !found->is_string()) return {};
  return std::string(found->get_string());
}

}  // namespace

ErrorFile read_error_file(const std::optional<std::string>& text) {
  if (!text) return {};
  const json::object record = parse_record(*text);
  const json::value* message = record.if_contains("message");
  ErrorFile file{ErrorFile::Form::kTorn, {}};
  if (message == nullptr) return file;
  if (message->is_string()) {
    file.error.message = std::string(message->get_string());
  } else if (message->is_object()) {
    file.error.message = string_at(message->get_object(), "message");
    const json::value* extra = message->get_object().if_contains("extraInfo");
    if (extra != nullptr && extra->is_object()) {
      file.error.callstack = string_at(extra->get_object(), "py_callstack");
    }
  }
  if (!file.error.message.empty() || !file.error.callstack.empty()) {
    file.form = ErrorFile::Form::kGood;
  }
  return file;
}

std::optional<std::string> with_error_code(const std::string& text, int code) {
  json::object record = parse_record(text);
  if (record.empty()) return std::nullopt;
  json::value& message = record.at("message");
  if (!message.is_object()) return text;
  message.get_object()["errorCode"] = code;
  return json::serialize(record);
}

std::string own_error_file(const std::string& sentence, std::int64_t epoch_seconds) {
  json::object extra;
  extra["timestamp"] = std::to_string(epoch_seconds);
  json::object message;
  message["message"] = printable(sentence);
  message["extraInfo"] = std::move(extra);
  json::object record;
  record["message"] = std::move(message);
  return json::serialize(record);
}

}  // namespace ddprun
