#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/address.hpp"
#include "base/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

namespace {

constexpr int kKeepAliveAttemptsMax = 1000;

using Conf = RendezvousConf;

/// The value of a key, and for sentences "--rdzv-conf join_timeout=7".
struct ConfGiven {
  std::string value;
  std::string place;
};

Result<Duration> conf_time(const ConfGiven& given) {
  const auto time = parse_positive_time(given.value);
  if (!time) return usage(given.place + " is not a positive time such as 600, 90s or 10m");
  if (*time > kDurationMax) return usage(given.place + " is more than a year");
  return *time;
}

Result<int> conf_count(const ConfGiven& given) {
  const auto count = parse_integer(given.value);
  if (!count || *count <= 0) return usage(given.place + " is not a positive whole number");
  if (*count <= kKeepAliveAttemptsMax) return static_cast<int>(*count);
  return usage(given.place + " is more than " + std::to_string(kKeepAliveAttemptsMax));
}

Result<Duration> conf_fraction(const ConfGiven& given) {
  if (const auto time = parse_time(given.value)) return *time;
  return usage(given.place + " is not a time such as 0.5, 3 or 500ms");
}

/// torchrun's words and those of flags in variables.
Result<bool> conf_switch(const ConfGiven& given) {
  const std::string& word = given.value;
  const bool yes = word == "t" || word == "T" || word == "y" || word == "Y";
  const bool no = word == "f" || word == "F" || word == "n" || word == "N";
  const auto on = parse_switch(given.place, yes ? "yes" : no ? "no" : word);
  if (on) return *on;
  return usage(given.place + " is neither true nor false");
}

Result<bool> conf_file_store(const ConfGiven& given) {
  const std::string type = lower(given.value);
  if (type == "tcp" || type == "file") return type == "file";
  return usage(given.place + " is neither tcp nor file");
}

Result<std::string> conf_protocol(const ConfGiven& given) {
  std::string protocol = lower(given.value);
  if (protocol == "http" || protocol == "https") return protocol;
  return usage(given.place + " is neither http nor https");
}

Result<std::string> conf_text(const ConfGiven& given) {
  return given.value;
}

Result<PemFile> conf_file(const ConfGiven& given) {
  return PemFile{given.value, given.place};
}

/// Reads a value into the member to which `members` lead; without any it is only checked.
template <auto read, auto... members>
Result<void> to_conf(const ConfGiven& given, Conf& conf) {
  auto value = read(given);
  if (!value) return value.error();
  if constexpr (sizeof...(members) > 0) (conf.*....*members) = std::move(*value);
  return {};
}

struct ConfKey {
  std::string_view name;
  Result<void> (*take)(const ConfGiven& given, Conf& conf);  // null: it has an option of its own
  std::string_view elastic_no = {};  // why it does nothing with c10d; empty: it works
  std::string_view static_no = {};   // the same with static
  std::string_view option = {};      // its own
};

constexpr std::string_view kNoCounterpart = "ddprun has no such step: a round is one message";
constexpr std::string_view kSilenceLimits =
    "ddprun does not wait for keep-alives; keep_alive_interval and keep_alive_max_attempt limit "
    "silence";
constexpr std::string_view kCoordinatorLimits =
    "join_timeout and coordinator_timeout limit the wait for the coordinator";
constexpr std::string_view kOfEtcd = "it belongs to etcd-v3";

template <auto member>
constexpr auto etcd_file = to_conf<conf_file, &Conf::etcd_tls, member>;

// Of etcd: the names of torchrun's etcd backend, and those of its etcd-v2.
constexpr std::array<ConfKey, 28> kConfKeys{{
    {"join_timeout", to_conf<conf_time, &Conf::join_timeout>},
    {"last_call_timeout", to_conf<conf_time, &Conf::last_call_timeout>, "",
     "the static backend waits for all its nodes and for no more"},
    {"close_timeout", to_conf<conf_time>, kNoCounterpart, kNoCounterpart},
    {"heartbeat_timeout", to_conf<conf_time>, kSilenceLimits, kSilenceLimits},
    {"read_timeout", to_conf<conf_time>, kCoordinatorLimits, kCoordinatorLimits},
    {"keep_alive_interval", to_conf<conf_time, &Conf::keep_alive_interval>},
    {"keep_alive_max_attempt", to_conf<conf_count, &Conf::keep_alive_max_attempt>},
    {"coordinator_timeout", to_conf<conf_time, &Conf::coordinator_timeout>},
    {"cas_backoff_max_seconds", to_conf<conf_fraction>, kNoCounterpart, kNoCounterpart},
    {"timeout", to_conf<conf_time, &Conf::timeout>,
     "it belongs to the static backend; join_timeout limits the wait for nodes", ""},
    {"is_host", to_conf<conf_switch, &Conf::is_host>},
    {"store_type", to_conf<conf_file_store, &Conf::file_store>},
    {"backend", nullptr, "", "", "--rdzv-backend"},
    {"endpoint", nullptr, "", "", "--rdzv-endpoint"},
    {"run_id", nullptr, "", "", "--rdzv-id"},
    {"min_nodes", nullptr, "", "", "--nnodes"},
    {"max_nodes", nullptr, "", "", "--nnodes"},
    {"local_addr", nullptr, "", "", "--local-addr"},
    {"protocol", to_conf<conf_protocol, &Conf::protocol>, kOfEtcd, kOfEtcd},
    {"cacert", etcd_file<&Certificates::ca>, kOfEtcd, kOfEtcd},
    {"ca_cert", etcd_file<&Certificates::ca>, kOfEtcd, kOfEtcd},
    {"cert", etcd_file<&Certificates::cert>, kOfEtcd, kOfEtcd},
    {"ssl_cert", etcd_file<&Certificates::cert>, kOfEtcd, kOfEtcd},
    {"key", etcd_file<&Certificates::key>, kOfEtcd, kOfEtcd},
    {"ssl_cert_key", etcd_file<&Certificates::key>, kOfEtcd, kOfEtcd},
    {"user", to_conf<conf_text, &Conf::user>, kOfEtcd, kOfEtcd},
    {"password_file", to_conf<conf_text, &Conf::password_file>, kOfEtcd, kOfEtcd},
    {"etcd_prefix", to_conf<conf_text, &Conf::etcd_prefix>, kOfEtcd, kOfEtcd},
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

std::string known_keys() {
  std::vector<std::string> names;
  for (const ConfKey& key : kConfKeys) {
    if (key.take != nullptr) names.emplace_back(key.name);
  }
  return joined(names);
}

bool is_host_letter(char c) {
  const bool word =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return word || c == '.' || c == ':' || c == '-';
}

/// Only IPv6 addresses have colons. The system takes digits and dots for an IPv4 address, "29400"
/// for 0.0.114.216.
bool is_host(const std::string& host) {
  if (is_address_literal(host)) return true;
  if (host.empty() || !std::all_of(host.begin(), host.end(), is_host_letter)) return false;
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return !numeric && host.find(':') == std::string::npos;
}

bool lacks_zone(const std::string& host) {
  return is_link_local_literal(host) && host.find('%') == std::string::npos;
}

Error without_zone(const std::string& shown, const std::string& host) {
  return {ErrorKind::kUsage, shown + ": " + host +
                                 " is a link-local address, which needs its interface: " + host +
                                 "%eth0, for example"};
}

/// The host and, after a colon, the text of the port. A bare IPv6 address has colons, but no port.
std::pair<std::string, std::optional<std::string>> split_endpoint(const std::string& text) {
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) return {"", std::nullopt};
    const std::string rest = text.substr(close + 1);
    if (rest.empty()) return {text.substr(1, close - 1), std::nullopt};
    if (rest[0] != ':') return {"", std::nullopt};
    return {text.substr(1, close - 1), rest.substr(1)};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) {
    return {text, std::nullopt};
  }
  return {text.substr(0, colon), text.substr(colon + 1)};
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
    const ConfGiven given{value, origin.name + " " + key + "=" + value};
    if (known->take == nullptr) {
      return usage(given.place + " cannot be set here: use " + std::string(known->option));
    }
    if (auto taken = known->take(given, conf); !taken) return taken.error();
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
    if (why == kOfEtcd && use == ConfUse::kEtcd) why.clear();
    if (!why.empty()) notes.push_back(conf.name + " " + key + " not used: " + why);
  }
  return notes;
}

