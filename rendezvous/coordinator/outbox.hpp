// Outbox: the unsent frames of a connection of the coordinator's port. Private to this room. Thread
// rule: one thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/quota.hpp"

namespace ddprun::coordinator {

/// Bytes to send, shared by all recipients and counted once, with the memory around them.
class Frame {
 public:
  Frame(std::string content, Budget& budget) : bytes(std::move(content)), budget_(budget) {
    budget_.take(memory());
  }
  ~Frame() { budget_.give_back(memory()); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  const std::string bytes;

 private:
  // Allocated with its reference counts; the blocks of both have a header.
  [[nodiscard]] std::size_t memory() const { return bytes.size() + sizeof(Frame) + 48; }

  Budget& budget_;
};
using SharedFrame = std::shared_ptr<const Frame>;

/// The unsent frames of a connection, first in, first out. Each is counted with its place here.
class Outbox {
 public:
  explicit Outbox(Budget& budget) : budget_(&budget) {}
  ~Outbox() { clear(); }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(SharedFrame frame);
  /// Fills `parts` from the front; returns how many were filled.
  [[nodiscard]] std::size_t gather(std::span<iovec> parts) const;
  /// Removes `bytes` sent bytes from the front.
  void sent(std::size_t bytes);
  void clear();
  [[nodiscard]] bool empty() const { return !frames_; }
  /// Unsent bytes after the frame that is being sent.
  [[nodiscard]] std::size_t behind() const;

 private:
  static constexpr std::size_t kPlaceBytes = 2 * sizeof(SharedFrame);

  Budget* budget_;
  std::optional<std::deque<SharedFrame>>
      frames_;              // unset when empty: even then it would own memory
  std::size_t offset_ = 0;  // sent bytes of the front frame
  std::size_t bytes_ = 0;   // size of all frames
};

}  // namespace ddprun::coordinator
