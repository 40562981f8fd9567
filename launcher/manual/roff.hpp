// Manual pages in the macros of man(7), as man and mandoc render them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::manual {

class Page {
 public:
  /// `name`: "ddprun". `purpose`: one line without a period.
  Page(std::string_view name, std::string_view purpose);

  void section(std::string_view heading);
  void subsection(std::string_view heading);
  void paragraph(std::string_view text);
  /// What is described, in bold, and its description, indented.
  void entry(std::string_view what, std::string_view description);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }

  std::string text_;
};

}  // namespace ddprun::manual
