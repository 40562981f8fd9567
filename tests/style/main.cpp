// check_style ROOT: applies the rules to the tree at ROOT, prints what breaks them and how long
// files and functions are. Exit 0: the tree obeys; 1: it does not; 2: wrong use.
#include <filesystem>
#include <iostream>

#include "tests/style/report.hpp"
#include "tests/style/rules.hpp"
#include "tests/style/source_file.hpp"

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::cerr << "usage: check_style ROOT\n";
    return 2;
  }
  const auto files = ddprun::style::load_tree(argv[1]);
  auto violations = ddprun::style::check_documents(files);
  const auto add = [&](const ddprun::style::Violations& found) {
    violations.insert(violations.end(), found.begin(), found.end());
  };
  add(ddprun::style::check_sentences(files));
  for (const auto& file : files) add(ddprun::style::check(file));
  std::cout << ddprun::style::size_report(files);
  for (const auto& violation : violations) {
    std::cout << violation.path << ":" << violation.line << ": [" << violation.rule << "] "
              << violation.sentence << "\n";
  }
  std::cout << files.size() << " files, " << violations.size() << " violations\n";
  return violations.empty() && !files.empty() ? 0 : 1;
}
