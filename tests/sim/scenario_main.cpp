// scenario [--rewrite] FILE...: replays scenario files and compares; --rewrite stores what came
// out. Commit a rewritten transcript only if you understand every line of the diff.
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/sim/scenario.hpp"

namespace {

std::string first_difference(const std::string& was, const std::string& is) {
  std::istringstream left(was);
  std::istringstream right(is);
  std::string expected;
  std::string actual;
  for (int number = 1;; ++number) {
    const bool more_left = static_cast<bool>(std::getline(left, expected));
    const bool more_right = static_cast<bool>(std::getline(right, actual));
    if (!more_left && !more_right) return "no line differs";
    if (!more_left) expected = "(end)";
    if (!more_right) actual = "(end)";
    if (expected != actual) {
      return "line " + std::to_string(number) + "\n  recorded: " + expected +
             "\n  now:      " + actual;
    }
  }
}

bool replay(const std::string& path, bool rewrite) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    std::printf("%s: cannot be read\n", path.c_str());
    return false;
  }
  const std::string now = ddprun::sim::replay_scenario(text.str());
  if (now == text.str()) return true;
  if (rewrite) {
    std::ofstream(path) << now;
    std::printf("%s: rewritten\n", path.c_str());
    return true;
  }
  std::printf("%s: %s\n", path.c_str(), first_difference(text.str(), now).c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  bool rewrite = false;
  bool good = true;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--rewrite") {
      rewrite = true;
      continue;
    }
    ++files;
    try {
      good = replay(name, rewrite) && good;
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", name.c_str(), error.what());
      good = false;
    }
  }
  if (files == 0) std::printf("usage: scenario [--rewrite] FILE...\n");
  return good && files > 0 ? 0 : 1;
}
