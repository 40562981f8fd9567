// The keys that --rdzv-conf knows: what a value looks like, and where the key has a meaning.
// Constant data, no thread rule.
#pragma once

#include <array>
#include <string_view>

namespace ddprun {

enum class ConfKeyKind {
  kTime,      // a positive time
  kCount,     // a positive number
  kFraction,  // a number >= 0
  kSwitch,    // yes or no
  kStore,     // store_type
  kFixed,     // has an option of its own
  kRefused,   // known, not built
};

struct ConfKey {
  std::string_view name;
  ConfKeyKind kind;
  std::string_view remark = {};      // kFixed: the option to use; kRefused: what to do
  std::string_view elastic_no = {};  // why it does nothing with c10d; empty: it works
  std::string_view static_no = {};   // the same with static
};

inline constexpr std::string_view kNoCounterpart =
    "ddprun has no such step: a round is one message";

inline constexpr std::array<ConfKey, 19> kConfKeys{{
    {"join_timeout", ConfKeyKind::kTime},
    {"last_call_timeout", ConfKeyKind::kTime, "", "",
     "the static backend waits for all its nodes and for no more"},
    {"close_timeout", ConfKeyKind::kTime, "", kNoCounterpart, kNoCounterpart},
    {"heartbeat_timeout", ConfKeyKind::kTime, "",
     "no keep-alive is waited for; keep_alive_interval and keep_alive_max_attempt limit silence",
     "no keep-alive is waited for; keep_alive_interval and keep_alive_max_attempt limit silence"},
    {"read_timeout", ConfKeyKind::kTime, "",
     "join_timeout and coordinator_timeout limit the wait for the coordinator",
     "join_timeout and coordinator_timeout limit the wait for the coordinator"},
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
    {"protocol", ConfKeyKind::kRefused, "it belongs to etcd"},
}};

}  // namespace ddprun
