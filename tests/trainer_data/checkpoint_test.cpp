#include "trainer/checkpoint/checkpoint_folder.hpp"

#include <array>
#include <cstring>

#include "tests/support/catch.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;

namespace {

TrainingState state_at(std::uint64_t step) {
  TrainingState state;
  state.step = step;
  state.total_steps = 782;
  state.seed = 18'446'744'073'709'551'615U;
  state.samples = 50'000;
  state.batch_size = 128;
  state.width = 8;
  state.best_top1 = 0.1 + 0.2;
  state.best_step = 390;
  state.seconds = 12.5;
  state.world = 2;
  state.torch_version = "2.11.0";
  return state;
}

/// One tensor whose contents encode the step.
struct Weights {
  explicit Weights(float value) { values.fill(value); }
  [[nodiscard]] std::vector<TensorView> views() const {
    return {{"weight", DType::kF32, {50, 20}, std::as_bytes(std::span(values))}};
  }
  std::array<float, 1000> values{};
};

void save(CheckpointFolder& folder, std::uint64_t step) {
  folder.save_last(Weights(static_cast<float>(step)).views(), state_at(step));
}

float value_of(const Checkpoint& checkpoint) {
  float value = 0;
  std::memcpy(&value, checkpoint.file.tensor("weight").bytes.data(), sizeof value);
  return value;
}

/// Flips one byte in the middle of the data.
void damage(const std::filesystem::path& file) {
  std::string bytes = content_of(file);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  put(file, bytes);
}

}  // namespace

TEST_CASE("a checkpoint restores its state exactly") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder / "made/on/the/way", "resnet18");
  save(checkpoints, 42);
  const Checkpoint read = read_checkpoint(checkpoints.last());
  CHECK(to_metadata(read.state) == to_metadata(state_at(42)));
  CHECK(read.state.best_top1 == 0.1 + 0.2);
  CHECK(read.state.seed == 18'446'744'073'709'551'615U);
  CHECK(value_of(read) == 42.0F);
}

TEST_CASE("an empty or missing folder has no checkpoint, which is not an error") {
  const TemporaryFolder folder;
  CHECK_FALSE(CheckpointFolder(folder.path(), "m").find_last().checkpoint);
  CHECK_FALSE(CheckpointFolder(folder / "absent", "m").find_last().checkpoint);
}

TEST_CASE("the last and the previous checkpoint are kept, nothing else") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  for (const std::uint64_t step : {10U, 20U, 30U}) save(checkpoints, step);
  CHECK(value_of(read_checkpoint(checkpoints.last())) == 30.0F);
  CHECK(value_of(read_checkpoint(checkpoints.previous())) == 20.0F);
  CHECK(entries_in(folder.path()) == 2);
}

TEST_CASE("a damaged last checkpoint is skipped for the previous one, and reported") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  save(checkpoints, 10);
  save(checkpoints, 20);
  damage(checkpoints.last());
  const Found found = checkpoints.find_last();
  REQUIRE(found.checkpoint);
  CHECK(found.checkpoint->state.step == 10);
  REQUIRE(found.passed_over.size() == 1);
  CHECK_THAT(found.passed_over[0],
             ContainsSubstring("m.last.safetensors is damaged: its digest does not match"));
}

TEST_CASE("a checkpoint truncated at any length is skipped for the previous one") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  save(checkpoints, 10);
  save(checkpoints, 20);
  const std::string whole = content_of(checkpoints.last());
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    put(checkpoints.last(), whole.substr(0, size));
    const Found found = checkpoints.find_last();
    REQUIRE(found.checkpoint);
    REQUIRE(found.checkpoint->state.step == 10);
  }
}

TEST_CASE("a damaged checkpoint never replaces the good previous one") {
  const TemporaryFolder folder;
  {
    CheckpointFolder checkpoints(folder.path(), "m");
    save(checkpoints, 10);
    save(checkpoints, 20);
    damage(checkpoints.last());
  }
  CheckpointFolder resumed(folder.path(), "m");
  save(resumed, 15);
  CHECK(read_checkpoint(resumed.last()).state.step == 15);
  CHECK(read_checkpoint(resumed.previous()).state.step == 10);
  CheckpointFolder again(folder.path(), "m");  // undamaged this time
  save(again, 16);
  CHECK(read_checkpoint(again.previous()).state.step == 15);
}

TEST_CASE("a kill between the two renames leaves no temporary file") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  save(checkpoints, 10);
  std::filesystem::create_hard_link(checkpoints.last(), checkpoints.previous());  // then killed
  CheckpointFolder resumed(folder.path(), "m");
  save(resumed, 20);
  CHECK(entries_in(folder.path()) == 2);
  CHECK(read_checkpoint(resumed.previous()).state.step == 10);
}

