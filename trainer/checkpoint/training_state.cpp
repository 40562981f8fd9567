#include "trainer/checkpoint/training_state.hpp"

#include <array>
#include <charconv>

#include "trainer/error.hpp"

namespace ddprun::trainer {
namespace {

constexpr int kFormat = 1;

template <class Number>
std::string text_of(Number value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

/// Reads fields one by one; the sentence names file and field.
class Fields {
 public:
  Fields(const Metadata& metadata, const std::string& name) : metadata_(metadata), name_(name) {}

  template <class Number>
  void read(const char* key, Number& value) const {
    const std::string& text = at(key);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw TrainerError(name_ + ": " + key + " is \"" + text +
                         "\", which is not a number; use another checkpoint");
    }
  }

  [[nodiscard]] const std::string& at(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) {
      throw TrainerError(name_ + " has no " + key +
                         ": it is not a checkpoint of this trainer; use another one");
    }
    return found->second;
  }

 private:
  const Metadata& metadata_;
  const std::string& name_;
};

struct Difference {
  const char* what;
  std::uint64_t saved;
  std::uint64_t wanted;
};

}  // namespace

Metadata to_metadata(const TrainingState& state) {
  return {{"ddprun.format", text_of(kFormat)},
          {"ddprun.step", text_of(state.step)},
          {"ddprun.total_steps", text_of(state.total_steps)},
          {"ddprun.seed", text_of(state.seed)},
          {"ddprun.samples", text_of(state.samples)},
          {"ddprun.batch_size", text_of(state.batch_size)},
          {"ddprun.width", text_of(state.width)},
          {"ddprun.best_top1", text_of(state.best_top1)},
          {"ddprun.best_step", text_of(state.best_step)},
          {"ddprun.seconds", text_of(state.seconds)},
          {"ddprun.world", text_of(state.world)},
          {"ddprun.torch_version", state.torch_version}};
}

TrainingState state_from(const Metadata& metadata, const std::string& name) {
  const Fields fields(metadata, name);
  int format = 0;
  fields.read("ddprun.format", format);
  if (format != kFormat) {
    throw TrainerError(name + " has format " + std::to_string(format) +
                       ", this trainer reads format " + std::to_string(kFormat) +
                       "; use the trainer that wrote it");
  }
  TrainingState state;
  fields.read("ddprun.step", state.step);
  fields.read("ddprun.total_steps", state.total_steps);
  fields.read("ddprun.seed", state.seed);
  fields.read("ddprun.samples", state.samples);
  fields.read("ddprun.batch_size", state.batch_size);
  fields.read("ddprun.width", state.width);
  fields.read("ddprun.best_top1", state.best_top1);
  fields.read("ddprun.best_step", state.best_step);
  fields.read("ddprun.seconds", state.seconds);
  fields.read("ddprun.world", state.world);
  state.torch_version = fields.at("ddprun.torch_version");
  return state;
}

void check_same_run(const TrainingState& saved, const TrainingState& wanted,
                    const std::string& name) {
  const std::array<Difference, 4> fields{{
      {"--seed", saved.seed, wanted.seed},
      {"--batch-size", saved.batch_size, wanted.batch_size},
      {"--width", static_cast<std::uint64_t>(saved.width),
       static_cast<std::uint64_t>(wanted.width)},
      {"the number of training images", saved.samples, wanted.samples},
  }};
  for (const auto& field : fields) {
    if (field.saved == field.wanted) continue;
    throw TrainerError(name + " was written with " + field.what + " = " +
                       std::to_string(field.saved) + ", this run has " +
                       std::to_string(field.wanted) +
                       "; use the same value, or --resume none to start a new run");
  }
}

}  // namespace ddprun::trainer
