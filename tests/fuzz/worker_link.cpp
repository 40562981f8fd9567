// The link between a worker and its agent: a packet of a worker, its page, which it may fill with
// anything at any time, and a round that an agent pushes to it.
#include <sys/mman.h>
#include <unistd.h>

#include <fcntl.h>
#include <cstring>

#include "agent/worker_link/packet.hpp"
#include "agent/worker_link/page_view.hpp"
#include "tests/fuzz/target.hpp"
#include "worker_api/rounds.hpp"

using namespace ddprun;
using namespace ddprun::worker_link;

namespace {

void check_packet(std::span<const std::uint8_t> bytes) {
  const auto packet = parse_packet(bytes);
  if (!packet) return;
  if (const auto* written = std::get_if<Checkpoint>(&*packet)) {
    DDPRUN_ASSERT(!written->path.empty() && written->path.size() <= kPathBytesMax);
    DDPRUN_ASSERT(written->path.find('\0') == std::string::npos);
  }
  if (const auto* joined = std::get_if<Joined>(&*packet)) {
    DDPRUN_ASSERT(joined->round.value() >= 0);
  }
}

/// What a worker takes from a round is what an agent would send again.
void check_round(std::span<const std::uint8_t> content) {
  const auto world = parse_round(content.data(), content.size());
  if (!world) return;
  PushedRound pushed;
  pushed.number = Round(world->round);
  pushed.variables.insert(world->variables.begin(), world->variables.end());
  const auto packet = round_packet(pushed);
  if (!packet) return;
  const auto again =
      parse_round(packet->data() + kPacketHeaderBytes, packet->size() - kPacketHeaderBytes);
  DDPRUN_ASSERT(again && again->round == world->round && again->cause == world->cause);
  DDPRUN_ASSERT(again->variables == world->variables && again->rank == world->rank);
}

/// One page for all inputs: making one costs more than looking at it.
class Page {
 public:
  Page() {
    const int file = ::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    DDPRUN_ASSERT(file >= 0 && ::ftruncate(file, kPageBytes) == 0);
    DDPRUN_ASSERT(::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    bytes_ = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    DDPRUN_ASSERT(bytes_ != MAP_FAILED);
    view_ = PageView::map(file);
    DDPRUN_ASSERT(view_ != nullptr);
    ::close(file);
  }
  void check(std::span<const std::uint8_t> content) {
    std::memset(bytes_, 0, kPageBytes);
    std::memcpy(bytes_, content.data(), std::min(content.size(), kPageBytes));
    const TimePoint now = TimePoint() + std::chrono::hours(1);
    const auto step = view_->last_step(now);
    DDPRUN_ASSERT(!step || step->ago >= Duration::zero());
    const auto sections = view_->open_sections(now);
    DDPRUN_ASSERT(sections.size() <= kSectionsMax);
    for (const OpenSection& section : sections) {
      DDPRUN_ASSERT(section.name.size() <= kSectionNameMax);
      DDPRUN_ASSERT(section.lasts >= Duration::zero());
    }
  }

 private:
  void* bytes_ = nullptr;
  std::unique_ptr<PageView> view_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Page page;
  const std::span<const std::uint8_t> bytes(data, size);
  check_packet(bytes);
  page.check(bytes);
  if (size > kPacketHeaderBytes) check_round(bytes.subspan(kPacketHeaderBytes));
  return 0;
}
