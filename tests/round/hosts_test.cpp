#include "rendezvous/round/hosts.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun::round;

TEST_CASE("host names sort as people count") {
  CHECK(natural_less("gpu-2", "gpu-10"));
  CHECK_FALSE(natural_less("gpu-10", "gpu-2"));
  CHECK(natural_less("a9-node3", "a10-node1"));
  CHECK(natural_less("gpu", "gpu-1"));
  CHECK(natural_less("10.0.0.9", "10.0.0.10"));
  CHECK(natural_less("n99999999999999999998", "n99999999999999999999"));
  CHECK_FALSE(natural_less("same", "same"));
  CHECK(natural_less("gpu-1", "gpu-01") != natural_less("gpu-01", "gpu-1"));
}

TEST_CASE("neighbours in number are shown as a range") {
  CHECK(host_list({}) == "none");
  CHECK(host_list({"gpu-03", "gpu-01", "gpu-02", "head"}) == "gpu-01..gpu-03, head");
  CHECK(host_list({"a1", "a2"}) == "a1, a2");
  CHECK(host_list({"gpu-08", "gpu-09", "gpu-10", "gpu-11"}) == "gpu-08..gpu-11");
}

TEST_CASE("several agents of one host are counted") {
  CHECK(host_list({"box", "box", "box"}) == "box x3");
  CHECK(host_list({"n1", "n2", "n2", "n3"}) == "n1, n2 x2, n3");
}

TEST_CASE("a long list is cut and says how many names are left out") {
  std::vector<std::string> hosts;
  for (char c = 'a'; c <= 'z'; ++c) hosts.push_back(std::string(1, c) + "x");
  CHECK(host_list(hosts) == "ax, bx, cx, dx, ex, fx, gx, hx and 18 more");
}

TEST_CASE("numbers are shown as ranges too") {
  CHECK(number_list({2, 3, 6, 7, 8, 9}) == "2, 3, 6..9");
}
