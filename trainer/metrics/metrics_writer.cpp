#include "trainer/metrics/metrics_writer.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "trainer/error.hpp"
#include "trainer/files/append_file.hpp"
#include "trainer/files/atomic_file.hpp"
#include "trainer/files/mapped_file.hpp"
#include "trainer/limits.hpp"
#include "trainer/metrics/event_codec.hpp"
#include "trainer/metrics/row_text.hpp"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using StepOfLine = std::optional<std::uint64_t> (*)(std::string_view);

/// The complete lines of `text` whose step is at most `step_max`.
std::string rows_until(std::string_view text, std::uint64_t step_max, StepOfLine step_of) {
  std::string kept;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.size() > kMetricsLineBytesMax) continue;
    const auto step = step_of(line);
    if (step && *step <= step_max) kept.append(line).push_back('\n');
  }
  return kept;
}

/// Reduces the file to `header` and the rows up to the resumed step.
AppendFile reopen(const fs::path& file, const std::string& header, std::uint64_t step,
                  StepOfLine step_of) {
  std::string content = header;
  std::error_code ignored;  // missing: nothing to keep
  if (step > 0 && fs::exists(file, ignored)) {
    const MappedFile old(file, kMetricsFileBytesMax);
    content += rows_until({reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size()},
                          step, step_of);
  }
  remove_abandoned_temporaries(file);  // left by a run that was killed here
  write_file_atomically(file, {std::as_bytes(std::span(content))});
  return AppendFile(file);
}

/// Readers rely on the files being in session order when sorted by name.
fs::path event_file(const MetricsOptions& options) {
  const std::string fraction = std::to_string(1'000'000 + options.unix_time_us % 1'000'000);
  return options.folder /
         ("events.out.tfevents." + std::to_string(options.unix_time_us / 1'000'000) + "." +
          fraction.substr(1) + "." + options.host);
}

double wall_time(std::int64_t microseconds) {
  return static_cast<double>(microseconds) / 1e6;
}

std::string scalars_of(const MetricRow& row) {
  const EventTime time{wall_time(row.unix_time_us), static_cast<std::int64_t>(row.step)};
  const auto narrow = [](double value) { return static_cast<float>(value); };
  if (row.phase == Phase::kTest) {
    const std::array<Scalar, 4> scalars{{{"test/loss", narrow(row.means.loss)},
                                         {"test/top1", narrow(row.means.top1)},
                                         {"test/top3", narrow(row.means.top3)},
                                         {"test/top5", narrow(row.means.top5)}}};
    return scalars_event(time, scalars);
  }
  const std::array<Scalar, 6> scalars{{{"train/loss", narrow(row.means.loss)},
                                       {"train/top1", narrow(row.means.top1)},
                                       {"train/top3", narrow(row.means.top3)},
                                       {"train/top5", narrow(row.means.top5)},
                                       {"train/lr", narrow(row.lr)},
                                       {"train/images_per_second", narrow(row.images_per_second)}}};
  return scalars_event(time, scalars);
}

}  // namespace

struct MetricsWriter::Files {
  AppendFile csv;
  AppendFile jsonl;
  AppendFile events;
  bool failing = false;
};

MetricsWriter::MetricsWriter(const MetricsOptions& options) {
  make_folder(options.folder);
  const std::uint64_t step = options.resumed_step;
  files_ = std::make_unique<Files>(
      Files{reopen(options.folder / "metrics.csv", csv_header(), step, step_of_csv),
            reopen(options.folder / "metrics.jsonl", "", step, step_of_json),
            AppendFile(event_file(options)), false});
  const double now = wall_time(options.unix_time_us);
  files_->events.append(tf_record(version_event({now, 0})));
  files_->events.append(tf_record(start_event({now, static_cast<std::int64_t>(step) + 1})));
}

MetricsWriter::~MetricsWriter() = default;
MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;

std::string MetricsWriter::write(const MetricRow& row) {
  std::string trouble;
  const auto append = [&trouble](AppendFile& file, const std::string& record) {
    try {
      file.append(record);
    } catch (const TrainerError& error) {
      if (trouble.empty()) trouble = error.what();
    }
  };
  append(files_->csv, csv_line(row));
  append(files_->jsonl, json_line(row));
  append(files_->events, tf_record(scalars_of(row)));
  const bool known = std::exchange(files_->failing, !trouble.empty());
  if (trouble.empty() || known) return {};
  return trouble + " (training continues; rows of metrics are missing)";
}

}  // namespace ddprun::trainer