std::vector<std::string> conf_warnings(const Setting<RendezvousConf>& conf) {
  if (conf.value.unknown.empty()) return {};
  return {conf.name + " has unknown keys: " + joined(conf.value.unknown) +
          " (known: " + known_keys() + ")"};
}

std::string text_of(const Endpoint& endpoint) {
  if (endpoint.port) return host_and_port(endpoint.host, *endpoint.port);
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
}

bool is_address_literal(const std::string& host) {
  const auto zone = host.find('%');
  if (zone != std::string::npos) {  // only link-local addresses have one
    const bool is_spelled =
        zone + 1 < host.size() && std::all_of(host.begin() + static_cast<std::ptrdiff_t>(zone) + 1,
                                              host.end(), is_host_letter);
    return is_spelled && is_link_local_literal(host);
  }
  return ipv4_of(host) || ipv6_of(host);
}

bool is_wildcard_address(const std::string& host) {
  if (const auto v6 = ipv6_of(host)) return IN6_IS_ADDR_UNSPECIFIED(&*v6) != 0;
  return host == "0.0.0.0";
}

bool same_host_name(const std::string& left, const std::string& right) {
  const std::string one = lower(left);
  const std::string other = lower(right);
  if (one == other) return !one.empty();
  return one.starts_with(other + ".") || other.starts_with(one + ".");
}

