#include "agent/core/error_file.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "agent/core/limits.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace json = boost::json;

namespace {

// Null when it is no JSON object with a message.
json::object parse_record(const std::string& text) {
  boost::system::error_code why;
  if (text.size() > kErrorFileBytesMax) return {};
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
