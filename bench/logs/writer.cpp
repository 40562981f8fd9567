// bench_logs_writer LINES LINES_PER_SECOND FOLDER: a worker that writes LINES lines of 80 bytes to
// stdout, 0 lines per second meaning as fast as it can, and then what processor time and what time
// that took it, in microseconds, into FOLDER/RANK.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr long kLinesAtOnce = 800;  // 64,000 bytes

bool write_all(const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes, size);
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

// Ten times a second, on time.
void wait_for_turn(timespec& next) {
  next.tv_nsec += 100'000'000;
  next.tv_sec += next.tv_nsec / 1'000'000'000;
  next.tv_nsec %= 1'000'000'000;
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
}

long now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000 + time.tv_nsec / 1000;
}

long microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000 + time.tv_usec;
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("RANK");
  if (argc < 4 || rank == nullptr) return 2;
  long left = std::atol(argv[1]);
  const long per_second = std::atol(argv[2]);
  const long at_once = per_second == 0 ? kLinesAtOnce : std::max(per_second / 10, 1L);
  std::string block;
  for (long i = 0; i < at_once; ++i) block += std::string(79, 'x') + "\n";
  const long began = now();
  timespec next = {};
  ::clock_gettime(CLOCK_MONOTONIC, &next);
  for (; left > 0; left -= at_once) {
    if (!write_all(block.data(), static_cast<std::size_t>(std::min(left, at_once)) * 80)) return 1;
    if (per_second != 0) wait_for_turn(next);
  }
  const long took = now() - began;
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const std::string path = std::string(argv[3]) + "/" + rank;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return 1;
  const long processor = microseconds(used.ru_utime) + microseconds(used.ru_stime);
  std::fprintf(file, "%ld %ld\n", processor, took);
  return std::fclose(file) == 0 ? 0 : 1;
}
