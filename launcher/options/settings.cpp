#include "launcher/options/settings.hpp"

#include "base/assert.hpp"
#include "launcher/options/numbers.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    const auto comma = choices.find(',');
    if (choices.substr(0, comma) == value) return true;
    if (comma == std::string_view::npos) return false;
    choices.remove_prefix(comma + 1);
  }
  return false;
}

std::string listed(std::string_view choices) {
  std::string text(choices);
  for (auto comma = text.find(','); comma != std::string::npos; comma = text.find(',', comma + 2)) {
    text.replace(comma, 1, ", ");
  }
  return text;
}

}  // namespace

Result<bool> parse_switch(const std::string& variable, const std::string& value) {
  const std::string word = lower(std::string(trimmed(value)));
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  if (const auto number = parse_integer(word)) return *number != 0;
  return usage(variable + "='" + value +
               "' is neither on (1, true, yes, on) nor off (0, false, no, off)");
}

Result<Settings> Settings::merge(const ScannedLine& line, const Environment& environment) {
  Settings settings;
  for (const OptionSpec& option : all_options()) {
    settings.entry(option.id).text = std::string(option.preset);
  }
  for (const GivenOption& given : line.options) {
    const bool flag = spec_of(given.id).value == OptionValue::kFlag;
    settings.entry(given.id) = {flag ? kOn : given.value, Origin::kCommandLine, {}};
    // Each one, not only the last: a mistake stays a mistake when a later value would hide it.
    auto checked = settings.check(spec_of(given.id));
    if (!checked) return checked.error();
  }
  for (const OptionSpec& option : all_options()) {
    auto taken = settings.take_variable(option, environment);
    if (!taken) return taken.error();
    auto checked = settings.check(option);
    if (!checked) return checked.error();
  }
  return settings;
}

Result<void> Settings::take_variable(const OptionSpec& option, const Environment& environment) {
  const std::string name = variable_name(option);
  const auto found = name.empty() ? environment.end() : environment.find(name);
  if (found == environment.end() || given(option.id)) return {};
  if (option.value != OptionValue::kFlag) {
    entry(option.id) = {found->second, Origin::kVariable, {}};
    return {};
  }
  auto on = parse_switch(name, found->second);
  if (!on) return on.error();
  if (*on) entry(option.id) = {kOn, Origin::kVariable, {}};
  return {};
}

Result<void> Settings::check(const OptionSpec& option) const {
  if (!given(option.id)) return {};
  const std::string& value = text(option.id);
  const auto wrong = [&](const std::string& what) {
    return usage(named(option.id) + "='" + value + "' is not " + what);
  };
  if (option.value == OptionValue::kInteger && !parse_integer(value))
    return wrong("a whole number");
  if (option.value == OptionValue::kNumber && !parse_number(value)) return wrong("a number");
  if (option.value == OptionValue::kChoice && !is_choice(option.choices, value)) {
    return wrong("one of " + listed(option.choices));
  }
  if (option.unsupported.empty()) return {};
  return Error{ErrorKind::kUnsupported,
               shown(option.id) + " is not supported yet; " + std::string(option.unsupported)};
}

void Settings::supply(OptionId id, const std::string& value, const std::string& source) {
  DDPRUN_ASSERT(!given(id));
  entry(id) = {value, Origin::kSupplied, source};
  DDPRUN_ASSERT(check(spec_of(id)).has_value());
}

std::int64_t Settings::integer(OptionId id) const {
  DDPRUN_ASSERT(spec_of(id).value == OptionValue::kInteger);
  return parse_integer(text(id)).value_or(0);
}

double Settings::number(OptionId id) const {
  DDPRUN_ASSERT(spec_of(id).value == OptionValue::kNumber);
  return parse_number(text(id)).value_or(0);
}

std::string Settings::named(OptionId id) const {
  const OptionSpec& option = spec_of(id);
  if (entry(id).origin == Origin::kSupplied) return entry(id).source + "'s " + dashed(option);
  return entry(id).origin == Origin::kVariable ? variable_name(option) : dashed(option);
}

std::string Settings::shown(OptionId id) const {
  return spec_of(id).value == OptionValue::kFlag ? named(id) : named(id) + "=" + text(id);
}

}  // namespace ddprun
