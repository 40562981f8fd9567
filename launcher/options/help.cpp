#include "launcher/options/help.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/program_name.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun {
namespace {

constexpr std::size_t kColumnsMin = 40;
constexpr std::size_t kColumnsMax = 100;  // longer lines are hard to read
constexpr std::size_t kOptionIndent = 2;
constexpr std::size_t kTextIndent = 6;
constexpr std::size_t kBriefColumns = 80;  // fewer: names and texts of -h on lines of their own
constexpr std::size_t kBriefIndent = 40;   // of its texts

class Wrapper {
 public:
  Wrapper(std::size_t indent, std::size_t columns) : indent_(indent), room_(columns - indent) {}

  void add(std::string word) {
    if (!line_.empty() && line_.size() + 1 + word.size() > room_) flush();
    while (word.size() > room_) {
      line_ = word.substr(0, room_);
      word.erase(0, room_);
      flush();
    }
    line_ += (line_.empty() || word.empty() ? "" : " ") + word;
  }
  [[nodiscard]] std::string finish() {
    if (!line_.empty()) flush();
    return std::move(text_);
  }

 private:
  void flush() {
    text_ += std::string(indent_, ' ') + line_ + "\n";
    line_.clear();
  }

  std::size_t indent_;
  std::size_t room_;
  std::string line_;
  std::string text_;
};

/// "Default: 1:1, or $PET_NNODES."
std::string defaults(const OptionSpec& option) {
  const std::string variable = variable_name(option);
  if (option.value == OptionValue::kFlag) {
    return variable.empty() ? "" : " Also: " + variable + "=1.";
  }
  std::string text = option.preset.empty() ? "" : "default " + std::string(option.preset);
  if (!variable.empty()) text += (text.empty() ? "" : ", ") + std::string("variable ") + variable;
  return text.empty() ? "" : " [" + text + "]";
}

/// "-m, --module", `others` and what the value is called.
std::string spelled(const OptionSpec& option, const std::string& others = "") {
  const std::string letter = option.letter == 0 ? "" : std::string("-") + option.letter + ", ";
  const std::string value = option.metavar.empty() ? "" : " " + std::string(option.metavar);
  return letter + dashed(option) + others + value;
}

std::string entry(const OptionSpec& option, std::size_t columns) {
  return wrapped(spellings(option), kOptionIndent, columns) +
         wrapped(description(option), kTextIndent, columns);
}

}  // namespace

std::string spellings(const OptionSpec& option) {
  const bool has_other = underscored(option) != dashed(option);
  return spelled(option, has_other ? ", " + underscored(option) : "");
}

std::string description(const OptionSpec& option) {
  return std::string(option.help) + defaults(option);
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  Wrapper wrapper(indent, columns);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto blank = rest.find(' ');
    wrapper.add(std::string(rest.substr(0, blank)));
    if (blank == std::string_view::npos) break;
    rest.remove_prefix(blank + 1);
  }
  return wrapper.finish();
}

std::string usage_of(const CommandSpec& command) {
  return std::string(command.name) + (command.arguments.empty() ? "" : " ") +
         std::string(command.arguments);
}

std::string usage_line() {
  return program_name() + " [options] training_script [training_script_args ...]";
}

std::string brief_help_text(std::size_t columns) {
  columns = std::clamp(columns, kColumnsMin, kColumnsMax);
  std::string text = wrapped(usage_line(), 0, columns) + "\n";
  text += wrapped(std::string(kIntroduction.front()), 0, columns) + "\n";
  for (const OptionSpec& option : all_options()) {
    if (option.brief.empty()) continue;
    std::string name = spelled(option);
    if (columns < kBriefColumns) {
      text += wrapped(name, kOptionIndent, columns) +
              wrapped(std::string(option.brief), kTextIndent, columns);
      continue;
    }
    name.resize(std::max(name.size(), kBriefIndent - kOptionIndent), ' ');
    text += std::string(kOptionIndent, ' ') + name + std::string(option.brief) + "\n";
  }
  return text + "\n" +
         wrapped(program_name() + " --help shows all options and commands.", 0, columns);
}

std::string help_text(std::size_t columns, std::span<const CommandSpec> commands) {
  columns = std::clamp(columns, kColumnsMin, kColumnsMax);
  std::string text = wrapped(usage_line(), 0, columns);
  for (const std::string_view paragraph : kIntroduction) {
    text += "\n" + wrapped(std::string(paragraph), 0, columns);
  }
  text += "\n" + wrapped("Commands (docs/COMMANDS.md):", 0, columns);
  for (const CommandSpec& command : commands) {
    text += wrapped("ddprun " + usage_of(command), kOptionIndent, columns) +
            wrapped(std::string(command.help), kTextIndent, columns);
  }
  for (const auto& [group, heading] : kHelpHeadings) {
    text += "\n" + wrapped(std::string(heading) + ":", 0, columns);
    for (const OptionSpec& option : all_options()) {
      if (option.group == group) text += entry(option, columns);
    }
  }
  text += "\n" + wrapped(std::string(kPrecedence) + " " + std::string(kExitCodes), 0, columns);
  return text;
}

}  // namespace ddprun
