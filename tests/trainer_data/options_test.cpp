#include "trainer/options/options.hpp"

#include "tests/support/catch.hpp"
#include "trainer/error.hpp"
#include "trainer/options/flags.hpp"

using namespace ddprun::trainer;
using namespace std::chrono_literals;

namespace {

TrainerOptions parsed(const std::vector<std::string>& arguments,
                      const OptionsEnvironment& environment = {}) {
  return std::get<TrainerOptions>(parse_options(arguments, environment));
}

void check_refused(const std::vector<std::string>& arguments, const std::string& sentence) {
  INFO(arguments.front());
  try {
    (void)parsed(arguments);
    FAIL("accepted");
  } catch (const UsageError& error) {
    CHECK_THAT(std::string(error.what()), ContainsSubstring(sentence));
    CHECK(error.exit_code() == 2);
  }
}

}  // namespace

TEST_CASE("without flags the options are the CPU recipe") {
  const TrainerOptions options = parsed({});
  CHECK(options.width == 64);
  CHECK(options.batch_size == 128);
  CHECK(options.lr == 0.2);
  CHECK(options.momentum == 0.9);
  CHECK(options.nesterov == Switch::kOn);
  CHECK(options.weight_decay == 5e-4);
  CHECK(options.decay == Decay::kMatrices);
  CHECK(options.label_smoothing == 0.1);
  CHECK(options.schedule.kind == ScheduleKind::kWarmupLinear);
  CHECK(options.memory == Memory::kChannelsLast);
  CHECK(options.amp == Amp::kAuto);
  CHECK(options.resume.kind == Resume::Kind::kAuto);
  CHECK(options.checkpoint_every == 30s);
}

TEST_CASE("every flag changes exactly what it names") {
  CHECK(parsed({"--epochs", "7"}).epochs == 7);
  CHECK(parsed({"--batch-size=64"}).batch_size == 64);
  CHECK(parsed({"--lr", "1e-2"}).lr == 0.01);
  CHECK(parsed({"--momentum", "0.85"}).momentum == 0.85);
  CHECK(parsed({"--nesterov", "off"}).nesterov == Switch::kOff);
  CHECK(parsed({"--weight-decay", "0"}).weight_decay == 0);
  CHECK(parsed({"--decay", "all"}).decay == Decay::kAll);
  CHECK(parsed({"--label-smoothing", "0.2"}).label_smoothing == 0.2);
  CHECK(parsed({}).micro_batches == 0);
  CHECK(parsed({"--deterministic"}).micro_batches == 8);
  CHECK(parsed({"--deterministic", "16"}).micro_batches == 16);
  CHECK(parsed({"--seed", "18446744073709551615"}).seed == 18'446'744'073'709'551'615U);
  CHECK(parsed({"--steps", "292"}).steps == 292);
  CHECK(parsed({"--width", "8"}).width == 8);
  CHECK(parsed({"--limit-train", "500"}).limit_train == 500);
  CHECK(parsed({"--limit-test", "50"}).limit_test == 50);
  CHECK(parsed({"--data-dir", "/d"}).data_dir == "/d");
  CHECK(parsed({"--generated"}).images == ImageSource::kGenerated);
  CHECK(parsed({"--augment", "off"}).augment == Switch::kOff);
  CHECK(parsed({"--device", "cuda"}).device == DeviceChoice::kCuda);
  CHECK(parsed({"--amp", "bf16"}).amp == Amp::kOn);
  CHECK(parsed({"--amp"}).amp == Amp::kOn);
  CHECK(parsed({"--amp", "off"}).amp == Amp::kOff);
  CHECK(parsed({"--channels-last", "off"}).memory == Memory::kContiguous);
  CHECK(parsed({"--threads", "3"}).threads == 3);
  CHECK(parsed({"--model-dir", "m"}).model_dir == "m");
  CHECK(parsed({"--model-filename", "net.pth"}).model_filename == "net.pth");
  CHECK(parsed({"--checkpoint-every", "2m"}).checkpoint_every == 2min);
  CHECK_FALSE(parsed({}).checkpoint_budget);
  CHECK(parsed({"--checkpoint-budget", "0.5"}).checkpoint_budget == 0.005);
  CHECK(parsed({"--checkpoint-budget=0.001"}).checkpoint_budget == 0.001 / 100);
  CHECK(parsed({"--checkpoint-budget=100"}).checkpoint_budget == 1.0);
  CHECK(parsed({}).checkpoint_async == Switch::kOn);
  CHECK(parsed({"--checkpoint-async", "off"}).checkpoint_async == Switch::kOff);
  CHECK(parsed({}).recover == Switch::kOff);
  CHECK(parsed({"--recover"}).recover == Switch::kOn);
  CHECK(parsed({}).check_every == 0);
  CHECK(parsed({"--check-every", "50"}).check_every == 50);
  CHECK(parsed({"--log-every", "0"}).log_every == 0);
  CHECK(*parsed({"--export", "model.pt"}).export_file == "model.pt");
  CHECK(*parsed({"--sample-log", "log"}).sample_log == "log");
  CHECK(parsed({"--schedule", "cosine", "--lr-min", "0.01"}).schedule.minimum == 0.01);
  CHECK(parsed({"--schedule", "one-cycle", "--div-factor", "10"}).schedule.div_factor == 10);
  CHECK(parsed({"--final-div-factor", "100"}).schedule.final_div_factor == 100);
  CHECK(parsed({"--warmup", "0.1"}).schedule.warmup == 0.1);
  const auto steps =
      parsed({"--schedule", "multi-step", "--milestones", "30,60.5", "--gamma", "0.2"});
  CHECK(steps.schedule.milestones == std::vector<double>{30, 60.5});
  CHECK(steps.schedule.gamma == 0.2);
}

