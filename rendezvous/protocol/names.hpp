// The names of enumerators on the wire, in status pages and in tests: one table for both
// directions.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::protocol {

inline constexpr std::array<std::pair<NodeState, std::string_view>, 7> kNodeStateNames{{
    {NodeState::kIdle, "idle"},
    {NodeState::kStarting, "starting"},
    {NodeState::kRunning, "running"},
    {NodeState::kSucceeded, "succeeded"},
    {NodeState::kFailed, "failed"},
    {NodeState::kStopping, "stopping"},
    {NodeState::kStopped, "stopped"},
}};

inline constexpr std::array<std::pair<RefusalCode, std::string_view>, 10> kRefusalNames{{
    {RefusalCode::kProtocol, "protocol"},
    {RefusalCode::kMalformed, "malformed"},
    {RefusalCode::kWrongRun, "wrong-run"},
    {RefusalCode::kTermsDiffer, "terms-differ"},
    {RefusalCode::kCommandDiffers, "command-differs"},
    {RefusalCode::kNodeRankTaken, "node-rank-taken"},
    {RefusalCode::kNodeRankTooHigh, "node-rank-too-high"},
    {RefusalCode::kRunOver, "run-over"},
    {RefusalCode::kRunFull, "run-full"},
    {RefusalCode::kNotAnswering, "not-answering"},
}};

inline constexpr std::array<std::pair<WaitEnd, std::string_view>, 3> kWaitEndNames{{
    {WaitEnd::kRunFails, "run-fails"},
    {WaitEnd::kRoundStarts, "round-starts"},
    {WaitEnd::kOthersAreLost, "others-are-lost"},
}};

inline constexpr std::array<std::pair<EvidenceSource, std::string_view>, 3> kEvidenceNames{{
    {EvidenceSource::kStderr, "stderr"},
    {EvidenceSource::kErrorFile, "error-file"},
    {EvidenceSource::kTornErrorFile, "torn-error-file"},
}};

inline constexpr std::array<std::pair<ComplaintKind, std::string_view>, 3> kComplaintNames{{
    {ComplaintKind::kCollective, "collective"},
    {ComplaintKind::kLostPeer, "lost-peer"},
    {ComplaintKind::kRendezvous, "rendezvous"},
}};

inline constexpr std::array<std::pair<RankEnd, std::string_view>, 3> kRankEndNames{{
    {RankEnd::kRuns, "runs"},
    {RankEnd::kSucceeded, "succeeded"},
    {RankEnd::kFailed, "failed"},
}};

/// The name of `value`, "?" for a value outside the enum.
template <class Table, class Enum>
[[nodiscard]] constexpr std::string_view name_in(const Table& table, Enum value) {
  for (const auto& [key, name] : table) {
    if (key == value) return name;
  }
  return "?";
}

[[nodiscard]] constexpr std::string_view name_of(NodeState state) {
  return name_in(kNodeStateNames, state);
}
[[nodiscard]] constexpr std::string_view name_of(RefusalCode code) {
  return name_in(kRefusalNames, code);
}
[[nodiscard]] constexpr std::string_view name_of(WaitEnd end) {
  return name_in(kWaitEndNames, end);
}
[[nodiscard]] constexpr std::string_view name_of(EvidenceSource source) {
  return name_in(kEvidenceNames, source);
}
[[nodiscard]] constexpr std::string_view name_of(ComplaintKind kind) {
  return name_in(kComplaintNames, kind);
}
[[nodiscard]] constexpr std::string_view name_of(RankEnd end) {
  return name_in(kRankEndNames, end);
}

[[nodiscard]] constexpr const auto& names_of(NodeState) {
  return kNodeStateNames;
}
[[nodiscard]] constexpr const auto& names_of(RefusalCode) {
  return kRefusalNames;
}
[[nodiscard]] constexpr const auto& names_of(WaitEnd) {
  return kWaitEndNames;
}
[[nodiscard]] constexpr const auto& names_of(EvidenceSource) {
  return kEvidenceNames;
}
[[nodiscard]] constexpr const auto& names_of(ComplaintKind) {
  return kComplaintNames;
}
[[nodiscard]] constexpr const auto& names_of(RankEnd) {
  return kRankEndNames;
}

}  // namespace ddprun::protocol