std::optional<std::string> named_loopback(const std::string& host) {
  constexpr std::array<std::string_view, 4> kV4Names{"localhost", "localhost.localdomain",
                                                     "localhost4", "ip4-localhost"};
  constexpr std::array<std::string_view, 3> kV6Names{"localhost6", "ip6-localhost", "ip6-loopback"};
  if (is_loopback_literal(host)) return host;
  if (std::find(kV4Names.begin(), kV4Names.end(), host) != kV4Names.end()) return "127.0.0.1";
  if (std::find(kV6Names.begin(), kV6Names.end(), host) != kV6Names.end()) return "::1";
  return std::nullopt;
}

std::optional<std::uint16_t> parse_port(const std::string& text) {
  constexpr std::size_t kDigitsMax = 5;
  const auto port = parse_digits(text);
  if (!port || text.size() > kDigitsMax || *port > UINT16_MAX) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name) {
  const auto [host, port_text] = split_endpoint(std::string(trimmed(text)));
  Endpoint endpoint{host, std::nullopt};
  if (port_text) endpoint.port = parse_port(*port_text);
  if (lacks_zone(host)) return without_zone(name + "='" + text + "'", host);
  if (is_host(host) && endpoint.port.has_value() == port_text.has_value()) return endpoint;
  return Error{
      ErrorKind::kUsage,
      name + "='" + text + "' is not HOST, HOST:PORT or [IPV6]:PORT with a port below 65536"};
}

Result<std::string> parse_host(const std::string& text, const std::string& shown,
                               const std::string& port_option) {
  const std::string host = split_endpoint(text).first;
  if (lacks_zone(host)) return without_zone(shown, host);
  const auto parsed = parse_endpoint(text, shown);
  if (parsed && !parsed->port) return parsed->host;
  const bool port = parsed && !port_option.empty();
  return Error{ErrorKind::kUsage, shown + " is not a host's name or address" +
                                      (port ? ": the port goes into " + port_option : "")};
}

}  // namespace ddprun
