// A worker that gets stuck: `stuck WHAT`, after a byte on stdout. Its functions keep their names.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

extern "C" {

void wait_for_itself() __attribute__((noinline));
void train_step(const char* what) __attribute__((noinline));

void wait_for_itself() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_lock(&mutex);
}

void train_step(const char* what) {
  if (std::strcmp(what, "named") == 0) ::prctl(PR_SET_NAME, "a\nb) R\x1b[2J");
  if (std::strcmp(what, "stopped") == 0) ::raise(SIGSTOP);
  wait_for_itself();
  __asm__ volatile("");
}

}  // extern "C"

namespace {

void* load_data(void* /*unused*/) {
  wait_for_itself();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  pthread_t loader;
  if (std::strcmp(what, "threads") == 0) pthread_create(&loader, nullptr, load_data, nullptr);
  if (write(STDOUT_FILENO, "\n", 1) != 1) return 1;
  // Its parent is in an uninterruptible wait as long as it lives.
  const bool forks = std::strcmp(what, "vfork") == 0;
  if (forks && vfork() == 0) pause();  // NOLINT: it neither returns nor changes anything
  train_step(what);
  return 0;
}
