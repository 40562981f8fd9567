#include "agent/output/line_prefix.hpp"

#include "base/macros.hpp"

namespace ddprun {

std::string line_prefix(const std::string& text, const LinePrefixMacros& macros) {
  return substitute(text, {{"role_name", macros.role_name},
                           {"local_rank", std::to_string(macros.local_rank)},
                           {"rank", std::to_string(macros.rank)},
                           {"hostname", macros.hostname}});
}

}  // namespace ddprun
