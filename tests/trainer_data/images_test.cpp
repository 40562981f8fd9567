#include "trainer/data/images.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;

namespace {

/// `count` records; record i has label i % 10 and pixels that start with `first` + i.
std::string records(std::size_t count, int first) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(i % 10));
    bytes.append(kImageBytes, static_cast<char>(first + static_cast<int>(i)));
  }
  return bytes;
}

void write_small_set(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (int i = 1; i <= 5; ++i) {
    put(folder / ("data_batch_" + std::to_string(i) + ".bin"),
        records(static_cast<std::size_t>(i), 10 * i));
  }
  put(folder / "test_batch.bin", records(4, 100));
}

}  // namespace

TEST_CASE("a set is the concatenation of its five files, whatever their sizes") {
  const TemporaryFolder folder;
  write_small_set(folder.path());
  const ImageSet set = read_training_images(folder.path());
  REQUIRE(set.size() == 1 + 2 + 3 + 4 + 5);
  CHECK(set.image(0)[0] == 10);
  CHECK(set.image(1)[0] == 20);
  CHECK(set.image(2)[kImageBytes - 1] == 21);
  CHECK(set.image(14)[0] == 54);
  CHECK(set.label(14) == 4);
  CHECK(read_test_images(folder.path()).size() == 4);
}

TEST_CASE("the folder may be the parent of cifar-10-batches-bin") {
  const TemporaryFolder folder;
  write_small_set(folder / "cifar-10-batches-bin");
  CHECK(read_training_images(folder.path()).size() == 15);
}

TEST_CASE("a limit keeps the first images, and never makes a set larger") {
  const TemporaryFolder folder;
  write_small_set(folder.path());
  ImageSet set = read_training_images(folder.path());
  set.limit(20);
  CHECK(set.size() == 15);
  set.limit(2);
  CHECK(set.size() == 2);
  CHECK(set.image(1)[0] == 20);
}

TEST_CASE("whole sets are copied image by image") {
  const TemporaryFolder folder;
  write_small_set(folder.path());
  const ImageSet set = read_training_images(folder.path());
  std::vector<std::uint8_t> pixels(set.size() * kImageBytes);
  std::vector<std::int64_t> labels(set.size());
  set.copy_pixels(pixels);
  set.copy_labels(labels);
  for (std::uint32_t id = 0; id < set.size(); ++id) {
    const auto image = set.image(id);
    REQUIRE(std::equal(image.begin(), image.end(), pixels.begin() + id * kImageBytes));
    REQUIRE(labels[id] == set.label(id));
  }
  CHECK_THROWS_AS(set.copy_pixels(std::span(pixels).first(5)), TrainerError);
  CHECK_THROWS_AS(set.copy_labels(std::span(labels).first(5)), TrainerError);
}

TEST_CASE("a file truncated inside a record is refused, naming file and record") {
  const TemporaryFolder folder;
  const auto file = folder / "data_batch_3.bin";
  put(file, records(7, 0).substr(0, 6 * kRecordBytes + 100));
  CHECK_THROWS_WITH(read_image_file(file), ContainsSubstring("data_batch_3.bin, record 6") &&
                                               ContainsSubstring("100 of its 3073 bytes"));
}

TEST_CASE("a label above 9 is refused, naming file and record") {
  const TemporaryFolder folder;
  const auto file = folder / "test_batch.bin";
  std::string bytes = records(20, 0);
  bytes[17 * kRecordBytes] = 9;
  put(file, bytes);
  CHECK(read_image_file(file).count == 20);
  bytes[17 * kRecordBytes] = 10;
  put(file, bytes);
  CHECK_THROWS_WITH(read_image_file(file),
                    ContainsSubstring("test_batch.bin, record 17: label 10"));
  bytes[17 * kRecordBytes] = static_cast<char>(255);
  put(file, bytes);
  CHECK_THROWS_WITH(read_image_file(file), ContainsSubstring("label 255"));
}

TEST_CASE("an empty file, a folder and a pipe are refused at once") {
  const TemporaryFolder folder;
  put(folder / "empty.bin", "");
  CHECK_THROWS_WITH(read_image_file(folder / "empty.bin"), ContainsSubstring("is empty"));
  CHECK_THROWS_WITH(read_image_file(folder.path()), ContainsSubstring("not a regular file"));
  const auto pipe = folder / "pipe.bin";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_image_file(pipe), ContainsSubstring("not a regular file"));
}

TEST_CASE("missing images are one sentence that says how to download them") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_training_images(folder.path()),
                    ContainsSubstring("data_batch_1.bin") &&
                        ContainsSubstring("scripts/get-cifar10") &&
                        ContainsSubstring("--generated"));
  write_small_set(folder.path());
  std::filesystem::remove(folder / "data_batch_4.bin");
  CHECK_THROWS_WITH(read_training_images(folder.path()), ContainsSubstring("data_batch_4.bin"));
}

TEST_CASE("synthetic images are a function of seed and id") {
  const ImageSet few = generate_images({50, 1});
  const ImageSet many = generate_images({200, 1});
  const ImageSet other = generate_images({50, 2});
  std::set<int> labels;
  int equal = 0;
  for (std::uint32_t id = 0; id < 50; ++id) {
    const auto image = few.image(id);
    REQUIRE(std::equal(image.begin(), image.end(), many.image(id).begin()));
    REQUIRE(few.label(id) == many.label(id));
    equal += std::equal(image.begin(), image.end(), other.image(id).begin()) ? 1 : 0;
    labels.insert(few.label(id));
  }
  CHECK(equal == 0);
  CHECK(labels.size() == 10);
  CHECK(*labels.rbegin() == 9);
}

TEST_CASE("synthetic images come with a warning, real ones do not") {
  DataSetOptions options;
  options.generated = true;
  options.limit_train = 30;
  options.limit_test = 20;
  const DataSet synthetic = load_data_set(options);
  CHECK(synthetic.train.size() == 30);
  CHECK(synthetic.test.size() == 20);
  CHECK_THAT(synthetic.announcement, ContainsSubstring("IS MEANINGLESS"));
  const auto train = synthetic.train.image(0);
  CHECK_FALSE(std::equal(train.begin(), train.end(), synthetic.test.image(0).begin()));

  const TemporaryFolder folder;
  write_small_set(folder.path());
  options = DataSetOptions{};
  options.folder = folder.path();
  options.limit_train = 6;
  const DataSet real = load_data_set(options);
  CHECK(real.announcement.empty());
  CHECK(real.train.size() == 6);
  CHECK_THAT(real.source, ContainsSubstring("6 for training, 4 for testing"));
}
