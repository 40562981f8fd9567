// Evidence for "each sample exactly once": every rank writes one line per step with a digest of the
// sample ids it used. The digests of all ranks add up, so runs with different world sizes can be
// compared line by line. Not thread-safe. Errors: TrainerError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trainer/data/order.hpp"
#include "trainer/files/append_file.hpp"

namespace ddprun::trainer {

/// Order-independent: the sum of mixed ids. Equal multisets have equal digests, however they are
/// split over ranks.
struct SampleDigest {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;

  SampleDigest& operator+=(const SampleDigest& other);
  friend bool operator==(const SampleDigest&, const SampleDigest&) = default;
};
[[nodiscard]] SampleDigest digest_of(std::span<const std::uint32_t> ids);

/// A step of all ranks.
struct LoggedStep {
  std::uint64_t step = 0;
  SampleDigest samples;
};

/// With --deterministic every rank writes one line for all ranks per step, once the step is
/// committed (recover/agreement.hpp).
///
/// CSV: step,epoch,batch,rank,world,count,digest. Appends with one write per line, so that a killed
/// worker leaves complete lines.
class SampleLog {
 public:
  /// Creates the file with its header if it does not exist.
  explicit SampleLog(const std::filesystem::path& file);

  /// A filler image (counted == 0) is not logged.
  void record(std::uint64_t step, const Place& place, const RankBatch& batch);

  struct Position {
    std::uint64_t epoch = 0;
    std::uint64_t batch = 0;
    int world = 1;
  };
  /// What all ranks used, as the reduction of the step has found it: "all" in the rank's column.
  void record_all(const LoggedStep& step, const Position& at);

 private:
  AppendFile file_;
};

}  // namespace ddprun::trainer
