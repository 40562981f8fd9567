// The metrics files that rank 0 writes to the model folder: metrics.csv, metrics.jsonl and a
// TensorBoard event file. A resume keeps the rows up to its step and drops later rows of a lost
// worker, so that no step appears twice. One thread. Errors: the constructor throws TrainerError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "trainer/metrics/metric_row.hpp"

namespace ddprun::trainer {

struct MetricsOptions {
  std::filesystem::path folder;    // created if missing
  std::uint64_t resumed_step = 0;  // 0: a new run, which replaces the files of older runs
  std::int64_t unix_time_us = 0;   // current time, part of the event file's name
  std::string host;                // part of the event file's name
};

class MetricsWriter {
 public:
  explicit MetricsWriter(const MetricsOptions& options);
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;

  /// Appends the row to all files; on return it has been passed to the kernel. A failed write does
  /// not stop training: it returns one sentence for the user, once until writing succeeds again;
  /// otherwise an empty string. Each file contains the complete row or nothing of it.
  [[nodiscard]] std::string write(const MetricRow& row);

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

}  // namespace ddprun::trainer
