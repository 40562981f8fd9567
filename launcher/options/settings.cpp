#include "launcher/options/settings.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "launcher/options/values.hpp"

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
    auto checked = settings.check(spec_of(given.id));
    if (!checked) return checked.error();
  }
  for (const OptionSpec& option : all_options()) {
    auto taken = settings.take_variable(option, environment);
    if (!taken) return taken.error();
    auto checked = settings.check(option);
    if (!checked) return checked.error();
  }
  auto taken = settings.take_file();
  if (!taken) return taken.error();
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
    auto checked = check(spec_of(value.id));
    if (!checked) return checked;
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

}  // namespace ddprun
