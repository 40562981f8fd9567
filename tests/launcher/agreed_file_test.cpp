// The file in which the nodes of a run agree on the coordinator's address.
#include "launcher/agreed_file.hpp"

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
