#include "trainer/data/augment.hpp"

#include <array>
#include <map>
#include <numeric>

#include "tests/support/catch.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;
using Flip = Augmentation::Flip;

namespace {

std::vector<std::uint8_t> numbered_image() {
  std::vector<std::uint8_t> bytes(kImageBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 % 251 + 1);
  return bytes;
}

/// The reference implementation, pixel by pixel: pad with 4 black pixels, crop, mirror, normalize.
float expected_at(const std::vector<std::uint8_t>& image, const Augmentation& how,
                  std::array<std::size_t, 3> channel_y_x) {
  const auto [channel, y, x] = channel_y_x;
  const int side = static_cast<int>(kSide);
  const int column = how.flip == Flip::kYes ? side - 1 - static_cast<int>(x) : static_cast<int>(x);
  const int from_x = column + how.shift_x;
  const int from_y = static_cast<int>(y) + how.shift_y;
  const bool black = from_x < 0 || from_y < 0 || from_x >= side || from_y >= side;
  const auto at = channel * kPlaneBytes + static_cast<std::size_t>(from_y * side + from_x);
  const float value = black ? 0.0F : static_cast<float>(image[at]) / 255.0F;
  const Normalization usual;
  return (value - usual.mean[channel]) / usual.deviation[channel];
}

void check_against_definition(const Augmentation& how) {
  const auto image = numbered_image();
  const Image view(image.data(), kImageBytes);
  std::vector<float> planes(kImageBytes);
  std::vector<float> channels_last(kImageBytes);
  BatchWriter({}, Layout::kNchw).write_one(view, how, planes);
  BatchWriter({}, Layout::kChannelsLast).write_one(view, how, channels_last);
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    for (std::size_t y = 0; y < kSide; ++y) {
      for (std::size_t x = 0; x < kSide; ++x) {
        const float expected = expected_at(image, how, {channel, y, x});
        REQUIRE(planes[channel * kPlaneBytes + y * kSide + x] == expected);
        REQUIRE(channels_last[(y * kSide + x) * kChannels + channel] == expected);
      }
    }
  }
}

}  // namespace

TEST_CASE("every shift and flip matches the reference, in both memory layouts") {
  for (int shift_x = -kCropPadding; shift_x <= kCropPadding; ++shift_x) {
    for (int shift_y = -kCropPadding; shift_y <= kCropPadding; ++shift_y) {
      check_against_definition({shift_x, shift_y, Flip::kNo});
      check_against_definition({shift_x, shift_y, Flip::kYes});
    }
  }
}

TEST_CASE("augmentation depends on seed, epoch and id alone") {
  const Augmentation once = augmentation_of({1, 2}, 3);
  CHECK(augmentation_of({1, 2}, 3) == once);
  int same = 0;
  for (std::uint32_t id = 0; id < 1000; ++id) {
    same += augmentation_of({1, 2}, id) == augmentation_of({1, 4}, id) ? 1 : 0;
  }
  CHECK(same < 80);  // of 25 shifts, equal by chance about 40 times
}

TEST_CASE("an image is mirrored in exactly every other epoch, half of them at the start") {
  int mirrored = 0;
  for (std::uint32_t id = 0; id < 10'000; ++id) {
    const auto first = augmentation_of({7, 0}, id).flip;
    REQUIRE(augmentation_of({7, 1}, id).flip != first);
    REQUIRE(augmentation_of({7, 2}, id).flip == first);
    mirrored += first == Flip::kYes ? 1 : 0;
  }
  CHECK(std::abs(mirrored - 5000) < 250);  // 5 standard deviations
}

TEST_CASE("all 25 shifts are equally frequent, and independent of the flip") {
  std::map<std::tuple<int, int, Flip>, int> seen;
  for (std::uint32_t id = 0; id < 50'000; ++id) {
    const auto how = augmentation_of({3, 5}, id);
    ++seen[{how.shift_x, how.shift_y, how.flip}];
  }
  CHECK(seen.size() == 50);
  for (const auto& [shift, count] : seen) CHECK(std::abs(count - 1000) < 160);
}

TEST_CASE("a batch is the concatenation of its images, each augmented for its id") {
  const ImageSet set = generate_images({40, 1});
  const BatchWriter writer({}, Layout::kChannelsLast);
  const std::array<std::uint32_t, 3> ids{17, 3, 39};
  const EpochKey key{5, 6};
  std::vector<float> batch(ids.size() * kImageBytes);
  std::vector<float> one(kImageBytes);
  writer.write_augmented(set, ids, key, batch);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    writer.write_one(set.image(ids[i]), augmentation_of(key, ids[i]), one);
    REQUIRE(std::equal(one.begin(), one.end(),
                       batch.begin() + static_cast<std::ptrdiff_t>(i * kImageBytes)));
  }
  writer.write_plain(set, ids, batch);
  writer.write_one(set.image(3), {}, one);
  CHECK(std::equal(one.begin(), one.end(), batch.begin() + kImageBytes));

  std::array<std::int64_t, 3> labels{};
  write_labels(set, ids, labels);
  CHECK(labels[2] == set.label(39));
}

TEST_CASE("a buffer of the wrong size is refused before anything is written") {
  const ImageSet set = generate_images({4, 1});
  const std::array<std::uint32_t, 2> ids{0, 1};
  std::vector<float> small(2 * kImageBytes - 1, -1.0F);
  const BatchWriter writer({}, Layout::kNchw);
  CHECK_THROWS_AS(writer.write_augmented(set, ids, {}, small), TrainerError);
  CHECK_THROWS_AS(writer.write_plain(set, ids, small), TrainerError);
  CHECK(std::accumulate(small.begin(), small.end(), 0.0F) == -static_cast<float>(small.size()));
  std::array<std::int64_t, 1> labels{};
  CHECK_THROWS_AS(write_labels(set, ids, labels), TrainerError);
}
