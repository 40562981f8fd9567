// A worker that tells what it was given: `probe WHAT [ARGUMENT]`. It opens nothing that it does not
// count.
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>

namespace {

int print_descriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 1;
  while (const dirent* entry = readdir(directory)) {
    const int number = entry->d_name[0] == '.' ? -1 : atoi(entry->d_name);
    if (number >= 0 && number != dirfd(directory)) printf("%d ", number);
  }
  closedir(directory);
  return 0;
}

int print_affinity() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  printf("%d", CPU_COUNT(&cpus));
  return 0;
}

int print_ids() {
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  const bool leader = getsid(0) == getpid() && getpgrp() == getpid();
  printf("leader=%d parent=%d death=%d", leader ? 1 : 0, getppid(), death_signal);
  return 0;
}

int print_inheritance() {
  const mode_t mask = umask(0);
  char directory[4096] = "";
  if (getcwd(directory, sizeof directory) == nullptr) return 1;
  printf("umask=%03o cwd=%s", static_cast<unsigned>(mask), directory);
  return 0;
}

// Two children that wait for ever, one in this group and one in a session of its own; prints their
// pids.
int start_children() {
  for (const bool own_session : {false, true}) {
    int ready[2];
    if (pipe(ready) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
      if (own_session) setsid();
      if (write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    }
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) return 1;
    printf("%d ", child);
  }
  printf("\n");
  return fflush(stdout);
}

// One child in this group, whose main thread ends while another one runs; prints its pid.
int start_child_without_main_thread() {
  static int ready[2];  // the stack of the main thread goes with it
  if (pipe(ready) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    pthread_t other;
    const auto stay = [](void*) -> void* {
      if (write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    };
    if (pthread_create(&other, nullptr, stay, nullptr) == 0) pthread_exit(nullptr);
    _exit(1);
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) return 1;
  printf("%d 0\n", child);
  return fflush(stdout);
}

// A chain of processes, each of which ends as soon as the next one runs; says when it has begun. It
// is bounded, by time and by the number of processes, and says so when it has reached a bound: a
// test that is killed must not leave it running, nor one that does not reap fill the machine with
// zombies.
[[noreturn]] void fork_on_and_on(bool own_session_for_each) {
  constexpr int kGenerationsMax = 9000;
  constexpr int kTightGenerations = 4000;  // then one in a millisecond
  constexpr int kSecondsMax = 5;
  const time_t began = time(nullptr);
  if (fork() > 0) {
    while (true) pause();
  }
  for (int generation = 0; generation < kGenerationsMax; ++generation) {
    if (time(nullptr) > began + kSecondsMax) break;
    if (generation > kTightGenerations) poll(nullptr, 0, 1);
    const pid_t next = fork();
    if (next != 0) _exit(0);
    if (own_session_for_each) setsid();
    if (generation == 50 && write(1, "forking\n", 8) != 8) _exit(1);
  }
  _exit(write(1, "ended by itself\n", 16) == 16 ? 0 : 1);
}

int copy_file(const char* path) {
  FILE* const file = fopen(path, "r");
  if (file == nullptr) return 1;
  for (int c = 0; (c = getc(file)) != EOF;) putchar(c);
  fclose(file);
  return 0;
}

// Writes COUNT lines of WIDTH digits (the line's number), a few bytes per write().
int write_torn_lines(const std::string& argument, int descriptor) {
  unsigned count = 0;
  unsigned width = 0;
  unsigned piece = 0;
  if (sscanf(argument.c_str(), "%u,%u,%u", &count, &width, &piece) != 3) return 1;
  for (unsigned number = 0; number < count; ++number) {
    const std::string line = std::string(width, static_cast<char>('0' + number % 10)) + "\n";
    for (std::size_t at = 0; at < line.size(); at += piece) {
      const std::string part = line.substr(at, piece);
      if (write(descriptor, part.data(), part.size()) < 0) return 2;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "";
  if (what == "descriptors") return print_descriptors();
  if (what == "affinity") return print_affinity();
  if (what == "ids") return print_ids();
  if (what == "inheritance") return print_inheritance();
  if (what == "status") return copy_file("/proc/self/status");
  if (what == "environment") return copy_file("/proc/self/environ");
  if (what == "exit") return atoi(argument.c_str());
  if (what == "raise") return raise(atoi(argument.c_str()));
  if (what == "leave-children") return start_children();
  if (what == "leave-without-main-thread") return start_child_without_main_thread();
  if (what == "fork-loop") fork_on_and_on(false);
  if (what == "fork-loop-in-sessions") fork_on_and_on(true);
  if (what == "torn-stdout") return write_torn_lines(argument, 1);
  if (what == "torn-stderr") return write_torn_lines(argument, 2);
  if (what == "wait") {
    if (argument == "with-children" && start_children() != 0) return 1;
    if (argument == "ready" && (puts("ready") < 0 || fflush(stdout) != 0)) return 1;
    while (true) pause();
  }
  return 99;
}
