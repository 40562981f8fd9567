#include "worker_api/gloo_waits.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

namespace ddprun::worker_link {
namespace {

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

}  // namespace

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

}  // namespace ddprun::worker_link
