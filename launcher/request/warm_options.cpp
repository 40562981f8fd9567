#include <algorithm>

#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using Value = OptionValue;
using Variable = OptionVariable;

/// A name that Python can import: no empty part, and nothing that would end the list.
bool is_module(std::string_view name) {
  const auto wrong = [](char c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return !word && c != '_' && c != '.' && (static_cast<unsigned char>(c) < 128);
  };
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string_view::npos && std::none_of(name.begin(), name.end(), wrong);
}

Result<void> parse_modules(const Settings& settings, WarmConfig& config) {
  const Origin origin = settings.origin(Id::kPreload);
  for (const std::string& part : split_list(origin.text)) {
    const std::string name(trimmed(part));
    if (name.empty()) continue;
    if (!is_module(name)) return usage(origin.quoted() + ": '" + name + "' is no module's name");
    config.preload.push_back(name);
  }
  return {};
}

Result<void> parse_word(const std::string& word, const Origin& origin, WarmRequest& request) {
  // A variable is switched on by 1; elsewhere that is a time.
  const bool is_on = word == "1" && origin.source == Source::kVariable;
  if (word.empty() || word == "on" || is_on) return {};
  if (word == "first") {
    request.config.first = true;
    return {};
  }
  if (word == "demand") {
    request.config.ahead = false;
    return {};
  }
  if (word == "force") {
    request.force = true;
    return {};
  }
  const auto time = parse_positive_time(word);
  if (!time) {
    return usage(origin.shown() + " is not first, force, demand or a time such as 90s or 10m");
  }
  request.config.after = *time;
  return {};
}

Result<std::optional<WarmRequest>> read_warm(const Given& given) {
  WarmRequest request;
  auto modules = parse_modules(given.settings, request.config);
  if (!modules) return modules.error();
  const bool off = !given.given || given.text.empty() || given.text == "0";
  if (off && given.settings.on_command_line(Id::kPreload)) {
    return usage(given.settings.origin(Id::kPreload).name + " is what --warm imports: add --warm");
  }
  if (off) return std::optional<WarmRequest>();
  for (const std::string& part : split_list(given.text)) {
    auto parsed = parse_word(std::string(trimmed(part)), given, request);
    if (!parsed) return parsed.error();
  }
  if (request.config.first && request.config.preload.empty()) {
    return usage(given.name + "=first imports modules before any worker has shown which: add " +
                 "--preload torch,torch._dynamo");
  }
  return std::optional(std::move(request));
}

constexpr OptionSpec kWarmRows[]{
    {.id = Id::kWarm,
     .name = "warm",
     .value = Value::kOptional,
     .variable = Variable::kDdprun,
     .metavar = "[=first|demand|force|TIME]",
     .help = "Restarted Python workers skip their imports (docs/WARM.md). A process that imports "
             "what they did is made 30 s, or this time, after the first start; first: before it; "
             "demand: forked only when needed; force: although a GPU is visible. Off by default.",
     .unset = "off",
     .take = put<read_warm, &Request::warm>},
    {.id = Id::kPreload,
     .name = "preload",
     .variable = Variable::kDdprun,
     .metavar = "MODULES",
     .help = "What --warm imports, for example torch,torch._dynamo,transformers. By default what "
             "the workers have imported."},
};

}  // namespace

std::span<const OptionSpec> warm_options() {
  return kWarmRows;
}

}  // namespace ddprun
