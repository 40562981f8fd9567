// Ids that no other process has.
#pragma once

#include <string>

namespace ddprun {

/// A random UUID (RFC 4122, version 4): "3e35e7dd-7f33-4c57-a190-f74f9e368460".
[[nodiscard]] std::string random_uuid();

}  // namespace ddprun
