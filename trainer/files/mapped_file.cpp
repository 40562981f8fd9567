#include "trainer/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "trainer/error.hpp"
#include "trainer/files/descriptor.hpp"

namespace ddprun::trainer {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw TrainerError("cannot read " + path.string() + ": " + why);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, std::size_t bytes_max) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) refuse(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse(path, "it is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > bytes_max) {
    refuse(path,
           "it has " + std::to_string(size) + " bytes, the limit is " + std::to_string(bytes_max));
  }
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) refuse(path, std::strerror(errno));
  data_ = std::shared_ptr<const std::byte>(
      static_cast<const std::byte*>(address),
      [size](const std::byte* data) { ::munmap(const_cast<std::byte*>(data), size); });
  size_ = size;
}

void MappedFile::populate() const noexcept {
  (void)::madvise(const_cast<std::byte*>(data_.get()), size_, MADV_POPULATE_READ);
}

}  // namespace ddprun::trainer
