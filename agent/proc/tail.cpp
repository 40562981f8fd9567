#include "agent/proc/tail.hpp"

#include <algorithm>
#include <fstream>

namespace ddprun {

void Tail::append(std::string_view bytes) {
  if (bytes.size() >= bytes_max_) {
    kept_ = bytes.substr(bytes.size() - bytes_max_);
    return;
  }
  kept_ += bytes;
  if (kept_.size() > 2 * bytes_max_) kept_.erase(0, kept_.size() - bytes_max_);
}

std::string Tail::text() const {
  return kept_.substr(kept_.size() - std::min(kept_.size(), bytes_max_));
}

std::string tail_of_file(const std::string& path, std::size_t bytes_max) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<std::streamoff>(file.tellg());
  const auto wanted = std::min(size, static_cast<std::streamoff>(bytes_max));
  if (wanted <= 0) return {};
  std::string bytes(static_cast<std::size_t>(wanted), '\0');
  file.seekg(size - wanted);
  file.read(bytes.data(), wanted);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace ddprun
