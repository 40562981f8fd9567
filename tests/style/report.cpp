#include "tests/style/report.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

constexpr std::size_t kShown = 10;

struct Sized {
  int lines = 0;
  std::string name;
};

void print(std::ostringstream& out, const std::string& title, std::vector<Sized> sizes) {
  if (sizes.empty()) {
    return;
  }
  std::sort(sizes.begin(), sizes.end(),
            [](const Sized& a, const Sized& b) { return a.lines > b.lines; });
  const std::size_t count = sizes.size();
  out << title << ": " << count << ", lines median " << sizes[count / 2].lines
      << ", 90th percentile " << sizes[count / 10].lines << ", most " << sizes[0].lines << "\n";
  for (std::size_t i = 0; i < std::min(count, kShown); ++i) {
    out << "  " << sizes[i].lines << "\t" << sizes[i].name << "\n";
  }
}

}  // namespace

std::string size_report(const std::vector<SourceFile>& files) {
  std::vector<Sized> file_sizes;
  std::vector<Sized> function_sizes;
  int source = 0;
  int tests = 0;
  for (const SourceFile& file : files) {
    if (file.language != Language::kCpp && file.language != Language::kPython) {
      continue;
    }
    const int lines = static_cast<int>(lines_of(file.text).size());
    (file.path.starts_with("tests/") ? tests : source) += lines;
    file_sizes.push_back({lines, file.path});
    for (const Function& function : functions_of(file)) {
      function_sizes.push_back({function.length, function.name + "  " + function.path + ":" +
                                                     std::to_string(function.line)});
    }
  }
  std::ostringstream out;
  print(out, "files", file_sizes);
  print(out, "functions", function_sizes);
  out << "lines of source " << source << ", of tests " << tests << "\n";
  return out.str();
}

}  // namespace ddprun::style
