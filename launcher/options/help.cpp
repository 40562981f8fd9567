#include "launcher/options/help.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/program_name.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/values.hpp"

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

bool takes_value(const OptionSpec& option) {
  return option.value != OptionValue::kFlag && option.value != OptionValue::kAction &&
         option.value != OptionValue::kOptional;
}

bool names_directory(const OptionSpec& option) {
  return option.metavar == "DIR";
}

bool names_file(const OptionSpec& option) {
  return option.metavar == "FILE";
}

/// "cpu gpu auto": the choices, or what the metavar has in lower case.
std::string words_of(const OptionSpec& option) {
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (!option.choices.empty()) {
    for (const std::string& choice : split_list(option.choices)) add(choice);
    return text;
  }
  std::string alternatives(option.metavar);
  std::erase_if(alternatives, [](char c) { return c == '[' || c == '=' || c == ']'; });
  std::replace(alternatives.begin(), alternatives.end(), '|', ',');
  for (const std::string& word : split_list(alternatives)) {
    const bool literal = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    });
    if (literal) add(word);
  }
  return text;
}

/// "-r --redirects", separated by `between`.
std::string spellings_of(const OptionSpec& option, const std::string& between) {
  std::string text = option.letter == 0 ? "" : std::string("-") + option.letter + between;
  text += dashed(option);
  if (underscored(option) != dashed(option)) text += between + underscored(option);
  return text;
}

using Commands = std::span<const CommandSpec>;

std::string command_names(Commands commands) {
  std::string text;
  for (const CommandSpec& command : commands) {
    text += (text.empty() ? "" : " ") + std::string(command.name);
  }
  return text;
}

/// "--json --no-wait": of a command that is not followed by the options of a run.
std::string options_of(const CommandSpec& command) {
  std::string text;
  std::istringstream words{std::string(command.arguments)};
  for (std::string word; words >> word;) {
    if (!word.starts_with("[--")) continue;
    text += (text.empty() ? "" : " ") + word.substr(1, word.size() - 2);
  }
  return text;
}

bool takes_run_options(const CommandSpec& command) {
  return command.arguments.find("[OPTIONS]") != std::string_view::npos;
}

bool takes_directories(const CommandSpec& command) {
  return command.arguments.starts_with("DIR");
}

/// The first sentence of the help, without what a shell would read inside single quotes.
std::string summary(const OptionSpec& option) {
  std::string text(option.help.substr(0, option.help.find(". ")));
  if (text.ends_with('.')) text.pop_back();
  std::erase_if(text, [](char c) { return c == '\'' || c == '\\'; });
  return text;
}

constexpr std::string_view kBash =
    R"(# bash completion of NAME, printed by NAME --print-completion bash
_FUNCTION() {
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
  local at=1 words="" attached=""
  if [[ $word == "=" ]]; then
    word="" attached=1
  elif [[ $option == "=" ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]} attached=1
  fi
OF_COMMANDS  # Behind the script everything is the script's.
  while ((at < COMP_CWORD)); do
    case ${COMP_WORDS[at]} in
    --) return ;;
    VALUED) [[ ${COMP_WORDS[at + 1]} == "=" ]] && at=$((at + 1)); at=$((at + 2)) ;;
    =) at=$((at + 2)) ;;
    -*) at=$((at + 1)) ;;
    *) return ;;
    esac
  done
  case $option in
VALUES  esac
  if [[ $word == -*_* ]]; then
    words="UNDERSCORED"
  elif [[ $word == -* ]]; then
    words="DASHED"
  elif ((COMP_CWORD == 1)); then
    words="COMMANDS"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"
    [[ $word == -* ]] || compgen -f -- "$word")
}
complete -o filenames -o bashdefault -F _FUNCTION NAME
)";

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

/// What follows a command, unless there is a program of that name.
std::string bash_commands(Commands commands) {
  if (commands.empty()) return "";
  std::string text =
      "  if ((COMP_CWORD > 1)) && [[ ! -f ${COMP_WORDS[1]} ]]; then\n    case ${COMP_WORDS[1]} "
      "in\n";
  for (const CommandSpec& command : commands) {
    std::string next = "mapfile -t COMPREPLY < <(compgen ";
    next += takes_directories(command) ? "-d" : "-W \"" + options_of(command) + "\"";
    next += R"( -- "$word"); return)";
    if (takes_run_options(command)) next = "at=2";
    text += "    " + std::string(command.name) + ") " + next + " ;;\n";
  }
  return text + "    esac\n  fi\n";
}

std::string bash_script(const std::string& name, Commands commands) {
  std::string valued;
  std::string values;
  std::string dashed_names;
  std::string underscored_names;
  const auto add = [](std::string& list, const char* between, const std::string& word) {
    list += (list.empty() ? "" : between) + word;
  };
  for (const OptionSpec& option : all_options()) {
    add(dashed_names, " ", dashed(option));
    if (underscored(option) != dashed(option)) add(underscored_names, " ", underscored(option));
    const bool optional = option.value == OptionValue::kOptional;
    if (!takes_value(option) && !optional) continue;
    if (!optional) add(valued, " | ", spellings_of(option, " | "));
    std::string generated = "COMPREPLY=()";
    if (names_directory(option)) generated = R"(mapfile -t COMPREPLY < <(compgen -d -- "$word"))";
    if (names_file(option)) generated = R"(mapfile -t COMPREPLY < <(compgen -f -- "$word"))";
    if (const std::string words = words_of(option); !words.empty()) {
      generated = R"(mapfile -t COMPREPLY < <(compgen -W ")" + words + R"(" -- "$word"))";
    }
    generated += "; return";
    if (optional) generated = "if [[ $attached ]]; then " + generated + "; fi";
    values += "  " + spellings_of(option, " | ") + ") " + generated + " ;;\n";
  }
  std::string text(kBash);
  text = replaced(text, "VALUED", valued);
  text = replaced(text, "VALUES", values);
  text = replaced(text, "UNDERSCORED", underscored_names);
  text = replaced(text, "DASHED", dashed_names);
  text = replaced(text, "OF_COMMANDS", bash_commands(commands));
  text = replaced(text, "COMMANDS", command_names(commands));
  text = replaced(text, "FUNCTION", replaced(name, "-", "_"));
  return replaced(text, "NAME", name);
}

