#include "rendezvous/etcd/messages.hpp"

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <limits>

namespace ddprun::etcd {

namespace json = boost::json;

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string number(std::int64_t value) {
  return std::to_string(value);
}

/// nullptr unless `value` is an object that has the field.
const json::value* field(const json::value* value, std::string_view name) {
  const auto* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

const json::value* element(const json::value* value, std::size_t index) {
  const auto* array = value == nullptr ? nullptr : value->if_array();
  return array == nullptr || index >= array->size() ? nullptr : &(*array)[index];
}

/// A number, as text or not; 0 if there is none.
std::int64_t integer(const json::value* value) {
  if (value == nullptr) return 0;
  if (const auto* whole = value->if_int64()) return *whole;
  const auto* text = value->if_string();
  if (text == nullptr) return 0;
  std::int64_t parsed = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, parsed);
  return error == std::errc() && stop == end ? parsed : 0;
}

std::string text_of(const json::value* value) {
  const auto* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

bool is_true(const json::value* value) {
  const auto* flag = value == nullptr ? nullptr : value->if_bool();
  return flag != nullptr && *flag;
}

int small(const json::value* value) {
  const std::int64_t parsed = integer(value);
  const bool fits = parsed >= 0 && parsed <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(parsed) : 0;
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

std::optional<RunRecord> run_record(const json::value* kv) {
  const auto value = kv == nullptr ? std::nullopt : decoded(kv);
  if (!value) return std::nullopt;
  RunRecord record;
  record.round = small(field(&*value, "round"));
  record.restarts = small(field(&*value, "restarts"));
  if (const json::value* over = field(&*value, "over")) {
    record.over = RunRecord::Verdict{small(field(over, "exit_code")), text_of(field(over, "text")),
                                     small(field(over, "nodes"))};
  }
  return record;
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
  return json::serialize(json::object{{"key", base64(keys.leader)}});
}

std::string campaign_body(const Keys& keys, LeaseId lease, const Leader& self) {
  const json::value leader{{"agent", self.agent}, {"host", self.host}, {"port", self.port}};
  const json::object absent{
      {"key", base64(keys.leader)}, {"target", "VERSION"}, {"result", "EQUAL"}, {"version", "0"}};
  return json::serialize(
      json::object{{"compare", json::array{absent}},
                   {"success", json::array{put(keys.leader, leader, lease), range(keys.record)}},
                   {"failure", json::array{range(keys.leader)}}});
}

std::string record_body(const Keys& keys, Revision term, LeaseId lease, const RunRecord& record) {
  json::object value{{"round", record.round}, {"restarts", record.restarts}};
  if (record.over) {
    value["over"] = {{"exit_code", record.over->exit_code},
                     {"text", record.over->text},
                     {"nodes", record.over->nodes}};
  }
  const json::object leads{{"key", base64(keys.leader)},
                           {"target", "CREATE"},
                           {"result", "EQUAL"},
                           {"create_revision", number(term)}};
  return json::serialize(json::object{{"compare", json::array{leads}},
                                      {"success", json::array{put(keys.record, value, lease)}}});
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
  return LookAnswer{leader_key(element(field(&*answer, "kvs"), 0)), revision_of(&*answer)};
}

std::optional<CampaignAnswer> read_campaign(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  CampaignAnswer campaign;
  campaign.won = is_true(field(&*answer, "succeeded"));
  campaign.revision = revision_of(&*answer);
  if (campaign.won) {
    campaign.record = run_record(first_kv(&*answer, 1));
  } else {
    campaign.key = leader_key(first_kv(&*answer, 0));
  }
  return campaign;
}

std::optional<bool> read_recorded(std::string_view body) {
  const auto answer = parse_answer(body);
  if (!answer) return std::nullopt;
  return is_true(field(&*answer, "succeeded"));
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
