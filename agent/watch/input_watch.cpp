#include "agent/watch/input_watch.hpp"

#include <algorithm>

#include "agent/watch/watch_lines.hpp"

namespace ddprun {

TimePoint InputWatch::next() const {
  return asked_ + kInputTick;
}

std::vector<InputWatch::Look> InputWatch::due(const std::vector<InputRank>& ranks, TimePoint now) {
  asked_ = now;
  std::map<int, Watched> running;
  std::vector<Look> looks;
  for (const InputRank& each : ranks) {
    const auto known = ranks_.find(each.rank.value());
    Watched rank = known == ranks_.end() ? Watched{} : known->second;
    const bool has_written = known == ranks_.end() || rank.written != each.written;
    if (has_written) {
      rank.written = each.written;
      rank.pause = kInputLookMin;
      rank.next = each.written.value_or(now) + kInputLookMin;
    }
    if (now >= rank.next) {
      looks.push_back({each.rank, rank.pause >= kInputCloselyAfter});
      rank.pause = std::min(2 * rank.pause, kInputLookMax);
      rank.next = now + rank.pause;
    } else if (rank.waited) {
      looks.push_back({each.rank, true});
    }
    running.emplace(each.rank.value(), rank);
  }
  ranks_ = std::move(running);
  return looks;
}

InputWatch::News InputWatch::found(const std::vector<Look>& looks, const std::vector<bool>& waits,
                                   TimePoint now) {
  News news;
  for (std::size_t at = 0; at < looks.size() && at < waits.size(); ++at) {
    const auto known = ranks_.find(looks[at].rank.value());
    if (known == ranks_.end()) continue;
    std::optional<TimePoint>& waited = known->second.waited;
    if (waits[at]) {
      if (!waited) news.began.push_back(looks[at].rank);
      news.waiting.push_back(looks[at].rank);
      waited = now;
    } else if (waited && now - *waited >= kInputForgotten) {
      news.over.push_back(looks[at].rank);
      waited.reset();
    }
  }
  return news;
}

std::string input_text(const std::vector<Rank>& waiting, const std::vector<Rank>& shown) {
  const bool one = waiting.size() == 1;
  std::string text =
      ranks_text(waiting) + (one ? " waits" : " wait") + " for input from the terminal";
  if (!one) text += "; a line that is typed goes to the one that reads first";
  if (!shown.empty()) text += "; stdout of " + ranks_text(shown) + " is shown meanwhile";
  return text;
}

}  // namespace ddprun
