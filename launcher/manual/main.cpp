// Prints a manual page, for the build: write_manual ddprun|ddprun-rdzvd. Not installed.
#include <cctype>
#include <iostream>
#include <string>
#include <string_view>

#include "launcher/commands/commands.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/option_table.hpp"
#include "rendezvous/coordinator/command_line.hpp"

namespace {

/// Text that roff shows as it is: a plain "-" may become a hyphen, which no shell takes.
std::string escaped(std::string_view text) {
  std::string roff = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '-') {
      roff += "\\-";
    } else if (c == '\\') {
      roff += "\\e";
    } else if (c == '\'') {
      roff += "\\(aq";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string in_quotes(std::string_view text) {
  return "\"" + escaped(text) + "\"";
}

std::string upper(std::string_view text) {
  std::string capitals;
  for (const char c : text) {
    capitals += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return capitals;
}

/// A manual page in the macros of man(7), as man and mandoc render them.
class Page {
 public:
  /// `name`: "ddprun". `purpose`: one line without a period. Without a date: two builds of one
  /// version have the same bytes.
  Page(std::string_view name, std::string_view purpose) {
    line(".TH " + in_quotes(upper(name)) + " 1 \"\" " + in_quotes("ddprun " DDPRUN_VERSION) +
         " \"User Commands\"");
    line(".nh");
    line(".ad l");
    section("NAME");
    line(escaped(name) + " \\- " + escaped(purpose));
  }

  void section(std::string_view heading) { line(".SH " + in_quotes(heading)); }
  void subsection(std::string_view heading) { line(".SS " + in_quotes(heading)); }
  void paragraph(std::string_view text) {
    line(".PP");
    line(escaped(text));
  }
  /// What is described, in bold, and its description, indented.
  void entry(std::string_view what, std::string_view description) {
    line(".TP");
    line(".B " + escaped(what));
    line(escaped(description));
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }

  std::string text_;
};

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
