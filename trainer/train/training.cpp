#include "trainer/train/training.hpp"

#include <ATen/ops/cross_entropy_loss.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cmath>

#include "trainer/checkpoint/digest.hpp"
#include "trainer/error.hpp"
#include "trainer/train/evaluate.hpp"
#include "trainer/train/export.hpp"
#include "trainer/train/resume.hpp"
#include "trainer/train/session.hpp"

namespace ddprun::trainer {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Loop {
 public:
  explicit Loop(Session& session) : session_(session), state_(session.state) {}

  void run() {
    const auto total = session_.total_steps();
    if (state_.step >= total)
      last_test_ = evaluate(session_);  // nothing to train: only report the result
    while (state_.step < total) {
      train_step();
      const auto next_batch = session_.order.batch_of(state_.step);
      const bool epoch_ends = next_batch == 0 || state_.step == total;
      if (epoch_ends || row_is_due()) train_row();
      if (epoch_ends) {
        end_epoch();
      } else if (checkpoint_is_due()) {
        save_last();
      }
    }
    finish();
  }

 private:
  void train_step() {
    const auto step = state_.step;
    const Place place{session_.world.rank, session_.world.world_size};
    const auto part = session_.order.rank_batch(step, place);
    const bool augments = session_.options.augment == Switch::kOn;
    const auto batch = session_.train_batches->batch(
        part.ids, augments ? std::optional(session_.order.key_of(step)) : std::nullopt);
    session_.parallel->before_forward();
    const auto [logits, loss] = forward(batch);
    session_.parallel->before_backward();
    // DDP averages over ranks; the factor makes it the average over samples if their numbers
    // differ.
    (part.loss_scale == 1.0 ? loss : loss.mul(part.loss_scale)).backward();
    session_.sgd.step(rate(step));
    session_.parallel->zero_gradients();
    if (part.counted > 0) session_.train_sums.add(logits, batch.labels, loss);
    if (session_.sample_log) session_.sample_log->record(step, place, part);
    ++state_.step;
    samples_since_row_ += static_cast<double>(part.global_count);
    show_progress();
  }

  std::pair<at::Tensor, at::Tensor> forward(const Batch& batch) {
    const AutocastScope autocast(session_.precision, session_.placement.device);
    auto logits = session_.model.forward(batch.images);
    auto loss = at::cross_entropy_loss(logits, batch.labels, {}, at::Reduction::Mean,
                                       /*ignore_index=*/-100, session_.options.label_smoothing);
    return {std::move(logits), std::move(loss)};
  }

  [[nodiscard]] double rate(std::uint64_t step) const {
    return learning_rate(session_.schedule, {step, session_.total_steps()});
  }

  [[nodiscard]] bool row_is_due() const {
    const auto every = session_.options.log_every;
    return every != 0 && state_.step % every == 0;
  }

  // Only rank 0 checks the clock: writing is not a collective.
  [[nodiscard]] bool checkpoint_is_due() const {
    const auto every = session_.options.checkpoint_every;
    return session_.leads() && every.count() > 0 && Clock::now() - saved_at_ >= every;
  }

  [[nodiscard]] MetricRow row_of(Phase phase, const Means& means) const {
    MetricRow row;
    row.phase = phase;
    row.step = state_.step;
    row.epoch = static_cast<double>(session_.order.samples_before(state_.step)) /
                static_cast<double>(state_.samples);
    row.means = means;
    row.lr = rate(state_.step - 1);
    row.seconds = state_.seconds + seconds_since(started_at_);
    row.world = session_.world.world_size;
    row.restart = session_.world.restart_count;
    return row;
  }

  void train_row() {
    const auto means = session_.train_sums.take(session_.group).means();
    auto row = row_of(Phase::kTrain, means);
    row.images_per_second = samples_since_row_ / seconds_since(row_at_);
    row_at_ = Clock::now();
    samples_since_row_ = 0;
    last_row_ = row;
    if (session_.reporter) session_.reporter->row(row);
    if (std::isfinite(means.loss)) return;
    throw TrainerError("the loss is not finite at step " + std::to_string(state_.step) +
                       "; try a smaller --lr (it is " + std::to_string(session_.options.lr) + ")");
  }

