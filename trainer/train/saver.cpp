#include "trainer/train/saver.hpp"

#include "trainer/device/accelerator.hpp"

namespace ddprun::trainer {

namespace {

CheckpointRule rule_of(const TrainerOptions& options) {
  return {options.checkpoint_every, options.checkpoint_budget};
}

}  // namespace

Saver::Saver(const TrainerOptions& options, CheckpointFolder& folder)
    : folder_(folder),
      in_background_(options.checkpoint_async == Switch::kOn),
      policy_(rule_of(options), Clock::now()) {}

bool Saver::due() const {
  return !background_.busy() && policy_.due(Clock::now());
}

// What `save` takes is lost to the training, also if it throws.
template <class Save>
void Saver::pay_for(Save save) {
  accelerator_synchronize();  // else a copy would wait for the step, whose time is not its cost
  struct Bill {
    Saver& saver;
    ~Bill() {
      const auto cost = Clock::now() - saver.began_;
      saver.costs_.waited += cost;
      saver.policy_.pay(saver.began_, cost);
    }
  };
  began_ = Clock::now();
  const Bill bill{*this};
  save();
}

void Saver::save_last(const NamedTensors& tensors, const TrainingState& state, Write how) {
  policy_.saved(Clock::now());  // one that fails is tried again when the next one is due
  pay_for([&] {
    if (how == Write::kInBackground && in_background_) {
      snapshot_.take(tensors);
      background_.start([this, state] { folder_.save_last(snapshot_.views(), state); });
      return;
    }
    folder_.save_last(HostCopy(tensors).views(), state);
    ++costs_.saved;
  });
  policy_.saved(Clock::now());
}

void Saver::save_best(const NamedTensors& tensors, const TrainingState& state) {
  pay_for([&] {
    folder_.save_best(HostCopy(tensors).views(), state);
    ++costs_.saved;
  });
}

// The thread may have taken its time from the training.
std::string Saver::settle(const std::optional<WriteResult>& result) {
  if (!result) return {};
  costs_.beside += result->cpu_time;
  policy_.pay(began_, result->cpu_time);
  if (result->problem.empty()) ++costs_.saved;
  return result->problem;
}

}  // namespace ddprun::trainer
