// The texts that are generated from the option table: -h, --help, what the manual shares with it,
// and completions. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun {

inline constexpr std::array<std::string_view, 2> kIntroduction{
    "Starts one worker per GPU or CPU, gives each a rank and a store for the rendezvous, and "
    "restarts the group or reports when one fails. Accepts torchrun's command lines.",
    "A .py file runs with $PYTHON_EXEC, the Python of ddprun's own virtual environment, that of "
    "the "
    "active one or of conda, or python3. Any other executable runs directly. Arguments after it "
    "are passed to it."};

inline constexpr std::array<std::pair<OptionGroup, std::string_view>, 6> kHelpHeadings{{
    {OptionGroup::kProgram, "Workers and program"},
    {OptionGroup::kRendezvous, "Nodes and rendezvous"},
    {OptionGroup::kRestarts, "Restarts and stopping"},
    {OptionGroup::kOutput, "Output and logs"},
    {OptionGroup::kOther, "Other"},
    {OptionGroup::kCompatibility, "For command lines of torchrun"},
}};

inline constexpr std::string_view kPrecedence =
    "A command line option takes precedence over its variable, that over a scheduler, and that "
    "over the file of --config.";
inline constexpr std::string_view kExitCodes =
    "Exit code: that of the worker that failed first, 128 + n for signal n; 2 for an invalid "
    "command line, 127 for a missing program, 126 for one that cannot be executed; "
    "docs/EXIT_CODES.md lists all.";

struct CommandSpec {
  std::string_view name = {};
  std::string_view arguments = {};  // as --help shows them
  std::string_view help = {};       // one or two sentences
  int (*run)(const std::vector<std::string>& arguments, const Environment& environment) = nullptr;
};
/// "status RUN [--json]".
[[nodiscard]] std::string usage_of(const CommandSpec& command);

/// "-r, --redirects MASK" or "--log-dir, --log_dir DIR".
[[nodiscard]] std::string spellings(const OptionSpec& option);
/// Its help with the default and the variable.
[[nodiscard]] std::string description(const OptionSpec& option);

/// What -h prints: the options that most runs use, in one line each, on a screen of 80 x 24.
[[nodiscard]] std::string brief_help_text(std::size_t columns);

/// "ddprun [options] training_script ...", under the name that it was called by.
[[nodiscard]] std::string usage_line();

/// No line is longer than `columns` (at least 40). Ends with a newline.
[[nodiscard]] std::string help_text(std::size_t columns, std::span<const CommandSpec> commands);

/// `text`, wrapped at blanks to lines of at most `columns`, each indented by `indent`; a word that
/// is too long gets its own line and is broken if necessary.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns);

/// What --print-completion prints for `shell`, one of the choices of that option; it completes the
/// program `name`, which takes `commands` only if it is called ddprun.
[[nodiscard]] std::string completion_script(std::string_view shell, const std::string& name,
                                            std::span<const CommandSpec> commands);

}  // namespace ddprun
