// Settings: the text of every option after command line, environment, the file of --config and
// built-in default were merged, in this order of precedence (docs/TORCHRUN.md, "A file of
// options"). Types and choices are checked; the rows of the table parse the values. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/option_table.hpp"
#include "launcher/options/scan.hpp"

namespace ddprun {

/// Where a value comes from; a later one takes precedence (docs/TORCHRUN.md, "A file of options").
enum class Source { kDefault, kFile, kScheduler, kVariable, kCommandLine };

struct Origin {
  std::string name;  // "--nnodes", "PET_NNODES", "Slurm step 9.0's --nnodes", "run.toml:3: nnodes"
  std::string text;  // the value as given, or the default
  bool given = false;  // not the default
  bool flag = false;   // a name without a value
  Source source = Source::kDefault;
  OptionId id = OptionId::kCount;
  std::string from = {};  // "command line", "PET_NNODES", "Slurm step 9.0", "run.toml:3", "default"

  /// "--nnodes=2", or the name of a flag.
  [[nodiscard]] std::string shown() const { return flag ? name : name + "=" + text; }
  /// "--nnodes='2'", for a value that is wrong.
  [[nodiscard]] std::string quoted() const { return name + "='" + text + "'"; }
};

template <class Value>
struct Setting : Origin {
  Value value{};
};

/// By the user, with precedence over a scheduler.
[[nodiscard]] inline bool precedes_scheduler(const Origin& origin) {
  return origin.given && origin.source > Source::kScheduler;
}

/// That an option of a file is not used, because `by`, of higher precedence, excludes it.
[[nodiscard]] inline std::string left_out_note(const Origin& left, const std::string& by) {
  return left.shown() + " not used: " + by + " takes precedence over the file";
}

/// A scheduler's value, unless the option's own takes precedence: sentences call it "JOB's
/// --nnodes".
template <class Value>
void supply(Setting<Value>& setting, Value value, std::string text, const std::string& job) {
  if (precedes_scheduler(setting)) return;
  setting = {{job + "'s " + dashed(spec_of(setting.id)), std::move(text), true, setting.flag,
              Source::kScheduler, setting.id, job},
             std::move(value)};
}

/// "--rdzv-id and PET_MASTER_ADDR": the names of those that were given, or nothing.
[[nodiscard]] std::string given_names(std::initializer_list<const Origin*> candidates);

class Settings {
 public:
  /// Merges, and reads the file if there is one. A usage error names the option, the variable, or
  /// the line of the file.
  [[nodiscard]] static Result<Settings> merge(const ScannedLine& line,
                                              const Environment& environment);

  [[nodiscard]] const std::string& text(OptionId id) const { return entry(id).text; }
  /// Of an integer option; 0 when it has neither value nor default.
  [[nodiscard]] std::int64_t integer(OptionId id) const;
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
  /// Does so with each option that could not stand beside what takes precedence over it, as
  /// standalone beside --nnodes=2 (OptionSpec::yields_to). Returns the notes. Two that exclude each
  /// other and are both of the file, or both not, stay: they are refused where they are used.
  std::vector<std::string> leave_out_excluded();

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

// The file of --config: options by their long names, in TOML.

struct FileValue {
  OptionId id;
  std::string text;   // as it would be typed; of a flag "1", or "" for off
  std::string place;  // "run.toml:3"
};

/// What a file of this name and content sets. An array stands for its values between commas. A
/// usage error names the line, and for an unknown name the most similar option. Pure.
[[nodiscard]] Result<std::vector<FileValue>> parse_config(const std::string& path,
                                                          std::string_view content);

/// Size of the file; a larger one is a usage error.
inline constexpr std::size_t kConfigBytesMax = 1024 * 1024;
/// Parts of a key there; what reads it goes one call deeper for each.
inline constexpr std::size_t kConfigKeyPartsMax = 1000;

}  // namespace ddprun
