// agent_run: the agent with shell scripts as workers. In an argument `$$` stands for one `$`.
#pragma once

#include <string>
#include <vector>

#include "tests/agent/command.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::test {

using Argv = std::vector<std::string>;

inline Argv driver(int workers, Argv options, const std::string& script) {
  Argv argv{AGENT_DRIVER, std::to_string(workers)};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"--", "sh", "-c", script});
  return argv;
}

inline Command start(int workers, const std::string& script, Argv options = {},
                     Environment changes = {}) {
  return Command(driver(workers, std::move(options), script), std::move(changes));
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

inline pid_t pid_in(const std::string& path) {
  REQUIRE(wait_until([&] { return content(path).find('\n') != std::string::npos; }));
  return static_cast<pid_t>(std::stoi(content(path)));
}

// Announces its pid in $DIR/<rank>.<restart count>, then stays until it is signalled.
inline const std::string kAnnounce = "echo $$$$ > $DIR/$RANK.$TORCHELASTIC_RESTART_COUNT; ";
inline const std::string kStay = kAnnounce + "exec sleep 1000";

}  // namespace ddprun::test
