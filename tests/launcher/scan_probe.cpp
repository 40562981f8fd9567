// Reads one JSON array of words per line and writes what the scanner makes of it, for a comparison
// with Python's argparse: {"options": {"nnodes": "1"}, "program": [...]}, {"action": ...} or
// {"error": ...}.
#include <boost/json.hpp>
#include <iostream>
#include <string>

#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"

namespace {

namespace json = boost::json;

json::object answer(const std::vector<std::string>& words) {
  const auto line = ddprun::scan(words);
  if (!line) return {{"error", line.error().sentence}};
  if (line->action) return {{"action", ddprun::spec_of(*line->action).name}};
  if (line->program.empty()) return {{"error", "no program"}};
  const auto settings = ddprun::Settings::merge(*line, {});
  if (!settings && settings.error().kind == ddprun::ErrorKind::kUsage) {
    return {{"error", settings.error().sentence}};
  }
  json::object options;
  for (const auto& option : line->options) {
    options[ddprun::spec_of(option.id).name] = option.value;
  }
  json::array program(line->program.begin(), line->program.end());
  json::object result;
  result["options"] = options;
  result["program"] = program;
  return result;
}

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    const auto words = json::value_to<std::vector<std::string>>(json::parse(text));
    std::cout << json::serialize(answer(words)) << std::endl;
  }
}
