// Whether what a coordinator announces can be: an agent believes no server that happens to listen
// at the endpoint, and starts nothing with ranks that contradict each other or itself. Pure
// functions. They return what cannot be, for people; empty: nothing.
#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::client {

/// `own`: what this agent said of itself.
[[nodiscard]] std::string what_cannot_be(const protocol::StartRound& start,
                                         const protocol::Hello& own);

/// `greeted`: this coordinator, or one before it, has said something of the run. A real one greets
/// before it says how the run ended.
[[nodiscard]] std::string what_cannot_be(const protocol::Done& done, bool greeted);

}  // namespace ddprun::client
