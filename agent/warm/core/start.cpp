#include "agent/warm/core/start.hpp"

#include <algorithm>
#include <array>

namespace ddprun::warm {

namespace {

// As in agent/warm/sitecustomize.py.
constexpr std::array<std::string_view, 13> kLateNames{
    "RANK",        "LOCAL_RANK",       "GROUP_RANK",           "ROLE_RANK",
    "ROLE_NAME",   "WORLD_SIZE",       "LOCAL_WORLD_SIZE",     "ROLE_WORLD_SIZE",
    "MASTER_ADDR", "GROUP_WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "MASTER_PORT"};

template <class Map>
std::string first_difference(const Map& one, const Map& other) {
  const auto pair = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const bool first = pair.first != one.end();
  const bool second = pair.second != other.end();
  if (!first && !second) return {};
  if (!first || !second) return first ? pair.first->first : pair.second->first;
  return std::min(pair.first->first, pair.second->first);
}

}  // namespace

bool is_late(std::string_view name) {
  if (name == "DDPRUN_WORKER_LIBRARY") return false;  // read when the module ddprun is imported
  if (name.starts_with("TORCHELASTIC_") || name.starts_with("DDPRUN_")) return true;
  return std::find(kLateNames.begin(), kLateNames.end(), name) != kLateNames.end();
}

Environment common_environment(const Environment& environment) {
  Environment common;
  for (const auto& [name, value] : environment) {
    if (!is_late(name)) common.emplace_hint(common.end(), name, value);
  }
  return common;
}

std::string difference(const Start& made, const Start& wanted) {
  if (made.program != wanted.program) return "the interpreter";
  if (made.argv != wanted.argv) return "the command line";
  std::string variable = first_difference(common_environment(made.environment),
                                          common_environment(wanted.environment));
  if (!variable.empty()) return variable;
  const std::string other = first_difference(made.inherited, wanted.inherited);
  return other.empty() ? "" : "the " + other;
}

}  // namespace ddprun::warm
