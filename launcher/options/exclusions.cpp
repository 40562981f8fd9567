#include "launcher/options/exclusions.hpp"

#include <array>
#include <utility>

#include "launcher/options/values.hpp"
#include "launcher/rendezvous/nodes.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using When = bool (*)(const Settings&);

/// The run's largest number of nodes; 1 for a text that is refused later.
int nodes_max(const Settings& settings) {
  const auto nodes = parse_nodes(settings.origin(Id::kNnodes));
  return nodes ? nodes->max : 1;
}

bool always(const Settings& /*settings*/) {
  return true;
}
bool several_nodes(const Settings& settings) {
  return nodes_max(settings) > 1;
}
bool one_node(const Settings& settings) {
  return nodes_max(settings) == 1;
}
bool other_count(const Settings& settings) {
  const auto hosts = split_list(settings.text(Id::kHosts)).size();
  return static_cast<std::size_t>(nodes_max(settings)) != hosts;
}
bool is_static(const Settings& settings) {
  return settings.text(Id::kRdzvBackend) == "static";
}
bool no_files(const Settings& settings) {
  return settings.text(Id::kLogDir) == "/dev/null";
}

struct Exclusion {
  Id left_out = Id::kCount;
  Id by = Id::kCount;
  When when = always;
};

/// Both directions where each excludes the other.
constexpr std::array<Exclusion, 38> kExclusions{{
    {Id::kStandalone, Id::kNnodes, several_nodes},
    {Id::kNnodes, Id::kStandalone, several_nodes},
    {Id::kNodeRank, Id::kNnodes, one_node},
    {Id::kRdzvEndpoint, Id::kNnodes, one_node},
    {Id::kStandalone, Id::kRdzvEndpoint},
    {Id::kStandalone, Id::kHosts},
    {Id::kHosts, Id::kStandalone},
    {Id::kHosts, Id::kNnodes, other_count},
    {Id::kNnodes, Id::kHosts, other_count},
    {Id::kHosts, Id::kRdzvEndpoint},
    {Id::kRdzvEndpoint, Id::kHosts},
    {Id::kHosts, Id::kMasterAddr},
    {Id::kMasterAddr, Id::kHosts},
    {Id::kHosts, Id::kMasterPort},
    {Id::kMasterPort, Id::kHosts},
    {Id::kHosts, Id::kRdzvBackend, is_static},
    {Id::kRdzvBackend, Id::kHosts, is_static},
    {Id::kRdzvEndpoint, Id::kMasterAddr, is_static},
    {Id::kRdzvEndpoint, Id::kMasterPort, is_static},
    {Id::kRdzvSecretFile, Id::kRdzvTlsCert},
    {Id::kRdzvTlsCert, Id::kRdzvSecretFile},
    {Id::kRdzvTlsKey, Id::kRdzvSecretFile},
    {Id::kRdzvTlsCa, Id::kRdzvSecretFile},
    {Id::kModule, Id::kNoPython},
    {Id::kNoPython, Id::kModule},
    {Id::kRunPath, Id::kModule},
    {Id::kRunPath, Id::kNoPython},
    {Id::kQuiet, Id::kVerbose},
    {Id::kVerbose, Id::kQuiet},
    {Id::kSpares, Id::kVirtualLocalRank},
    {Id::kVirtualLocalRank, Id::kSpares},
    {Id::kSpares, Id::kNumaBinding},
    {Id::kNumaBinding, Id::kSpares},
    {Id::kSpares, Id::kShareGpus},
    {Id::kLogDir, Id::kDuplicateStdoutFilters, no_files},
    {Id::kLogDir, Id::kDuplicateStderrFilters, no_files},
    {Id::kDuplicateStdoutFilters, Id::kLogDir, no_files},
    {Id::kDuplicateStderrFilters, Id::kLogDir, no_files},
}};

}  // namespace

std::vector<std::string> leave_out_excluded(Settings& settings) {
  std::vector<std::string> notes;
  for (const Exclusion& exclusion : kExclusions) {
    const Origin by = settings.origin(exclusion.by);
    if (by.source <= Source::kFile || !by.given || !exclusion.when(settings)) continue;
    auto note = settings.leave_out(exclusion.left_out, by.shown());
    if (note) notes.push_back(std::move(*note));
  }
  return notes;
}

}  // namespace ddprun
