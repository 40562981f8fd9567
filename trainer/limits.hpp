// Limits of the trainer's torch-free code. Exceeding one throws a TrainerError that names it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddprun::trainer {

// Input files.
inline constexpr std::size_t kImageFileBytesMax = std::size_t{1} << 31;  // 2 GiB: 699,000 images
inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 31;
inline constexpr std::size_t kHeaderBytesMax = 4U << 20;  // safetensors header: 20,000 tensors
inline constexpr std::size_t kTensorsMax = 20'000;
inline constexpr std::size_t kDimensionsMax = 16;
inline constexpr std::uint64_t kCheckpointBytesMax = std::uint64_t{1} << 36;  // 64 GiB
inline constexpr std::size_t kMetricsFileBytesMax = std::size_t{1} << 30;     // read back on resume
inline constexpr std::size_t kMetricsLineBytesMax = 64U << 10;

// Flags.
inline constexpr std::uint64_t kStepsMax = 1'000'000'000;
inline constexpr int kEpochsMax = 100'000;
inline constexpr std::size_t kBatchMax = 1U << 20;
inline constexpr int kWidthMax = 1024;  // channels of the first stage; 64 is ResNet-18
inline constexpr std::uint64_t kMicroBatchesMax = 4096;
inline constexpr int kThreadsMax = 4096;
inline constexpr double kBudgetPercentMin = 0.001;  // a checkpoint of a minute every ten weeks
inline constexpr int kWorldSizeMax = 1 << 20;

static_assert(kHeaderBytesMax < kCheckpointBytesMax);
static_assert(kMetricsLineBytesMax < kMetricsFileBytesMax);

}  // namespace ddprun::trainer