/// One specification of _arguments: '--restart=[Which ranks ...]:WHICH:(all failed)'.
std::string zsh_specification(const OptionSpec& option, const std::string& spelling) {
  std::string text = summary(option);
  for (const char* special : {"[", "]", ":"})
    text = replaced(text, special, std::string("\\") + special);
  std::string line = "'" + spelling;
  if (takes_value(option)) line += spelling.starts_with("--") ? "=" : "+";
  line += "[" + text + "]";
  if (!takes_value(option)) return line + "'";
  line += ":" + replaced(std::string(option.metavar), ":", "\\:") + ":";
  const std::string words = words_of(option);
  if (!words.empty()) return line + "(" + words + ")'";
  if (names_file(option)) return line + "_files'";
  return line + (names_directory(option) ? "_directories'" : " '");
}

/// As bash_commands().
std::string zsh_commands(Commands commands) {
  std::string text = "if (( CURRENT > 2 )) && [[ ! -f $words[2] ]]; then\n  case $words[2] in\n";
  for (const CommandSpec& command : commands) {
    std::string next = "compadd -- " + options_of(command) + "; return";
    if (takes_directories(command)) next = "_directories; return";
    if (takes_run_options(command)) {
      next = "words[2]=(); (( CURRENT-- )); first=_files";
    }
    text += "  " + std::string(command.name) + ") " + next + " ;;\n";
  }
  return text + "  esac\nfi\n";
}

std::string zsh_script(const std::string& name, Commands commands) {
  std::string text =
      "#compdef " + name + "\n# zsh completion, printed by " + name + " --print-completion zsh\n";
  const std::string names = command_names(commands);
  const std::string first = commands.empty() ? "_files"
                                             : "{_alternative \"commands:command:(" + names +
                                                   ")\" \"files:program:_files\"}";
  text += "local first='" + first + "'\n" + (commands.empty() ? "" : zsh_commands(commands));
  // Hidden until an underscore is typed: two spellings of each option would be ambiguous.
  text += "local hidden='!'\n[[ $PREFIX == -*_* ]] && hidden=''\n";
  text += "_arguments -s -A '-*' \\\n";
  for (const OptionSpec& option : all_options()) {
    if (option.letter != 0) {
      text += "  " + zsh_specification(option, std::string("-") + option.letter) + " \\\n";
    }
    text += "  " + zsh_specification(option, dashed(option)) + " \\\n";
    if (underscored(option) == dashed(option)) continue;
    text += "  $hidden" + zsh_specification(option, underscored(option)) + " \\\n";
  }
  return text + "  \"1:program:$first\" '*:argument:_files'\n";
}

std::string tcsh_script(const std::string& name) {
  std::string options;
  std::string values;
  for (const OptionSpec& option : all_options()) {
    options += (options.empty() ? "" : " ") + std::string(option.name);
    if (!takes_value(option)) continue;
    const std::string words = words_of(option);
    const std::string list = !words.empty()            ? "(" + words + ")"
                             : names_directory(option) ? "d"
                             : names_file(option)      ? "f"
                                                       : "x:" + std::string(option.metavar) + ":";
    values += " 'n/" + dashed(option) + "/" + replaced(list, "/", "|") + "/'";
  }
  return "# tcsh completion, printed by " + name + " --print-completion tcsh\n" + "complete " +
         name + values + " 'c/--/(" + options + ")/'" + " 'p/*/f/'\n";
}

std::string fish_script(const std::string& name, Commands commands) {
  std::string text = "# fish completion, printed by " + name + " --print-completion fish\n";
  const std::string names = command_names(commands);
  if (!commands.empty()) {
    text += "complete -c " + name + " -n __fish_is_first_token -a '" + names + "'\n";
  }
  for (const OptionSpec& option : all_options()) {
    text += "complete -c " + name;
    if (option.letter != 0) text += std::string(" -s ") + option.letter;
    text += " -l " + std::string(option.name);
    if (takes_value(option)) {
      text += names_directory(option) ? " -r" : names_file(option) ? " -r -F" : " -x";
      const std::string words = words_of(option);
      if (!words.empty()) text += " -a '" + words + "'";
      if (names_directory(option)) text += " -a '(__fish_complete_directories)'";
    }
    text += " -d '" + summary(option) + "'\n";
  }
  return text;
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

std::string completion_script(std::string_view shell, const std::string& name, Commands commands) {
  if (name != kDdprunName) commands = {};
  if (shell == "bash") return bash_script(name, commands);
  if (shell == "zsh") return zsh_script(name, commands);
  if (shell == "tcsh") return tcsh_script(name);
  DDPRUN_ASSERT(shell == "fish");
  return fish_script(name, commands);
}

}  // namespace ddprun
