// Prints or writes what the trainer's parts compute, for Python tests that compare it with the real
// packages.
//   probe schedule NAME TOTAL     one rate per line
//   probe metrics DIR             a run of 30 steps, killed after 20 with the checkpoint of step 10
//   probe write FILE              one tensor of each type
//   probe read FILE               name, type, shape, digest of each tensor, sorted by name
//   probe images DIR            number of images per class
#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>

#include "trainer/checkpoint/digest.hpp"
#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/data/images.hpp"
#include "trainer/error.hpp"
#include "trainer/metrics/metrics_writer.hpp"
#include "trainer/schedule/schedule.hpp"

using namespace ddprun::trainer;

namespace {

/// The settings that schedule_test.py passes to torch.
int print_schedule(const std::string& name, std::uint64_t total) {
  for (const ScheduleKind kind : schedule_kinds()) {
    if (schedule_name(kind) != name) continue;
    ScheduleOptions options;
    options.kind = kind;
    options.base = 0.2;
    options.warmup_fraction = kind == ScheduleKind::kOneCycle       ? 0.3
                              : kind == ScheduleKind::kWarmupLinear ? 0.2
                                                                    : 0.0;
    options.milestones = {30, 80};
    options.minimum = kind == ScheduleKind::kCosine ? 0.01 : 0.0;
    for (std::uint64_t step = 0; step < total; ++step) {
      std::printf("%.17g\n", learning_rate(options, {step, total}));
    }
  }
  return 0;
}

void write_rows(const std::filesystem::path& folder, std::uint64_t resumed, std::uint64_t last) {
  constexpr std::int64_t kStart = 1'700'000'000'999'990;  // the second file begins a second later
  const std::int64_t now = kStart + static_cast<std::int64_t>(resumed);
  MetricsWriter writer({folder, resumed, now, "host"});
  for (std::uint64_t step = resumed + 1; step <= last; ++step) {
    MetricRow row;
    row.step = step;
    row.unix_time_us = now;
    row.lr = 0.5;
    row.means = {static_cast<double>(step) + static_cast<double>(last) / 100, 0.25, 0.5, 0.75};
    if (!writer.write(row).empty()) throw TrainerError("no room");
    row.phase = Phase::kTest;
    if (step % 10 == 0) (void)writer.write(row);  // as above
  }
}

int write_metrics(const std::filesystem::path& folder) {
  write_rows(folder, 0, 20);
  write_rows(folder, 10, 30);
  return 0;
}

constexpr std::array kTypes{DType::kF64, DType::kI64, DType::kU64,  DType::kF32,    DType::kI32,
                            DType::kU32, DType::kF16, DType::kBF16, DType::kI16,    DType::kU16,
                            DType::kI8,  DType::kU8,  DType::kBool, DType::kF8E4M3, DType::kF8E5M2};

/// Element bytes are 1, 0, 0 … so that every type has a recognizable value.
int write_tensors(const std::filesystem::path& file) {
  std::array<std::byte, 48> bytes{};
  std::vector<TensorView> tensors{{"scalar", DType::kU8, {}, std::span(bytes).first(1)},
                                  {"empty", DType::kF32, {0, 3}, {}}};
  for (const DType type : kTypes) {
    tensors.push_back(
        {dtype_name(type), type, {3, 2}, std::span(bytes).first(6 * dtype_bytes(type))});
  }
  bytes[0] = std::byte{1};
  write_safetensors(file, tensors, {{"who", "ddprun \"ü\""}});
  return 0;
}

int read_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, std::string> lines;
  for (const auto& tensor : file.tensors()) {
    std::string line = tensor.name + " " + dtype_name(tensor.type) + " ";
    for (const auto size : tensor.shape) line += std::to_string(size) + ",";
    lines[tensor.name] = line + " " + hex_text(Digest().update(tensor.bytes).value());
  }
  for (const auto& [key, text] : file.metadata())
    std::printf("# %s=%s\n", key.c_str(), text.c_str());
  for (const auto& [name, line] : lines) std::printf("%s\n", line.c_str());
  return 0;
}

int count_images(const std::filesystem::path& folder) {
  DataSetOptions options;
  options.folder = folder;
  const DataSet data = load_data_set(options);
  for (const ImageSet* set : {&data.train, &data.test}) {
    std::array<int, kClasses> counts{};
    std::uint64_t sum = 0;
    for (std::uint32_t id = 0; id < set->size(); ++id) {
      ++counts[static_cast<std::size_t>(set->label(id))];
      const auto image = set->image(id);
      sum = std::accumulate(image.begin(), image.end(), sum);
    }
    for (const int count : counts) std::printf("%d ", count);
    std::printf("mean %.4f\n", static_cast<double>(sum) / (255.0 * kImageBytes * set->size()));
  }
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const std::string& what = arguments.at(0);
  if (what == "schedule") return print_schedule(arguments.at(1), std::stoull(arguments.at(2)));
  if (what == "metrics") return write_metrics(arguments.at(1));
  if (what == "write") return write_tensors(arguments.at(1));
  if (what == "read") return read_tensors(arguments.at(1));
  if (what == "images") return count_images(arguments.at(1));
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
