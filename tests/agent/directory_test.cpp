// The directory of ddprun's sockets, which only its user may enter.
#include "agent/control/directory.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "tests/agent/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/descriptor_limit.hpp"

using namespace ddprun;
using ddprun::test::TemporaryDirectory;

TEST_CASE("the directory of sockets is found without a descriptor, and no other one is made") {
  const TemporaryDirectory place;
  const std::string wanted = place.file("ddprun");
  REQUIRE(control::private_directory_at(wanted).has_value());
  const DescriptorLimit none(0);
  const auto again = control::private_directory_at(wanted);
  REQUIRE(again.has_value());
  CHECK(*again == wanted);
}

TEST_CASE("a directory that others may enter, and a link to one, are not used for sockets") {
  const TemporaryDirectory place;
  const std::string wanted = place.file("ddprun");
  if (GENERATE(true, false)) {
    std::filesystem::create_directory(wanted);
    REQUIRE(::chmod(wanted.c_str(), 0755) == 0);
  } else {
    std::filesystem::create_directory_symlink(place.path(), wanted);
  }
  const auto other = control::private_directory_at(wanted);
  REQUIRE(other.has_value());
  CHECK(other->starts_with(wanted + "-"));
  CHECK(*control::private_directory_at(wanted) == *other);
}
