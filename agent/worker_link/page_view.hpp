// PageView: the page of one process of a worker, as the agent sees it. The process may write
// anything there at any time; it cannot make the agent fault, wait or believe a time that has not
// come. Thread rule: the io_context's thread. Ownership: owns the mapping.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "worker_api/link_page.hpp"

namespace ddprun::worker_link {

// The longest time-out of a section; a longer one counts as this.
inline constexpr Duration kSectionLimitMax = std::chrono::hours(24 * 24);

struct OpenSection {
  std::string name{};  // as it was written, without NUL
  Duration lasts{};
  Duration limit{};
};

struct LastStep {
  std::int64_t step = 0;
  Duration ago{};
  // The first one that the process has finished since it took its round; none: not known.
  std::optional<std::int64_t> first{};
  Duration first_ago{};
};

class PageView {
 public:
  /// Maps `descriptor`, which stays the caller's. None: it is not a sealed page of memory.
  [[nodiscard]] static std::unique_ptr<PageView> map(int descriptor);
  ~PageView();
  PageView(const PageView&) = delete;
  PageView& operator=(const PageView&) = delete;

  [[nodiscard]] std::optional<LastStep> last_step(TimePoint now) const;
  [[nodiscard]] std::vector<OpenSection> open_sections(TimePoint now) const;
  /// Says that the sections are looked at; until will_look_at() a section that begins sends a
  /// packet.
  void looks() { page_->look_at.store(kNever); }
  void will_look_at(TimePoint when);
  /// Of a thread of the process: see LinkPage::alive.
  [[nodiscard]] const std::atomic<std::uint32_t>& alive() const { return page_->alive; }
  void ask_to_stop(int signal) { page_->stop.store(signal); }

 private:
  explicit PageView(LinkPage* page) : page_(page) {}

  LinkPage* page_;
};

}  // namespace ddprun::worker_link
