// stacks: where every rank of this node is, for a hang, a time-out or a request. In parallel and
// bounded in time: what a rank that does not answer would add is missing, and said to be. No
// process is killed or given a signal by it. Thread rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/proc/orphans.hpp"
#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/stacks.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

// All stacks of a node are there by then.
inline constexpr std::chrono::milliseconds kStacksMax{2000};

/// The programs that read stacks.
struct StackTools {
  std::string unwinder{};  // ddprun-stacks, for native ones; empty: there is none
  std::string py_spy{};    // for those of Python; empty: there is none
  std::vector<std::string> environment{};
};
/// Beside this program, and in PATH.
[[nodiscard]] StackTools find_stack_tools(const Environment& environment);

/// Of workers that live. Complete at `deadline` at the latest, kStacksMax from now is a good one.
[[nodiscard]] boost::asio::awaitable<StackDump> dump_stacks(boost::asio::any_io_executor executor,
                                                            DiskThread disk, Orphans& orphans,
                                                            StackTools tools,
                                                            std::vector<WorkerName> workers,
                                                            TimePoint deadline);

// Of one process; what is beyond them is left out.
inline constexpr std::size_t kStackThreadsMax = 64;
inline constexpr std::size_t kStackFramesMax = 64;

/// What ddprun-stacks prints of one process, however that looks. Pure.
struct NativeStacks {
  std::vector<ThreadStack> threads{};
  std::string missing{};  // why some are missing; empty: none is
};
/// By pid.
[[nodiscard]] std::map<int, NativeStacks> parse_native_stacks(std::string_view text);

/// What `py-spy dump` prints. The main thread comes first.
[[nodiscard]] std::vector<ThreadStack> parse_python_stacks(std::string_view text);

}  // namespace ddprun
