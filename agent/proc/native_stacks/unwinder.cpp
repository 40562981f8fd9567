#include "agent/proc/native_stacks/unwinder.hpp"

#include <cxxabi.h>
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/proc/native_stacks/registers.hpp"

namespace ddprun::native_stacks {
namespace {

/// Debug information elsewhere, perhaps on a server, is never looked for: symbols and unwind tables
/// are in the file itself.
int find_no_debug_information(Dwfl_Module* /*module*/, void** /*data*/, const char* /*name*/,
                              Dwarf_Addr /*base*/, const char* /*file*/, const char* /*link*/,
                              GElf_Word /*sum*/, char** /*found*/) {
  return -1;
}

struct Target {
  Dwfl* dwfl = nullptr;
  pid_t pid = 0;
  OnFrame on_frame{};
  std::unordered_map<Dwarf_Addr, Frame> known{};  // threads often wait at the same place
  pid_t thread = 0;                               // whose stack is unwound
  std::size_t frames = 0;                         // of it
  bool denied = false;
};

/// libdwfl demands it, and calls it only to visit all threads.
pid_t next_thread(Dwfl* /*dwfl*/, void* /*target*/, void** /*argument*/) {
  return 0;
}

bool get_thread(Dwfl* /*dwfl*/, pid_t id, void* target, void** argument) {
  *argument = target;
  static_cast<Target*>(target)->thread = id;
  return true;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the kernel writes to `result`
bool read_memory(Dwfl* /*dwfl*/, Dwarf_Addr address, Dwarf_Word* result, void* target) {
  iovec here{result, sizeof *result};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process
  iovec there{reinterpret_cast<void*>(address), sizeof *result};
  const pid_t pid = static_cast<Target*>(target)->pid;
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof *result);
}

bool stop_thread(pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return false;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return false;
  int status = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(thread, &status, __WALL);
  } while (waited < 0 && errno == EINTR);
  return waited == thread && WIFSTOPPED(status);
}

bool begin_thread(Dwfl_Thread* thread, void* target) {
  auto& of = *static_cast<Target*>(target);
  if (!stop_thread(of.thread)) {
    of.denied = errno == EPERM || errno == EACCES;
    return false;
  }
  return set_registers(thread, of.thread);
}

void end_thread(Dwfl_Thread* thread, void* /*target*/) {
  ::ptrace(PTRACE_DETACH, dwfl_thread_tid(thread), nullptr, nullptr);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return text == nullptr ? name : text.get();
}

Frame describe(Dwfl* dwfl, Dwarf_Addr address) {
  Frame frame;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl, address);
  if (module == nullptr) return {"?", "?"};
  Dwarf_Addr start = 0;
  const char* path =
      dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string_view whole = path == nullptr ? "?" : path;
  frame.module = whole.substr(whole.rfind('/') + 1);
  if (const char* symbol = dwfl_module_addrname(module, address)) {
    frame.function = demangled(symbol);
    return frame;
  }
  char offset[24];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(address - start));
  frame.function = offset;
  return frame;
}

int take_frame(Dwfl_Frame* state, void* target) {
  auto& of = *static_cast<Target*>(target);
  Dwarf_Addr address = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(state, &address, &is_activation)) return DWARF_CB_ABORT;
  if (!is_activation) --address;  // of the call, not of what follows it
  auto known = of.known.find(address);
  if (known == of.known.end()) known = of.known.emplace(address, describe(of.dwfl, address)).first;
  of.on_frame(of.thread, known->second);
  return ++of.frames < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads{process};
  const std::string path = "/proc/" + std::to_string(process) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(path.c_str()), ::closedir);
  if (tasks == nullptr) return threads;
  while (const dirent* entry = ::readdir(tasks.get())) {
    const pid_t thread = std::atoi(entry->d_name);
    if (thread > 0 && thread != process && threads.size() < kThreadsMax) threads.push_back(thread);
  }
  return threads;
}

Outcome unwind_threads(Target& target) {
  for (const pid_t thread : threads_of(target.pid)) {
    target.frames = 0;
    dwfl_getthread_frames(target.dwfl, thread, take_frame, &target);
    if (target.denied) return Outcome::kDenied;
  }
  return Outcome::kDone;
}

}  // namespace

Outcome unwind(pid_t process, const OnFrame& on_frame) {
  if (!kIsSupported) return Outcome::kUnsupported;
  Dwfl_Callbacks callbacks = {};
  callbacks.find_elf = dwfl_linux_proc_find_elf;
  callbacks.find_debuginfo = find_no_debug_information;
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl(dwfl_begin(&callbacks), dwfl_end);
  const int error = dwfl == nullptr ? ENOMEM : dwfl_linux_proc_report(dwfl.get(), process);
  if (error > 0) return error == EPERM || error == EACCES ? Outcome::kDenied : Outcome::kGone;
  if (error < 0 || dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) return Outcome::kGone;
  Target target{dwfl.get(), process, on_frame};
  constexpr Dwfl_Thread_Callbacks kThreads{next_thread,  get_thread, read_memory,
                                           begin_thread, nullptr,    end_thread};
  if (!dwfl_attach_state(dwfl.get(), nullptr, process, &kThreads, &target)) {
    return Outcome::kUnsupported;
  }
  return unwind_threads(target);
}

}  // namespace ddprun::native_stacks
