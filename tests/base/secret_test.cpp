// Where a secret comes from, which are refused, and what is left of it there.
#include "base/secret.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;

namespace {

const std::string kGood = std::string(40, 's');

class File {
 public:
  File(const std::string& content, mode_t mode) {
    std::string name = "/tmp/ddprun-secret-XXXXXX";
    const int file = ::mkstemp(name.data());
    REQUIRE(file >= 0);
    ::close(file);
    path = name;
    std::ofstream(path) << content;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  ~File() { ::unlink(path.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path;
};

std::string refusal(const Result<SharedSecret>& read) {
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().kind == ErrorKind::kUsage);
  return read.error().sentence;
}

}  // namespace

TEST_CASE("a secret is the content of its file, without the end of its line") {
  for (const std::string end : {"", "\n", "\r\n", "\n\n"}) {
    const File file(kGood + end, 0600);
    const auto read = read_secret(file.path, "--x");
    REQUIRE(read.has_value());
    CHECK((*read)->text() == kGood);
  }
}

TEST_CASE("a file that other users may access is refused, with its mode") {
  for (const mode_t mode : {0604U, 0640U, 0666U, 0602U, 0601U}) {
    const File file(kGood, mode);
    CHECK_THAT(refusal(read_secret(file.path, "--x=FILE")),
               Catch::Matchers::StartsWith("--x=FILE: " + test::kOthersMayAccess + "6") &&
                   ContainsSubstring("chmod 600"));
  }
  const File file(kGood, 0400);
  CHECK(read_secret(file.path, "--x").has_value());
}

TEST_CASE("a secret that is too short, too long, no file or not there is refused") {
  const File empty("\n", 0600);
  CHECK_THAT(refusal(read_secret(empty.path, "--x")),
             Catch::Matchers::StartsWith("--x: " + test::kSecretHasAtLeast +
                                         "this one has 0; make one with"));
  const File one_short(std::string(kSecretBytesMin - 1, 's') + "\n", 0600);
  CHECK_THAT(refusal(read_secret(one_short.path, "--x")), ContainsSubstring("this one has 31"));
  const File shortest(std::string(kSecretBytesMin, 's') + "\n", 0600);
  CHECK(read_secret(shortest.path, "--x").has_value());
  const File longest(std::string(kSecretBytesMax, 's'), 0600);
  CHECK(read_secret(longest.path, "--x").has_value());
  const File one_long(std::string(kSecretBytesMax + 1, 's'), 0600);
  CHECK_THAT(refusal(read_secret(one_long.path, "--x")), ContainsSubstring("at most 1024"));
  CHECK_THAT(refusal(read_secret("/tmp", "--x")), ContainsSubstring("not a regular file"));
  CHECK_THAT(refusal(read_secret("/nowhere", "--x")), ContainsSubstring("No such file"));
  CHECK_THAT(refusal(read_secret("/dev/zero", "--x")), ContainsSubstring("not a regular file"));
}

TEST_CASE("a secret is the first line of standard input, and the rest stays there") {
  constexpr std::chrono::milliseconds kSoon{50};
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
  const auto write = [&](const std::string& text) {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  write(kGood + "\nof the workers");
  const auto line = read_secret_line(ends[0], "--x=-", kSoon);
  REQUIRE(line.has_value());
  CHECK((*line)->text() == kGood);
  std::array<char, 32> rest{};
  REQUIRE(::read(ends[0], rest.data(), rest.size()) == 14);
  CHECK(std::string(rest.data()) == "of the workers");

  write(kGood);  // without the end of its line
  CHECK(refusal(read_secret_line(ends[0], "--x=-", kSoon)) ==
        "--x=-: no line came from standard input within 0 s");
  write(std::string(kSecretBytesMax + 10, 's') + "\n");
  CHECK_THAT(refusal(read_secret_line(ends[0], "--x=-", kSoon)), ContainsSubstring("at most 1024"));
  REQUIRE(::read(ends[0], rest.data(), rest.size()) == 10);
  write(kGood);
  ::close(ends[1]);
  const auto last = read_secret_line(ends[0], "--x=-", kSoon);
  REQUIRE(last.has_value());
  CHECK((*last)->text() == kGood);
  CHECK_THAT(refusal(read_secret_line(ends[0], "--x=-", kSoon)),
             ContainsSubstring("this one has 0"));
  ::close(ends[0]);
  CHECK_THAT(refusal(read_secret_line(ends[0], "--x=-", kSoon)), ContainsSubstring("is closed"));
}

TEST_CASE("standard input is no secret where others may read it, or a terminal shows it") {
  const File file(kGood, 0644);
  const int open = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK_THAT(refusal(read_secret_line(open, "--x=-", kSecretLineWait)),
             ContainsSubstring(test::kOthersMayAccess));
  ::close(open);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  CHECK_THAT(refusal(read_secret_line(terminal, "--x=-", kSecretLineWait)),
             ContainsSubstring("is a terminal"));
  ::close(terminal);
}

TEST_CASE("the variable is taken out of the environment, and its text overwritten in place") {
  std::string before = "A=1";
  std::string first = "DDPRUN_SECRET=" + kGood;
  std::string similar = "DDPRUN_SECRETS=" + kGood;
  std::string second = "DDPRUN_SECRET=" + std::string(40, 't');
  std::vector<char*> block{before.data(), first.data(), similar.data(), second.data(), nullptr};
  const SharedSecret taken = take_secret_variable(block.data());
  REQUIRE(taken != nullptr);
  CHECK(taken->text() == kGood);
  CHECK(block[0] == before.data());
  CHECK(block[1] == similar.data());
  CHECK(block[2] == nullptr);
  CHECK(first == "DDPRUN_SECRET=" + std::string(40, '\0'));
  CHECK(second == "DDPRUN_SECRET=" + std::string(40, '\0'));
  CHECK(similar == "DDPRUN_SECRETS=" + kGood);
}

TEST_CASE("an unset variable is no secret, and an empty one is refused where a secret is needed") {
  std::string other = "A=1";
  std::vector<char*> block{other.data(), nullptr};
  CHECK(take_secret_variable(block.data()) == nullptr);
  std::string empty = "DDPRUN_SECRET=";
  block = {empty.data(), nullptr};
  const SharedSecret taken = take_secret_variable(block.data());
  REQUIRE(taken != nullptr);
  CHECK_FALSE(check_secret(*taken, kSecretVariable).has_value());
  CHECK(block[0] == nullptr);
}
