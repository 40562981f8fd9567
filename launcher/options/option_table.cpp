#include <algorithm>

#include "base/assert.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun {

namespace {

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

}  // namespace ddprun
