// The file in which the nodes of a run agree on the coordinator's address.
#include "launcher/machine/machine.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "tests/agent/command.hpp"
#include "tests/launcher/outcome.hpp"

using namespace ddprun;
using namespace ddprun::test;

TEST_CASE("the first line of a run is that of all, each run has its own") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  CHECK(value_of(agree_on_line(path, "x", "one")) == "one");
  CHECK(value_of(agree_on_line(path, "x", "two")) == "one");
  CHECK(value_of(agree_on_line(path, "x2", "two")) == "two");
  CHECK(value_of(agree_on_line(path, "x", "three")) == "one");
}

TEST_CASE("looking at what would be agreed on leaves no file and no line") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  CHECK(value_of(agree_on_line(path, "x", "one", Agree::kLook)).empty());
  CHECK(!exists(path));
  CHECK(value_of(agree_on_line(path, "x", "two")) == "two");
  const std::string before = content(path);
  CHECK(value_of(agree_on_line(path, "x", "one", Agree::kLook)) == "two");
  CHECK(value_of(agree_on_line(path, "y", "one", Agree::kLook)).empty());
  CHECK(content(path) == before);
}

TEST_CASE("an empty file, as mktemp makes it, is taken") {
  const TemporaryDirectory directory;
  const std::ofstream made(directory.file("store"));
  CHECK(value_of(agree_on_line(directory.file("store"), "x", "one")) == "one");
}

TEST_CASE("many at the same time agree") {
  const TemporaryDirectory directory;
  std::vector<std::string> lines(16);
  std::vector<std::thread> nodes;
  for (std::size_t node = 0; node < lines.size(); ++node) {
    nodes.emplace_back([&, node] {
      lines[node] = value_of(agree_on_line(directory.file("store"), "x", std::to_string(node)));
    });
  }
  for (std::thread& node : nodes) node.join();
  for (const std::string& line : lines) CHECK(line == lines[0]);
}

TEST_CASE("a link to nothing is not followed") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  REQUIRE(::symlink(directory.file("elsewhere").c_str(), path.c_str()) == 0);
  CHECK_THAT(error_of(agree_on_line(path, "x", "one")).sentence,
             ContainsSubstring(path + ", cannot be opened: "));
  CHECK(!exists(directory.file("elsewhere")));
  std::ofstream(directory.file("elsewhere")).close();
  CHECK(value_of(agree_on_line(path, "x", "one")) == "one");
}

TEST_CASE("a torn last line of a writer that was killed is none of the next one") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  CHECK(value_of(agree_on_line(path, "x", "one")) == "one");
  std::ofstream(path, std::ios::app) << "y tw";
  CHECK(value_of(agree_on_line(path, "z", "three")) == "three");
  CHECK(value_of(agree_on_line(path, "z", "four")) == "three");
}

TEST_CASE("a file that another process keeps locked is given up") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  std::ofstream(path).close();
  const int held = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  for (const Agree agree : {Agree::kWrite, Agree::kLook}) {
    const auto locked = agree_on_line(path, "x", "one", agree, std::chrono::milliseconds(30));
    CHECK_THAT(error_of(locked).sentence, ContainsSubstring(" is locked by another process"));
  }
  ::close(held);
  CHECK(value_of(agree_on_line(path, "x", "one")) == "one");
}

TEST_CASE("the file of another user is refused where all may write") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can give a file away");
    return;
  }
  for (const mode_t mode : {0777U, 0755U}) {
    const TemporaryDirectory directory;
    const std::string path = directory.file("store");
    std::ofstream(path).close();
    REQUIRE(::chown(path.c_str(), 12345, 0) == 0);
    REQUIRE(::chmod(directory.path().c_str(), mode) == 0);
    const auto agreed = agree_on_line(path, "x", "one");
    CHECK(agreed.has_value() == (mode == 0755U));
    if (agreed) continue;
    CHECK_THAT(agreed.error().sentence, ContainsSubstring("belongs to user 12345"));
  }
}

TEST_CASE("a file that cannot be used is a sentence that names it") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  std::ofstream(path) << "something else\n";
  CHECK_THAT(error_of(agree_on_line(path, "x", "one")).sentence,
             ContainsSubstring(path + ", belongs to another program"));
  CHECK(content(path) == "something else\n");
  for (const std::string& bad :
       {directory.path(), directory.file("no/store"), std::string("/dev/null")}) {
    const std::string refused = error_of(agree_on_line(bad, "x", "one")).sentence;
    CHECK_THAT(refused, ContainsSubstring(bad));
    CHECK(error_of(agree_on_line(bad, "x", "one", Agree::kLook)).sentence == refused);
  }
}
