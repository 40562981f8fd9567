// --rdzv-backend=etcd-v3: the servers, the user, what is refused.
#include "launcher/rendezvous/plan.hpp"

#include <sys/stat.h>

#include <fstream>

#include "tests/agent/command.hpp"
#include "tests/launcher/fake_machine.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Words three(const std::string& servers, Words more = {}) {
  Words words{"--nnodes=3", "--rdzv-backend=etcd-v3", "--rdzv-endpoint=" + servers};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("W");
  return words;
}

}  // namespace

TEST_CASE("the endpoint lists the servers of etcd, on port 2379 unless they have one") {
  const auto launch = launch_of(three("h1,h2:7,[fd00::9]"));
  REQUIRE(launch.config.rendezvous);
  const auto& etcd = launch.config.rendezvous->etcd;
  REQUIRE(etcd);
  REQUIRE(etcd->endpoints.size() == 3);
  CHECK(etcd->endpoints[0].host == "h1");
  CHECK(etcd->endpoints[0].port == 2379);
  CHECK(etcd->endpoints[1].port == 7);
  CHECK(etcd->endpoints[2].host == "fd00::9");
  CHECK(etcd->text == "etcd h1:2379,h2:7,[fd00::9]:2379");
  CHECK(etcd->prefix == "/ddprun");
  CHECK(etcd->may_lead);
  CHECK_FALSE(launch.coordinator);
  CHECK(launch.notes.empty());
  CHECK(launch.config.store.listen_addr.empty());
}

TEST_CASE("user, password_file, etcd_prefix and is_host are keys of --rdzv-conf") {
  const auto launch = launch_of(
      three("h1", {"--rdzv-conf=user=u,password_file=/p,etcd_prefix=/a/b,is_host=false"}));
  const auto& etcd = *launch.config.rendezvous->etcd;
  CHECK(etcd.user == "u");
  CHECK(etcd.password_file == "/p");
  CHECK(etcd.prefix == "/a/b");
  CHECK_FALSE(etcd.may_lead);
  CHECK(launch.notes.empty());
  CHECK_THAT(refusal_of(three("h1", {"--rdzv-conf=user=u"})).sentence,
             ContainsSubstring("user and password_file go together"));
  const auto other = launch_of({"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=far",
                                "--rdzv-conf=etcd_prefix=/a", "W"});
  CHECK_THAT(other.notes.at(0), ContainsSubstring("etcd_prefix not used: it belongs to etcd-v3"));
}

TEST_CASE("TLS of etcd has torchrun's keys, those of its etcd and those of its etcd-v2") {
  CHECK_FALSE(launch_of(three("h1", {"--rdzv-conf=protocol=http"})).config.rendezvous->etcd->tls);
  for (const std::string keys :
       {"cacert=/ca,cert=/c,key=/k", "ca_cert=/ca,ssl_cert=/c,ssl_cert_key=/k"}) {
    CAPTURE(keys);
    const auto launch = launch_of(three("h1", {"--rdzv-conf=protocol=HTTPS," + keys}));
    const auto& tls = launch.config.rendezvous->etcd->tls;
    REQUIRE(tls);
    CHECK(tls->ca.path == "/ca");
    CHECK(tls->cert.path == "/c");
    CHECK(tls->key.path == "/k");
    CHECK(launch.notes.empty());
  }
  const auto system = launch_of(three("h1", {"--rdzv-conf=protocol=https"}));
  CHECK(system.config.rendezvous->etcd->tls->ca.path.empty());
}

TEST_CASE("TLS of etcd by halves is refused") {
  const auto refused = [](const std::string& conf) {
    return refusal_of(three("h1", {"--rdzv-conf=" + conf})).sentence;
  };
  CHECK_THAT(refused("protocol=ftp"), ContainsSubstring("protocol=ftp is neither http nor https"));
  CHECK_THAT(refused("cacert=/ca"),
             ContainsSubstring("cacert=/ca is for TLS; pass protocol=https"));
  CHECK_THAT(refused("protocol=http,cert=/c"), ContainsSubstring("pass protocol=https"));
  CHECK_THAT(refused("protocol=https,key=/k"), ContainsSubstring("pass cert=FILE, too"));
  const auto other = launch_of({"--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=far",
                                "--rdzv-conf=protocol=https", "W"});
  CHECK_THAT(other.notes.at(0), ContainsSubstring("protocol not used: it belongs to etcd-v3"));
}

TEST_CASE("servers that cannot be etcd's are refused, and a single node needs none") {
  CHECK_THAT(refusal_of(three("")).sentence, ContainsSubstring("needs the servers of etcd"));
  CHECK_THAT(refusal_of(three("h1:0")).sentence, ContainsSubstring("port 0 is no server's"));
  CHECK_THAT(refusal_of(three("h1,a b")).sentence, ContainsSubstring("'a b' is not HOST"));
  const auto one = launch_of({"--rdzv-backend=etcd-v3", "--rdzv-endpoint=h1", "W"});
  CHECK_FALSE(one.config.rendezvous);
  CHECK_THAT(one.notes.at(0), ContainsSubstring("a single node needs no rendezvous"));
}

TEST_CASE("a password that other users can read is refused, as ssh refuses such a key") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("password");
  std::ofstream(path) << "s3cret\n";
  LaunchConfig config = launch_of(three("h1", {"--rdzv-conf=user=u,password_file=" + path})).config;
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const auto exposed = read_etcd_password(config);
  REQUIRE_FALSE(exposed.has_value());
  CHECK_THAT(exposed.error().sentence, ContainsSubstring("other users may access it (mode 0644)"));
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  REQUIRE(read_etcd_password(config).has_value());
  CHECK(config.rendezvous->etcd->password == "s3cret");
}

TEST_CASE("the password is read from its file, without the end of its line") {
  LaunchConfig config =
      launch_of(three("h1", {"--rdzv-conf=user=u,password_file=/nowhere"})).config;
  const auto missing = read_etcd_password(config);
  REQUIRE(!missing);
  CHECK_THAT(missing.error().sentence, ContainsSubstring("/nowhere"));
}
