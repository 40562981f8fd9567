// Texts of schedulers and command lines: lists of hosts, endpoints, --nnodes and --rdzv-conf.
#include "base/limits.hpp"
#include "launcher/request/request.hpp"
#include "launcher/schedulers/placement.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun;

namespace {

void check_list(std::string_view text) {
  const auto names = expand_hostlist(text);
  if (!names) {
    DDPRUN_ASSERT(names.error().sentence.size() < 400);
    return;
  }
  DDPRUN_ASSERT(!names->empty() && names->size() <= kHostlistMax);
  std::string plain;
  for (const std::string& name : *names) {
    DDPRUN_ASSERT(!name.empty() && name.size() <= kHostBytesMax);
    if (plain.size() < 4096) plain += (plain.empty() ? "" : ",") + name;
  }
  const auto again = expand_hostlist(plain);
  DDPRUN_ASSERT(again && std::equal(again->begin(), again->end(), names->begin()));
}

void check_endpoint(const std::string& text) {
  const auto endpoint = parse_endpoint(text, "--rdzv-endpoint");
  if (!endpoint) return;
  const auto again = parse_endpoint(text_of(*endpoint), "--rdzv-endpoint");
  DDPRUN_ASSERT(again && again->host == endpoint->host && again->port == endpoint->port);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  check_list(text);
  const std::string of_regex = hostlist_of_node_regex(text);
  if (of_regex != text) check_list(of_regex);
  check_endpoint(text);
  Origin origin;
  origin.name = "--nnodes";
  origin.text = text;
  const auto nodes = parse_nodes(origin);
  DDPRUN_ASSERT(!nodes || (0 < nodes->min && nodes->min <= nodes->max && nodes->max <= kNodesMax));
  const auto conf = parse_conf(origin);
  DDPRUN_ASSERT(conf || !conf.error().sentence.empty());
  return 0;
}
