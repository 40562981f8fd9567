// What a worker reports over the link: steps, sections, readiness, checkpoints.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "worker_api/link.hpp"
#include "worker_api/worker.h"

using namespace ddprun::worker_link;

namespace {

constexpr std::int64_t kSlotBits = 8;  // of a section's number; the others are its turn
static_assert(kSectionsMax <= 1 << kSlotBits);

std::uint32_t state_of(std::uint32_t turn) {
  return turn % SectionSlot::kStates;
}

void write_name(SectionSlot& slot, const char* name) {
  const std::size_t length = ::strnlen(name, kSectionNameMax);
  for (std::size_t i = 0; i < slot.name.size(); ++i) {
    std::uint64_t part = 0;
    const std::size_t from = i * sizeof(part);
    if (from < length) ::memcpy(&part, name + from, std::min(sizeof(part), length - from));
    slot.name[i].store(part, std::memory_order_relaxed);
  }
}

/// The turn of a slot that is ours from now on; 0: it is taken.
std::uint32_t claim(SectionSlot& slot) {
  std::uint32_t turn = slot.turn.load();
  if (state_of(turn) != SectionSlot::kFree) return 0;
  const std::uint32_t written = turn + SectionSlot::kWritten;
  return slot.turn.compare_exchange_strong(turn, written) ? written : 0;
}

std::int64_t limit_of(std::int64_t timeout_ms) {
  return std::clamp<std::int64_t>(timeout_ms, 1, INT32_MAX) * kMillisecond;
}

}  // namespace

int ddprun_worker_step_done(int64_t step) {
  LinkPage* shared = page();
  if (shared == nullptr) return ENOTCONN;
  const std::int64_t now = monotonic_now();
  if (shared->first_step_at.load(std::memory_order_relaxed) == 0) {
    shared->first_step.store(step, std::memory_order_relaxed);
    shared->first_step_at.store(now, std::memory_order_relaxed);
  }
  shared->step_at.store(now, std::memory_order_relaxed);
  shared->step.store(step, std::memory_order_relaxed);
  return 0;
}

int ddprun_worker_ready(void) {
  return send_packet(PacketKind::kReady);
}

int ddprun_worker_checkpoint_written(int64_t step, const char* path) {
  if (path == nullptr || *path == '\0') return EINVAL;
  const std::size_t length = ::strnlen(path, kPathBytesMax + 1);
  if (length > kPathBytesMax) return ENAMETOOLONG;
  std::array<unsigned char, sizeof(step) + kPathBytesMax> content{};
  for (std::size_t i = 0; i < sizeof(step); ++i) {
    content[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(step) >> (8 * i));
  }
  ::memcpy(content.data() + sizeof(step), path, length);
  return send_packet(PacketKind::kCheckpoint, content.data(), sizeof(step) + length);
}

// The agent stores look_at before it reads the sections, and here look_at is read after the section
// is written: one of the two sees the other.
int64_t ddprun_worker_section_begin(const char* name, int64_t timeout_ms) {
  LinkPage* shared = page();
  if (shared == nullptr || name == nullptr) return -1;
  for (std::size_t i = 0; i < shared->sections.size(); ++i) {
    SectionSlot& slot = shared->sections[i];
    const std::uint32_t written = claim(slot);
    if (written == 0) continue;
    const std::int64_t began = monotonic_now();
    const std::int64_t limit = limit_of(timeout_ms);
    slot.began.store(began, std::memory_order_relaxed);
    slot.limit.store(limit, std::memory_order_relaxed);
    write_name(slot, name);
    const std::uint32_t open = written - SectionSlot::kWritten + SectionSlot::kOpen;
    slot.turn.store(open);
    // Without room there are packets that it has not read: it looks after each.
    if (began + limit < shared->look_at.load()) send_packet(PacketKind::kLook);
    return (static_cast<std::int64_t>(open) << kSlotBits) | static_cast<std::int64_t>(i);
  }
  return -1;
}

void ddprun_worker_section_end(int64_t section) {
  LinkPage* shared = known_page();
  if (shared == nullptr || section < 0) return;
  const auto at = static_cast<std::size_t>(section & ((1 << kSlotBits) - 1));
  if (at >= shared->sections.size()) return;
  auto open = static_cast<std::uint32_t>(section >> kSlotBits);
  if (state_of(open) != SectionSlot::kOpen) return;
  const std::uint32_t next = open - SectionSlot::kOpen + SectionSlot::kStates;
  shared->sections[at].turn.compare_exchange_strong(open, next);
}
