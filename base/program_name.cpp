#include "base/program_name.hpp"

namespace ddprun {

namespace {
std::string_view own_name = kDdprunName;
}  // namespace

std::string program_name() {
  return std::string(own_name);
}

void set_program_name(std::string_view name) {
  for (const std::string_view known : kProgramNames) {
    if (known == name) own_name = known;
  }
}

}  // namespace ddprun
