#include "agent/proc/shared_names.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/catch.hpp"

using namespace ddprun;

namespace {

struct Folder {
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name) const { std::ofstream(path + "/" + name) << "x"; }

  std::string path = "/tmp/ddprun_shm_XXXXXX";
};

}  // namespace

TEST_CASE("new files that no process has open are left, and no others") {
  const Folder folder;
  folder.write("old");
  const SharedNames names(folder.path);
  CHECK(names.left().names.empty());
  for (const char* name : {"left", "held"}) folder.write(name);
  std::filesystem::create_directory(folder.path + "/folder");
  REQUIRE(::mkfifo((folder.path + "/pipe").c_str(), 0600) == 0);
  const int held = ::open((folder.path + "/held").c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(names.left().names == std::vector<std::string>{"left"});
  CHECK(names.left().bytes > 0);
  ::close(held);
  CHECK(names.left().names == std::vector<std::string>{"held", "left"});
}

TEST_CASE("a full /dev/shm is not looked through") {
  const Folder folder;
  for (int i = 0; i < 5000; ++i) folder.write(std::to_string(i));
  const SharedNames names(folder.path);
  folder.write("left");
  CHECK(names.left().names.empty());
}
