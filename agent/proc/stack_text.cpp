#include "agent/proc/stack_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ddprun {
namespace {

std::string_view next_part(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The sentence behind a word of ddprun-stacks.
std::string missing_text(std::string_view word) {
  if (word == "denied") return "the kernel denies ptrace: no native stacks";
  if (word == "gone") return "it ended meanwhile";
  if (word == "late") return "not all native stacks were read in time";
  if (word == "unsupported") return "no native stacks on this processor";
  return "its native stacks could not be read";
}

ThreadStack* thread_of(std::vector<ThreadStack>& threads, int tid) {
  const auto known = std::find_if(threads.begin(), threads.end(),
                                  [tid](const ThreadStack& thread) { return thread.tid == tid; });
  if (known != threads.end()) return &*known;
  if (threads.size() >= kStackThreadsMax) return nullptr;
  threads.push_back({tid, {}, {}});
  return &threads.back();
}

void add_frame(ThreadStack* thread, std::string_view function, std::string_view where) {
  if (thread == nullptr || thread->frames.size() >= kStackFramesMax) return;
  thread->frames.push_back({std::string(function), std::string(where)});
}

// `Thread 4711 (idle): "MainThread"`.
std::optional<ThreadStack> python_thread(std::string_view line) {
  constexpr std::string_view kStart = "Thread ";
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  ThreadStack thread;
  thread.tid = number_of(next_part(line, ' ')).value_or(0);
  const auto open = line.find('"');
  const auto close = line.rfind('"');
  if (open != std::string_view::npos && close > open) {
    thread.name = line.substr(open + 1, close - open - 1);
  }
  return thread;
}

// `    step (pkg/train.py:310)`.
void add_python_frame(std::vector<ThreadStack>& threads, std::string_view line) {
  const auto open = line.rfind(" (");
  if (threads.empty() || open == std::string_view::npos || !line.ends_with(')')) return;
  std::string_view place = line.substr(open + 2, line.size() - open - 3);
  place.remove_prefix(place.rfind('/') + 1);
  line = line.substr(0, open);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  add_frame(&threads.back(), line, place);
}

}  // namespace

std::map<int, NativeStacks> parse_native_stacks(std::string_view text) {
  std::map<int, NativeStacks> stacks;
  while (!text.empty()) {
    std::string_view line = next_part(text, '\n');
    const std::string_view kind = next_part(line, '\t');
    const auto pid = number_of(next_part(line, '\t'));
    if (!pid) continue;
    NativeStacks& process = stacks[*pid];
    if (kind == "E") process.missing = missing_text(line);
    if (kind != "F") continue;
    const auto tid = number_of(next_part(line, '\t'));
    const std::string_view function = next_part(line, '\t');
    if (tid) add_frame(thread_of(process.threads, *tid), function, line);
  }
  return stacks;
}

std::vector<ThreadStack> parse_python_stacks(std::string_view text) {
  std::vector<ThreadStack> threads;
  while (!text.empty()) {
    const std::string_view line = next_part(text, '\n');
    auto thread = python_thread(line);
    if (thread && threads.size() >= kStackThreadsMax) break;
    if (thread) threads.push_back(std::move(*thread));
    if (line.starts_with("    ")) add_python_frame(threads, line);
  }
  std::stable_partition(threads.begin(), threads.end(),
                        [](const ThreadStack& one) { return one.name == "MainThread"; });
  return threads;
}

}  // namespace ddprun
