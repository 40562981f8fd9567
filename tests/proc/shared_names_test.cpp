#include "agent/proc/leftovers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

using namespace ddprun;

namespace {

void write(const TempDir& folder, const std::string& name) {
  std::ofstream(folder / name) << "x";
}

}  // namespace

TEST_CASE("new files that no process has open are left, and no others") {
  const TempDir folder;
  write(folder, "old");
  const SharedNames names(folder.path());
  CHECK(names.left().names.empty());
  for (const char* name : {"left", "held"}) write(folder, name);
  std::filesystem::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const int held = ::open((folder / "held").c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(names.left().names == std::vector<std::string>{"left"});
  CHECK(names.left().bytes > 0);
  ::close(held);
  CHECK(names.left().names == std::vector<std::string>{"held", "left"});
}

TEST_CASE("a full /dev/shm is not looked through") {
  const TempDir folder;
  for (int i = 0; i < 5000; ++i) write(folder, std::to_string(i));
  const SharedNames names(folder.path());
  write(folder, "left");
  CHECK(names.left().names.empty());
}
