// InputWatch: which ranks of this node wait for the user to type. All ranks inherit stdin, so a
// prompt in a file that the user does not see looks like a hang. It is learned from what threads
// do: soon after output of a rank, which may be a prompt, then less and less often. A rank that
// answers what was typed and asks again waits all the time. Several ranks that read at once are
// reported, not prevented: only stopping a rank would keep it from reading. Pure, no thread rule.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

// Where ranks may read a terminal: how often the times of their output are compared; how long after
// its last output a rank is looked at, with a pause that doubles up to kInputLookMax; from which
// pause on all its threads are; and after how long without a wait it has gone on.
inline constexpr Duration kInputTick = std::chrono::seconds(1);
inline constexpr Duration kInputLookMin = std::chrono::milliseconds(500);
inline constexpr Duration kInputLookMax = std::chrono::seconds(10);
inline constexpr Duration kInputCloselyAfter = std::chrono::seconds(4);
inline constexpr Duration kInputForgotten = std::chrono::seconds(10);

/// A rank that runs, and when it last wrote; none: its output does not pass through here.
struct InputRank {
  LocalRank rank{};
  std::optional<TimePoint> written{};
};

class InputWatch {
 public:
  struct Look {
    LocalRank rank{};
    bool closely = false;  // at all threads, not the main one alone
  };
  struct News {
    std::vector<LocalRank> began{};    // wait since this look
    std::vector<LocalRank> waiting{};  // all that do
    std::vector<LocalRank> over{};     // have not waited for kInputForgotten
  };

  void begin(TimePoint now) { asked_ = now; }
  /// When to ask what is due; that takes no look by itself.
  [[nodiscard]] TimePoint next() const;
  [[nodiscard]] std::vector<Look> due(const std::vector<InputRank>& ranks, TimePoint now);
  /// `waits`: of each rank of `looks`.
  [[nodiscard]] News found(const std::vector<Look>& looks, const std::vector<bool>& waits,
                           TimePoint now);

 private:
  struct Watched {
    std::optional<TimePoint> written{};
    TimePoint next{};
    Duration pause{};
    std::optional<TimePoint> waited{};  // when it last did
  };
  std::map<int, Watched> ranks_{};  // by local rank
  TimePoint asked_{};
};

/// What is said of ranks that wait: `shown`, those whose hidden stdout is shown meanwhile.
[[nodiscard]] std::string input_text(const std::vector<Rank>& waiting,
                                     const std::vector<Rank>& shown);

}  // namespace ddprun
