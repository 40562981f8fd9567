#include "agent/warm/hook.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "agent/warm/core/stock.hpp"
#include "agent/warm/hook_text.hpp"
#include "net/disk_thread.hpp"

namespace ddprun::warm {

namespace {

constexpr std::string_view kName = "sitecustomize.py";

void put(std::string& bytes, std::uint64_t number, int width) {
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFFU);
}

// The fields that both headers of a file in an archive have: version, flags, method (stored), time,
// date, checksum (which Python does not look at), sizes, length of the name.
void put_common(std::string& bytes, std::uint32_t size) {
  put(bytes, 20, 2);
  put(bytes, 0, 6);
  put(bytes, 0x21, 2);  // 1980-01-01
  put(bytes, 0, 4);
  put(bytes, size, 4);
  put(bytes, size, 4);
  put(bytes, static_cast<std::uint32_t>(kName.size()), 2);
}

// The format of PKWARE's APPNOTE, with one file that is not compressed.
std::string archive_of(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string bytes = "PK\x03\x04";
  put_common(bytes, size);
  put(bytes, 0, 2);
  bytes += kName;
  bytes += text;
  const auto directory = static_cast<std::uint32_t>(bytes.size());
  bytes += "PK\x01\x02";
  put(bytes, 20, 2);
  put_common(bytes, size);
  put(bytes, 0, 8);  // of the extra field and the comment; disk, attributes
  put(bytes, 0, 8);  // attributes, place of the file
  bytes += kName;
  const auto directory_size = static_cast<std::uint32_t>(bytes.size()) - directory;
  bytes += "PK\x05\x06";
  put(bytes, 0, 4);
  put(bytes, 1, 2);
  put(bytes, 1, 2);
  put(bytes, directory_size, 4);
  put(bytes, directory, 4);
  put(bytes, 0, 2);
  return bytes;
}

}  // namespace

int memory_file(const char* name, const std::string& content) {
  const int file = ::memfd_create(name, MFD_CLOEXEC);
  if (file < 0 || write_all(file, content) == 0) return file;
  ::close(file);
  return -1;
}

int open_hook() {
  return memory_file("ddprun-hook", archive_of(kHookText));
}

std::string template_mark(const std::string& of_worker) {
  const auto last = of_worker.rfind(',') + 1;  // below another ddprun there are several
  const auto end = of_worker.find('/', last);
  return of_worker.substr(0, end) + "/" + std::string(40, '-');
}

Environment template_environment(const Environment& worker, const HookOrder& order) {
  Environment environment = common_environment(worker);
  const auto path = environment.find("PYTHONPATH");
  const bool set = path != environment.end();
  const std::string users = set ? path->second : "";
  environment["PYTHONPATH"] =
      "/proc/self/fd/" + std::to_string(order.archive) + (users.empty() ? "" : ":" + users);
  std::string text;
  for (const int number : {order.link, order.archive, order.out, order.err, order.agent,
                           order.memory, order.maps, order.early_out, order.early_err}) {
    text += std::to_string(number) + ";";
  }
  environment["DDPRUN_TEMPLATE"] = text + (set ? "1;" : "0;") + order.modules;
  environment["DDPRUN_WORKER"] = order.mark;
  return environment;
}

}  // namespace ddprun::warm
