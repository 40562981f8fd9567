// Synthetic images (images.hpp): stripes whose direction, width and color depend on the class,
// plus noise.
#include <algorithm>
#include <array>

#include "trainer/data/images.hpp"
#include "trainer/data/random.hpp"

namespace ddprun::trainer {
namespace {

constexpr int kNoise = 96;  // of 255
constexpr std::size_t kNoiseBytesPerDraw = 8;

struct Stripes {
  int step_x = 0;  // brightness per pixel
  int step_y = 0;
  std::array<int, kChannels> strength{};  // per color, 0 … 128
};

Stripes stripes_of(int label) {
  CounterStream random(mix(static_cast<std::uint64_t>(label) + 1));
  const auto draw = [&random](std::uint32_t bound) {
    return static_cast<int>(random.below(bound));
  };
  return {draw(24) + 4, draw(24) + 4, {draw(129), draw(129), draw(129)}};
}

using Planes = std::array<std::array<std::uint8_t, kImageBytes>, kClasses>;

Planes all_stripes() {
  Planes planes{};
  for (int label = 0; label < kClasses; ++label) {
    const Stripes stripes = stripes_of(label);
    for (std::size_t i = 0; i < kImageBytes; ++i) {
      const int x = static_cast<int>(i % kSide);
      const int y = static_cast<int>(i % kPlaneBytes / kSide);
      const int saw = (x * stripes.step_x + y * stripes.step_y) & 127;
      planes[static_cast<std::size_t>(label)][i] =
          static_cast<std::uint8_t>(saw * stripes.strength[i / kPlaneBytes] / 128);
    }
  }
  return planes;
}

void fill_record(const Planes& planes, std::uint64_t key, std::uint8_t* record) {
  CounterStream random(key);
  const std::size_t label = random.below(kClasses);
  record[0] = static_cast<std::uint8_t>(label);
  for (std::size_t i = 0; i < kImageBytes; i += kNoiseBytesPerDraw) {
    std::uint64_t bits = random.next();
    for (std::size_t j = i; j < i + kNoiseBytesPerDraw; ++j, bits >>= 8U) {
      const int noise = static_cast<int>(bits & 0xFFU) * kNoise / 256;
      record[1 + j] = static_cast<std::uint8_t>(std::min(255, planes[label][j] + noise));
    }
  }
}

}  // namespace

ImageSet generate_images(const GeneratedOptions& options) {
  const Planes planes = all_stripes();
  auto records = std::make_shared<std::vector<std::uint8_t>>(options.count * kRecordBytes);
  const std::uint64_t key = mix(options.seed);
  for (std::size_t id = 0; id < options.count; ++id) {
    fill_record(planes, mix(key ^ id), records->data() + id * kRecordBytes);
  }
  const std::uint8_t* data = records->data();
  return ImageSet({RecordBlock{std::move(records), data, options.count}});
}

}  // namespace ddprun::trainer