TEST_CASE("flags may be written with underscores, as in the classic scripts") {
  CHECK(parsed({"--batch_size", "64"}).batch_size == 64);
  CHECK(parsed({"--batch_size=64"}).batch_size == 64);
  CHECK(parsed({"--model_filename", "a_b"}).model_filename == "a_b");
  CHECK(parsed({"--data_dir=x_y"}).data_dir == "x_y");
  CHECK(parsed({"--num_epochs", "3", "--learning_rate", "0.05", "--random_seed", "9"}).epochs == 3);
}

TEST_CASE("the flag --resume takes auto, none or a file; without a value it means auto") {
  CHECK(parsed({"--resume"}).resume.kind == Resume::Kind::kAuto);
  CHECK(parsed({"--resume", "--epochs", "3"}).epochs == 3);
  CHECK(parsed({"--resume=none"}).resume.kind == Resume::Kind::kNone);
  const auto resume = parsed({"--resume", "run/last.safetensors"}).resume;
  CHECK(resume.kind == Resume::Kind::kFile);
  CHECK(resume.file == "run/last.safetensors");
}

TEST_CASE("the last occurrence of a repeated flag wins") {
  CHECK(parsed({"--lr", "0.1", "--width", "8", "--lr=0.3"}).lr == 0.3);
}

TEST_CASE("an invalid value is one sentence with the flag and the valid values") {
  check_refused({"--epochs", "0"}, "--epochs is \"0\"; give a whole number from 1 to");
  check_refused({"--epochs", "two"}, "--epochs is \"two\"");
  check_refused({"--epochs", "2.5"}, "--epochs is \"2.5\"");
  check_refused({"--epochs", ""}, "--epochs is \"\"");
  check_refused({"--batch-size", "-1"}, "--batch-size is \"-1\"");
  check_refused({"--lr", "0"}, "--lr is \"0\"; give a number above 0");
  check_refused({"--lr", "nan"}, "--lr is \"nan\"");
  check_refused({"--lr", "1e999"}, "--lr is");
  check_refused({"--momentum", "1.1"}, "from 0 to 1");
  check_refused({"--label-smoothing", "2"}, "from 0 to 1");
  check_refused({"--seed", "18446744073709551616"}, "--seed is");
  check_refused({"--amp", "fp16"}, "one of auto, on, off");
  check_refused({"--device", "tpu"}, "one of auto, cpu, cuda");
  check_refused({"--schedule", "exponential"}, "one of constant, multi-step");
  check_refused({"--schedule", "multi-step", "--milestones", "60,30"}, "in ascending order");
  check_refused({"--schedule", "multi-step", "--milestones", "30,,60"}, "in ascending order");
  check_refused({"--checkpoint-every", "30x"}, "a duration like 30s");
  check_refused({"--checkpoint-every", "8000h"}, "at most one week");
  check_refused({"--checkpoint-every", "s"}, "a duration like 30s");
  check_refused({"--checkpoint-budget", "0"}, "a number from 0.001 to 100");
  check_refused({"--checkpoint-budget", "0.0009"}, "a number from 0.001 to 100");
  check_refused({"--checkpoint-budget", "100.1"}, "a number from 0.001 to 100");
  check_refused({"--checkpoint-async", "yes"}, "one of on, off");
  check_refused({"--model-filename", "../x"}, "--model-dir");
  check_refused({"--model-dir", ""}, "--model-dir is empty");
  check_refused({"--limit-train", "-3"}, "--limit-train");
}

