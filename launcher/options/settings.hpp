// Settings: the text of every option after command line, environment, the file of --config and
// built-in default were merged, in this order of precedence (docs/TORCHRUN.md, "A file of
// options"). Types and choices are checked; launcher/request.hpp parses the values. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/setting.hpp"

namespace ddprun {

class Settings {
 public:
  /// Merges, and reads the file if there is one. A usage error names the option, the variable, or
  /// the line of the file.
  [[nodiscard]] static Result<Settings> merge(const ScannedLine& line,
                                              const Environment& environment);

  [[nodiscard]] const std::string& text(OptionId id) const { return entry(id).text; }
  /// Of an integer option; 0 when it has neither value nor default.
  [[nodiscard]] std::int64_t integer(OptionId id) const;
  /// Of a kNumber option.
  [[nodiscard]] double number(OptionId id) const;
  /// Of a flag.
  [[nodiscard]] bool on(OptionId id) const { return entry(id).text == kOn; }
  /// Not the default; of a flag: on.
  [[nodiscard]] bool given(OptionId id) const;
  [[nodiscard]] bool on_command_line(OptionId id) const {
    return entry(id).source == Source::kCommandLine;
  }
  /// Where the value came from: "--nnodes", "PET_NNODES", "run.toml:3: nnodes".
  [[nodiscard]] Origin origin(OptionId id) const;
  /// Puts the default in place of a value of the file, because `by` excludes it. Returns the note
  /// about that; nullopt where the file does not give the option.
  std::optional<std::string> leave_out(OptionId id, const std::string& by);

 private:
  struct Entry {
    std::string text;
    Source source = Source::kDefault;
    std::string place = {};  // in the file
  };
  static constexpr const char* kOn = "1";

  [[nodiscard]] const Entry& entry(OptionId id) const {
    return entries_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] Entry& entry(OptionId id) { return entries_[static_cast<std::size_t>(id)]; }
  Result<void> take_variable(const OptionSpec& option, const Environment& environment);
  Result<void> take_file();
  [[nodiscard]] Result<void> check(const OptionSpec& option) const;

  std::array<Entry, kOptionCount> entries_;
};

}  // namespace ddprun
