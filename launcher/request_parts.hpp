// The parts of a Request that have files of their own. Pure.
#pragma once

#include "launcher/request.hpp"

namespace ddprun {

[[nodiscard]] Result<StopRequest> parse_stopping(const Settings& settings,
                                                 const Environment& environment);
[[nodiscard]] Result<LogRequest> parse_logs(const Settings& settings,
                                            const Environment& environment);

/// --http, or TORCHELASTIC_HEALTH_CHECK_PORT on the wildcard address; as in torchrun a value of
/// that which is not a port is ignored, which health_port_note() says.
[[nodiscard]] Result<std::optional<HttpConfig>> parse_http(const Settings& settings,
                                                           const Environment& environment);

/// Empty: it is unset, or a port, or --http counts.
[[nodiscard]] std::vector<std::string> health_port_note(const Settings& settings,
                                                        const Environment& environment);

[[nodiscard]] Result<std::optional<WarmRequest>> parse_warm(const Settings& settings);

/// Whether torchrun's events are written to the console; as there, not with a LOGLEVEL above INFO.
/// dynamic_rendezvous is silent in torchrun, too, unless a program that imports it replaces the
/// handler.
[[nodiscard]] Result<bool> parse_event_handler(const Settings& settings,
                                               const Environment& environment);

/// As in torchrun every value but "1" is off.
[[nodiscard]] std::optional<std::string> parse_timer_pipe(const Environment& environment);

}  // namespace ddprun
