// Prints a manual page, for the build: write_manual ddprun|ddprun-rdzvd. Not installed.
#include <iostream>
#include <string>

#include "launcher/commands/table.hpp"
#include "launcher/manual/roff.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/option_table.hpp"
#include "rendezvous/coordinator/command_line.hpp"

namespace {

using ddprun::manual::Page;

std::string page_of_ddprun() {
  Page page("ddprun", "start, watch and restart the workers of a distributed run");
  page.section("SYNOPSIS");
  page.paragraph(ddprun::usage_line());
  for (const auto& command : ddprun::all_commands()) {
    page.paragraph("ddprun " + ddprun::usage_of(command));
  }
  page.section("DESCRIPTION");
  for (const std::string_view text : ddprun::kIntroduction) page.paragraph(text);
  page.section("OPTIONS");
  page.paragraph(ddprun::kPrecedence);
  for (const auto& [group, heading] : ddprun::kHelpHeadings) {
    page.subsection(heading);
    for (const ddprun::OptionSpec& option : ddprun::all_options()) {
      if (option.group != group) continue;
      page.entry(ddprun::spellings(option), ddprun::description(option));
    }
  }
  page.section("COMMANDS");
  for (const auto& command : ddprun::all_commands()) {
    page.entry("ddprun " + ddprun::usage_of(command), command.help);
  }
  page.section("EXIT STATUS");
  page.paragraph(ddprun::kExitCodes);
  page.section("SEE ALSO");
  page.paragraph("ddprun-rdzvd(1)");
  return page.text();
}

std::string page_of_rdzvd() {
  Page page("ddprun-rdzvd", "the rendezvous of ddprun's runs over several nodes");
  page.section("SYNOPSIS");
  page.paragraph("ddprun-rdzvd [OPTIONS]");
  page.section("DESCRIPTION");
  const ddprun::coordinator::CommandLine line;
  page.paragraph(line.description());
  page.section("OPTIONS");
  for (const auto& option : line.described_options()) page.entry(option.spelling, option.text);
  page.section("EXIT STATUS");
  page.paragraph("0 after SIGTERM or SIGINT, 1 if it cannot listen, 2 for wrong options.");
  page.section("SEE ALSO");
  page.paragraph("ddprun(1)");
  return page.text();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  if (name == "ddprun") {
    std::cout << page_of_ddprun();
  } else if (name == "ddprun-rdzvd") {
    std::cout << page_of_rdzvd();
  } else {
    std::cerr << "write_manual: name the program: ddprun or ddprun-rdzvd\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
