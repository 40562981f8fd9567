// What this machine says of its files, hosts and devices, and the file that nodes agree on.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "launcher/machine/machine.hpp"
#include "tests/agent/command.hpp"
#include "tests/launcher/outcome.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

FileKind kind_of(const std::string& content, mode_t mode) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("program");
  std::ofstream(path) << content;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return ThisMachine({}).inspect(path);
}

}  // namespace

TEST_CASE("the first line of a file shows whether it is Python") {
  for (const std::string line :
       {"#!/usr/bin/env python3\n", "#!/usr/bin/python\n", "#! /opt/venv/bin/python3.11 -u\n",
        "#!/usr/bin/env -S python -u\n", "#!python"}) {
    INFO(line);
    CHECK(kind_of(line, 0755) == FileKind::kPythonScript);
  }
  CHECK(kind_of("#!/bin/sh\necho python\n", 0755) == FileKind::kProgram);
  CHECK(kind_of("#!/opt/python-tools/run\n", 0755) == FileKind::kProgram);
}

TEST_CASE("only what may be executed is a program") {
  CHECK(kind_of("#!/bin/sh\n", 0644) == FileKind::kNotExecutable);
  CHECK(kind_of("#!/usr/bin/python\n", 0644) == FileKind::kPythonScript);
  CHECK(kind_of("print('hi')\n", 0755) == FileKind::kOther);
  CHECK(kind_of("", 0755) == FileKind::kOther);
  CHECK(ThisMachine({}).inspect("/bin/true") == FileKind::kProgram);
  CHECK(ThisMachine({}).inspect("/tmp") == FileKind::kOther);
  CHECK(ThisMachine({}).inspect("/no/such/file") == FileKind::kMissing);
}

TEST_CASE("the folder of the running program is known") {
  CHECK(ThisMachine({}).is_plain_file(ThisMachine({}).program_folder() + "/test_launcher"));
}

TEST_CASE("a fifo is looked at without waiting for its writer") {
  const TemporaryDirectory directory;
  REQUIRE(::mkfifo(directory.file("pipe").c_str(), 0600) == 0);
  CHECK(ThisMachine({}).inspect(directory.file("pipe")) == FileKind::kOther);
  CHECK(ThisMachine({}).is_plain_file(directory.file("pipe")));
  CHECK_FALSE(ThisMachine({}).is_plain_file(directory.path()));
}

TEST_CASE("a host is here, elsewhere, or does not resolve yet") {
  using Place = Whereabouts::Place;
  const ThisMachine machine({});
  CHECK(machine.locate("localhost").literal == "127.0.0.1");
  CHECK(machine.locate("127.0.0.2").place == Place::kHere);
  CHECK(machine.locate("127.0.0.2").literal == "127.0.0.2");
  CHECK(machine.locate("192.0.2.1").place == Place::kElsewhere);
  CHECK(machine.locate("2001:db8::1").place == Place::kElsewhere);  // RFC 3849
  CHECK(machine.locate("no-such-host.invalid").place == Place::kUnknown);
}

TEST_CASE("this machine has a name") {
  CHECK_FALSE(ThisMachine({}).host_name().empty());
}

TEST_CASE("identifiers are random UUIDs of version 4") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string id = ThisMachine({}).random_id();
    REQUIRE(id.size() == 36);
    CHECK(id[14] == '4');
    CHECK(std::string("89ab").find(id[19]) != std::string::npos);
    CHECK((id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'));
    seen.insert(id);
  }
  CHECK(seen.size() == 100);
}

TEST_CASE("no GPU is visible when CUDA_VISIBLE_DEVICES is empty") {
  const Environment none_visible{{"CUDA_VISIBLE_DEVICES", ""}};
  CHECK(ThisMachine(none_visible).count_gpus() == 0);
  CHECK(ThisMachine({}).count_cpus() >= 1);
  CHECK_FALSE(ThisMachine({}).working_directory().empty());
}

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
