// inject: the faults of the failure catalogue that need no Python. `inject meet` comes first in
// every worker: it returns once all ranks of the round exist, so that the first failure is not an
// accident of the start. tests/failures/catalogue.py says what each case does with it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kLifeSeconds = 90;  // no injector outlives a harness that died
constexpr auto kMeetMax = std::chrono::seconds(30);

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string note(const std::string& name, const std::string& rank) {
  return variable("CASE_DIR", ".") + "/" + name + "." + variable("DDPRUN_ROUND", "1") + "." + rank;
}

void touch(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0) ::close(fd);
}

/// Waits for the file that rank `rank` makes with `touch`.
int await_note(const std::string& name, const std::string& rank) {
  const std::string path = note(name, rank);
  const auto deadline = Clock::now() + kMeetMax;
  while (::access(path.c_str(), F_OK) != 0) {
    if (Clock::now() > deadline) return 98;
    ::poll(nullptr, 0, 3);
  }
  return 0;
}

/// Returns 0 once all ranks of the round have called it with this name.
int meet_at(const std::string& name) {
  touch(note(name, variable("RANK", "0")));
  const int ranks = std::atoi(variable("WORLD_SIZE", "1").c_str());
  for (int rank = 0; rank < ranks; ++rank) {
    if (const int code = await_note(name, std::to_string(rank)); code != 0) return code;
  }
  return 0;
}

int meet(const char*) {
  return meet_at("here");
}

/// All ranks at one moment. A shell in its place would fork at that moment, with blocked signals.
int fail(const char* exit_code) {
  const int code = meet_at("failing");
  return code != 0 ? code : std::atoi(exit_code);
}

int make_note(const char* name) {
  touch(note(name, variable("RANK", "0")));
  return 0;
}

/// `inject await NAME.RANK`
int await(const char* what) {
  const std::string text = what;
  const auto dot = text.rfind('.');
  return await_note(text.substr(0, dot), text.substr(dot + 1));
}

int wait_for_a_signal(const char*) {
  ::alarm(kLifeSeconds);
  for (;;) ::pause();
}

int ignore_sigterm(const char*) {
  ::signal(SIGTERM, SIG_IGN);
  touch(note("ignores", variable("RANK", "0")));
  return wait_for_a_signal(nullptr);
}

/// Lets `milliseconds` pass.
int rest(const char* milliseconds) {
  ::poll(nullptr, 0, std::atoi(milliseconds));
  return 0;
}

int die_of(const char* number) {
  const int signal = std::atoi(number);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  return 97;  // it was ignored
}

int dereference_null(const char*) {
  volatile int* const nowhere = nullptr;
  return *nowhere;  // NOLINT: this is the fault
}

// GCC sees the endless recursion, which is the fault.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winfinite-recursion"
int overflow_stack(const char* text) {
  volatile char frame[4096];
  frame[0] = text == nullptr ? '0' : text[0];
  return overflow_stack(text) + frame[0];
}
#pragma GCC diagnostic pop

/// Reads a mapped file that became shorter: SIGBUS.
int read_beyond_file(const char*) {
  const std::string path = note("mapped", "0");
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, 8192) != 0) return 96;
  void* const at = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED || ::ftruncate(fd, 0) != 0) return 96;
  return static_cast<volatile char*>(at)[5000];
}

/// As data loaders do: a shared file in /dev/shm as large as the argument says, then its pages.
int fill_shared_memory(const char* bytes) {
  const auto size = static_cast<std::size_t>(std::atoll(bytes));
  const int fd = ::open("/dev/shm/inject", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0) return 96;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return 96;
  std::memset(at, 1, size);
  return 95;
}

/// Takes and uses memory until the kernel or a limit says no.
int eat_memory(const char* megabytes) {
  for (int i = 0; i < std::atoi(megabytes); ++i) {
    void* const part = std::malloc(1 << 20);
    if (part == nullptr) {
      std::fprintf(stderr, "inject: Cannot allocate memory\n");
      return 1;
    }
    std::memset(part, 1, 1 << 20);
  }
  return 94;
}

int spin(const char*) {
  ::alarm(kLifeSeconds);
  for (volatile unsigned long turns = 0;;) turns = turns + 1;
}

/// One line without end: `bytes` bytes without a newline, then exit code 4.
int print_long_line(const char* bytes) {
  const std::string line(static_cast<std::size_t>(std::atoll(bytes)), 'x');
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputs("THE END", stderr);
  return 4;
}

int print_binary(const char* bytes) {
  unsigned state = 1;
  for (int i = 0; i < std::atoi(bytes); ++i) {
    state = state * 1664525u + 1013904223u;
    std::fputc(static_cast<int>(state >> 24), stderr);
  }
  std::fputs("\nthe reason after the noise\n", stderr);
  return 5;
}

using Fault = std::function<int(const char*)>;
const std::map<std::string, Fault>& faults() {
  static const std::map<std::string, Fault> table{
      {"meet", meet},
      {"fail", fail},
      {"note", make_note},
      {"await", await},
      {"wait", wait_for_a_signal},
      {"ignore", ignore_sigterm},
      {"rest", rest},
      {"signal", die_of},
      {"null", dereference_null},
      {"stack", overflow_stack},
      {"mapped", read_beyond_file},
      {"shm", fill_shared_memory},
      {"eat", eat_memory},
      {"spin", spin},
      {"line", print_long_line},
      {"binary", print_binary},
  };
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const auto fault = faults().find(argc > 1 ? argv[1] : "");
  if (fault == faults().end()) {
    std::fprintf(stderr, "inject: unknown fault\n");
    return 99;
  }
  return fault->second(argc > 2 ? argv[2] : "0");
}