TEST_CASE("a flag without its value is refused with the kind of value it needs") {
  check_refused({"--lr"}, "--lr needs a value: X");
  check_refused({"--data-dir", "--generated"}, "--data-dir needs a value: DIR");
}

TEST_CASE("an unknown flag is named, with the most similar known flag") {
  check_refused({"--epoch", "3"}, "unknown argument --epoch; did you mean --epochs?");
  check_refused({"--batchsize=3"}, "did you mean --batch-size?");
  check_refused({"--fsdp-strategy"}, "unknown argument --fsdp-strategy; see --help");
  check_refused({"images"}, "unknown argument images");
}

TEST_CASE("flags that contradict each other are refused") {
  check_refused({"--momentum", "0"}, "--nesterov off");
  CHECK(parsed({"--momentum", "0", "--nesterov", "off"}).momentum == 0);
  check_refused({"--schedule", "multi-step"}, "--milestones");
  check_refused({"--milestones", "3"}, "--milestones");
  check_refused({"--lr-min", "0.5"}, "--lr-min is above --lr");
}

TEST_CASE("the flag --local-rank is accepted if it matches LOCAL_RANK or LOCAL_RANK is not set") {
  CHECK(parsed({"--local_rank=1"}).local_rank == 1);
  CHECK(parsed({"--local-rank", "1"}, {"1"}).local_rank == 1);
  CHECK_THROWS_WITH(parsed({"--local-rank", "1"}, {"0"}), ContainsSubstring("LOCAL_RANK is 0"));
}

TEST_CASE("the help names every flag, its values and what --resume does") {
  for (const auto& arguments :
       {std::vector<std::string>{"--help"}, {"-h"}, {"--lr", "1", "--help"}}) {
    const auto result = parse_options(arguments, {});
    REQUIRE(std::holds_alternative<HelpText>(result));
    const std::string text = std::get<HelpText>(result).text;
    for (const Flag& flag : all_flags()) {
      CAPTURE(flag.names);
      CHECK_THAT(text, ContainsSubstring(flag.names) && ContainsSubstring(flag.value));
    }
  }
}

TEST_CASE("durations are parsed in every unit") {
  const auto duration = [](const std::string& text) { return duration_of({"--t", text}); };
  CHECK(duration("30") == 30s);
  CHECK(duration("1.5s") == 1500ms);
  CHECK(duration("250ms") == 250ms);
  CHECK(duration("1h") == 1h);
  CHECK(duration("off") == 0ms);
  CHECK(duration("0") == 0ms);
}

TEST_CASE("the run's length is --steps, otherwise epochs times batches") {
  CHECK(total_steps(parsed({"--epochs", "3"}), 391) == 1173);
  CHECK(total_steps(parsed({"--epochs", "3", "--steps", "5"}), 391) == 5);
  CHECK_THROWS_AS(total_steps(parsed({"--epochs", "100000"}), 1'000'000), UsageError);
}

TEST_CASE("milestones in epochs become steps, and each schedule has its default warm-up") {
  const auto steps =
      schedule_for(parsed({"--schedule", "multi-step", "--milestones", "1,2.5"}), 100);
  CHECK(steps.milestones == std::vector<std::uint64_t>{100, 250});
  CHECK(steps.warmup_fraction == 0);
  CHECK(schedule_for(parsed({}), 100).warmup_fraction == 0.2);
  CHECK(schedule_for(parsed({"--schedule", "one-cycle"}), 100).warmup_fraction == 0.3);
  CHECK(schedule_for(parsed({"--schedule", "one-cycle", "--warmup", "0"}), 100).warmup_fraction ==
        0);
  CHECK(schedule_for(parsed({"--lr", "0.4"}), 100).base == 0.4);
}
