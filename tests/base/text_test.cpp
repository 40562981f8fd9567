// Addresses and counts as text.
#include "base/address.hpp"

#include "base/format.hpp"
#include "base/random_uuid.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("an IPv6 address is in brackets before a port, a name or IPv4 address is not") {
  CHECK(host_and_port("node-1", 29400) == "node-1:29400");
  CHECK(host_and_port("10.0.0.7", 1) == "10.0.0.7:1");
  CHECK(host_and_port("fd00::7", 65535) == "[fd00::7]:65535");
}

TEST_CASE("only literals of this machine are loopback") {
  for (const char* here : {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"}) {
    INFO(here);
    CHECK(is_loopback_literal(here));
  }
  for (const char* elsewhere :
       {"", "localhost", "127", "128.0.0.1", "10.127.0.1", "::", "::2", "::ffff:10.0.0.1"}) {
    INFO(elsewhere);
    CHECK_FALSE(is_loopback_literal(elsewhere));
  }
}

TEST_CASE("a literal with a zero byte in it is none") {
  using namespace std::string_literals;
  for (const std::string& host : {"127.0.0.1\0.example"s, "::1\0"s, "fe80::1\0%eth0"s}) {
    CHECK_FALSE(ipv4_of(host));
    CHECK_FALSE(ipv6_of(host));
    CHECK_FALSE(is_loopback_literal(host));
    CHECK_FALSE(is_link_local_literal(host));
    CHECK(plain_literal(host).empty());
  }
}

TEST_CASE("one takes the singular, every other count the plural") {
  CHECK(count_text(0, "node") == "0 nodes");
  CHECK(count_text(1, "node") == "1 node");
  CHECK(count_text(2, "node") == "2 nodes");
  CHECK(count_text(2, 2, "node") == "2 nodes");
  CHECK(count_text(1, 4, "node") == "1 to 4 nodes");
}

TEST_CASE("a random id is a UUID of version 4, and each differs") {
  const std::string id = random_uuid();
  REQUIRE(id.size() == 36);
  CHECK(id[14] == '4');
  CHECK(std::string("89ab").find(id[19]) != std::string::npos);
  CHECK(id.find_first_not_of("0123456789abcdef-") == std::string::npos);
  CHECK(random_uuid() != id);
}
