// What ddprun leaves for a launcher above it, whatever stands at that path.
#include "agent/proc/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/agent/command.hpp"
#include "tests/support/catch.hpp"

using ddprun::leave_file;
using ddprun::test::content;
using ddprun::test::TemporaryDirectory;

namespace fs = std::filesystem;

TEST_CASE("a file that is left replaces a regular one as a whole") {
  const TemporaryDirectory dir;
  const std::string path = dir.file("error.json");
  REQUIRE(leave_file(path, "a longer first text").has_value());
  const int before = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(leave_file(path, "second").has_value());
  CHECK(content(path) == "second");
  char text[64] = {};
  CHECK(::read(before, text, sizeof text) == 19);  // a reader of the old one reads all of it
  ::close(before);
  CHECK(dir.entries() == std::vector<std::string>{"error.json"});
}

TEST_CASE("a device is never unlinked for a file that is left") {
  REQUIRE(leave_file("/dev/null", "text").has_value());
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_FALSE(leave_file("/dev/full", "text").has_value());
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("a FIFO without a reader is a sentence, one with a reader gets the text") {
  const TemporaryDirectory dir;
  const std::string path = dir.file("fifo");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(leave_file(path, "text").error().sentence, ContainsSubstring("it has no reader"));
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(leave_file(path, "text").has_value());
  char text[64] = {};
  CHECK(::read(reader, text, sizeof text) == 4);
  CHECK_THAT(leave_file(path, std::string(1 << 20, 'x')).error().sentence,
             ContainsSubstring("does not take it"));
  ::close(reader);
  CHECK(fs::is_fifo(path));
}

TEST_CASE("a symbolic link is not followed, and what it points to is not truncated") {
  const TemporaryDirectory dir;
  REQUIRE(leave_file(dir.file("precious"), "precious").has_value());
  fs::create_symlink(dir.file("precious"), dir.file("error.json"));
  const auto left = leave_file(dir.file("error.json"), "text");
  CHECK_THAT(left.error().sentence, ContainsSubstring("it is a symbolic link"));
  CHECK(content(dir.file("precious")) == "precious");
  CHECK(fs::is_symlink(dir.file("error.json")));
}

TEST_CASE("a file in a folder where nothing may be created is written all the same") {
  if (::geteuid() == 0) {
    WARN("root may create everywhere: not tested");
    return;
  }
  const TemporaryDirectory dir;
  REQUIRE(leave_file(dir.file("error.json"), "a longer first text").has_value());
  REQUIRE(::chmod(dir.path().c_str(), 0500) == 0);
  CHECK(leave_file(dir.file("error.json"), "second").has_value());
  CHECK_FALSE(leave_file(dir.file("other.json"), "text").has_value());
  REQUIRE(::chmod(dir.path().c_str(), 0700) == 0);
  CHECK(content(dir.file("error.json")) == "second");
}
