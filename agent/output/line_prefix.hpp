// The prefix of a tee'd line. Pure.
#pragma once

#include <string>

namespace ddprun {

/// The values of the macros in a prefix template.
struct LinePrefixMacros {
  std::string role_name;
  int local_rank = 0;
  int rank = 0;
  std::string hostname;  // as returned by gethostname()
};

/// Replaces ${role_name}, ${local_rank}, ${rank}, ${hostname}, also without braces, and `$$` with
/// `$`; anything else, including unknown macros, is left unchanged. torchrun's default is
/// "[${role_name}${local_rank}]:"; a template replaces all of it, including the colon.
[[nodiscard]] std::string line_prefix(const std::string& text, const LinePrefixMacros& macros);

}  // namespace ddprun
