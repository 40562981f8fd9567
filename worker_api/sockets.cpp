#include "worker_api/sockets.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include "worker_api/rounds.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::worker_link {
namespace {

// The waits of this process in collectives of Gloo. When a connection ends in the middle of a
// message, Gloo (of torch 2.15) tells those who wait for its other messages, and leaves the one who
// waits for this one to its time-out, which is half an hour. So the library takes the place of
// Gloo's two waiting functions in their table of virtual functions, knows who waits, and has Gloo
// fail them. Where Gloo or its symbols are not found, nothing happens.

// gloo::transport::tcp::UnboundBuffer: its table, those of its virtual functions whose place is
// taken, and what Gloo calls when a connection is lost. A wait takes a time in milliseconds.
constexpr const char* kTable = "_ZTVN4gloo9transport3tcp13UnboundBufferE";
constexpr const char* kWaitReceive =
    "_ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE";
constexpr const char* kWaitSend =
    "_ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5ratioILl1ELl1000EEEE";
constexpr const char* kEnd = "_ZN4gloo9transport3tcp13UnboundBufferD1Ev";
constexpr const char* kEndAndFree = "_ZN4gloo9transport3tcp13UnboundBufferD0Ev";
constexpr const char* kFail =
    "_ZN4gloo9transport3tcp13UnboundBuffer15signalExceptionENSt15__exception_ptr13exception_ptrE";
using Wait = bool (*)(void* buffer, int* rank, std::int64_t timeout_ms);
using End = void (*)(void* buffer);
using Fail = void (*)(void* buffer, std::exception_ptr error);

struct Waits {
  std::mutex mutex{};
  std::set<void*> buffers{};  // those that live and were waited for
  bool fail = false;
  bool followed = false;
};

// Gloo's own. Set before ours take their places.
struct Theirs {
  Wait receive;
  Wait send;
  End end;
  End end_and_free;
  Fail fail;
};
constinit Theirs theirs = {};

Waits* make_waits();

// Never destroyed: see rounds().
Waits& waits() {
  static Waits* const all = make_waits();
  return *all;
}

// No thread of the parent waits in the child.
Waits* make_waits() {
  ::pthread_atfork([] { waits().mutex.lock(); }, [] { waits().mutex.unlock(); },
                   [] {
                     waits().fail = false;
                     waits().mutex.unlock();
                   });
  return new Waits;
}

// Programs tell a lost peer from an error of their own by Gloo's words.
constexpr const char* kOver =
    "gloo: Connection closed by peer, as the round is over; make the next group within "
    "group_sockets() of ddprun";

void fail_wait(void* buffer) {
  theirs.fail(buffer, std::make_exception_ptr(std::runtime_error(kOver)));
}

void begin_wait(void* buffer) noexcept {
  Waits& all = waits();
  const std::lock_guard lock(all.mutex);
  all.buffers.insert(buffer);
  if (all.fail) fail_wait(buffer);
}

void forget(void* buffer) noexcept {
  const std::lock_guard lock(waits().mutex);
  waits().buffers.erase(buffer);
}

// Exceptions of Gloo pass through the next two, so they have nothing to clean up: that would take
// this library's own C++ runtime, which knows nothing of an exception of the other one.
bool wait_receive(void* buffer, int* rank, std::int64_t timeout_ms) {
  begin_wait(buffer);
  return theirs.receive(buffer, rank, timeout_ms);
}

bool wait_send(void* buffer, int* rank, std::int64_t timeout_ms) {
  begin_wait(buffer);
  return theirs.send(buffer, rank, timeout_ms);
}

void end(void* buffer) {
  forget(buffer);
  theirs.end(buffer);
}

void end_and_free(void* buffer) {
  forget(buffer);
  theirs.end_and_free(buffer);
}

struct Library {
  const char* name = nullptr;
  std::uintptr_t read_only = 0;  // what the linker has made so, after it wrote there
  std::uintptr_t read_only_end = 0;
};

int look_for_torch(dl_phdr_info* loaded, std::size_t /*size*/, void* found) {
  if (!std::string_view(loaded->dlpi_name).ends_with("/libtorch_cpu.so")) return 0;
  auto& library = *static_cast<Library*>(found);
  library.name = loaded->dlpi_name;
  for (const auto& segment : std::span(loaded->dlpi_phdr, loaded->dlpi_phnum)) {
    if (segment.p_type != PT_GNU_RELRO) continue;
    library.read_only = loaded->dlpi_addr + segment.p_vaddr;
    library.read_only_end = library.read_only + segment.p_memsz;
  }
  return 1;
}

std::span<void*> table_in(void* library) {
  void** const table = static_cast<void**>(::dlsym(library, kTable));
  Dl_info where = {};
  void* symbol = nullptr;
  if (table == nullptr || ::dladdr1(table, &where, &symbol, RTLD_DL_SYMENT) == 0) return {};
  if (where.dli_saddr != table || symbol == nullptr) return {};
  return {table, static_cast<ElfW(Sym)*>(symbol)->st_size / sizeof(void*)};
}

struct Place {
  void** slot = nullptr;  // none: not in the table
  void* ours = nullptr;
};

template <class Function>
Place place(std::span<void*> table, void* library, const char* name, Function& original,
            Function ours) {
  const auto slot = std::find(table.begin(), table.end(), ::dlsym(library, name));
  if (slot == table.end()) return {};
  original = reinterpret_cast<Function>(*slot);
  return {&*slot, reinterpret_cast<void*>(ours)};
}

/// False: the page may not be written.
bool replace(const Place& place, const Library& library) {
  const auto address = reinterpret_cast<std::uintptr_t>(place.slot);
  const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<char*>(place.slot) - address % size;
  const bool read_only = address >= library.read_only && address < library.read_only_end;
  if (read_only && ::mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref<void*>(*place.slot).store(place.ours);  // other threads may wait just now
  if (read_only) ::mprotect(page, size, PROT_READ);
  return true;
}

/// As soon as torch is loaded; once.
void follow_waits() {
  Waits& all = waits();
  const std::lock_guard lock(all.mutex);
  if (all.followed) return;
  Library torch;
  if (::dl_iterate_phdr(look_for_torch, &torch) == 0) return;
  all.followed = true;
  void* const library = ::dlopen(torch.name, RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return;
  theirs.fail = reinterpret_cast<Fail>(::dlsym(library, kFail));
  const auto table = table_in(library);
  if (theirs.fail == nullptr || table.empty()) return;
  const Place places[] = {place(table, library, kEnd, theirs.end, end),
                          place(table, library, kEndAndFree, theirs.end_and_free, end_and_free),
                          place(table, library, kWaitReceive, theirs.receive, wait_receive),
                          place(table, library, kWaitSend, theirs.send, wait_send)};
  const auto is_known = [](const Place& item) { return item.slot != nullptr; };
  if (!std::all_of(std::begin(places), std::end(places), is_known)) return;
  for (const Place& item : places) {
    if (!replace(item, torch)) return;
  }
}

/// Those who wait, and who will until allow_waits(), get a RuntimeError.
void fail_waits() {
  Waits& all = waits();
  const std::lock_guard lock(all.mutex);
  all.fail = true;
  for (void* buffer : all.buffers) fail_wait(buffer);
}

void allow_waits() {
  const std::lock_guard lock(waits().mutex);
  waits().fail = false;
}

// The sockets of a group.

struct Noted {
  std::mutex mutex{};
  bool notes = false;
  std::set<ino_t> before{};  // at begin
  std::set<ino_t> made{};    // between begin and end
};

Noted* make_noted();

// Never destroyed: see rounds().
Noted& noted() {
  static Noted* const all = make_noted();
  return *all;
}

Noted* make_noted() {
  allow_waits();  // before a fork its mutex is locked after ours, so its handlers come first here
  ::pthread_atfork([] { noted().mutex.lock(); }, [] { noted().mutex.unlock(); },
                   [] { noted().mutex.unlock(); });
  return new Noted;
}

bool has(int socket, int option, int value) {
  int found = 0;
  socklen_t size = sizeof(found);
  return ::getsockopt(socket, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

bool is_tcp(int socket) {
  const bool internet = has(socket, SO_DOMAIN, AF_INET) || has(socket, SO_DOMAIN, AF_INET6);
  return internet && has(socket, SO_TYPE, SOCK_STREAM) && !has(socket, SO_ACCEPTCONN, 1);
}

/// 0: none that could be a group's.
ino_t inode_of(int descriptor) {
  struct stat facts = {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISSOCK(facts.st_mode)) return 0;
  return is_tcp(descriptor) ? facts.st_ino : 0;
}

template <class Visit>
void for_each_socket(Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir("/proc/self/fd"), ::closedir);
  if (opened == nullptr) return;
  while (const dirent* item = ::readdir(opened.get())) {
    const int descriptor = ::atoi(item->d_name);
    const ino_t inode = item->d_name[0] == '.' ? 0 : inode_of(descriptor);
    if (inode != 0) visit(descriptor, inode);
  }
}

std::set<ino_t> present() {
  std::set<ino_t> inodes;
  for_each_socket([&](int, ino_t inode) { inodes.insert(inode); });
  return inodes;
}

/// The number may be another file's since it was looked at, so the socket is held first.
bool shut(int descriptor, ino_t inode) {
  const int held = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return false;
  const bool shut = inode_of(held) == inode && ::shutdown(held, SHUT_RDWR) == 0;
  ::close(held);
  return shut;
}

int shut_noted(const Noted& all) {
  int count = 0;
  for_each_socket([&](int descriptor, ino_t inode) {
    const bool is_new = all.notes && all.before.count(inode) == 0;
    if (is_new || all.made.count(inode) > 0) count += shut(descriptor, inode) ? 1 : 0;
  });
  fail_waits();
  return count;
}

}  // namespace

bool notes_sockets() {
  Noted& all = noted();
  const std::lock_guard lock(all.mutex);
  return all.notes;
}

// A round is taken before the sockets of the next group are noted: here none of those is shut.
void abandon_pending() {
  Noted& all = noted();
  const std::lock_guard lock(all.mutex);
  if (pending_round() != 0) static_cast<void>(shut_noted(all));
}

}  // namespace ddprun::worker_link

namespace ddprun {

void sockets_begin() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  all.before = worker_link::present();
  all.made.clear();
  all.notes = true;
  if (worker_link::pending_round() == 0) worker_link::allow_waits();
  worker_link::follow_waits();
}

int sockets_end() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  if (!all.notes) return 0;
  all.notes = false;
  worker_link::follow_waits();
  for (const ino_t inode : worker_link::present()) {
    if (all.before.count(inode) == 0) all.made.insert(inode);
  }
  if (worker_link::pending_round() != 0) static_cast<void>(worker_link::shut_noted(all));
  return static_cast<int>(all.made.size());
}

int abandon_sockets() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  return worker_link::shut_noted(all);
}

}  // namespace ddprun
