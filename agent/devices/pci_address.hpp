// How /sys names a device of the PCI bus. Pure.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace ddprun {

/// "0000:dc:00.0", a folder of /sys/bus/pci/devices.
[[nodiscard]] inline std::string pci_address(unsigned domain, unsigned bus, unsigned device) {
  std::array<char, 40> text = {};
  const int length =
      std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", domain, bus, device);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace ddprun
