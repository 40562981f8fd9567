#include "agent/worker_link/page_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::worker_link;
using std::chrono::seconds;

namespace {

/// Memory as a worker makes it, or nearly.
class Memory {
 public:
  explicit Memory(std::size_t size = kPageBytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW)
      : descriptor_(::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    REQUIRE(::ftruncate(descriptor_, static_cast<off_t>(size)) == 0);
    REQUIRE(::fcntl(descriptor_, F_ADD_SEALS, seals) == 0);
  }
  ~Memory() { ::close(descriptor_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// The worker's side of it.
  [[nodiscard]] LinkPage& page() const {
    void* const mapped =
        ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    REQUIRE(mapped != MAP_FAILED);
    return *static_cast<LinkPage*>(mapped);  // until the process ends
  }

 private:
  int descriptor_;
};

}  // namespace

TEST_CASE("a page is mapped only if it is one page that cannot be cut") {
  CHECK(PageView::map(Memory().descriptor()) != nullptr);
  CHECK(PageView::map(Memory(kPageBytes, 0).descriptor()) == nullptr);
  CHECK(PageView::map(Memory(2 * kPageBytes).descriptor()) == nullptr);
  CHECK(PageView::map(Memory(kPageBytes, F_SEAL_SHRINK | F_SEAL_WRITE).descriptor()) == nullptr);
  CHECK(PageView::map(0) == nullptr);
  CHECK(PageView::map(-1) == nullptr);
}

TEST_CASE("whatever a page holds, times lie between now and the start of the machine") {
  const Memory memory;
  const auto view = PageView::map(memory.descriptor());
  LinkPage& page = memory.page();
  const TimePoint now = Clock::now();
  for (const int filled : {0xFF, 0x7F, 0x80, 0x02, 0x00}) {
    ::memset(static_cast<void*>(&page), filled, kPageBytes);
    if (const auto last = view->last_step(now)) {
      CHECK(last->ago >= Duration::zero());
      CHECK(last->ago <= now.time_since_epoch());
    }
    for (const OpenSection& section : view->open_sections(now)) {
      CHECK(section.lasts >= Duration::zero());
      CHECK(section.lasts <= now.time_since_epoch());
      CHECK(section.limit > Duration::zero());
      CHECK(section.limit <= kSectionLimitMax);
      CHECK(section.name.size() <= kSectionNameMax);
    }
  }
}

TEST_CASE("open sections have their names, and closed ones are not seen") {
  const Memory memory;
  const auto view = PageView::map(memory.descriptor());
  LinkPage& page = memory.page();
  SectionSlot& slot = page.sections.at(3);
  std::uint64_t part = 0;
  ::memcpy(&part, "save", 4);
  slot.name[0] = part;
  slot.limit = std::chrono::nanoseconds(seconds(5)).count();
  slot.began = 0;
  slot.turn = SectionSlot::kStates + SectionSlot::kOpen;
  const TimePoint now{seconds(7)};
  const auto open = view->open_sections(now);
  REQUIRE(open.size() == 1);
  CHECK(open.front().name == "save");
  CHECK(open.front().limit == seconds(5));
  CHECK(open.front().lasts == seconds(7));
  slot.turn = 2 * SectionSlot::kStates;
  CHECK(view->open_sections(now).empty());
}