TEST_CASE("a new run in an old folder never falls back to the old run") {
  const TemporaryFolder folder;
  {
    CheckpointFolder old_run(folder.path(), "m");
    save(old_run, 700);
    save(old_run, 780);
  }
  CheckpointFolder fresh(folder.path(), "m");
  save(fresh, 100);
  CHECK(entries_in(folder.path()) == 1);
  save(fresh, 200);
  CHECK(read_checkpoint(fresh.previous()).state.step == 100);

  CheckpointFolder other_seed(folder.path(), "m");
  TrainingState state = state_at(300);
  state.seed = 1;
  other_seed.save_last(Weights(300).views(), state);
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("the best checkpoint is used when both others are damaged") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  checkpoints.save_best(Weights(5).views(), state_at(5));
  save(checkpoints, 10);
  save(checkpoints, 20);
  damage(checkpoints.last());
  damage(checkpoints.previous());
  const Found found = checkpoints.find_last();
  REQUIRE(found.checkpoint);
  CHECK(found.checkpoint->state.step == 5);
  CHECK(found.passed_over.size() == 2);
}

TEST_CASE("the best weights count only if the folder contains those that the state refers to") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  const TrainingState state = state_at(500);
  CHECK_FALSE(checkpoints.has_best(state));  // resumed from a file of another folder
  checkpoints.save_best(Weights(391).views(), state_at(state.best_step + 1));
  CHECK_FALSE(checkpoints.has_best(state));
  checkpoints.save_best(Weights(390).views(), state_at(state.best_step));
  CHECK(checkpoints.has_best(state));
  damage(checkpoints.best());
  CHECK_FALSE(checkpoints.has_best(state));
}

TEST_CASE("when no checkpoint is readable the run stops instead of overwriting them") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  save(checkpoints, 10);
  damage(checkpoints.last());
  CHECK_THROWS_WITH(checkpoints.find_last(),
                    ContainsSubstring("is damaged") && ContainsSubstring("--resume none"));
}

TEST_CASE("changed metadata counts as damage") {
  const TemporaryFolder folder;
  CheckpointFolder checkpoints(folder.path(), "m");
  save(checkpoints, 10);
  std::string bytes = content_of(checkpoints.last());
  const auto at = bytes.find("\"ddprun.step\":\"10\"");
  REQUIRE(at != std::string::npos);
  bytes[at + 16] = '1';
  put(checkpoints.last(), bytes);
  CHECK_THROWS_WITH(read_checkpoint(checkpoints.last()),
                    ContainsSubstring("digest does not match"));
}

TEST_CASE("a safetensors file of another program is not a checkpoint") {
  const TemporaryFolder folder;
  write_safetensors(folder / "foreign.safetensors", Weights(1).views(), {{"format", "pt"}});
  CHECK_THROWS_WITH(read_checkpoint(folder / "foreign.safetensors"),
                    ContainsSubstring("not a checkpoint of this trainer"));
}

TEST_CASE("an extension in the name is removed, so that the file is not taken for a pickle") {
  const CheckpointFolder checkpoints("d", "resnet_distributed.pth");
  CHECK(checkpoints.last() == "d/resnet_distributed.last.safetensors");
  CHECK(checkpoints.best() == "d/resnet_distributed.best.safetensors");
  CHECK(CheckpointFolder("d", "model.v1").last() == "d/model.v1.last.safetensors");
  CHECK(CheckpointFolder("d", ".pt").last() == "d/.pt.last.safetensors");
}

TEST_CASE("state fields that are missing, not numbers or of a newer format are named") {
  Metadata metadata = to_metadata(state_at(1));
  metadata.erase("ddprun.seed");
  CHECK_THROWS_WITH(state_from(metadata, "f"), ContainsSubstring("f has no ddprun.seed"));
  metadata = to_metadata(state_at(1));
  metadata["ddprun.step"] = "-1";
  CHECK_THROWS_WITH(state_from(metadata, "f"), ContainsSubstring("ddprun.step is \"-1\""));
  metadata["ddprun.format"] = "2";
  CHECK_THROWS_WITH(state_from(metadata, "f"), ContainsSubstring("f has format 2"));
}

TEST_CASE("a resume with a different seed, batch, width or data set is refused with its name") {
  const auto refused = [](auto change, const std::string& what) {
    TrainingState wanted = state_at(0);
    change(wanted);
    CHECK_THROWS_WITH(check_same_run(state_at(5), wanted, "f"),
                      ContainsSubstring(what) && ContainsSubstring("--resume none"));
  };
  refused([](TrainingState& s) { s.seed = 1; }, "--seed");
  refused([](TrainingState& s) { s.batch_size = 64; }, "--batch-size = 128, this run has 64");
  refused([](TrainingState& s) { s.width = 64; }, "--width");
  refused([](TrainingState& s) { s.samples = 10; }, "training images");
  TrainingState longer = state_at(0);
  longer.total_steps = 99'999;
  longer.world = 7;
  CHECK_NOTHROW(check_same_run(state_at(5), longer, "f"));
}
