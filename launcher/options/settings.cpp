#include "launcher/options/settings.hpp"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "agent/proc/files.hpp"
#include "base/assert.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/values.hpp"

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

namespace ddprun {

namespace {

/// Of torchrun's variables those whose empty text means the same as none there; it refuses an empty
/// number, time or switch, and an empty --role or --rdzv-id is a value.
bool empty_is_unset(const OptionSpec& option) {
  const bool text = option.value == OptionValue::kText && option.metavar != "TIME";
  return option.variable == OptionVariable::kDdprun || (text && option.preset.empty());
}

std::string with_underscores(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

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

/// What parse_config() says of a regular file of at most kConfigBytesMax bytes.
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

}  // namespace

const OptionSpec& spec_of(OptionId id) {
  DDPRUN_ASSERT(id < OptionId::kCount);
  return all_options()[static_cast<std::size_t>(id)];
}

std::string dashed(const OptionSpec& option) {
  return "--" + std::string(option.name);
}

std::string underscored(const OptionSpec& option) {
  return "--" + with_underscores(option.name);
}

std::string variable_name(const OptionSpec& option) {
  if (option.variable == OptionVariable::kNone) return "";
  std::string name = option.variable == OptionVariable::kPet ? "PET_" : "DDPRUN_";
  for (const char letter : with_underscores(option.name)) {
    name += (letter >= 'a' && letter <= 'z') ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

Result<Settings> Settings::merge(const ScannedLine& line, const Environment& environment) {
  Settings settings;
  for (const OptionSpec& option : all_options()) {
    settings.entry(option.id).text = std::string(option.preset);
  }
  for (const GivenOption& given : line.options) {
    const bool flag = spec_of(given.id).value == OptionValue::kFlag;
    settings.entry(given.id) = {flag ? kOn : given.value, Source::kCommandLine};
    // Every value, not only the last: a later one does not hide a mistake.
    if (auto checked = settings.check(spec_of(given.id)); !checked) return checked.error();
  }
  for (const OptionSpec& option : all_options()) {
    if (auto taken = settings.take_variable(option, environment); !taken) return taken.error();
    if (auto checked = settings.check(option); !checked) return checked.error();
  }
  if (auto taken = settings.take_file(); !taken) return taken.error();
  return settings;
}

Result<void> Settings::take_file() {
  const std::string& path = text(OptionId::kConfig);
  if (path.empty()) return {};
  auto values = read_config(path);
  if (!values) return values.error();
  for (FileValue& value : *values) {
    if (entry(value.id).source > Source::kFile) continue;
    entry(value.id) = {std::move(value.text), Source::kFile, std::move(value.place)};
    if (auto checked = check(spec_of(value.id)); !checked) return checked;
  }
  return {};
}

Result<void> Settings::take_variable(const OptionSpec& option, const Environment& environment) {
  const std::string name = variable_name(option);
  const auto found = name.empty() ? environment.end() : environment.find(name);
  if (found == environment.end() || given(option.id)) return {};
  if (found->second.empty() && empty_is_unset(option)) return {};
  if (option.value != OptionValue::kFlag) {
    entry(option.id) = {found->second, Source::kVariable};
    return {};
  }
  auto on = parse_switch(name, found->second);
  if (!on) return on.error();
  entry(option.id) = {*on ? kOn : "", Source::kVariable};
  return {};
}

std::optional<std::string> Settings::leave_out(OptionId id, const std::string& by) {
  const Origin left = origin(id);
  if (left.source != Source::kFile || !left.given) return std::nullopt;
  entry(id) = {std::string(spec_of(id).preset)};
  return left_out_note(left, by);
}

std::vector<std::string> Settings::leave_out_excluded() {
  std::vector<std::string> notes;
  for (const OptionSpec& option : all_options()) {
    for (const Exclusion& exclusion : option.yields_to) {
      if (exclusion.by == OptionId::kCount) break;
      const Origin by = origin(exclusion.by);
      if (by.source <= Source::kFile || !by.given) continue;
      if (exclusion.when != nullptr && !exclusion.when(*this)) continue;
      auto note = leave_out(option.id, by.shown());
      if (note) notes.push_back(std::move(*note));
    }
  }
  return notes;
}

bool Settings::given(OptionId id) const {
  const bool off = spec_of(id).value == OptionValue::kFlag && !on(id);
  return entry(id).source != Source::kDefault && !off;
}

Result<void> Settings::check(const OptionSpec& option) const {
  if (!given(option.id)) return {};
  const std::string& value = text(option.id);
  const auto wrong = [&](const std::string& what) {
    return usage(origin(option.id).quoted() + " is not " + what);
  };
  if (option.value == OptionValue::kInteger && !parse_integer(value))
    return wrong("a whole number");
  if (option.value == OptionValue::kNumber && !parse_number(value)) return wrong("a number");
  if (option.value == OptionValue::kChoice) {
    const auto choices = split_list(option.choices);
    const bool known = std::find(choices.begin(), choices.end(), value) != choices.end();
    if (!known) return wrong("one of " + joined(choices));
  }
  return {};
}

std::int64_t Settings::integer(OptionId id) const {
  DDPRUN_ASSERT(spec_of(id).value == OptionValue::kInteger);
  return parse_integer(text(id)).value_or(0);
}

Origin Settings::origin(OptionId id) const {
  const OptionSpec& option = spec_of(id);
  const Entry& found = entry(id);
  std::string name = dashed(option);
  std::string from = found.source == Source::kDefault ? "default" : "command line";
  if (found.source == Source::kVariable) from = name = variable_name(option);
  if (found.source == Source::kFile) {
    from = found.place;
    name = found.place + ": " + std::string(option.name);
  }
  return {std::move(name), text(id), given(id),      option.value == OptionValue::kFlag,
          found.source,    id,       std::move(from)};
}

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
  if (const auto is_flat = refuse_deep_keys(path, content); !is_flat) return is_flat.error();
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

}  // namespace ddprun
