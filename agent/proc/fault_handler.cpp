#include "agent/proc/fault_handler.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "agent/proc/process_facts.hpp"

namespace ddprun {
namespace {

/// What follows `name` in /proc/PID/status.
std::string field_of(const std::string& status, const std::string& name) {
  const auto at = status.find("\n" + name + ":\t");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 3;
  return status.substr(begin, status.find('\n', begin) - begin);
}

bool catches_abort(const std::string& status) {
  const std::string caught = field_of(status, "SigCgt");
  return ((std::strtoull(caught.c_str(), nullptr, 16) >> (SIGABRT - 1)) & 1U) != 0;
}

// With a limit of 1 the kernel also gives no core to a program that collects them, which has 0
// ignored.
bool forbid_core(pid_t process) {
  rlimit core = {};
  if (::prlimit(process, RLIMIT_CORE, nullptr, &core) != 0) return false;
  core.rlim_cur = core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
  return ::prlimit(process, RLIMIT_CORE, &core, nullptr) == 0;
}

}  // namespace

bool abort_with_python_stacks(pid_t process) {
  const std::string status = read_proc(process, "status");
  const std::string state = field_of(status, "State").substr(0, 1);
  const bool acts = state == "R" || state == "S";
  if (!acts || !catches_abort(status) || !runs_python(process)) return false;
  return forbid_core(process) && ::kill(process, SIGABRT) == 0;
}

}  // namespace ddprun
