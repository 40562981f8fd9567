// --rdzv-tls-cert, --rdzv-tls-key and --rdzv-tls-ca: together, and in place of a secret.
#include "tests/launcher/fake_machine.hpp"
#include "tests/support/secret.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const Words kAllFiles{"--rdzv-tls-cert=c", "--rdzv-tls-key=k", "--rdzv-tls-ca=a"};

Words two_nodes(Words options, const std::string& endpoint = "far") {
  Words words{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("W");
  return words;
}

}  // namespace

TEST_CASE("the files of the certificates are those of the options") {
  const auto launch = launch_of(two_nodes(kAllFiles));
  const auto& certificates = launch.config.rendezvous->certificates;
  REQUIRE(certificates);
  CHECK(certificates->cert.path == "c");
  CHECK(certificates->cert.shown == "--rdzv-tls-cert=c");
  CHECK(certificates->key.path == "k");
  CHECK(certificates->ca.path == "a");
  CHECK(launch.notes.empty());
  CHECK_FALSE(launch_of(two_nodes({})).config.rendezvous->certificates);
}

TEST_CASE("the certificate names the host of the endpoint, however it is reached") {
  const auto host_of = [](const std::string& endpoint) {
    const RendezvousConfig config = *launch_of(two_nodes(kAllFiles, endpoint)).config.rendezvous;
    return config.given_host.empty() ? config.coordinator.host : config.given_host;
  };
  CHECK(host_of("far") == "far");
  CHECK(host_of("node-1") == "node-1");
  const auto listed =
      *launch_of({"--hosts=node-1,node-2", kAllFiles[0], kAllFiles[1], kAllFiles[2], "W"})
           .config.rendezvous;
  CHECK(listed.coordinator.host == "127.0.0.1");
  CHECK(listed.given_host == "node-1");
}

TEST_CASE("one of the three files without the others is refused, and names what is missing") {
  CHECK_THAT(refusal_of(two_nodes({"--rdzv-tls-cert=c", "--rdzv-tls-ca=a"})).sentence,
             ContainsSubstring("go together; --rdzv-tls-key is missing"));
  CHECK_THAT(refusal_of(two_nodes({"--rdzv-tls-ca=a"})).sentence,
             ContainsSubstring("--rdzv-tls-ca=a: "));
  CHECK_THAT(
      refusal_of(two_nodes({"--rdzv-tls-cert=c", "--rdzv-tls-key=", "--rdzv-tls-ca=a"})).sentence,
      ContainsSubstring("--rdzv-tls-key='' names no file"));
}

TEST_CASE("a secret and certificates exclude each other, and a single node needs neither") {
  Words both = kAllFiles;
  both.emplace_back("--rdzv-secret-file=s");
  CHECK_THAT(refusal_of(two_nodes(both)).sentence,
             ContainsSubstring("--rdzv-secret-file=s and --rdzv-tls-cert=c exclude each other"));
  FakeMachine machine;
  machine.secret = secret_of('v');
  CHECK_THAT(refusal_of(two_nodes(kAllFiles), machine).sentence,
             ContainsSubstring("DDPRUN_SECRET and --rdzv-tls-cert=c exclude each other"));
  const auto alone = launch_of({kAllFiles[0], kAllFiles[1], kAllFiles[2], "W"});
  CHECK(alone.notes ==
        Words{"--rdzv-tls-cert, --rdzv-tls-key and --rdzv-tls-ca not used: " + kNoLinkToProtect});
}
