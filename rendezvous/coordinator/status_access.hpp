// StatusAccess: who may read GET /status, and the words of --status, which `ddprun` and
// `ddprun-rdzvd` share. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddprun::coordinator {

enum class StatusAccess { kOff, kLocal, kAll };

inline constexpr std::string_view kStatusChoices = "off,local,all";
inline constexpr std::string_view kStatusMetavar = "off|local|all";
inline constexpr std::string_view kStatusPreset = "local";
inline constexpr std::string_view kStatusHelp =
    "Who may read GET /status of the coordinator: programs on its machine (local), on all "
    "machines (all), or none (off).";

/// nullopt for a word that is not one of kStatusChoices.
[[nodiscard]] std::optional<StatusAccess> parse_status_access(std::string_view word);

/// Whether a peer at `address` may read it that has reached this machine at `local_address`.
[[nodiscard]] bool may_ask(StatusAccess access, const std::string& address,
                           const std::string& local_address);

}  // namespace ddprun::coordinator
