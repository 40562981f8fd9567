// The file of --config: options by their long names, in TOML. Thread rule: the launcher's thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun {

struct FileValue {
  OptionId id;
  std::string text;   // as it would be typed; of a flag "1", or "" for off
  std::string place;  // "run.toml:3"
};

/// What a file of this name and content sets. An array stands for its
/// values between commas. A usage error names the line, and for an unknown name the most similar
/// option. Pure.
[[nodiscard]] Result<std::vector<FileValue>> parse_config(const std::string& path,
                                                          std::string_view content);

/// The same of a regular file of at most kConfigBytesMax bytes.
[[nodiscard]] Result<std::vector<FileValue>> read_config(const std::string& path);

}  // namespace ddprun
