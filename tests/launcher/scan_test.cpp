// How a command line is taken apart: argparse's rules, as torchrun has them.
#include "launcher/options/scan.hpp"

#include <algorithm>
#include <utility>

#include "launcher/options/option_table.hpp"
#include "tests/launcher/outcome.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

ScannedLine scanned(const Words& words) {
  return value_of(scan(words));
}

std::string scan_refusal(const Words& words) {
  const Error error = error_of(scan(words));
  CHECK(error.kind == ErrorKind::kUsage);
  return error.sentence;
}

/// The last value given for an option; "(none)" when it was not given.
std::string value(const ScannedLine& line, OptionId id) {
  std::string last = "(none)";
  for (const auto& option : line.options) {
    if (option.id == id) last = option.value;
  }
  return last;
}

}  // namespace

TEST_CASE("dashed and underscored spellings mean the same, with '=' or a blank") {
  for (const Words& words :
       {Words{"--nproc-per-node", "2", "W"}, Words{"--nproc_per_node", "2", "W"},
        Words{"--nproc-per-node=2", "W"}, Words{"--nproc_per_node=2", "W"}}) {
    const auto line = scanned(words);
    CHECK(value(line, OptionId::kNprocPerNode) == "2");
    CHECK(line.program == Words{"W"});
  }
}

TEST_CASE("every option of the table is found under each of its spellings") {
  for (const auto& option : all_options()) {
    if (option.value == OptionValue::kChoiceAction) continue;  // below
    const bool bare = option.value == OptionValue::kFlag || option.value == OptionValue::kAction;
    for (const std::string& spelling : {dashed(option), underscored(option)}) {
      const auto line = scanned(bare ? Words{spelling, "W"} : Words{spelling, "v", "W"});
      if (option.value == OptionValue::kAction) {
        CHECK(line.action == option.id);
      } else {
        REQUIRE(line.options.size() == 1);
        CHECK(line.options[0].id == option.id);
      }
    }
  }
}

TEST_CASE("an action with a value is carried out at once, if that is one of its choices") {
  for (const Words& words :
       {Words{"--print-completion", "zsh", "--bogus"}, Words{"--print_completion=zsh", "W"}}) {
    const auto line = scanned(words);
    CHECK(line.action == OptionId::kPrintCompletion);
    CHECK(line.action_value == "zsh");
  }
  CHECK_THAT(error_of(scan({"--print-completion", "csh", "W"})).sentence,
             ContainsSubstring("is not one of bash, zsh, tcsh, fish"));
  CHECK_THAT(error_of(scan({"--print-completion"})).sentence, ContainsSubstring("needs a value"));
}

TEST_CASE("options end at the script; what follows is the script's, verbatim") {
  const auto line = scanned({"--nnodes=1", "W", "--nnodes", "3", "-m", "x", "--", "--help", ""});
  CHECK(value(line, OptionId::kNnodes) == "1");
  CHECK(line.program == Words{"W", "--nnodes", "3", "-m", "x", "--", "--help", ""});
}

TEST_CASE("a double dash before the script is dropped, the ones after it are kept") {
  CHECK(scanned({"--", "W"}).program == Words{"W"});
  CHECK(scanned({"-m", "--", "pkg.mod", "-m", "a"}).program == Words{"pkg.mod", "-m", "a"});
  CHECK(scanned({"W", "--", "--foo"}).program == Words{"W", "--", "--foo"});
  CHECK(scanned({"--", "W", "--", "--foo"}).program == Words{"W", "--", "--foo"});
  CHECK(scanned({"--", "--strange-name"}).program == Words{"--strange-name"});
}

TEST_CASE("an abbreviation is taken while it means one spelling") {
  CHECK(value(scanned({"--nproc-per", "2", "W"}), OptionId::kNprocPerNode) == "2");
  CHECK(value(scanned({"--stand", "W"}), OptionId::kStandalone).empty());
  CHECK(value(scanned({"--nproc-per=4", "W"}), OptionId::kNprocPerNode) == "4");
}

TEST_CASE("an abbreviation of several spellings is refused, even of one option") {
  CHECK(scan_refusal({"--nproc", "2", "W"}) ==
        "--nproc is ambiguous: it could be --nproc-per-node or --nproc_per_node");
  const auto sentence = scan_refusal({"--master=x", "W"});
  CHECK_THAT(sentence, ContainsSubstring("--master is ambiguous"));
  CHECK_THAT(sentence, ContainsSubstring("--master-addr"));
  CHECK_THAT(sentence, ContainsSubstring("--master_port"));
}

TEST_CASE("options that torchrun does not have leave its abbreviations alone") {
  CHECK(scanned({"--h", "W"}).action == OptionId::kHelp);  // not --hosts
  CHECK(value(scanned({"--ho=a,b", "W"}), OptionId::kHosts) == "a,b");
}

TEST_CASE("an abbreviation after the script is an argument of the script") {
  CHECK(scanned({"W", "--nproc", "2"}).program == Words{"W", "--nproc", "2"});
}

TEST_CASE("a repeated option keeps its order, so that the last one can win") {
  CHECK(value(scanned({"--nnodes=4", "--nnodes=1:1", "W"}), OptionId::kNnodes) == "1:1");
}

TEST_CASE("short options take their value glued, after '=' or after a blank") {
  for (const Words& words : {Words{"-r3", "W"}, Words{"-r", "3", "W"}, Words{"-r=3", "W"},
                             Words{"-mr3", "W"}, Words{"-mr", "3", "W"}}) {
    CHECK(value(scanned(words), OptionId::kRedirects) == "3");
  }
  CHECK(value(scanned({"-mr3", "W"}), OptionId::kModule).empty());
  CHECK(value(scanned({"-rt3", "W"}), OptionId::kRedirects) == "t3");
}

