#include "rendezvous/protocol/reader.hpp"

#include <boost/json/array.hpp>

#include "base/address.hpp"
#include "base/printable.hpp"

namespace ddprun::protocol {

namespace json = boost::json;

void Reader::fail(std::string_view name, std::string_view what) {
  if (!error_.empty()) return;
  error_ = "field \"" + std::string(name) + "\" " + std::string(what);
}

const json::value* Reader::find(std::string_view name) {
  if (!error_.empty()) return nullptr;
  const json::value* found = object_.if_contains(name);
  if (found == nullptr) fail(name, "is missing");
  return found;
}

std::int64_t Reader::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const json::value* found = find(name);
  if (found == nullptr) return low;
  const std::int64_t* number = found->if_int64();
  if (number == nullptr) {
    fail(name, "is not a whole number");
    return low;
  }
  if (*number < low || *number > high) {
    fail(name, "is " + std::to_string(*number) + ", allowed are " + std::to_string(low) + " to " +
                   std::to_string(high));
    return low;
  }
  return *number;
}

void Reader::flag(std::string_view name, bool& value) {
  value = false;
  if (!object_.contains(name)) return;
  const json::value* found = find(name);
  if (found == nullptr) return;
  const bool* flag = found->if_bool();
  if (flag == nullptr) return fail(name, "is neither true nor false");
  value = *flag;
}

void Reader::exit_status(ExitStatus& status) {
  int code = 0;
  int signal = 0;
  bool core_dumped = false;
  number("exit_code", code, 0, 255);
  number("signal", signal, 0, kSignalMax);
  flag("core_dumped", core_dumped);
  using Core = ExitStatus::Core;
  status = signal == 0 ? ExitStatus::exited(code)
                       : ExitStatus::signaled(signal, core_dumped ? Core::kDumped : Core::kNone);
}

void Reader::string(std::string_view name, std::string& value, std::size_t bytes_min,
                    std::size_t bytes_max) {
  const json::value* found = find(name);
  if (found == nullptr) return;
  const json::string* text = found->if_string();
  if (text == nullptr) return fail(name, "is not text");
  if (text->size() < bytes_min) return fail(name, "is empty");
  if (text->size() > bytes_max) {
    return fail(name, "is longer than " + std::to_string(bytes_max) + " bytes");
  }
  // Received text is quoted in logs, on consoles and on status pages.
  value = clean_utf8(printable(std::string_view(text->data(), text->size())), bytes_max);
}

void Reader::identifier(std::string_view name, std::string& value) {
  const json::value* found = find(name);
  string(name, value, 1, kNameBytesMax);
  // Not made printable: two different identifiers would become equal.
  const bool changed = error_.empty() && found->get_string() != value;
  if (changed) fail(name, "has control characters or is not UTF-8");
}

const json::array* Reader::array(std::string_view name, std::size_t count_max) {
  const json::value* found = find(name);
  if (found == nullptr) return nullptr;
  const json::array* items = found->if_array();
  if (items == nullptr) {
    fail(name, "is not a list");
    return nullptr;
  }
  if (items->size() > count_max) {
    fail(name, "has more than " + std::to_string(count_max) + " entries");
    return nullptr;
  }
  return items;
}

void Reader::numbers(std::string_view name, std::vector<int>& values, int high,
                     std::size_t count_max) {
  if (!object_.contains(name)) return;
  const json::array* items = array(name, count_max);
  if (items == nullptr) return;
  for (const json::value& item : *items) {
    const std::int64_t* number = item.if_int64();
    if (number == nullptr || *number < 0 || *number > high) {
      return fail(name, "holds something that is not a number up to " + std::to_string(high));
    }
    values.push_back(static_cast<int>(*number));
  }
}

void Reader::lines(std::string_view name, std::vector<std::string>& values, std::size_t count_max) {
  const json::array* items = array(name, count_max);
  if (items == nullptr) return;
  for (const json::value& item : *items) {
    const json::string* text = item.if_string();
    if (text == nullptr) return fail(name, "holds something that is not text");
    if (text->size() > kTextBytesMax) return fail(name, "holds a line that is too long");
    values.push_back(
        clean_utf8(printable(std::string_view(text->data(), text->size())), kTextBytesMax));
  }
}

void Reader::words(std::string_view name, std::vector<std::string>& values, std::size_t count_max) {
  if (!object_.contains(name)) return;
  const json::array* items = array(name, count_max);
  if (items == nullptr) return;
  for (const json::value& item : *items) {
    const json::string* text = item.if_string();
    if (text == nullptr || text->size() > kWordBytesMax) {
      return fail(name, "holds something that is not a word");
    }
    values.push_back(
        clean_utf8(printable(std::string_view(text->data(), text->size())), kWordBytesMax));
  }
}

void Reader::maybe_host(std::string_view name, std::string& value) {
  maybe_empty(name, value);
  if (!value.empty() && !can_be_host(value)) fail(name, "is no address of a host");
}

}  // namespace ddprun::protocol
