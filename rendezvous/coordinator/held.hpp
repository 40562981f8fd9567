// Held: the events that a coordinator keeps while it may not act, in order. Of the heartbeats of an
// agent only the last one stays: with it the agent counts as heard when the events are handled,
// since it was answered meanwhile. Pure. `Entry` is the run that an event is for.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "rendezvous/round/event.hpp"

namespace ddprun::coordinator {

template <class Entry>
class Held {
 public:
  using Item = std::pair<Entry, round::Event>;

  [[nodiscard]] bool empty() const { return items_.empty(); }
  /// Heartbeats aside.
  [[nodiscard]] std::size_t size() const { return items_.size() - beats_.size(); }
  [[nodiscard]] const std::list<Item>& items() const { return items_; }

  void push(Entry entry, const round::Event& event) {
    const std::optional<std::uint64_t> beat = beat_of(event);
    if (beat) forget_beat(*beat);
    items_.emplace_back(std::move(entry), event);
    if (beat) beats_[*beat] = std::prev(items_.end());
  }
  /// All, in order; none is left.
  [[nodiscard]] std::list<Item> take() {
    beats_.clear();
    return std::exchange(items_, {});
  }
  void clear() { (void)take(); }
  /// Puts back what take() gave.
  void put_back(std::list<Item> items) {
    for (Item& item : items) push(std::move(item.first), item.second);
  }

 private:
  /// The link of a heartbeat that asks for nothing.
  static std::optional<std::uint64_t> beat_of(const round::Event& event) {
    const auto* received = std::get_if<round::Received>(&event);
    if (received == nullptr) return std::nullopt;
    const auto* beat = std::get_if<protocol::Beat>(&received->message);
    return beat != nullptr && !beat->echo ? std::optional(received->link.value()) : std::nullopt;
  }
  void forget_beat(std::uint64_t link) {
    const auto found = beats_.find(link);
    if (found == beats_.end()) return;
    items_.erase(found->second);
    beats_.erase(found);
  }

  std::list<Item> items_;
  std::unordered_map<std::uint64_t, typename std::list<Item>::iterator> beats_;
};

}  // namespace ddprun::coordinator
