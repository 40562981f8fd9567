// Settings: the value of every option after command line, environment and built-in default were
// merged, in this order of strength; last, what a scheduler supplies. Types and choices are
// checked; what a value means is decided in launcher/rendezvous and launcher/workers. Plain data,
// no thread rule.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/scan.hpp"

namespace ddprun {

class Settings {
 public:
  enum class Origin { kPreset, kSupplied, kVariable, kCommandLine };

  /// Merges. A usage error names the option or variable; a known option that is not supported is
  /// refused.
  [[nodiscard]] static Result<Settings> merge(const ScannedLine& line,
                                              const Environment& environment);

  [[nodiscard]] const std::string& text(OptionId id) const { return entry(id).text; }
  /// Of an integer option; 0 when it has neither value nor default.
  [[nodiscard]] std::int64_t integer(OptionId id) const;
  /// Of a kNumber option.
  [[nodiscard]] double number(OptionId id) const;
  /// Of a flag.
  [[nodiscard]] bool on(OptionId id) const { return entry(id).text == kOn; }
  /// Somebody gave it, on the command line, in the environment or by supply().
  [[nodiscard]] bool given(OptionId id) const { return entry(id).origin != Origin::kPreset; }
  /// What to call it in a sentence: "--nnodes=2", "PET_NNODES=2", "-m"'s long name for a flag.
  [[nodiscard]] std::string shown(OptionId id) const;
  /// The same without the value.
  [[nodiscard]] std::string named(OptionId id) const;
  /// A value for an option that nobody gave. `source` is who says so: sentences will call it
  /// "SOURCE's --nnodes=2". The value must be one that merge() would take.
  void supply(OptionId id, const std::string& value, const std::string& source);

 private:
  struct Entry {
    std::string text;
    Origin origin = Origin::kPreset;
    std::string source;  // kSupplied only
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

/// "1", "true", "yes", "on" are on, "0", "false", "no", "off" are off; any other number as in
/// torchrun.
[[nodiscard]] Result<bool> parse_switch(const std::string& variable, const std::string& value);

}  // namespace ddprun
