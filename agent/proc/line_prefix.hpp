// The header of a tee'd line. Pure, no thread rule.
#pragma once

#include <string>

namespace ddprun {

/// What the macros of a prefix template stand for.
struct LinePrefixMacros {
  std::string role_name;
  int local_rank = 0;
  int rank = 0;
  std::string hostname;  // as gethostname() gives it
};

/// Replaces ${role_name}, ${local_rank}, ${rank}, ${hostname} and their forms without braces; `$$`
/// becomes
/// `$`; anything else, unknown macros too, stays as it is. torchrun's default is
/// "[${role_name}${local_rank}]:" and a template replaces all of it, colon included.
[[nodiscard]] std::string line_prefix(const std::string& text, const LinePrefixMacros& macros);

}  // namespace ddprun