TEST_CASE("flags take no value") {
  CHECK_THAT(scan_refusal({"--standalone=1", "W"}),
             ContainsSubstring("--standalone takes no value"));
  CHECK_THAT(scan_refusal({"--standalone=", "W"}), ContainsSubstring("takes no value"));
  CHECK_THAT(scan_refusal({"-mx", "W"}), ContainsSubstring("-m takes no value"));
  CHECK_THAT(scan_refusal({"-m=1", "W"}), ContainsSubstring("-m takes no value"));
}

TEST_CASE("a missing value is named with what it should be") {
  CHECK(scan_refusal({"--nnodes"}) == "--nnodes needs a value: --nnodes N|MIN:MAX");
  CHECK_THAT(scan_refusal({"--role", "--standalone", "W"}),
             ContainsSubstring("--role needs a value"));
  CHECK_THAT(scan_refusal({"--role", "--", "W"}), ContainsSubstring("--role needs a value"));
  CHECK_THAT(scan_refusal({"-r"}), ContainsSubstring("-r needs a value: -r MASK"));
}

TEST_CASE("an empty value is a value") {
  CHECK(value(scanned({"--role", "", "W"}), OptionId::kRole).empty());
  CHECK(value(scanned({"--role=", "W"}), OptionId::kRole).empty());
}

TEST_CASE("negative numbers, words with blanks and a single dash are values, not options") {
  CHECK(value(scanned({"--max-restarts", "-1", "W"}), OptionId::kMaxRestarts) == "-1");
  CHECK(value(scanned({"--monitor-interval", "-.5", "W"}), OptionId::kMonitorInterval) == "-.5");
  CHECK(value(scanned({"--role", "-a b", "W"}), OptionId::kRole) == "-a b");
  CHECK(scanned({"-", "x"}).program == Words{"-", "x"});
  CHECK(scanned({"-1", "x"}).program == Words{"-1", "x"});
}

TEST_CASE("an unknown option is one sentence with the nearest valid one") {
  CHECK_THAT(scan_refusal({"--nproc-per-nod3", "2", "W"}),
             ContainsSubstring("unknown option --nproc-per-nod3; did you mean --nproc-per-node?"));
  CHECK_THAT(scan_refusal({"--max_restart_count=1", "W"}), ContainsSubstring("--max-restarts"));
  CHECK_THAT(scan_refusal({"--bogus", "W"}),
             ContainsSubstring("unknown option --bogus; ddprun --help lists all"));
  CHECK_THAT(scan_refusal({"-x", "W"}), ContainsSubstring("unknown option -x; ddprun --help"));
}

TEST_CASE("help is answered even beside an unknown option, but not behind the script") {
  CHECK(scanned({"--help"}).action == OptionId::kHelp);
  CHECK(scanned({"-h", "W"}).action == OptionId::kHelp);
  CHECK(scanned({"--bogus", "--help"}).action == OptionId::kHelp);
  CHECK_FALSE(scanned({"W", "--help"}).action);
}

TEST_CASE("no words at all are not the scanner's error") {
  CHECK(scanned({}).program.empty());
}

TEST_CASE("the distance between words counts a swap of neighbours once") {
  CHECK(edit_distance("tee", "tee") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("nndoes", "nnodes") == 1);
  CHECK(edit_distance("role", "rle") == 1);
}

TEST_CASE(
    "an unknown option is taken for what it means elsewhere, begins with or is spelled like") {
  const std::pair<const char*, const char*> meant[] = {
      {"--nprocs", "nproc-per-node"},
      {"--num_processes=2", "nproc-per-node"},
      {"--num-gpus", "nproc-per-node"},
      {"--num-gpus", "nproc-per-node"},
      {"-np", "nproc-per-node"},
      {"-n4", "nproc-per-node"},
      {"-N", "nnodes"},
      {"--nodes", "nnodes"},
      {"--hostfile", "hosts"},
      {"--main_process_port", "master-port"},
      {"--silent", "quiet"},
      {"-V", "version"},
      {"-standalone", "standalone"},
      {"-nproc_per_node", "nproc-per-node"},
      {"--log-directory", "log-dir"},
      {"--max_restart_count", "max-restarts"},
      {"--nndoes", "nnodes"},
      {"--nproc-per-nod3", "nproc-per-node"},
      {"--standalnoe", "standalone"},
  };
  for (const auto& [unknown, option] : meant) {
    INFO(unknown);
    CHECK(suggestion(unknown) == "did you mean --" + std::string(option) + "?");
  }
  for (const char* far : {"--bogus", "--zzz", "-x", "-", "---", "--=2", "-7"}) {
    INFO(far);
    CHECK(suggestion(far).empty());
  }
}

TEST_CASE("every synonym is of an option that exists") {
  for (const std::string name : {"n", "nprocs", "N", "nodes", "port", "H", "endpoint", "run-id",
                                 "retries", "timeout", "logs", "silent", "daemon", "V"}) {
    const std::string said = suggestion("--" + name);
    const std::string option = said.substr(said.find("--") + 2, said.size() - said.find("--") - 3);
    INFO(said);
    const auto options = all_options();
    CHECK(std::any_of(options.begin(), options.end(),
                      [&](const OptionSpec& known) { return known.name == option; }));
  }
}
