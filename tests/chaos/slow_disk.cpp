// slow_disk: preloaded into a launcher, it makes calls on paths below $SLOW_DISK take as long as
// the file $SLOW_DISK.stalled exists, as a shared file system does when its server is gone. No
// privileges. Thread rule: none; it keeps nothing.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

bool below_disk(const char* path) {
  const char* disk = getenv("SLOW_DISK");
  return disk != nullptr && path != nullptr && strncmp(path, disk, strlen(disk)) == 0;
}

bool stalled() {
  const char* disk = getenv("SLOW_DISK");
  char flag[PATH_MAX];
  snprintf(flag, sizeof flag, "%s.stalled", disk == nullptr ? "" : disk);
  return disk != nullptr && access(flag, F_OK) == 0;
}

void wait_for(const char* path) {
  while (below_disk(path) && stalled()) poll(nullptr, 0, 5);
}

void wait_for(int descriptor) {
  if (!stalled()) return;
  char link[64];
  char path[PATH_MAX] = {};
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  if (readlink(link, path, sizeof path - 1) > 0) wait_for(path);
}

void wait_for(int folder, const char* path) {
  if (path[0] == '/') return wait_for(path);
  if (folder != AT_FDCWD) wait_for(folder);
}

template <class Function>
Function* real(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  wait_for(descriptor);
  return real("write", write)(descriptor, bytes, count);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);
  va_end(more);
  wait_for(path);
  return real("open", open)(path, flags, mode);
}

int stat(const char* path, struct stat* status) {
  wait_for(path);
  return real("stat", stat)(path, status);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);
  va_end(more);
  wait_for(folder, path);
  return real("openat", openat)(folder, path, flags, mode);
}

int close(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags >= 0 && (flags & O_PATH) == 0) wait_for(descriptor);  // those have nothing to write
  return real("close", close)(descriptor);
}

int mkdir(const char* path, mode_t mode) {
  wait_for(path);
  return real("mkdir", mkdir)(path, mode);
}

int mkdirat(int folder, const char* path, mode_t mode) {
  wait_for(folder, path);
  return real("mkdirat", mkdirat)(folder, path, mode);
}

int renameat(int from, const char* old_path, int to, const char* new_path) {
  wait_for(from, old_path);
  return real("renameat", renameat)(from, old_path, to, new_path);
}

int unlinkat(int folder, const char* path, int flags) {
  wait_for(folder, path);
  return real("unlinkat", unlinkat)(folder, path, flags);
}

}  // extern "C"
