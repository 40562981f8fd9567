// tool: runs a short program of ddprun's own, which is no worker, and takes what it prints. Thread
// rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/proc/orphans.hpp"
#include "base/clock.hpp"

namespace ddprun {

struct Tool {
  std::string program;            // absolute path
  std::vector<std::string> argv;  // argv[0] included
  std::vector<std::string> environment;
};

/// Its standard output, at most `bytes_max` bytes, until it closes that or at `deadline`; then it
/// is killed, with all that it has started. What it writes to stderr is dropped. Empty when it
/// cannot be started. Cancelling leaves the process to its parent-death signal.
[[nodiscard]] boost::asio::awaitable<std::string> output_of(boost::asio::any_io_executor executor,
                                                            Orphans& orphans, Tool tool,
                                                            std::size_t bytes_max,
                                                            TimePoint deadline);

}  // namespace ddprun
