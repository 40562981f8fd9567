#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {
namespace {

constexpr int kKeepAliveAttemptsMax = 1000;

// The keys: what a value looks like, and where the key has a meaning.
enum class ConfKeyKind {
  kTime,      // a positive time
  kCount,     // a positive number
  kFraction,  // a number >= 0
  kSwitch,    // yes or no
  kStore,     // store_type
  kEtcd,      // a text, for etcd-v3
  kFixed,     // has an option of its own
};

struct ConfKey {
  std::string_view name;
  ConfKeyKind kind;
  std::string_view remark = {};      // kFixed: the option to use
  std::string_view elastic_no = {};  // why it does nothing with c10d; empty: it works
  std::string_view static_no = {};   // the same with static
};

constexpr std::string_view kNoCounterpart = "ddprun has no such step: a round is one message";
constexpr std::string_view kSilenceLimits =
    "ddprun does not wait for keep-alives; keep_alive_interval and keep_alive_max_attempt limit "
    "silence";
constexpr std::string_view kCoordinatorLimits =
    "join_timeout and coordinator_timeout limit the wait for the coordinator";

constexpr std::array<ConfKey, 28> kConfKeys{{
    {"join_timeout", ConfKeyKind::kTime},
    {"last_call_timeout", ConfKeyKind::kTime, "", "",
     "the static backend waits for all its nodes and for no more"},
    {"close_timeout", ConfKeyKind::kTime, "", kNoCounterpart, kNoCounterpart},
    {"heartbeat_timeout", ConfKeyKind::kTime, "", kSilenceLimits, kSilenceLimits},
    {"read_timeout", ConfKeyKind::kTime, "", kCoordinatorLimits, kCoordinatorLimits},
    {"keep_alive_interval", ConfKeyKind::kTime},
    {"keep_alive_max_attempt", ConfKeyKind::kCount},
    {"coordinator_timeout", ConfKeyKind::kTime},
    {"cas_backoff_max_seconds", ConfKeyKind::kFraction, "", kNoCounterpart, kNoCounterpart},
    {"timeout", ConfKeyKind::kTime, "",
     "it belongs to the static backend; join_timeout limits the wait for nodes", ""},
    {"is_host", ConfKeyKind::kSwitch},
    {"store_type", ConfKeyKind::kStore},
    {"backend", ConfKeyKind::kFixed, "--rdzv-backend"},
    {"endpoint", ConfKeyKind::kFixed, "--rdzv-endpoint"},
    {"run_id", ConfKeyKind::kFixed, "--rdzv-id"},
    {"min_nodes", ConfKeyKind::kFixed, "--nnodes"},
    {"max_nodes", ConfKeyKind::kFixed, "--nnodes"},
    {"local_addr", ConfKeyKind::kFixed, "--local-addr"},
    {"protocol", ConfKeyKind::kEtcd},
    {"cacert", ConfKeyKind::kEtcd},
    {"ca_cert", ConfKeyKind::kEtcd},
    {"cert", ConfKeyKind::kEtcd},
    {"ssl_cert", ConfKeyKind::kEtcd},
    {"key", ConfKeyKind::kEtcd},
    {"ssl_cert_key", ConfKeyKind::kEtcd},
    {"user", ConfKeyKind::kEtcd},
    {"password_file", ConfKeyKind::kEtcd},
    {"etcd_prefix", ConfKeyKind::kEtcd},
}};

using ConfPair = std::pair<std::string, std::string>;

constexpr Duration kStaticTimeout = std::chrono::seconds(900);

/// Split at commas, each part at its first '='; blanks around keys and values are ignored.
Result<std::vector<ConfPair>> split_conf(const Origin& origin) {
  std::vector<ConfPair> pairs;
  if (trimmed(origin.text).empty()) return pairs;
  for (const std::string& piece : split_list(origin.text)) {
    const std::string_view part = trimmed(piece);
    const auto equals = part.find('=');
    const std::string_view key = trimmed(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : trimmed(part.substr(equals + 1));
    if (key.empty() || value.empty()) {
      return usage(origin.quoted() + ": '" + std::string(part) + "' is not KEY=VALUE");
    }
    pairs.emplace_back(key, value);
  }
  return pairs;
}

const ConfKey* find_conf_key(std::string_view name) {
  const auto found = std::find_if(kConfKeys.begin(), kConfKeys.end(),
                                  [name](const ConfKey& key) { return key.name == name; });
  return found == kConfKeys.end() ? nullptr : &*found;
}

/// Reads one pair into a RendezvousConf.
class ConfReader {
 public:
  ConfReader(RendezvousConf& conf, const ConfKey& key, std::string value, std::string option)
      : conf_(conf),
        key_(key),
        value_(std::move(value)),
        place_(option + " " + std::string(key.name) + "=" + value_) {}

  Result<void> read() {
    switch (key_.kind) {
      case ConfKeyKind::kTime:
        return read_time();
      case ConfKeyKind::kCount:
        return read_count();
      case ConfKeyKind::kFraction:
        if (parse_time(value_)) return {};
        return usage(place_ + " is not a time such as 0.5, 3 or 500ms");
      case ConfKeyKind::kSwitch:
        return read_switch();
      case ConfKeyKind::kStore:
        return read_store();
      case ConfKeyKind::kEtcd:
        return read_text();
      case ConfKeyKind::kFixed:
        return usage(place_ + " cannot be set here: use " + std::string(key_.remark));
    }
    return {};
  }

 private:
  Result<void> read_time() {
    const auto time = parse_positive_time(value_);
    if (!time) return usage(place_ + " is not a positive time such as 600, 90s or 10m");
    if (*time > kDurationMax) return usage(place_ + " is more than a year");
    constexpr std::pair<std::string_view, std::optional<Duration> RendezvousConf::*> kFields[]{
        {"join_timeout", &RendezvousConf::join_timeout},
        {"last_call_timeout", &RendezvousConf::last_call_timeout},
        {"keep_alive_interval", &RendezvousConf::keep_alive_interval},
        {"coordinator_timeout", &RendezvousConf::coordinator_timeout},
        {"timeout", &RendezvousConf::timeout}};
    for (const auto& [name, field] : kFields) {
      if (name == key_.name) conf_.*field = *time;
    }
    return {};
  }

  Result<void> read_count() {
    const auto count = parse_integer(value_);
    if (!count || *count <= 0) return usage(place_ + " is not a positive whole number");
    if (*count > kKeepAliveAttemptsMax) {
      return usage(place_ + " is more than " + std::to_string(kKeepAliveAttemptsMax));
    }
    conf_.keep_alive_max_attempt = static_cast<int>(*count);
    return {};
  }

  /// torchrun's words and those of flags in variables.
  Result<void> read_switch() {
    const std::string one_letter = value_ == "t" || value_ == "T"   ? "true"
                                   : value_ == "y" || value_ == "Y" ? "yes"
                                   : value_ == "f" || value_ == "F" ? "false"
                                   : value_ == "n" || value_ == "N" ? "no"
                                                                    : value_;
    const auto on = parse_switch(place_, one_letter);
    if (!on) return usage(place_ + " is neither true nor false");
    conf_.is_host = *on;
    return {};
  }

  Result<void> read_store() {
    const std::string type = lower(value_);
    if (type != "tcp" && type != "file") return usage(place_ + " is neither tcp nor file");
    conf_.file_store = type == "file";
    return {};
  }

  Result<void> read_text() {
    if (key_.name == "user") conf_.user = value_;
    if (key_.name == "password_file") conf_.password_file = value_;
    if (key_.name == "etcd_prefix") conf_.etcd_prefix = value_;
    if (key_.name == "protocol") {
      conf_.protocol = lower(value_);
      if (conf_.protocol != "http" && conf_.protocol != "https") {
        return usage(place_ + " is neither http nor https");
      }
    }
    // The names of torchrun's etcd backend, and those of its etcd-v2.
    const PemFile file{value_, place_};
    if (key_.name == "cacert" || key_.name == "ca_cert") conf_.etcd_tls.ca = file;
    if (key_.name == "cert" || key_.name == "ssl_cert") conf_.etcd_tls.cert = file;
    if (key_.name == "key" || key_.name == "ssl_cert_key") conf_.etcd_tls.key = file;
    return {};
  }

  RendezvousConf& conf_;
  const ConfKey& key_;
  std::string value_;
  std::string place_;
};

std::string known_keys() {
  std::vector<std::string> names;
  for (const ConfKey& key : kConfKeys) {
    if (key.kind != ConfKeyKind::kFixed) names.emplace_back(key.name);
  }
  return joined(names);
}

}  // namespace

Result<RendezvousConf> parse_conf(const Origin& origin) {
  auto pairs = split_conf(origin);
  if (!pairs) return pairs.error();
  RendezvousConf conf;
  for (const auto& [key, value] : *pairs) {
    const ConfKey* known = find_conf_key(key);
    if (known == nullptr) {
      conf.unknown.push_back(key);
      continue;
    }
    auto taken = ConfReader(conf, *known, value, origin.name).read();
    if (!taken) return taken.error();
    conf.keys.push_back(key);
  }
  return conf;
}

void apply(const RendezvousConf& conf, ConfUse use, RendezvousConfig& config) {
  if (use == ConfUse::kStatic) config.join_timeout = conf.timeout.value_or(kStaticTimeout);
  // Sentences about a wait name join_timeout, so it works with either backend.
  if (conf.join_timeout) config.join_timeout = *conf.join_timeout;
  if (conf.last_call_timeout) config.last_call_timeout = *conf.last_call_timeout;
  if (conf.keep_alive_interval) config.keep_alive_interval = *conf.keep_alive_interval;
  if (conf.keep_alive_max_attempt) config.keep_alive_max_attempt = *conf.keep_alive_max_attempt;
  if (conf.coordinator_timeout) config.coordinator_timeout = *conf.coordinator_timeout;
}

std::vector<std::string> conf_notes(const Setting<RendezvousConf>& conf, ConfUse use) {
  std::vector<std::string> notes;
  for (const std::string& key : conf.value.keys) {
    const ConfKey* known = find_conf_key(key);
    if (known == nullptr || use == ConfUse::kSingleNode) continue;
    std::string why(use == ConfUse::kStatic ? known->static_no : known->elastic_no);
    if (key == "timeout" && use == ConfUse::kStatic && conf.value.join_timeout) {
      why = "join_timeout is given too";
    }
    const bool is_etcd = known->kind == ConfKeyKind::kEtcd;
    if (is_etcd && use != ConfUse::kEtcd) why = "it belongs to etcd-v3";
    if (!why.empty()) notes.push_back(conf.name + " " + key + " not used: " + why);
  }
  return notes;
}

std::vector<std::string> conf_warnings(const Setting<RendezvousConf>& conf) {
  if (conf.value.unknown.empty()) return {};
  return {conf.name + " has unknown keys: " + joined(conf.value.unknown) +
          " (known: " + known_keys() + ")"};
}

}  // namespace ddprun
