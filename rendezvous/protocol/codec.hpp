// The bytes of a message: one JSON object with a "type". Pure functions. Unknown fields are
// ignored, so that a newer peer may add fields; everything else that is not exactly a message is an
// error. Input may be hostile: sizes, ranges and nesting are checked.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::protocol {

/// The body of a frame. Text that is not UTF-8 or too long is cleaned and cut, so every message of
/// ours fits a frame and can be read back.
[[nodiscard]] std::string encode(const Message& message);

/// Errors: kUnsupported for a type this version does not know (answer Unknown and continue), kUsage
/// for anything malformed (close the connection). The sentence names the field.
[[nodiscard]] Result<Message> decode(std::string_view body);

/// The name of a message on the wire: "hello", "round", ...
[[nodiscard]] std::string_view type_of(const Message& message);

}  // namespace ddprun::protocol
