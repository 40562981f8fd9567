// Settings: the text of every option after command line, environment and built-in default were
// merged, in this order of precedence. Types and choices are checked; launcher/request.hpp parses
// the values. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/setting.hpp"

namespace ddprun {

class Settings {
 public:
  /// Merges. A usage error names the option or variable.
  [[nodiscard]] static Result<Settings> merge(const ScannedLine& line,
                                              const Environment& environment);

  [[nodiscard]] const std::string& text(OptionId id) const { return entry(id).text; }
  /// Of an integer option; 0 when it has neither value nor default.
  [[nodiscard]] std::int64_t integer(OptionId id) const;
  /// Of a kNumber option.
  [[nodiscard]] double number(OptionId id) const;
  /// Of a flag.
  [[nodiscard]] bool on(OptionId id) const { return entry(id).text == kOn; }
  /// On the command line or in the environment.
  [[nodiscard]] bool given(OptionId id) const { return entry(id).source != Source::kDefault; }
  [[nodiscard]] bool on_command_line(OptionId id) const {
    return entry(id).source == Source::kCommandLine;
  }
  /// Where the value came from: "--nnodes", "PET_NNODES"; the long name of a flag.
  [[nodiscard]] Origin origin(OptionId id) const;

 private:
  enum class Source { kDefault, kVariable, kCommandLine };
  struct Entry {
    std::string text;
    Source source = Source::kDefault;
  };
  static constexpr const char* kOn = "1";

  [[nodiscard]] const Entry& entry(OptionId id) const {
    return entries_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Entry& entry(OptionId id) { return entries_[static_cast<std::size_t>(id)]; }
  Result<void> take_variable(const OptionSpec& option, const Environment& environment);
  [[nodiscard]] Result<void> check(const OptionSpec& option) const;

  std::array<Entry, kOptionCount> entries_;
};

}  // namespace ddprun
