// Whose command may take part in a run, and what the others are told.
#include "rendezvous/round/admission.hpp"

#include "base/limits.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;
using namespace ddprun::test;

namespace {

Hello running(const std::string& host, const std::string& command) {
  Hello hello;
  hello.run_id = RunId("7f3a");
  hello.host = host;
  hello.fingerprint = command;
  hello.command = command;
  return hello;
}

RunTerms run_terms_of(const Hello& first) {
  return {first.run_id, first.terms, first.fingerprint, first.command, first.host, "10.0.0.2"};
}

/// What the second of two nodes is told.
std::string refusal(const Hello& first, const Hello& second) {
  const auto refused = refuse_terms(second, run_terms_of(first));
  REQUIRE(refused.has_value());
  return refused->sentence;
}

}  // namespace

const std::string kForAnotherJob =
    "; use a different --rdzv-id or --rdzv-endpoint for another job, or "
    "--allow-different-commands on all nodes of this one";

TEST_CASE("another command is refused with both, and with what to do") {
  const Hello first = running("a", "train.py --config gpt");
  const Hello second = running("b", "eval.py");
  CHECK(refuse_terms(second, run_terms_of(first))->code == RefusalCode::kCommandDiffers);
  CHECK(refusal(first, second) ==
        "run 7f3a (first node a at 10.0.0.2) runs `train.py --config gpt`, b runs `eval.py`" +
            kForAnotherJob);
  CHECK_FALSE(refuse_terms(running("c", "train.py --config gpt"), run_terms_of(first)));
}

TEST_CASE("who has neither secret nor command is told of another command, and nothing of the run") {
  const Hello first = running("a", "train.py --token s3cret");
  Hello stranger = running("b", "x");
  stranger.terms.nodes_max = first.terms.nodes_max + 1;
  for (const std::string& guess : {std::string("x"), std::string()}) {
    stranger.fingerprint = guess;
    const auto full = refuse_terms(stranger, run_terms_of(first));
    REQUIRE(full);
    CHECK(as_told(*full, stranger, first.fingerprint, true) == *full);
    const Refused told = as_told(*full, stranger, first.fingerprint, false);
    CHECK(told.sentence == "b" + test::kOtherCommand +
                               " (the output of its coordinator says more)" + kForAnotherJob);
  }
  Refused other = *refuse_run(stranger, RunId("9c1d"));
  CHECK_THAT(as_told(other, stranger, "train.py", false).sentence, !ContainsSubstring("9c1d"));
  other = refuse_node_rank(stranger, "holder", {});
  CHECK_THAT(as_told(other, stranger, "train.py", false).sentence, !ContainsSubstring("holder"));
  Hello own = first;
  own.terms.nodes_max += 1;  // a node of the run learns what to mend
  const auto terms = refuse_terms(own, run_terms_of(first));
  CHECK(as_told(*terms, own, first.fingerprint, false) == *terms);
}

TEST_CASE("of two long commands the sentence shows the place where they differ") {
  const std::string common = "train.py --name " + std::string(200, 'x') + " --steps 20000 ";
  const std::string sentence =
      refusal(running("a", common + "--config gpt"), running("b", common + "--config vit"));
  CHECK_THAT(sentence, ContainsSubstring("`train.py \xE2\x80\xA6") &&
                           ContainsSubstring("--config gpt`") &&
                           ContainsSubstring("--config vit`") && !ContainsSubstring("--name"));
}

TEST_CASE("commands that differ only behind what is told of them are refused too") {
  Hello first = running("a", "train.py " + std::string(kCommandBytesMax - 9, 'x'));
  Hello second = first;
  second.fingerprint = "of the rest";
  CHECK_THAT(refusal(first, second), ContainsSubstring("begins alike: `train.py xxx"));
}

TEST_CASE("nodes may have different commands where each of them says so") {
  Hello first = running("a", "train.py");
  first.terms.commands_may_differ = true;
  Hello second = running("b", "train.py");
  CHECK(refusal(first, second) ==
        "run 7f3a (first node a at 10.0.0.2) has --allow-different-commands, b lacks it; give all "
        "nodes the "
        "same");
  CHECK(refusal(second, first) ==
        "run 7f3a (first node b at 10.0.0.2) lacks --allow-different-commands, a has it" +
            kGiveAllTheSame);
  Hello third = running("c", "serve.py");
  third.terms.commands_may_differ = true;
  CHECK_FALSE(refuse_terms(third, run_terms_of(first)));
}

TEST_CASE("all nodes have the same --hang-timeout, or none") {
  Hello first = running("a", "train.py");
  Hello second = running("b", "train.py");
  second.terms.hang_timeout = Milliseconds(600'000);
  CHECK(refusal(first, second) ==
        "run 7f3a (first node a at 10.0.0.2) has no --hang-timeout, b has --hang-timeout 10 min" +
            kGiveAllTheSame);
  first.terms.hang_timeout = second.terms.hang_timeout;
  CHECK_FALSE(refuse_terms(second, run_terms_of(first)));
}

TEST_CASE("a silence limit of more than 100 years is refused") {
  Hello hello = running("a", "train.py");
  hello.terms.keep_alive_interval = kDurationMax / 10;
  hello.terms.keep_alive_max_attempt = 1000;
  CHECK_FALSE(refuse_hello(hello));
  hello.terms.keep_alive_interval += Milliseconds(1);
  REQUIRE(refuse_hello(hello));
  CHECK_THAT(refuse_hello(hello)->sentence, ContainsSubstring("keep_alive_max_attempt"));
}

TEST_CASE("an agent that does not say its command is refused where the run has one") {
  CHECK(refuse_terms(running("b", ""), run_terms_of(running("a", "train.py")))->code ==
        RefusalCode::kCommandDiffers);
  CHECK_FALSE(refuse_terms(running("b", "train.py"), run_terms_of(running("a", ""))));
}

TEST_CASE("runs of other lists of hosts are other runs, whatever else they have in common") {
  Hello first = running("a", "train.py");
  first.terms.list_begins = "a:29400";
  Hello other = running("b", "serve.py");
  other.terms.list_begins = "b:29400";
  const auto refused = refuse_terms(other, run_terms_of(first));
  REQUIRE(refused);
  CHECK(refused->code == RefusalCode::kWrongRun);
  CHECK(refused->sentence ==
        "the list of hosts of this run begins with a:29400, that of b with b:29400" +
            kGiveAllTheSame);
  Hello same = running("c", "train.py");
  same.terms.list_begins = "a:29400";
  CHECK_FALSE(refuse_terms(same, run_terms_of(first)));
  same.terms.list_begins.clear();  // it has the address alone
  CHECK_FALSE(refuse_terms(same, run_terms_of(first)));
}

TEST_CASE("a round of fewer nodes than the run allows cannot have been") {
  Hello first = running("a", "train.py");
  first.terms.nodes_min = 2;
  first.terms.nodes_max = 4;
  Hello claims = running("b", "train.py");
  claims.terms.nodes_min = 1;
  claims.claim = Claim{{Round(7), "x"}, 0, 1, RestartCount(0), NodeState::kSucceeded};
  REQUIRE(refuse_claim(claims, run_terms_of(first)));
  CHECK_THAT(refuse_claim(claims, run_terms_of(first))->sentence,
             ContainsSubstring("round 7 claimed by b cannot be"));
  claims.claim->group_size = 2;
  CHECK_FALSE(refuse_claim(claims, run_terms_of(first)));
}
