// ExitWatch: tells that a process begins to exit. The kernel tells of its end only when it has torn
// its memory down, which takes 30 to 60 ms for one with PyTorch. A robust futex says it before:
// when the thread whose id is in the word exits, the kernel sets FUTEX_OWNER_DIED there and wakes
// who waits (set_robust_list(2)). One thread waits for all words (futex_waitv, Linux 5.16); on an
// older kernel nothing is told. The words belong to the processes: whatever they write there costs
// one false alarm each, or a bounded time. Thread rule: the io_context's thread. Ownership: holds
// what keeps a word mapped.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace ddprun::worker_link {

// Workers of a node whose exit is noticed as it begins; of others it is noticed at its end.
inline constexpr std::size_t kExitsWatchedMax = 127;  // futex_waitv takes one more
// After so many values that mean nothing a worker's word is not looked at any longer.
inline constexpr int kWordChangesMax = 100;

class ExitWatch {
 public:
  using Word = std::atomic<std::uint32_t>;

  explicit ExitWatch(boost::asio::any_io_executor executor);
  /// What was not told yet is not told any more.
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  /// Calls `exits` on the executor, once, when the owner of the word exits: its thread, so the
  /// process may live on. Begins the thread. More than kExitsWatchedMax are not watched.
  void watch(std::shared_ptr<const Word> word, std::function<void()> exits);
  void forget(const std::shared_ptr<const Word>& word);

 private:
  class Desk;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<Desk> desk_;
};

}  // namespace ddprun::worker_link
