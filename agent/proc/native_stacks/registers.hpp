// The registers of a stopped thread, in DWARF's numbering.
#pragma once

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <array>

namespace ddprun::native_stacks {

#if defined(__x86_64__)
inline constexpr bool kIsSupported = true;

inline bool set_registers(Dwfl_Thread* thread, pid_t id) {
  user_regs_struct all = {};
  iovec buffer{&all, sizeof all};
  if (::ptrace(PTRACE_GETREGSET, id, NT_PRSTATUS, &buffer) != 0) return false;
  const std::array<Dwarf_Word, 17> numbered{all.rax, all.rdx, all.rcx, all.rbx, all.rsi, all.rdi,
                                            all.rbp, all.rsp, all.r8,  all.r9,  all.r10, all.r11,
                                            all.r12, all.r13, all.r14, all.r15, all.rip};
  return dwfl_thread_state_registers(thread, 0, numbered.size(), numbered.data());
}
#elif defined(__aarch64__)
inline constexpr bool kIsSupported = true;

inline bool set_registers(Dwfl_Thread* thread, pid_t id) {
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
inline constexpr bool kIsSupported = false;

inline bool set_registers(Dwfl_Thread* /*thread*/, pid_t /*id*/) {
  return false;
}
#endif

}  // namespace ddprun::native_stacks
