#include "launcher/workers/config.hpp"

#include <algorithm>
#include <utility>

#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

constexpr std::size_t kDevicesShown = 16;

/// "0 (GPU-4f..), 1 (GPU-8a..)".
std::string list_of(const std::vector<GpuDevice>& devices) {
  std::vector<std::string> shown;
  for (const GpuDevice& device : devices) {
    if (shown.size() == kDevicesShown) break;
    const std::string uuid = device.uuid.empty() ? "" : " (" + device.uuid + ")";
    shown.push_back(std::to_string(shown.size()) + uuid);
  }
  return joined(shown) + (devices.size() > kDevicesShown ? ", ..." : "");
}

/// The positions of the devices that `name` may mean.
std::vector<std::size_t> named(const std::string& name, const std::vector<GpuDevice>& visible) {
  std::vector<std::size_t> found;
  if (const auto index = parse_digits(name)) {
    if (*index < visible.size()) found.push_back(static_cast<std::size_t>(*index));
    return found;
  }
  for (std::size_t at = 0; at < visible.size(); ++at) {
    if (visible[at].uuid == name) return {at};
    if (visible[at].uuid.starts_with(name)) found.push_back(at);
  }
  return found;
}

Result<std::vector<GpuDevice>> choose_all(const Origin& option,
                                          const std::vector<GpuDevice>& visible) {
  const auto instances = std::count_if(visible.begin(), visible.end(),
                                       [](const GpuDevice& device) { return device.is_instance; });
  if (instances == 0 || static_cast<std::size_t>(instances) == visible.size()) return visible;
  return usage(option.shown() +
               ": only some GPUs here have MIG, so devices would not be alike: list those that "
               "workers get, of " +
               list_of(visible));
}

/// PyTorch reads a list of indices or one of UUIDs, and ends it at the first of the other kind. A
/// CUDA_VISIBLE_DEVICES that mixes them gives the devices such names: then each gets its UUID.
Result<void> name_alike(std::vector<GpuDevice>& chosen, const Origin& option,
                        const std::string& with) {
  const auto by_uuid = std::count_if(chosen.begin(), chosen.end(),
                                     [](const GpuDevice& each) { return is_gpu_uuid(each.name); });
  if (by_uuid == 0 || static_cast<std::size_t>(by_uuid) == chosen.size()) return {};
  for (GpuDevice& device : chosen) {
    if (device.uuid.empty()) {
      return usage(option.shown() + ": the visible devices" + with +
                   " mix indices and UUIDs, which PyTorch cannot read, and the UUID of " +
                   device.name + " is unknown: make them alike");
    }
    device.name = device.uuid;
  }
  return {};
}

}  // namespace

Result<std::vector<GpuDevice>> choose_gpus(const Origin& option, const GpuChoice& choice,
                                           const std::vector<GpuDevice>& visible,
                                           const std::optional<std::string>& variable) {
  const std::string with = variable ? " (CUDA_VISIBLE_DEVICES=" + *variable + ")" : "";
  if (visible.empty()) {
    return usage(option.shown() + ": no NVIDIA GPU is visible here" + with +
                 "; omit the option to run without");
  }
  std::vector<GpuDevice> chosen;
  std::vector<std::size_t> taken;
  if (choice.names.empty()) {
    auto all = choose_all(option, visible);
    if (!all) return all;
    chosen = std::move(*all);
  }
  for (const std::string& name : choice.names) {
    const auto found = named(name, visible);
    if (found.size() != 1) {
      return usage(option.shown() + ": " + name +
                   (found.empty() ? " is not one" : " may mean several") +
                   " of the devices visible here" + with + ": " + list_of(visible));
    }
    if (std::find(taken.begin(), taken.end(), found.front()) != taken.end()) {
      return usage(option.shown() + ": " + name + " is listed twice, of the devices visible here" +
                   with + ": " + list_of(visible));
    }
    taken.push_back(found.front());
    chosen.push_back(visible[found.front()]);
    if (is_gpu_uuid(name)) chosen.back().name = chosen.back().uuid;
  }
  auto alike = name_alike(chosen, option, with);
  if (!alike) return alike.error();
  return chosen;
}

}  // namespace ddprun
