// The worker of bench/launch: writes the start time of its main (CLOCK_MONOTONIC, nanoseconds) and
// its pid to $BENCH_DIR/<rank>.<restart count>, then exits, or with the argument `stay` waits for a
// signal.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace {

const char* first_of(const char* one, const char* other) {
  const char* value = getenv(one);
  if (value == nullptr) value = getenv(other);
  return value == nullptr ? "0" : value;
}

}  // namespace

int main(int argc, char** argv) {
  timespec began{};
  clock_gettime(CLOCK_MONOTONIC, &began);
  const char* directory = getenv("BENCH_DIR");
  if (directory == nullptr) return 2;
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s", directory, first_of("RANK", "OMPI_COMM_WORLD_RANK"),
           first_of("TORCHELASTIC_RESTART_COUNT", "NO_SUCH_VARIABLE"));
  char note[64];
  const int length = snprintf(note, sizeof note, "%lld%09ld %d\n",
                              static_cast<long long>(began.tv_sec), began.tv_nsec, getpid());
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, note, static_cast<size_t>(length)) != length) return 3;
  close(file);
  if (argc > 1 && strcmp(argv[1], "stay") == 0) pause();
  return 0;
}
