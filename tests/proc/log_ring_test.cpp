// What a log file with a limit keeps.
#include "agent/output/log_file.hpp"

#include <fcntl.h>

#include "tests/proc/support.hpp"
#include "tests/support/sentences.hpp"

using ddprun::Directory;
using ddprun::LogRing;
using proc_test::contents;
using proc_test::TempDir;

namespace {

constexpr std::uint64_t kLimit = 4096;  // 1024 of the head, 1536 of each other file
constexpr std::size_t kLineBytes = 16;

std::string line(int number) {
  std::string text = std::to_string(number) + " ";
  text.resize(kLineBytes - 1, 'x');
  return text + "\n";
}

struct Ring {
  explicit Ring(const std::string& path) {
    auto opened = std::make_shared<Directory>();
    REQUIRE(opened->open(path) == 0);
    const int head = opened->create_file("log", 0);
    REQUIRE(head >= 0);
    ring.emplace(std::move(opened), "log", head, kLimit);
  }
  std::optional<LogRing> ring;
};

std::string marker(const std::string& missing) {
  return "[ddprun: " + std::string(15 - missing.size(), ' ') + missing + " " +
         ddprun::test::kBytesLeftOut + " (see --log-max); log.1 and log.2 continue]\n";
}

}  // namespace

TEST_CASE("below a quarter of the limit a log file is what was written, and alone") {
  const TempDir directory;
  std::string text;
  Ring of(directory.path());
  for (int i = 0; i < 64; ++i) {
    text += line(i);
    REQUIRE(of.ring->write(line(i)) == 0);
  }
  CHECK(contents(directory / "log") == text);
  CHECK_FALSE(std::filesystem::exists(directory / "log.1"));
}

TEST_CASE("above the limit the head and the last lines are kept, whole, and counted") {
  const TempDir directory;
  Ring of(directory.path());
  std::string text;
  const auto pieces = GENERATE(std::size_t{7}, kLineBytes, std::size_t{1000}, std::size_t{100000});
  for (int i = 0; i < 1000; ++i) text += line(i);
  for (std::size_t at = 0; at < text.size(); at += pieces) {
    REQUIRE(of.ring->write(std::string_view(text).substr(at, pieces)) == 0);
  }
  const std::string head = contents(directory / "log");
  const std::string tail = contents(directory / "log.1") + contents(directory / "log.2");
  const std::string kept = head.substr(0, head.find("[ddprun"));
  CHECK(text.starts_with(kept));
  CHECK(text.ends_with(tail));
  CHECK(kept.size() >= 1024 - kLineBytes);
  CHECK(tail.size() >= 1536);
  CHECK(head.size() + tail.size() <= kLimit + 100);
  CHECK(head.substr(kept.size()) ==
        marker(std::to_string(text.size() - kept.size() - tail.size())));
  if (pieces >= kLineBytes) {
    CHECK(kept.ends_with('\n'));
    CHECK(tail.substr(tail.find('\n') - kLineBytes + 1, kLineBytes) == tail.substr(0, kLineBytes));
  }
}

TEST_CASE("a line longer than the limit is cut, and binary bytes are kept") {
  const TempDir directory;
  Ring of(directory.path());
  std::string text(20000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i % 256 == '\n' ? 0 : i);
  REQUIRE(of.ring->write(text) == 0);
  const std::string tail = contents(directory / "log.1") + contents(directory / "log.2");
  CHECK(contents(directory / "log") ==
        text.substr(0, 1024) + "\n" + marker(std::to_string(20000 - 1024 - tail.size())));
  CHECK(text.ends_with(tail));
}

TEST_CASE("what is in the way of the next file costs output, not the files there are") {
  const TempDir directory;
  proc_test::write_file(directory / "log.1", "not ours");
  Ring of(directory.path());
  REQUIRE(of.ring->write(std::string(1024, 'a')) == 0);
  CHECK(of.ring->write("more") == EEXIST);
  CHECK(contents(directory / "log.1") == "not ours");
  std::filesystem::remove(directory / "log.1");
  CHECK(of.ring->write("again") == 0);
  CHECK(contents(directory / "log.1") == "again");
}
