#include "agent/warm/processor.hpp"

#include <algorithm>
#include <charconv>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun::warm {

Duration Processor::starved(const Processor& before, Duration since) const {
  const Duration had = ready ? since - (ran - before.ran) : waited - before.waited;
  return std::clamp(had, Duration(0), since);
}

// "RAN WAITED SLICES", in ns; the kernel counts a wait when it ends.
Processor processor_of(pid_t process) {
  const std::string text = read_proc(process, "schedstat");
  const char* const end = text.data() + text.size();
  long long ran = 0;
  long long waited = 0;
  const auto first = std::from_chars(text.data(), end, ran);
  if (first.ec != std::errc() || first.ptr == end) return {};
  if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc()) return {};
  const auto entry = find_process(process);
  return {std::chrono::nanoseconds(ran), std::chrono::nanoseconds(waited),
          entry && entry->state == 'R'};
}

bool has_ready_member(pid_t session) {
  const auto below = processes_below({session}, kProcessesBelowMax);
  return std::any_of(below.begin(), below.end(), [session](const ProcessEntry& one) {
    return one.session == session && one.pid != session && one.state == 'R';
  });
}

}  // namespace ddprun::warm