  void end_epoch() {
    last_test_ = evaluate(session_);
    auto row = row_of(Phase::kTest, last_test_);
    if (session_.reporter) session_.reporter->row(row);
    if (last_test_.top1 > state_.best_top1) save_best();
    if (session_.leads()) save_last();
    row_at_ = Clock::now();  // excludes the evaluation from the next row's speed
  }

  [[nodiscard]] HostCopy saved_tensors() const { return HostCopy(session_.model_state().all()); }

  [[nodiscard]] TrainingState state_now() const {
    auto state = state_;
    state.seconds += seconds_since(started_at_);
    return state;
  }

  void save_last() {
    write_or_continue([this] { session_.folder.save_last(saved_tensors().views(), state_now()); });
    saved_at_ = Clock::now();
  }

  void save_best() {
    const auto before = state_;
    state_.best_top1 = last_test_.top1;
    state_.best_step = state_.step;
    if (!session_.leads()) return;
    const bool written = write_or_continue(
        [this] { session_.folder.save_best(saved_tensors().views(), state_now()); });
    if (!written) state_ = before;  // the best weights are those in the file
  }

  // A full disk loses a checkpoint but does not stop training: the previous one is unchanged. At
  // the end of the run there is no next attempt, so there it is an error.
  template <class Write>
  bool write_or_continue(Write write) {
    try {
      write();
      return true;
    } catch (const TrainerError& error) {
      if (state_.step >= session_.total_steps()) throw;
      session_.reporter->say(std::string(error.what()) + " (training continues)");
      return false;
    }
  }

  void show_progress() {
    if (!session_.reporter) return;
    BarState bar;
    bar.step = state_.step;
    bar.total = session_.total_steps();
    bar.epoch = session_.order.epoch_of(state_.step - 1);
    bar.epochs = session_.order.epoch_of(bar.total - 1) + 1;
    bar.loss = last_row_.means.loss;
    bar.top1 = last_row_.means.top1;
    bar.images_per_second = last_row_.images_per_second;
    bar.lr = rate(state_.step - 1);
    session_.reporter->progress(bar);
  }

  [[nodiscard]] NamedTensors weights() const {
    auto weights = session_.model.parameters();
    for (auto& buffer : session_.model.buffers()) weights.push_back(std::move(buffer));
    return weights;
  }

  void export_best(const std::filesystem::path& path) const {
    auto exported = weights();
    if (state_.best_step != state_.step && state_.best_step != 0) {
      for (auto& item : exported) item.tensor = item.tensor.detach().cpu().clone();
      load_tensors(read_checkpoint(session_.folder.best()).file, exported);
    }
    export_state_dict(path, exported);
  }

  void finish() {
    if (!session_.reporter) return;
    if (session_.options.export_file) export_best(*session_.options.export_file);
    session_.reporter->say(final_sentence(state_.step, last_test_));
    session_.reporter->say("weights " + hex_text(digest_of_tensors(weights())));
    session_.reporter->finish();
  }

  Session& session_;
  TrainingState& state_;
  Clock::time_point started_at_ = Clock::now();
  Clock::time_point saved_at_ = started_at_;
  Clock::time_point row_at_ = started_at_;
  double samples_since_row_ = 0;
  MetricRow last_row_;
  Means last_test_;
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Gloo and NCCL report a lost peer only in the text of the error; anything else is an error of this
// rank.
bool blames_a_peer(const std::string& what) {
  for (const char* sign : {"gloo", "Gloo", "NCCL", "Connection closed by peer", "reset by peer"}) {
    if (what.find(sign) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void run_training(const TrainerOptions& options, const WorkerEnvironment& world) {
  std::uint64_t step = 0;
  try {
    set_threads(options, world);
    Session session(options, world);
    start(session);
    step = session.state.step;
    try {
      Loop(session).run();
      session.group.leave_together();
    } catch (...) {
      step = session.state.step;
      throw;
    }
  } catch (const TrainerError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    const auto where = "step " + std::to_string(step);
    if (!blames_a_peer(what)) throw TrainerError("failed at " + where + ": " + first_line(what));
    throw TrainerError("lost the connection to another rank at " + where + ": " + first_line(what));
  }
}

}  // namespace ddprun::trainer
