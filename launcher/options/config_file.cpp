#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

// Its CMake package and pkg-config file name a shared library, which would slow every start down.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// A file can violate what toml++ 3.3 asserts ("[$x]"); without the assertion it refuses that some
// lines later. With NDEBUG its assertions are assumptions of the optimizer.
#define TOML_ASSERT(condition) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "agent/proc/files.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

std::string place_of(const std::string& path, const toml::source_region& source) {
  return path + ":" + std::to_string(source.begin.line);
}

const OptionSpec* find_named(std::string_view key) {
  for (const OptionSpec& option : all_options()) {
    if (key == option.name || "--" + std::string(key) == underscored(option)) return &option;
  }
  return nullptr;
}

/// Nothing that a run is started with.
bool is_for_command_line(const OptionSpec& option) {
  return option.id == OptionId::kConfig || option.id == OptionId::kDryRun ||
         option.value == OptionValue::kAction || option.value == OptionValue::kChoiceAction;
}

const char* kind_of(const toml::node& node) {
  static constexpr std::array<std::pair<toml::node_type, const char*>, 6> kKinds{
      {{toml::node_type::table, "a table"},
       {toml::node_type::array, "an array"},
       {toml::node_type::string, "a string"},
       {toml::node_type::integer, "a whole number"},
       {toml::node_type::floating_point, "a fraction"},
       {toml::node_type::boolean, "true or false"}}};
  for (const auto& [type, name] : kKinds) {
    if (node.type() == type) return name;
  }
  return "a date or time";
}

/// A time. Of another text, an id for example, 1.10 would become 1.1.
bool takes_fraction(const OptionSpec& option) {
  return option.value == OptionValue::kNumber || option.metavar.find("TIME") != std::string::npos;
}

const char* wanted_by(const OptionSpec& option) {
  switch (option.value) {
    case OptionValue::kFlag:
      return "true or false";
    case OptionValue::kInteger:
      return "a whole number";
    case OptionValue::kNumber:
      return "a number";
    case OptionValue::kChoice:
      return "a string";
    default:
      return takes_fraction(option) ? "a string, a number or an array of them"
                                    : "a string, a whole number or an array of them";
  }
}

template <class Number>
std::string digits_of(Number number) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), end.ptr};
}

/// As it would be typed; nullopt for anything but a string or a number.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return digits_of(integer->get());
  if (const auto* number = node.as_floating_point()) return digits_of(number->get());
  return std::nullopt;
}

std::optional<std::string> joined_text(const toml::array& array) {
  std::string all;
  for (const toml::node& element : array) {
    const auto text = scalar_text(element);
    // A comma inside is one between two values to most options, and ",," to the others.
    if (!text || text->find(',') != std::string::npos) return std::nullopt;
    all += (&element == array.get(0) ? "" : ",") + *text;
  }
  return all;
}

/// nullopt where the node has not the type that the option takes.
std::optional<std::string> text_for(const OptionSpec& option, const toml::node& node) {
  if (node.is_floating_point() && !takes_fraction(option)) return std::nullopt;
  switch (option.value) {
    case OptionValue::kInteger:
      return node.is_integer() ? scalar_text(node) : std::nullopt;
    case OptionValue::kNumber:
      return node.is_number() ? scalar_text(node) : std::nullopt;
    case OptionValue::kChoice:
      return node.is_string() ? scalar_text(node) : std::nullopt;
    case OptionValue::kText:
    case OptionValue::kOptional:
      return node.is_array() ? joined_text(*node.as_array()) : scalar_text(node);
    default:
      return std::nullopt;
  }
}

Error wrong_type(const OptionSpec& option, const toml::node& node, const std::string& where) {
  if (node.is_array() && option.value == OptionValue::kText) {
    return usage(where + " has a value that is neither a string without commas nor a number; " +
                 "write the whole list as one string, as on the command line");
  }
  return usage(where + " takes " + wanted_by(option) + ", not " + kind_of(node));
}

/// Appends what one line of the file sets.
Result<void> take_entry(std::string_view key, const toml::node& node, const std::string& place,
                        std::vector<FileValue>& values) {
  const std::string where = place + ": " + std::string(key);
  const OptionSpec* option = find_named(key);
  if (node.is_table() || node.is_array_of_tables()) {
    return usage(where + " is a table; write every option as NAME = VALUE, without tables");
  }
  if (option == nullptr) {
    const std::string meant = suggestion("--" + std::string(key));
    return usage(place + ": unknown option " + std::string(key) + "; " +
                 (meant.empty() ? "ddprun --help lists all" : meant));
  }
  if (is_for_command_line(*option)) return usage(where + " belongs on the command line");
  for (const FileValue& other : values) {
    if (other.id == option->id) return usage(where + " is in " + other.place + " already");
  }
  const bool is_switch =
      option->value == OptionValue::kFlag || option->value == OptionValue::kOptional;
  if (is_switch && node.is_boolean()) {
    const std::string on = option->value == OptionValue::kFlag ? "1" : "on";
    values.push_back({option->id, node.as_boolean()->get() ? on : "", place});
    return {};
  }
  auto text = text_for(*option, node);
  if (!text) return wrong_type(*option, node, where);
  if (text->find('\0') != std::string::npos) {
    return usage(where + " has a NUL character, which no option can have");
  }
  values.push_back({option->id, std::move(*text), place});
  return {};
}

Error unreadable(const std::string& path, const std::string& why) {
  return usage("--config: " + path + " " + why);
}

/// By errno.
std::string cannot_be_read() {
  return std::string("cannot be read: ") + ::strerror(errno);
}

}  // namespace

// The parser, and what it makes, go one call deeper with each part of a key.
Result<void> refuse_deep_keys(const std::string& path, std::string_view content) {
  std::size_t line = 1;
  std::size_t parts = 0;
  for (const char one : content) {
    if (one == '.') ++parts;
    if (std::string_view("=,[{\n").find(one) != std::string_view::npos) parts = 0;
    if (one == '\n') ++line;
    if (parts > kConfigKeyPartsMax) {
      return usage(path + ":" + std::to_string(line) + ": more than " +
                   std::to_string(kConfigKeyPartsMax) + " dots in one key or text");
    }
  }
  return {};
}

Result<std::vector<FileValue>> parse_config(const std::string& path, std::string_view content) {
  const auto is_flat = refuse_deep_keys(path, content);
  if (!is_flat) return is_flat.error();
  const toml::parse_result parsed = toml::parse(content, path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return usage(place_of(path, error.source()) +
                 ": this is not TOML: " + std::string(error.description()));
  }
  std::vector<FileValue> values;
  for (const auto& [key, node] : parsed.table()) {
    auto taken = take_entry(key.str(), node, place_of(path, key.source()), values);
    if (!taken) return taken.error();
  }
  return values;
}

Result<std::vector<FileValue>> read_config(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return unreadable(path, cannot_be_read());
  if (!S_ISREG(facts.st_mode)) return unreadable(path, "is not a regular file");
  const int file = open_regular_file(path, 0);
  if (file < 0) return unreadable(path, cannot_be_read());
  std::string content(kConfigBytesMax + 1, '\0');
  std::size_t size = 0;
  ssize_t count = 1;
  while (count > 0 && size < content.size()) {
    count = ::read(file, content.data() + size, content.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  const std::string why = cannot_be_read();
  ::close(file);
  if (count < 0) return unreadable(path, why);
  if (size > kConfigBytesMax) {
    return unreadable(path, "is larger than 1 MiB, so it is no file of options");
  }
  content.resize(size);
  return parse_config(path, content);
}

}  // namespace ddprun
