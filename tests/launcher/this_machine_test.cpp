// The facts of this machine: kinds of files, own addresses, identifiers.
#include "launcher/machine/this_machine.hpp"

#include <sys/stat.h>

#include <fstream>
#include <set>

#include "tests/agent/command.hpp"
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
