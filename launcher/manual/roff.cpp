#include "launcher/manual/roff.hpp"

#include <cctype>

#include "base/version.hpp"

namespace ddprun::manual {

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

std::string quoted(std::string_view text) {
  return "\"" + escaped(text) + "\"";
}

std::string upper(std::string_view text) {
  std::string capitals;
  for (const char c : text) {
    capitals += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return capitals;
}

}  // namespace

// Without a date: two builds of one version have the same bytes.
Page::Page(std::string_view name, std::string_view purpose) {
  line(".TH " + quoted(upper(name)) + " 1 \"\" " + quoted(std::string("ddprun ") + kVersion) +
       " \"User Commands\"");
  line(".nh");
  line(".ad l");
  section("NAME");
  line(escaped(name) + " \\- " + escaped(purpose));
}

void Page::section(std::string_view heading) {
  line(".SH " + quoted(heading));
}

void Page::subsection(std::string_view heading) {
  line(".SS " + quoted(heading));
}

void Page::paragraph(std::string_view text) {
  line(".PP");
  line(escaped(text));
}

void Page::entry(std::string_view what, std::string_view description) {
  line(".TP");
  line(".B " + escaped(what));
  line(escaped(description));
}

}  // namespace ddprun::manual
