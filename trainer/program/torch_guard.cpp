#include "trainer/program/torch_guard.hpp"

#include <link.h>

#include <fstream>
#include <iterator>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

int note_library(dl_phdr_info* info, std::size_t, void* out) {
  const std::filesystem::path path(info->dlpi_name);
  if (path.filename() != "libtorch_cpu.so") return 0;
  *static_cast<std::filesystem::path*>(out) = path;
  return 1;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string major_minor(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

LoadedTorch loaded_torch() {
  LoadedTorch loaded;
  ::dl_iterate_phdr(note_library, &loaded.library);
  const auto root = loaded.library.parent_path().parent_path();
  loaded.version = version_in(text_of(root / "version.py"));
  return loaded;
}

std::string version_in(std::string_view version_py) {
  constexpr std::string_view kName = "__version__ = '";
  const auto begin = version_py.find(kName);
  if (begin == std::string_view::npos) return {};
  version_py.remove_prefix(begin + kName.size());
  return std::string(version_py.substr(0, version_py.find('\'')));
}

void require_torch(const std::string& built_for, const LoadedTorch& loaded) {
  if (loaded.version.empty() || major_minor(loaded.version) == major_minor(built_for)) return;
  throw UsageError("this program is built for torch " + major_minor(built_for) +
                   " but runs on torch " + loaded.version + " (" + loaded.library.string() +
                   "); unset LD_LIBRARY_PATH, or build it against that torch");
}

}  // namespace ddprun::trainer
