// The files that rank zero writes into the model's folder: metrics.csv, metrics.jsonl and a
// TensorBoard event file. A resume keeps the rows up to its step and drops what a lost worker had
// written beyond: no step appears twice. One owner, one thread. Errors: the constructor throws
// TrainerError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "trainer/metrics/metric_row.hpp"

namespace ddprun::trainer {

struct MetricsOptions {
  std::filesystem::path folder;    // made if it is not there
  std::uint64_t resumed_step = 0;  // 0: a new run; what older runs left in the folder is replaced
  std::int64_t unix_time_us = 0;   // now; names the event file
  std::string host;                // for the event file's name
};

class MetricsWriter {
 public:
  explicit MetricsWriter(const MetricsOptions& options);
  ~MetricsWriter();
  MetricsWriter(MetricsWriter&&) noexcept;
  MetricsWriter& operator=(MetricsWriter&&) noexcept;

  /// Appends to all files; every row is in the kernel's hands when this returns. A row that cannot
  /// be written is no reason to stop training: what it says then, once until it works again, is one
  /// sentence for the user; else empty. A file has a row whole or not at all.
  [[nodiscard]] std::string write(const MetricRow& row);

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

}  // namespace ddprun::trainer
