#include <array>
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/trainer_data/file_size_limit.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"
#include "trainer/metrics/metric_sums.hpp"
#include "trainer/metrics/metrics_writer.hpp"
#include "trainer/metrics/row_text.hpp"

using namespace ddprun::trainer;

namespace {

MetricRow row_at(std::uint64_t step, Phase phase = Phase::kTrain) {
  MetricRow row;
  row.phase = phase;
  row.step = step;
  row.epoch = static_cast<double>(step) / 8;
  row.means = {1.5, 0.5, 0.75, 1.0};
  row.lr = 0.1;
  row.images_per_second = 1234.5;
  row.seconds = 3.25;
  row.unix_time_us = 1'700'000'000'000'042;
  row.world = 2;
  row.restart = 1;
  return row;
}

std::string files_of(const TemporaryFolder& folder) {
  return content_of(folder / "metrics.csv") + content_of(folder / "metrics.jsonl");
}

void write_rows(const TemporaryFolder& folder, std::uint64_t resumed, std::uint64_t last) {
  MetricsWriter writer(
      {folder.path(), resumed, 1'700'000'000'000'000 + static_cast<std::int64_t>(resumed), "h"});
  for (std::uint64_t step = resumed + 1; step <= last; ++step)
    REQUIRE(writer.write(row_at(step)).empty());
}

}  // namespace

TEST_CASE("a sample is correct in the top k if fewer than k classes rank higher") {
  const std::array<float, 20> logits{0, 1, 2, 3, 4, 5, 6, 7, 8, 9,   // label 7: two are higher
                                     9, 8, 7, 6, 5, 4, 3, 2, 1, 0};  // label 0: first
  const std::array<std::int64_t, 2> labels{7, 0};
  MetricSums sums;
  sums.add({logits, labels}, 5.0);
  const Means means = sums.means();
  CHECK(means.loss == 2.5);
  CHECK(means.top1 == 0.5);
  CHECK(means.top3 == 1.0);
  CHECK(means.top5 == 1.0);
  CHECK(sums.samples() == 2);
}

TEST_CASE(
    "ties are broken in favour of the lower class, so equal scores are not correct by chance") {
  const std::array<float, 10> logits{};
  for (std::int64_t label = 0; label < 10; ++label) {
    const std::array<std::int64_t, 1> labels{label};
    MetricSums sums;
    sums.add({logits, labels}, 0);
    CHECK(sums.means().top1 == (label < 1 ? 1 : 0));
    CHECK(sums.means().top3 == (label < 3 ? 1 : 0));
    CHECK(sums.means().top5 == (label < 5 ? 1 : 0));
  }
}

TEST_CASE("NaN scores are never correct") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::array<float, 10> logits{};
  logits.fill(nan);
  const std::array<std::int64_t, 1> labels{0};
  MetricSums sums;
  sums.add({logits, labels}, 0);
  CHECK(sums.means().top5 == 0);
}

TEST_CASE("the all-reduced sums of several ranks equal those of one rank") {
  const std::array<float, 6> logits{1, 2, 3, 3, 2, 1};
  const std::array<std::int64_t, 2> labels{2, 1};
  MetricSums alone;
  alone.add({logits, labels, 3}, 7);
  MetricSums rank0;
  MetricSums rank1;
  rank0.add({std::span(logits).first(3), std::span(labels).first(1), 3}, 3);
  rank1.add({std::span(logits).last(3), std::span(labels).last(1), 3}, 4);
  auto reduced = rank0.vector();
  for (std::size_t i = 0; i < reduced.size(); ++i) reduced[i] += rank1.vector()[i];
  CHECK(MetricSums::from(reduced).vector() == alone.vector());
  rank0.add(rank1);
  CHECK(rank0.vector() == alone.vector());
}

TEST_CASE("without samples the means are zero, not a division by zero") {
  CHECK(MetricSums().means().loss == 0);
}

TEST_CASE("scores and labels that do not match are refused") {
  const std::array<float, 10> logits{};
  const std::array<std::int64_t, 1> labels{10};
  const std::array<std::int64_t, 1> negative{-1};
  MetricSums sums;
  CHECK_THROWS_AS(sums.add({std::span(logits).first(9), labels}, 0), TrainerError);
  CHECK_THROWS_WITH(sums.add({logits, labels}, 0), ContainsSubstring("label 10"));
  CHECK_THROWS_AS(sums.add({logits, negative}, 0), TrainerError);
  CHECK(sums.samples() == 0);
}

TEST_CASE("a row is one line in each file, and its numbers round-trip exactly") {
  CHECK(csv_header() ==
        "phase,step,epoch,loss,top1,top3,top5,lr,images_per_second,seconds,unix_time,world,"
        "restart\n");
  MetricRow row = row_at(12);
  row.means.loss = 0.1;
  CHECK(csv_line(row) == "train,12,1.5,0.1,0.5,0.75,1,0.1,1234.5,3.25,1700000000.000042,2,1\n");
  CHECK(json_line(row) ==
        "{\"phase\":\"train\",\"step\":12,\"epoch\":1.5,\"loss\":0.1,\"top1\":0.5,\"top3\":0.75,"
        "\"top5\":1,\"lr\":0.1,\"images_per_second\":1234.5,\"seconds\":3.25,"
        "\"unix_time\":1700000000.000042,\"world\":2,\"restart\":1}\n");
}

TEST_CASE("a diverged loss is null in JSON, which has neither NaN nor infinity") {
  MetricRow row = row_at(1);
  row.means.loss = std::nan("");
  CHECK_THAT(json_line(row), ContainsSubstring("\"loss\":null"));
  row.means.loss = -std::numeric_limits<double>::infinity();
  CHECK_THAT(json_line(row), ContainsSubstring("\"loss\":null"));
  CHECK_THAT(csv_line(row), ContainsSubstring(",-inf,"));
  row.means.loss = 1e300;
  CHECK_THAT(json_line(row), ContainsSubstring("\"loss\":1e+300"));
}

TEST_CASE("a resume keeps the rows up to its step: none repeated, none missing") {
  const TemporaryFolder undisturbed;
  write_rows(undisturbed, 0, 20);
  for (const std::uint64_t resumed : {1U, 7U, 10U, 14U}) {
    const TemporaryFolder folder;
    write_rows(folder, 0, 14);  // 14 steps done, then killed
    write_rows(folder, resumed, 20);
    CHECK(files_of(folder) == files_of(undisturbed));
  }
}

TEST_CASE("a line truncated by a killed writer is dropped on resume") {
  const TemporaryFolder undisturbed;
  const TemporaryFolder folder;
  write_rows(undisturbed, 0, 6);
  write_rows(folder, 0, 4);
  for (const char* name : {"metrics.csv", "metrics.jsonl"}) {
    const std::string whole = content_of(folder / name);
    put(folder / name, whole.substr(0, whole.size() - 20));
  }
  write_rows(folder, 3, 6);
  CHECK(files_of(folder) == files_of(undisturbed));
}

TEST_CASE("leftovers of a run killed during start-up are removed by the next run") {
  const TemporaryFolder undisturbed;
  const TemporaryFolder folder;
  write_rows(undisturbed, 0, 3);
  put(folder / ".metrics.csv.tmp-999999", "torn");
  put(folder / ".metrics.jsonl.tmp-999999", "torn");
  write_rows(folder, 0, 3);
  CHECK(files_of(folder) == files_of(undisturbed));
  CHECK_FALSE(std::filesystem::exists(folder / ".metrics.csv.tmp-999999"));
  CHECK_FALSE(std::filesystem::exists(folder / ".metrics.jsonl.tmp-999999"));
}

TEST_CASE("foreign lines in the files are dropped on resume, and do not stop it") {
  const TemporaryFolder folder;
  put(folder / "metrics.csv", "phase,step\nnonsense\n\n,,,,,,,,,,,,\n");
  put(folder / "metrics.jsonl",
      "[1]\n{\"step\":-1}\n{\"step\":\"x\"}\n\xff\n" + std::string(200'000, '[') + "\n");
  write_rows(folder, 3, 4);
  CHECK(content_of(folder / "metrics.csv") == csv_header() + csv_line(row_at(4)));
  CHECK(content_of(folder / "metrics.jsonl") == json_line(row_at(4)));
}

TEST_CASE("a new run in an old folder starts new metrics") {
  const TemporaryFolder folder;
  const TemporaryFolder fresh;
  write_rows(folder, 0, 5);
  write_rows(folder, 0, 2);
  write_rows(fresh, 0, 2);
  CHECK(files_of(folder) == files_of(fresh));
}

TEST_CASE(
    "a full disk loses rows but does not stop training, and is reported once until space is free") {
  const TemporaryFolder folder;
  MetricsWriter writer({folder.path(), 0, 0, "h"});
  CHECK(writer.write(row_at(1)).empty());
  std::string first;
  std::string second;
  {
    const FileSizeLimit limit(content_of(folder / "metrics.csv").size() + 20);
    first = writer.write(row_at(2));
    second = writer.write(row_at(3));
  }
  CHECK_THAT(first, ContainsSubstring("metrics.csv") && ContainsSubstring("training continues"));
  CHECK(second.empty());
  CHECK(writer.write(row_at(4)).empty());
  CHECK(content_of(folder / "metrics.csv") ==
        csv_header() + csv_line(row_at(1)) + csv_line(row_at(4)));
  CHECK(content_of(folder / "metrics.jsonl") == json_line(row_at(1)) + json_line(row_at(4)));
}

TEST_CASE("metrics that cannot be opened are one sentence with path and reason") {
  const TemporaryFolder folder;
  put(folder / "file", "");
  CHECK_THROWS_WITH(
      MetricsWriter({folder / "file/metrics", 0, 0, "h"}),
      ContainsSubstring("cannot create the folder") && ContainsSubstring("choose another"));
}
