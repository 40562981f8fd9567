// ddprun-stacks SECONDS PID...: prints the native stacks of processes, which continue afterwards.
// The agent runs it as a program of its own, so that an unwinder that crashes or hangs costs
// nothing. One child per process, killed by its own alarm. Each line: F, pid, thread, function,
// module; or E, pid and why stacks are missing; tabs between them. Exit 0 however much is missing,
// 2: wrong use.
//
// libdwfl of elfutils unwinds. Threads are stopped one after the other, with PTRACE_SEIZE: it sends
// no signal, so that a death of this process, at any moment, leaves the other one running. A thread
// in state D does not stop, and its child waits for it until the alarm.
#include <cxxabi.h>
#include <dirent.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

constexpr std::size_t kNameBytesMax = 160;
// Beyond these, threads and frames are left out.
constexpr std::size_t kThreadsMax = 64;
constexpr std::size_t kFramesMax = 48;

struct Frame {
  std::string function;  // demangled; "+0x1f0" in its module where no symbol is known
  std::string module;    // file name without its directory
};

struct Target {
  Dwfl* dwfl = nullptr;
  pid_t pid = 0;
  std::unordered_map<Dwarf_Addr, Frame> known{};  // threads often wait at the same place
  pid_t thread = 0;                               // whose stack is unwound
  std::size_t frames = 0;                         // of it
  bool denied = false;
};

/// Names come from files of the other process: a line stays a line.
std::string cleaned(std::string_view name) {
  std::string text(name.substr(0, kNameBytesMax));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  if (name.size() > kNameBytesMax) text += "...";
  return text;
}

/// In one write(), which a pipe does not mix with another child's.
void print(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

void print_missing(pid_t process, const char* why) {
  print("E\t" + std::to_string(process) + "\t" + why + "\n");
}

// In the numbering of DWARF.
#if defined(__x86_64__)
constexpr bool kIsSupported = true;

bool set_registers(Dwfl_Thread* thread, pid_t id) {
  user_regs_struct all = {};
  iovec buffer{&all, sizeof all};
  if (::ptrace(PTRACE_GETREGSET, id, NT_PRSTATUS, &buffer) != 0) return false;
  const std::array<Dwarf_Word, 17> numbered{all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi,
                                            all.rbp, all.rsp, all.r8,  all.r9,  all.r10, all.r11,
                                            all.r12, all.r13, all.r14, all.r15, all.rip};
  return dwfl_thread_state_registers(thread, 0, numbered.size(), numbered.data());
}
#elif defined(__aarch64__)
constexpr bool kIsSupported = true;

bool set_registers(Dwfl_Thread* thread, pid_t id) {
  user_regs_struct all = {};
  iovec buffer{&all, sizeof all};
  if (::ptrace(PTRACE_GETREGSET, id, NT_PRSTATUS, &buffer) != 0) return false;
  std::array<Dwarf_Word, 32> numbered{};
  for (unsigned at = 0; at < 31; ++at) numbered[at] = all.regs[at];
  numbered[31] = all.sp;
  dwfl_thread_state_register_pc(thread, all.pc);
  return dwfl_thread_state_registers(thread, 0, numbered.size(), numbered.data());
}
#else
constexpr bool kIsSupported = false;

bool set_registers(Dwfl_Thread* /*thread*/, pid_t /*id*/) {
  return false;
}
#endif

/// Debug information elsewhere, perhaps on a server, is never looked for: symbols and unwind tables
/// are in the file itself.
int find_no_debug_information(Dwfl_Module* /*module*/, void** /*data*/, const char* /*name*/,
                              Dwarf_Addr /*base*/, const char* /*file*/, const char* /*link*/,
                              GElf_Word /*sum*/, char** /*found*/) {
  return -1;
}

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
  print("F\t" + std::to_string(of.pid) + "\t" + std::to_string(of.thread) + "\t" +
        cleaned(known->second.function) + "\t" + cleaned(known->second.module) + "\n");
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

/// Prints each frame, the main thread's first, the innermost frame first. Returns why some are
/// missing; null: none is.
const char* unwind(pid_t process) {
  if (!kIsSupported) return "unsupported";
  Dwfl_Callbacks callbacks = {};
  callbacks.find_elf = dwfl_linux_proc_find_elf;
  callbacks.find_debuginfo = find_no_debug_information;
  const std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl(dwfl_begin(&callbacks), dwfl_end);
  const int error = dwfl == nullptr ? ENOMEM : dwfl_linux_proc_report(dwfl.get(), process);
  if (error > 0) return error == EPERM || error == EACCES ? "denied" : "gone";
  if (error < 0 || dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) return "gone";
  Target target{dwfl.get(), process};
  constexpr Dwfl_Thread_Callbacks kThreads{next_thread,  get_thread, read_memory,
                                           begin_thread, nullptr,    end_thread};
  if (!dwfl_attach_state(dwfl.get(), nullptr, process, &kThreads, &target)) return "unsupported";
  for (const pid_t thread : threads_of(process)) {
    target.frames = 0;
    dwfl_getthread_frames(target.dwfl, thread, take_frame, &target);
    if (target.denied) return "denied";
  }
  return nullptr;
}

[[noreturn]] void unwind_in_child(pid_t process, double seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto whole = static_cast<time_t>(seconds);
  const itimerval limit{{0, 0},
                        {whole, static_cast<suseconds_t>((seconds - double(whole)) * 1e6) + 1}};
  ::setitimer(ITIMER_REAL, &limit, nullptr);
  if (const char* why = unwind(process)) print_missing(process, why);
  ::_exit(0);
}

void reap(std::map<pid_t, pid_t>& children) {
  int status = 0;
  const pid_t child = ::wait(&status);
  const auto ended = children.find(child);
  if (ended == children.end()) return;
  if (WIFSIGNALED(status)) {
    print_missing(ended->second, WTERMSIG(status) == SIGALRM ? "late" : "failed");
  }
  children.erase(ended);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? std::atof(argv[1]) : 0;
  if (seconds <= 0 || seconds > 60) {
    ::fputs("usage: ddprun-stacks SECONDS PID...\n", stderr);
    return 2;
  }
  const auto at_once =
      static_cast<std::size_t>(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 2L, 16L));
  std::map<pid_t, pid_t> children;  // by pid: whose stacks it reads
  for (int at = 2; at < argc; ++at) {
    const pid_t process = std::atoi(argv[at]);
    if (process <= 0) continue;
    while (children.size() >= at_once) reap(children);
    const pid_t child = ::fork();
    if (child == 0) unwind_in_child(process, seconds);
    if (child < 0) {
      print_missing(process, "failed");
    } else {
      children.emplace(child, process);
    }
  }
  while (!children.empty()) reap(children);
  return 0;
}
