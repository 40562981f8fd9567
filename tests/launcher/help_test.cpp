// The help text.
#include "launcher/options/help.hpp"

#include <algorithm>
#include <sstream>

#include "launcher/commands/commands.hpp"
#include "launcher/options/option_table.hpp"
#include "tests/support/catch.hpp"

TEST_CASE("help lists every option in both spellings, with its variable") {
  const std::string text = ddprun::help_text(80, ddprun::all_commands());
  for (const auto& option : ddprun::all_options()) {
    CHECK_THAT(text, ContainsSubstring(ddprun::dashed(option)));
    CHECK_THAT(text, ContainsSubstring(ddprun::underscored(option)));
    CHECK_THAT(text, ContainsSubstring(ddprun::variable_name(option)));
  }
}

TEST_CASE("help fits the terminal, however narrow") {
  for (const std::size_t columns : {std::size_t{40}, std::size_t{80}, std::size_t{100}}) {
    std::istringstream lines(ddprun::help_text(columns, ddprun::all_commands()) +
                             ddprun::brief_help_text(columns));
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= columns);
    }
  }
}

TEST_CASE("the brief help shows the 14 options that most runs use on one screen") {
  const std::string text = ddprun::brief_help_text(80);
  CHECK(std::count(text.begin(), text.end(), '\n') < 24);
  std::istringstream lines(text);
  int options = 0;
  for (std::string line; std::getline(lines, line);) options += line.starts_with("  -") ? 1 : 0;
  CHECK(options == 14);
  CHECK_THAT(text, ContainsSubstring("\n  --max-restarts N"));
  CHECK_THAT(text, ContainsSubstring("--help shows all"));
}

TEST_CASE("what only command lines of torchrun need is at the end of help") {
  const std::string text = ddprun::help_text(80, ddprun::all_commands());
  const auto heading = text.find("\nFor command lines of torchrun:\n");
  REQUIRE(heading != std::string::npos);
  for (const auto& option : ddprun::all_options()) {
    INFO(option.name);
    const auto entry = text.find("--" + std::string(option.name) + ",");
    if (entry != std::string::npos) CHECK((entry > heading) == option.for_torchrun);
  }
  CHECK(text.find("  --start-method") > heading);
}

TEST_CASE("a word longer than the line is broken rather than sticking out") {
  CHECK(ddprun::wrapped("ab abcdefgh x", 2, 6) == "  ab\n  abcd\n  efgh\n  x\n");
  CHECK(ddprun::wrapped("a b c", 0, 3) == "a b\nc\n");
}
