// The logger of ddprun's own messages: standard error, one write per message, no time stamps of its
// own. A console that takes nothing (a stopped terminal, a full pipe) costs a bounded wait, then
// lines are dropped. Thread rule: one thread. Ownership: the caller keeps the logger; it is not in
// spdlog's registry.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

namespace ddprun {

/// Writes every message as it is, plus a newline, to `descriptor`. Does not take the descriptor
/// over.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_logger(int descriptor = 2);

/// A logger for a part that knows nothing of consoles: its lines, from warnings on, become messages
/// of ddprun, `ddprun: warning [CODE] line`. `messages` must outlive it.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_part_logger(spdlog::logger& messages,
                                                               const std::string& code);

}  // namespace ddprun
