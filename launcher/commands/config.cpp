// `ddprun config` and `ddprun secret`.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/format.hpp"
#include "base/printable.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/configure.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/options/option_table.hpp"

namespace ddprun::commands {

namespace {

const char* name_of(Source source) {
  switch (source) {
    case Source::kDefault:
      return "default";
    case Source::kFile:
      return "file";
    case Source::kScheduler:
      return "scheduler";
    case Source::kVariable:
      return "variable";
    case Source::kCommandLine:
      return "command line";
  }
  return "default";
}

bool is_on(const Origin& flag) {
  return !flag.text.empty();
}

std::string value_of(const Origin& setting) {
  return setting.text.empty() ? std::string(spec_of(setting.id).unset) : setting.text;
}

std::string settings_text(const std::vector<Origin>& settings) {
  std::vector<std::vector<std::string>> rows{{"setting", "value", "from"}};
  for (const Origin& setting : settings) {
    const std::string known = value_of(setting);
    std::string value = known.empty() ? "-" : printable(known);
    if (setting.flag) value = is_on(setting) ? "on" : "off";
    rows.push_back({dashed(spec_of(setting.id)), std::move(value), printable(setting.from)});
  }
  return in_columns(rows);
}

std::string clean_text(const std::string& text) {
  return clean_utf8(text, text.size() * kReplacement.size());
}

std::string settings_json(const std::vector<Origin>& settings) {
  boost::json::array rows;
  for (const Origin& setting : settings) {
    boost::json::object row;
    row["name"] = spec_of(setting.id).name;
    const std::string known = value_of(setting);
    row["value"] = clean_text(known);
    if (known.empty()) row["value"] = nullptr;
    if (setting.flag) row["value"] = is_on(setting);
    row["source"] = name_of(setting.source);
    row["from"] = clean_text(setting.from);
    rows.push_back(std::move(row));
  }
  boost::json::object all;
  all["settings"] = std::move(rows);
  return boost::json::serialize(all) + "\n";
}

}  // namespace

int config(const Arguments& arguments, const Environment& environment) {
  const ThisMachine machine(environment, this_process());
  const auto shown = configured_settings(arguments, machine);
  if (!shown) return misuse(shown.error().sentence);
  for (const std::string& text : shown->notes) note(text);
  return print(shown->json ? settings_json(shown->settings) : settings_text(shown->settings));
}

namespace {

constexpr const char* kWhatItDoes =
    ": runs of this user over several nodes use it by themselves, on every node that has this "
    "file\n";

}  // namespace

int secret(const Arguments& arguments, const Environment& environment) {
  const bool makes = arguments == Arguments{"--new"};
  if (!arguments.empty() && !makes) return misuse("ddprun secret takes --new or nothing");
  if (makes) {
    const auto made = make_home_secret(environment);
    if (!made) return fail(made.error().sentence, "SECRET");
    return print("made " + printable(*made) + kWhatItDoes);
  }
  const auto found = read_home_secret(environment);
  if (!found) return fail(found.error().sentence, "SECRET");
  const std::string path = printable(home_secret_path(environment));
  if (*found == nullptr) {
    return fail("there is no " + path + "; ddprun secret --new makes it", "SECRET");
  }
  return print(path + kWhatItDoes);
}

}  // namespace ddprun::commands
