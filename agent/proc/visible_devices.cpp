#include "agent/proc/visible_devices.hpp"

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <charconv>
#include <sstream>
#include <utility>

namespace ddprun {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The numeric prefix of an element, parsed like strtol; -1 if it selects no GPU.
int index_of_number(const std::string& element, const GpuTable& table) {
  const char* begin = element.data() + (element.starts_with('+') ? 1 : 0);
  int index = -1;
  const auto read = std::from_chars(begin, element.data() + element.size(), index);
  return read.ec == std::errc() && index < table.count ? index : -1;
}

// The only GPU whose UUID starts with `element`.
int index_of_uuid(const std::string& element, const GpuTable& table) {
  int found = -1;
  for (std::size_t index = 0; index < table.uuids.size(); ++index) {
    if (!table.uuids[index].starts_with(element)) continue;
    if (found != -1) return -1;
    found = static_cast<int>(index);
  }
  return found;
}

constexpr int kSlice = -1;  // the GPU of a MIG slice

struct Selected {
  std::string element;
  int index = kSlice;
};

std::vector<Selected> select(const std::optional<std::string>& variable, const GpuTable& table) {
  std::vector<Selected> selected;
  if (!variable) {
    for (int index = 0; index < table.count; ++index) {
      selected.push_back({std::to_string(index), index});
    }
    return selected;
  }
  std::istringstream list(*variable);
  for (std::string item; std::getline(list, item, ',');) {
    const std::string element = boost::algorithm::trim_copy_if(item, is_blank);
    if (element.starts_with("MIG-")) {
      if (selected.empty() && table.count > 0) selected.push_back({element, kSlice});
      return selected;
    }
    const bool uuid = element.starts_with("GPU-");
    const int index = uuid && !table.uuids.empty() ? index_of_uuid(element, table)
                                                   : index_of_number(element, table);
    if (index < 0) break;
    const bool twice = std::any_of(selected.begin(), selected.end(),
                                   [index](const Selected& other) { return other.index == index; });
    if (twice) return {};
    selected.push_back({element, index});
  }
  return selected;
}

}  // namespace

std::vector<std::string> visible_devices(const std::optional<std::string>& variable,
                                         const GpuTable& table) {
  std::vector<std::string> elements;
  for (Selected& selected : select(variable, table)) {
    elements.push_back(std::move(selected.element));
  }
  return elements;
}

std::vector<std::string> visible_addresses(const std::optional<std::string>& variable,
                                           const GpuTable& table) {
  std::vector<std::string> addresses;
  for (const Selected& selected : select(variable, table)) {
    const auto index = static_cast<std::size_t>(selected.index);
    const bool known = selected.index != kSlice && index < table.addresses.size();
    addresses.push_back(known ? table.addresses[index] : "");
  }
  return addresses;
}

std::vector<int> gpus_of_visible_devices(const std::optional<std::string>& variable,
                                         const GpuTable& table) {
  std::vector<int> indices;
  for (const Selected& selected : select(variable, table)) {
    if (selected.index == kSlice) return gpus_of_visible_devices(std::nullopt, table);
    indices.push_back(selected.index);
  }
  return indices;
}

}  // namespace ddprun
