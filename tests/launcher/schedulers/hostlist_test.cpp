// Slurm's and Open MPI's compressed lists of hosts.
#include "launcher/schedulers/placement.hpp"

#include "tests/launcher/outcome.hpp"

using namespace ddprun;
using namespace ddprun::test;
using Names = std::vector<std::string>;

namespace {

Names expanded(const std::string& text) {
  return value_of(expand_hostlist(text));
}

}  // namespace

TEST_CASE("a list of hosts is written out as scontrol show hostnames does") {
  CHECK(expanded("x") == Names{"x"});
  CHECK(expanded("login.cluster,gpu_1") == Names{"login.cluster", "gpu_1"});
  CHECK(expanded("n[1-3,07-09],gpu-a[0-1]b[2-3],x") == Names{"n1", "n2", "n3", "n07", "n08", "n09",
                                                             "gpu-a0b2", "gpu-a0b3", "gpu-a1b2",
                                                             "gpu-a1b3", "x"});
  CHECK(expanded("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(expanded("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expanded("n[98-0101]") == Names{"n98", "n99", "n100", "n101"});
  CHECK(expanded("n[0009-10]") == Names{"n0009", "n0010"});
  CHECK(expanded("rack[1-2]-[03,05]-ib") ==
        Names{"rack1-03-ib", "rack1-05-ib", "rack2-03-ib", "rack2-05-ib"});
  CHECK(expanded("[1-2]n") == Names{"1n", "2n"});
}

TEST_CASE("the order of a list is kept, and so is a repeated host") {
  CHECK(expanded("b,a[2,1],b") == Names{"b", "a2", "a1", "b"});
}

TEST_CASE("what is not a list of hosts is refused with the text in the sentence") {
  for (const std::string text : {"",           ",",        "a,",
                                 ",a",         "a,,b",     "n[1-2",
                                 "n]1",        "n[]",      "n[3-1]",
                                 "n[a-c]",     "n[1-]",    "n[-1]",
                                 "n[1,]",      "n[0x1]",   "n[1-3:2]",
                                 "n[[1-2],5]", "a b",      "n[ 1]",
                                 "h;rm",       "n[1-2-3]", "n[99999999999999999999]"}) {
    CAPTURE(text);
    const auto names = expand_hostlist(text);
    REQUIRE(!names);
    CHECK_THAT(names.error().sentence, ContainsSubstring("'" + text + "'"));
  }
}

TEST_CASE("a list has bounds, whatever its text promises") {
  CHECK(expanded("n[1-65536]").size() == kHostlistMax);
  CHECK(!expand_hostlist("n[1-65537]"));
  CHECK(!expand_hostlist("n[1-65536],x"));
  CHECK(!expand_hostlist("n[0-999999999999999999]"));
  CHECK(!expand_hostlist("n[1-256][1-257]"));
  CHECK(!expand_hostlist("a[1-9]b[1-9]c[1-9]d[1-9]e[1-9]f[1-9]g[1-9]h[1-9]"));
  CHECK(expanded(std::string(255, 'n')).size() == 1);
  CHECK(!expand_hostlist(std::string(256, 'n')));
  CHECK(!expand_hostlist(std::string(254, 'n') + "[1-10]"));
  const auto endless = expand_hostlist(std::string(100'000, '['));
  REQUIRE(!endless);
  CHECK(endless.error().sentence.size() < 400);
}

TEST_CASE("Open MPI's list of nodes is brought to Slurm's form") {
  CHECK(hostlist_of_node_regex("head,nodea,nodeb@0(3)") == "head,nodea,nodeb");
  CHECK(hostlist_of_node_regex("head,node[2:1-3],gpu-a[1:7]@0(5)") == "head,node[01-03],gpu-a[7]");
  CHECK(hostlist_of_node_regex("node[1:8-9],node[2:10],node[2:11]-ib,x[1:9]y01z") ==
        "node[8-9],node[10],node[11]-ib,x[9]y01z");
  CHECK(hostlist_of_node_regex("node[3:7,9-12]") == "node[007,009-012]");
  CHECK(hostlist_of_node_regex("node[7") == "node[7");
  CHECK(hostlist_of_node_regex("node[x:7]") == "node[x:7]");
  CHECK(hostlist_of_node_regex("node[99999:7]") == "node[99999:7]");
  CHECK(hostlist_of_node_regex("").empty());
}
