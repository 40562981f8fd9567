// The file of --config: values for known options, each at most once, or one sentence.
#include <algorithm>
#include <set>

#include "launcher/options/settings.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  // toml++ 3.3 tells blanks beyond ASCII from letters by a table with entries that it calls
  // unreachable, and reaches (docs/internals/TRACK_RECORD.md, "Known and open").
  if (std::any_of(content.begin(), content.end(),
                  [](char c) { return static_cast<signed char>(c) < 0; }))
    return 0;
  const auto values = parse_config("run.toml", content);
  if (!values) {
    DDPRUN_ASSERT(values.error().sentence.starts_with("run.toml:"));
    return 0;
  }
  std::set<OptionId> seen;
  for (const FileValue& value : *values) {
    DDPRUN_ASSERT(seen.insert(value.id).second);
    DDPRUN_ASSERT(value.text.find('\0') == std::string::npos);
    DDPRUN_ASSERT(value.place.starts_with("run.toml:"));
  }
  return 0;
}
