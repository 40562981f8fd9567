// CommandIdentity: what nodes of one run compare, so that two jobs at one endpoint do not become
// one. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"

namespace ddprun {

/// The same on two nodes that run the same program, wherever it and its Python are installed.
///
/// The parts that differ between nodes are not compared: the folder of the program, of a script
/// under Python and of an argument that is an absolute path; the interpreter; arguments that are
/// the name of this host; the values of --node-rank, --machine-rank, --local-addr, --host and
/// --hostname. `program` is the same on nodes whose arguments differ.
[[nodiscard]] CommandIdentity identify_command(const std::vector<std::string>& command,
                                               const std::string& host_name);

}  // namespace ddprun
