#include "launcher/rules/rendezvous_conf.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/options/numbers.hpp"

namespace ddprun {
namespace {

enum class KeyKind {
  kTime,      // a positive time
  kCount,     // a positive number
  kFraction,  // a number >= 0
  kFixed,     // has an option of its own
  kRefused,   // known, not built
};

struct Key {
  std::string_view name;
  KeyKind kind;
  std::string_view instead;  // the option to use, or what works
};

constexpr std::array<Key, 18> kKeys{{
    {"join_timeout", KeyKind::kTime, ""},
    {"last_call_timeout", KeyKind::kTime, ""},
    {"close_timeout", KeyKind::kTime, ""},
    {"heartbeat_timeout", KeyKind::kTime, ""},
    {"read_timeout", KeyKind::kTime, ""},
    {"keep_alive_interval", KeyKind::kTime, ""},
    {"keep_alive_max_attempt", KeyKind::kCount, ""},
    {"cas_backoff_max_seconds", KeyKind::kFraction, ""},
    {"timeout", KeyKind::kTime, ""},
    {"backend", KeyKind::kFixed, "--rdzv-backend"},
    {"endpoint", KeyKind::kFixed, "--rdzv-endpoint"},
    {"run_id", KeyKind::kFixed, "--rdzv-id"},
    {"min_nodes", KeyKind::kFixed, "--nnodes"},
    {"max_nodes", KeyKind::kFixed, "--nnodes"},
    {"local_addr", KeyKind::kFixed, "--local-addr"},
    {"is_host", KeyKind::kRefused, "ddprun decides by the endpoint's address"},
    {"store_type", KeyKind::kRefused, "the store is always TCP"},
    {"protocol", KeyKind::kRefused, "it belongs to etcd"},
}};

using Pair = std::pair<std::string, std::string>;

Error usage(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

/// Split at commas, each part at its first '='; blanks around keys and values do not count.
Result<std::vector<Pair>> split(const std::string& text, const std::string& name) {
  std::vector<Pair> pairs;
  std::string_view rest = trimmed(text);
  if (rest.empty()) return pairs;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view part = trimmed(rest.substr(0, comma));
    const auto equals = part.find('=');
    const std::string_view key = trimmed(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : trimmed(part.substr(equals + 1));
    if (key.empty() || value.empty()) {
      return usage(name + "='" + text + "': '" + std::string(part) + "' is not KEY=VALUE");
    }
    pairs.emplace_back(key, value);
    if (comma == std::string_view::npos) return pairs;
    rest.remove_prefix(comma + 1);
  }
}

const Key* find(const std::string& name) {
  for (const Key& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

Result<void> check(const Key& key, const std::string& value, const std::string& option) {
  const std::string place = option + " " + std::string(key.name) + "=" + value;
  switch (key.kind) {
    case KeyKind::kTime:
      if (parse_time(value)) return {};
      return usage(place + " is not a positive time such as 600, 90s or 10m");
    case KeyKind::kCount: {
      const auto count = parse_integer(value);
      if (count && *count > 0) return {};
      return usage(place + " is not a positive whole number");
    }
    case KeyKind::kFraction: {
      const auto number = parse_number(value);
      if (number && *number >= 0) return {};
      return usage(place + " is not a number of seconds");
    }
    case KeyKind::kFixed:
      return usage(place + " cannot be set here: use " + std::string(key.instead));
    case KeyKind::kRefused:
      return Error{ErrorKind::kUnsupported, place + " is not built; " + std::string(key.instead)};
  }
  return {};
}

std::string known_keys() {
  std::string text;
  for (const Key& key : kKeys) {
    const bool usable = key.kind != KeyKind::kFixed && key.kind != KeyKind::kRefused;
    if (usable) text += (text.empty() ? "" : ", ") + std::string(key.name);
  }
  return text;
}

}  // namespace

Result<std::string> check_rendezvous_conf(const Settings& settings) {
  const std::string name = settings.named(OptionId::kRdzvConf);
  auto pairs = split(settings.text(OptionId::kRdzvConf), name);
  if (!pairs) return pairs.error();
  std::string unknown;
  for (const auto& [key, value] : *pairs) {
    const Key* known = find(key);
    if (known == nullptr) {
      unknown += (unknown.empty() ? "" : ", ") + key;
      continue;
    }
    auto checked = check(*known, value, name);
    if (!checked) return checked.error();
  }
  if (unknown.empty()) return std::string();
  return name + " has unknown keys: " + unknown + " (known: " + known_keys() + ")";
}

}  // namespace ddprun
