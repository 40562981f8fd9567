#include "agent/watch/stack_groups.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/report/lines.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kPlaceBytesMax = 120;

/// Every thread that waits is in one of these; what called it tells more.
bool is_c_library(std::string_view module) {
  constexpr std::array<std::string_view, 6> kNames{"libc.so",  "libc-", "libpthread",
                                                   "ld-linux", "[vdso", "libstdc++.so"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [module](std::string_view name) { return module.starts_with(name); });
}

/// "gloo::Pair::recv(int, long)" is shown without what it takes.
std::string frame_text(const StackFrame& frame) {
  std::string function = frame.function.substr(0, frame.function.find('('));
  if (function.empty()) function = frame.function;
  return function + " (" + frame.where + ")";
}

std::string kernel_place(const ProcessStacks& process) {
  const std::string where =
      process.wait_channel.empty() ? process.system_call : process.wait_channel;
  const std::string state = "(state " + std::string(1, process.state) + ")";
  switch (process.state) {
    case '?':
      return "exited meanwhile";
    case 'R':
      return "running " + state;
    case 'T':
    case 't':
      return "stopped " + state;
    case 'Z':
    case 'X':
      return "exited " + state;
    case 'D':
      return "uninterruptible sleep" + (where.empty() ? "" : " in " + where) + " " + state;
    default:
      return "sleeping" + (where.empty() ? "" : " in " + where) + " " + state;
  }
}

const StackFrame* main_frame(const ProcessStacks& process) {
  for (const ThreadStack& thread : process.python) {
    if (!thread.frames.empty()) return &thread.frames.front();
  }
  if (process.native.empty()) return nullptr;
  const auto& frames = process.native.front().frames;
  const auto own = std::find_if(frames.begin(), frames.end(),
                                [](const StackFrame& frame) { return !is_c_library(frame.where); });
  return own == frames.end() ? nullptr : &*own;
}

std::string place_of(const ProcessStacks& process) {
  const StackFrame* frame = main_frame(process);
  const std::string place = frame == nullptr ? kernel_place(process) : frame_text(*frame);
  return printable(place.substr(0, kPlaceBytesMax));
}

std::string thread_text(const std::string& kind, const ThreadStack& thread) {
  std::string text = "  " + kind + " stack of thread " + std::to_string(thread.tid);
  if (!thread.name.empty()) text += " \"" + printable(thread.name) + "\"";
  text += "\n";
  for (const StackFrame& frame : thread.frames) {
    text += "    " + printable(frame.function + " (" + frame.where + ")") + "\n";
  }
  return text;
}

std::string process_text(const ProcessStacks& process) {
  std::string text = "  pid " + std::to_string(process.pid) + " (" + printable(process.name) +
                     "), state " + std::string(1, process.state);
  if (!process.system_call.empty()) text += ", in " + process.system_call;
  if (!process.wait_channel.empty()) text += ", waits in " + printable(process.wait_channel);
  text += "\n";
  if (!process.missing.empty()) text += "  (" + process.missing + ")\n";
  for (const ThreadStack& thread : process.python) text += thread_text("Python", thread);
  for (const ThreadStack& thread : process.native) text += thread_text("native", thread);
  if (!process.kernel.empty()) text += "  kernel stack of the main thread\n";
  for (const std::string& frame : process.kernel) text += "    " + printable(frame) + "\n";
  return text;
}

std::string ended_text(const EndedChild& child, int leader) {
  const std::string whose = child.parent == leader
                                ? "its child "
                                : "child of its process " + std::to_string(child.parent) + ", ";
  return whose + std::to_string(child.pid) + " (" + printable(child.name) + ") ended with " +
         child.status.text() + " and was not waited for";
}

}  // namespace

std::string place_of(const RankStacks& rank) {
  if (rank.processes.empty()) return "not readable in time";
  return place_of(rank.processes.front());
}

StackDump living(StackDump dump) {
  const auto has_exited = [](const RankStacks& rank) {
    if (rank.processes.empty()) return false;
    const char state = rank.processes.front().state;
    return state == 'Z' || state == 'X' || state == '?';
  };
  dump.ranks.erase(std::remove_if(dump.ranks.begin(), dump.ranks.end(), has_exited),
                   dump.ranks.end());
  return dump;
}

std::vector<StackGroup> group_stacks(const StackDump& dump) {
  std::vector<StackGroup> groups;
  for (const RankStacks& rank : dump.ranks) {
    const std::string place = place_of(rank);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const StackGroup& group) { return group.place == place; });
    if (same == groups.end()) {
      groups.push_back({place, {rank.worker.rank.value()}});
    } else {
      same->ranks.push_back(rank.worker.rank.value());
    }
  }
  sort_groups(groups);
  return groups;
}

std::vector<std::string> ended_children(const StackDump& dump) {
  std::vector<std::string> lines;
  for (const RankStacks& rank : dump.ranks) {
    for (const EndedChild& child : rank.ended) {
      lines.push_back(who(rank.worker) + ": " + ended_text(child, rank.worker.pid));
    }
  }
  return lines;
}

std::string dump_text(const StackDump& dump, const std::string& heading) {
  std::string text = printable(heading) + "\n";
  for (const StackGroup& group : group_stacks(dump)) {
    text += group_text(group) + ": " + numbers_text(group) + "\n";
  }
  for (const RankStacks& rank : dump.ranks) {
    text += "\n" + who(rank.worker) + ": " + place_of(rank) + "\n";
    for (const EndedChild& child : rank.ended) {
      text += "  " + ended_text(child, rank.worker.pid) + "\n";
    }
    for (const ProcessStacks& process : rank.processes) text += process_text(process);
  }
  return text;
}

}  // namespace ddprun
