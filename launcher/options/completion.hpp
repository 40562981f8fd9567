// Completion scripts for shells, generated from the option table. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

/// What --print-completion prints for `shell`, one of the choices of that option; it completes the
/// program `name`, which takes the commands (`ddprun ps`) only if it is called ddprun.
[[nodiscard]] std::string completion_script(std::string_view shell, const std::string& name);

}  // namespace ddprun
