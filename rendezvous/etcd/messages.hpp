// Bodies of etcd's v3 JSON gateway: what is asked, and what of the answers is used. Numbers are
// strings there, keys and values base64, and fields that are zero are left out. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "rendezvous/protocol/run_record.hpp"

namespace ddprun::etcd {

using LeaseId = std::int64_t;
using Revision = std::int64_t;

[[nodiscard]] std::string base64(std::string_view bytes);
/// nullopt unless it is base64 with padding.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

/// The keys of one run.
struct Keys {
  std::string leader;
  std::string record;
};
/// "/ddprun/RUN_ID/coordinator" and "/ddprun/RUN_ID/run".
[[nodiscard]] Keys keys_of(const std::string& prefix, const std::string& run_id);

/// Who coordinates: the value of the leader's key.
struct Leader {
  std::string agent;  // its process
  std::string host;   // an address literal
  std::uint16_t port = 0;
  friend bool operator==(const Leader&, const Leader&) = default;
};

/// The leader's key, as etcd has it.
struct LeaderKey {
  Leader leader;
  Revision term = 0;  // the revision that created the key: it grows with every leader
  LeaseId lease = 0;
  friend bool operator==(const LeaderKey&, const LeaderKey&) = default;
};

[[nodiscard]] std::string authenticate_body(const std::string& user, const std::string& password);
[[nodiscard]] std::string grant_body(Duration ttl);
[[nodiscard]] std::string lease_body(LeaseId lease);
/// Reads both keys.
[[nodiscard]] std::string look_body(const Keys& keys);
/// Creates the leader's key unless there is one, or the record has changed since `record_revision`
/// (0: there was none); reads the run's record, and the key if it was not created.
[[nodiscard]] std::string campaign_body(const Keys& keys, LeaseId lease, const Leader& self,
                                        Revision record_revision);
/// Writes the record, if the leader of `term` still leads and the record has not changed since
/// `record_revision` (0: there was none); else reads both keys.
[[nodiscard]] std::string record_body(const Keys& keys, Revision term, LeaseId lease,
                                      const RunRecord& record, Revision record_revision);
/// All changes of the leader's key since `from`.
[[nodiscard]] std::string watch_body(const Keys& keys, Revision from);

struct GrantAnswer {
  LeaseId lease = 0;
  Duration ttl{};
};
/// What is known of the run, as etcd has it.
struct RecordKey {
  RunRecord record;
  Revision revision = 0;  // of its last change
  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};
struct LookAnswer {
  std::optional<LeaderKey> key;
  Revision revision = 0;
  std::optional<RecordKey> record{};
};
struct CampaignAnswer {
  bool won = false;
  std::optional<LeaderKey> key;  // of another leader, unless it was won
  std::optional<RecordKey> record;
  Revision revision = 0;  // of the new key, if it was won
};
struct WriteAnswer {
  bool written = false;
  std::optional<LeaderKey> key;  // unless it was written
  Revision record_revision = 0;  // of the record that is there now
};
struct WatchAnswer {
  bool changed = false;
  std::optional<LeaderKey> key;  // as it is after the last change; none: it is gone
  std::string ended;             // why no more follows; empty: more follows
};
/// Of any answer that is no success.
struct Refusal {
  int code = 0;  // gRPC's
  std::string text;
};

/// Empty if there is none in it.
[[nodiscard]] std::string read_token(std::string_view body);
[[nodiscard]] std::optional<GrantAnswer> read_grant(std::string_view body);
/// The time that is left to the lease; 0: it has expired.
[[nodiscard]] std::optional<Duration> read_renewal(std::string_view body);
[[nodiscard]] std::optional<LookAnswer> read_look(std::string_view body);
[[nodiscard]] std::optional<CampaignAnswer> read_campaign(std::string_view body);
[[nodiscard]] std::optional<WriteAnswer> read_recorded(std::string_view body);
/// One line of the stream.
[[nodiscard]] std::optional<WatchAnswer> read_watch(std::string_view line);
[[nodiscard]] std::optional<Refusal> read_refusal(std::string_view body);

}  // namespace ddprun::etcd
