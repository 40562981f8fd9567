// Scenario files: commands with the transcript they must give inline. A block is some command
// lines, a line
// "----", the transcript, an empty line; lines that begin with # before the first command tell the
// story.
#pragma once

#include <string>

namespace ddprun::sim {

/// The file's text with every transcript as it comes out now. Throws std::runtime_error for a
/// command that does not exist, and Violation when an invariant breaks.
[[nodiscard]] std::string replay_scenario(const std::string& text);

}  // namespace ddprun::sim
