#include "rendezvous/etcd/messages.hpp"

#include <array>
#include <boost/json.hpp>

#include "rendezvous/etcd/json_fields.hpp"
#include "rendezvous/etcd/record_json.hpp"

namespace ddprun::etcd {

namespace json = boost::json;

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::optional<json::value> parse(std::string_view body) {
  boost::system::error_code bad;
  json::value value = json::parse(body, bad);
  if (bad || !value.is_object()) return std::nullopt;
  return value;
}

/// An answer that has etcd's header; nothing else counts as one.
std::optional<json::value> parse_answer(std::string_view body) {
  auto value = parse(body);
  if (!value || field(&*value, "header") == nullptr) return std::nullopt;
  return value;
}

Revision revision_of(const json::value* answer) {
  return integer(field(field(answer, "header"), "revision"));
}

std::optional<json::value> decoded(const json::value* kv) {
  const auto text = from_base64(text_of(field(kv, "value")));
  return text ? parse(*text) : std::nullopt;
}

/// A value that is no leader's counts as one without an address: it cannot be reached.
std::optional<LeaderKey> leader_key(const json::value* kv) {
  if (kv == nullptr) return std::nullopt;
  LeaderKey key;
  key.term = integer(field(kv, "create_revision"));
  key.lease = integer(field(kv, "lease"));
  if (const auto value = decoded(kv)) {
    key.leader.agent = text_of(field(&*value, "agent"));
    key.leader.host = text_of(field(&*value, "host"));
    const int port = small(field(&*value, "port"));
    key.leader.port = port <= 65'535 ? static_cast<std::uint16_t>(port) : std::uint16_t{0};
  }
  return key;
}

/// A value that is no record counts as an empty one.
std::optional<RecordKey> record_key(const json::value* kv) {
  if (kv == nullptr) return std::nullopt;
  RecordKey key;
  key.revision = integer(field(kv, "mod_revision"));
  if (const auto value = decoded(kv)) key.record = record_of(*value);
  return key;
}

json::object put(const std::string& key, const json::value& value, LeaseId lease) {
  return {{"request_put",
           {{"key", base64(key)},
            {"value", base64(json::serialize(value))},
            {"lease", number(lease)}}}};
}

json::object range(const std::string& key) {
  return {{"request_range", {{"key", base64(key)}}}};
}

json::object unchanged_since(const Keys& keys, Revision record_revision) {
  return {{"key", base64(keys.record)},
          {"target", "MOD"},
          {"result", "EQUAL"},
          {"mod_revision", number(record_revision)}};
}

const json::value* first_kv(const json::value* answer, std::size_t response) {
  const json::value* ranged =
      field(element(field(answer, "responses"), response), "response_range");
  return element(field(ranged, "kvs"), 0);
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view part = bytes.substr(at, 3);
    unsigned group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < part.size() ? static_cast<unsigned char>(part[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= part.size() ? kAlphabet[group >> (18U - 6U * i) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  unsigned group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = i + padding >= text.size() ? 0 : kAlphabet.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    group = group << 6U | static_cast<unsigned>(value);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) {
      bytes += static_cast<char>(static_cast<unsigned char>(group >> shift & 255U));
    }
    group = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

Keys keys_of(const std::string& prefix, const std::string& run_id) {
  const std::string run = prefix + "/" + run_id;
  return {run + "/coordinator", run + "/run"};
}

std::string authenticate_body(const std::string& user, const std::string& password) {
  return json::serialize(json::object{{"name", user}, {"password", password}});
}

std::string grant_body(Duration ttl) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(ttl);
  return json::serialize(json::object{{"TTL", number(seconds.count())}});
}

std::string lease_body(LeaseId lease) {
  return json::serialize(json::object{{"ID", number(lease)}});
}

std::string look_body(const Keys& keys) {
  return json::serialize(
      json::object{{"success", json::array{range(keys.leader), range(keys.record)}}});
}

std::string campaign_body(const Keys& keys, LeaseId lease, const Leader& self,
                          Revision record_revision) {
  const json::value leader{{"agent", self.agent}, {"host", self.host}, {"port", self.port}};
  const json::object absent{
      {"key", base64(keys.leader)}, {"target", "VERSION"}, {"result", "EQUAL"}, {"version", "0"}};
  return json::serialize(
      json::object{{"compare", json::array{absent, unchanged_since(keys, record_revision)}},
                   {"success", json::array{put(keys.leader, leader, lease), range(keys.record)}},
                   {"failure", json::array{range(keys.leader), range(keys.record)}}});
}

std::string record_body(const Keys& keys, Revision term, LeaseId lease, const RunRecord& record,
                        Revision record_revision) {
  const json::object leads{{"key", base64(keys.leader)},
                           {"target", "CREATE"},
                           {"result", "EQUAL"},
                           {"create_revision", number(term)}};
  return json::serialize(
      json::object{{"compare", json::array{leads, unchanged_since(keys, record_revision)}},
                   {"success", json::array{put(keys.record, to_json(record), lease)}},
                   {"failure", json::array{range(keys.leader), range(keys.record)}}});
}

std::string watch_body(const Keys& keys, Revision from) {
  return json::serialize(json::object{
      {"create_request", {{"key", base64(keys.leader)}, {"start_revision", number(from)}}}});
}

std::string read_token(std::string_view body) {
  const auto answer = parse_answer(body);
  return answer ? text_of(field(&*answer, "token")) : std::string();
}

std::optional<GrantAnswer> read_grant(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  const GrantAnswer granted{integer(field(&*answer, "ID")),
                            std::chrono::seconds(small(field(&*answer, "TTL")))};
  if (granted.lease == 0 || granted.ttl == Duration(0)) return std::nullopt;
  return granted;
}

std::optional<Duration> read_renewal(std::string_view body) {
  const auto answer = parse(body.substr(0, body.find('\n')));
  const json::value* result = answer ? field(&*answer, "result") : nullptr;
  if (field(result, "header") == nullptr) return std::nullopt;
  return std::chrono::seconds(small(field(result, "TTL")));
}

std::optional<LookAnswer> read_look(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  return LookAnswer{leader_key(first_kv(&*answer, 0)), revision_of(&*answer),
                    record_key(first_kv(&*answer, 1))};
}

std::optional<CampaignAnswer> read_campaign(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  CampaignAnswer campaign;
  campaign.won = is_true(field(&*answer, "succeeded"));
  campaign.revision = revision_of(&*answer);
  campaign.record = record_key(first_kv(&*answer, 1));
  if (!campaign.won) campaign.key = leader_key(first_kv(&*answer, 0));
  return campaign;
}

std::optional<WriteAnswer> read_recorded(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  if (is_true(field(&*answer, "succeeded"))) return WriteAnswer{true, {}, revision_of(&*answer)};
  return WriteAnswer{false, leader_key(first_kv(&*answer, 0)),
                     integer(field(first_kv(&*answer, 1), "mod_revision"))};
}

std::optional<WatchAnswer> read_watch(std::string_view line) {
  const auto answer = parse(line);
  if (!answer) return std::nullopt;
  WatchAnswer watch;
  if (const json::value* error = field(&*answer, "error")) {
    watch.ended = text_of(field(error, "message"));
    if (watch.ended.empty()) watch.ended = json::serialize(*error);
    return watch;
  }
  const json::value* result = field(&*answer, "result");
  if (field(result, "header") == nullptr) return std::nullopt;
  if (is_true(field(result, "canceled"))) {
    const bool compacted = integer(field(result, "compact_revision")) != 0;
    watch.ended = compacted ? "the revision was compacted" : "etcd canceled it";
  }
  const json::value* events = field(result, "events");
  const json::value* last = nullptr;
  for (std::size_t i = 0; const json::value* event = element(events, i); ++i) last = event;
  if (last == nullptr) return watch;
  watch.changed = true;
  if (text_of(field(last, "type")) != "DELETE") watch.key = leader_key(field(last, "kv"));
  return watch;
}

std::optional<Refusal> read_refusal(std::string_view body) {
  const auto answer = parse(body.substr(0, body.find('\n')));
  if (!answer) return std::nullopt;
  const json::value* error = field(&*answer, "error");
  if (error == nullptr) return std::nullopt;
  if (error->is_object()) {
    return Refusal{small(field(error, "grpc_code")), text_of(field(error, "message"))};
  }
  return Refusal{small(field(&*answer, "code")), text_of(error)};
}

}  // namespace ddprun::etcd
