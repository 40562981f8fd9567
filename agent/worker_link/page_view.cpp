#include "agent/worker_link/page_view.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

namespace ddprun::worker_link {

namespace {

std::int64_t nanoseconds_of(TimePoint when) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

/// A time of the process, at most as long ago as this machine runs.
Duration ago_of(std::int64_t then, TimePoint now) {
  const std::int64_t until = nanoseconds_of(now);
  const std::int64_t passed = until - std::clamp<std::int64_t>(then, 0, until);
  return std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(passed));
}

Duration limit_of(std::int64_t nanoseconds) {
  const std::chrono::nanoseconds limit(std::max<std::int64_t>(nanoseconds, 1));
  return std::min<Duration>(std::chrono::duration_cast<Duration>(limit), kSectionLimitMax);
}

std::string name_of(const SectionSlot& slot) {
  std::string name(kSectionNameMax, '\0');
  for (std::size_t i = 0; i < slot.name.size(); ++i) {
    const std::uint64_t part = slot.name[i].load(std::memory_order_relaxed);
    ::memcpy(name.data() + i * sizeof(part), &part, sizeof(part));
  }
  name.resize(::strnlen(name.data(), name.size()));
  return name;
}

}  // namespace

// A page that can be cut would kill this process at its next look at it.
std::unique_ptr<PageView> PageView::map(int descriptor) {
  struct stat facts = {};
  if (::fstat(descriptor, &facts) != 0 || facts.st_size != static_cast<off_t>(kPageBytes)) {
    return nullptr;
  }
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_WRITE) != 0) return nullptr;
  void* const mapped =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return nullptr;
  return std::unique_ptr<PageView>(new PageView(static_cast<LinkPage*>(mapped)));
}

PageView::~PageView() {
  ::munmap(page_, kPageBytes);
}

std::optional<LastStep> PageView::last_step(TimePoint now) const {
  const std::int64_t step = page_->step.load(std::memory_order_relaxed);
  if (step < 0) return std::nullopt;
  LastStep last{step, ago_of(page_->step_at.load(std::memory_order_relaxed), now)};
  const std::int64_t first_at = page_->first_step_at.load(std::memory_order_relaxed);
  const std::int64_t first = page_->first_step.load(std::memory_order_relaxed);
  if (first_at <= 0 || first < 0 || first > step) return last;
  last.first = first;
  last.first_ago = std::max(last.ago, ago_of(first_at, now));
  return last;
}

std::vector<OpenSection> PageView::open_sections(TimePoint now) const {
  std::vector<OpenSection> open;
  for (const SectionSlot& slot : page_->sections) {
    const std::uint32_t turn = slot.turn.load();
    if (turn % SectionSlot::kStates != SectionSlot::kOpen) continue;
    OpenSection section;
    section.lasts = ago_of(slot.began.load(std::memory_order_relaxed), now);
    section.limit = limit_of(slot.limit.load(std::memory_order_relaxed));
    section.name = name_of(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.turn.load(std::memory_order_relaxed) == turn) open.push_back(std::move(section));
  }
  return open;
}

void PageView::will_look_at(TimePoint when) {
  page_->look_at.store(nanoseconds_of(when));
}

}  // namespace ddprun::worker_link
