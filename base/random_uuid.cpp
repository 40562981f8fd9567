#include "base/random_uuid.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <random>

namespace ddprun {

namespace {

bool read_random_device(void* bytes, std::size_t count) {
  const int device = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (device < 0) return false;
  const ssize_t got = ::read(device, bytes, count);
  ::close(device);
  return got == static_cast<ssize_t>(count);
}

}  // namespace

void fill_random(unsigned char* bytes, std::size_t count) {
  if (::getrandom(bytes, count, 0) == static_cast<ssize_t>(count)) return;
  if (read_random_device(bytes, count)) return;
  std::random_device processor;  // where it has an instruction for that; else this throws
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(processor());
}

std::string random_uuid() {
  boost::uuids::uuid uuid{};
  fill_random(uuid.data, sizeof uuid.data);
  uuid.data[6] = static_cast<unsigned char>((uuid.data[6] & 0x0fU) | 0x40U);  // version 4
  uuid.data[8] = static_cast<unsigned char>((uuid.data[8] & 0x3fU) | 0x80U);
  return boost::uuids::to_string(uuid);
}

const std::string& uuid_of_process() {
  static const std::string own = random_uuid();
  return own;
}

}  // namespace ddprun
