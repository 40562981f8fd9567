#include <cstdlib>
#include <sstream>

#include "base/address.hpp"
#include "base/printable.hpp"
#include "launcher/options/values.hpp"
#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"
#include "launcher/schedulers/placement.hpp"

namespace ddprun {
namespace {

/// The address under which this node would run the coordinator.
Result<std::string> address_to_offer(const RendezvousRequest& asked, const Machine& machine) {
  const Setting<std::string>& given = asked.local_addr;
  if (!given.value.empty()) return parse_host(given.value, given.shown());
  std::string name = machine.host_name();
  const Whereabouts found = machine.locate(name);
  const bool is_outward =
      found.place == Whereabouts::Place::kHere && !is_loopback_literal(found.literal);
  return is_outward ? found.literal : name;  // other nodes know better what it means
}

/// Like those of schedulers: outside of what the kernel gives to clients, so probably free.
std::uint16_t port_to_offer(const Machine& machine) {
  const std::string digits = machine.random_id().substr(0, 8);
  const unsigned long number = std::strtoul(digits.c_str(), nullptr, 16);
  return static_cast<std::uint16_t>(kSchedulerPortFirst + number % kSchedulerPortCount);
}

/// Without blanks and line ends, and different for each run id.
std::string as_key(const std::string& run_id) {
  std::string key;
  for (const char letter : run_id) {
    if (letter == '\\') key += '\\';
    key += letter == ' ' ? "\\s" : std::string(1, letter);
  }
  return printable(key);
}

}  // namespace

Result<Endpoint> endpoint_in_file(const RendezvousRequest& asked, const Machine& machine) {
  const std::string& path = asked.endpoint.text;
  if (path.empty()) {
    return usage("--rdzv-conf store_type=file: " + text_of(asked.nodes.value) +
                 " need the path of one file: pass it as --rdzv-endpoint");
  }
  auto own = address_to_offer(asked, machine);
  if (!own) return own.error();
  const std::string offer =
      machine.host_name() + " " + text_of(Endpoint{*own, port_to_offer(machine)});
  const Agree agree = asked.leaves_no_trace ? Agree::kLook : Agree::kWrite;
  auto agreed = machine.agreed_line(path, as_key(asked.run_id.value), offer, agree);
  if (!agreed) return agreed.error();
  if (agreed->empty()) return Endpoint{*own, std::nullopt};
  std::istringstream words(*agreed);
  std::string host;
  std::string address;
  words >> host >> address;
  auto endpoint = parse_endpoint(address, asked.endpoint.shown() + ", its line " + *agreed);
  if (!endpoint) return endpoint.error();
  const bool elsewhere = host != machine.host_name() && named_loopback(endpoint->host);
  if (!elsewhere) return endpoint;
  return usage(asked.endpoint.shown() + ": " + host + " offers " + address +
               ", which no other machine can reach; pass --local-addr on " + host);
}

}  // namespace ddprun
