// Ids that no other process has.
#pragma once

#include <cstddef>
#include <string>

namespace ddprun {

/// A random UUID (RFC 4122, version 4): "3e35e7dd-7f33-4c57-a190-f74f9e368460".
[[nodiscard]] std::string random_uuid();

/// The one of this process, made at the first call.
[[nodiscard]] const std::string& uuid_of_process();

/// From getrandom(2); where a sandbox refuses that, from /dev/urandom, or from the processor.
void fill_random(unsigned char* bytes, std::size_t count);

}  // namespace ddprun
