#include "trainer/train/loop.hpp"

#include <ATen/ops/cross_entropy_loss.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/checkpoint/digest.hpp"
#include "trainer/error.hpp"
#include "trainer/train/evaluate.hpp"
#include "trainer/train/export.hpp"
#include "trainer/train/transfer.hpp"

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
    if (epoch_ends() && session_.evaluated != state_.step) {
      end_epoch();  // a rank was lost in it
    } else if (state_.step >= total) {
      last_test_ = evaluate(session_);  // nothing to train: only report the result
    }
    while (state_.step < total) {
      leave_old_world();
      train_step();
      if (check_is_due()) check_weights();
      if (epoch_ends()) {
        end_epoch();
      } else {
        if (row_is_due()) train_row();
        save_if_due();
      }
    }
    finish();
  }

  void keep_time() { state_.seconds += seconds_since(started_at_); }

 private:
  [[nodiscard]] bool epoch_ends() const {
    return session_.order.batch_of(state_.step) == 0 || state_.step == session_.total_steps();
  }

  // A rank that has not been told yet learns of it at its next collective, which fails.
  void leave_old_world() {
    const bool is_over = session_.worlds != nullptr && session_.worlds->pending();
    if (is_over) throw LostPeer("a new round has begun");
  }

  void train_step() {
    session_.at(Moment::kForward);
    const auto step = state_.step;
    const Place place{session_.world.rank, session_.world.world_size};
    const auto part = session_.order.rank_batch(step, place);
    if (session_.tree) {
      tree_step(step);
    } else {
      parallel_step(step, part);
      if (session_.sample_log) session_.sample_log->record(step, place, part);
    }
    session_.at(Moment::kUpdated);
    ++state_.step;
    samples_since_row_ += static_cast<double>(part.global_count);
    show_progress();
  }

  void tree_step(std::uint64_t step) {
    const auto result = session_.tree->compute(
        session_.order.global_batch(step), session_.options.micro_batches, *session_.group,
        [&](const MicroBatch& micro) {
          const auto batch = session_.train_batches->batch(micro.ids, augmentation_of(step));
          const auto [logits, loss] = forward(batch);
          loss.mul(micro.weight).backward();
          DeviceSums sums(session_.placement.device);
          sums.add(logits, batch.labels, loss);
          return sums.own();
        },
        [&] { session_.at(Moment::kReduce); });
    session_.log_committed();  // the step before: every rank has contributed to this one
    session_.at(Moment::kReduced);
    session_.sgd.step(rate(step));
    session_.tree->commit();
    session_.shared_sums.add(result.sums);
    session_.uncommitted = LoggedStep{step, result.samples};
  }

  void parallel_step(std::uint64_t step, const RankBatch& part) {
    const auto batch = session_.train_batches->batch(part.ids, augmentation_of(step));
    if (session_.worlds != nullptr) session_.buffers_before = copies_of_buffers();
    session_.parallel->before_forward();
    const auto [logits, loss] = forward(batch);
    session_.parallel->before_backward();
    // DDP averages over ranks; the factor makes it the average over samples if their numbers
    // differ.
    session_.at(Moment::kReduce);
    (part.loss_scale == 1.0 ? loss : loss.mul(part.loss_scale)).backward();
    session_.buffers_before.clear();
    session_.at(Moment::kReduced);
    session_.sgd.step(rate(step));
    session_.parallel->zero_gradients();
    if (part.counted > 0) session_.train_sums.add(logits, batch.labels, loss);
  }

  [[nodiscard]] std::vector<at::Tensor> copies_of_buffers() const {
    auto copies = detached(session_.model.buffers());
    for (auto& copy : copies) copy = copy.clone();
    return copies;
  }

  [[nodiscard]] std::optional<EpochKey> augmentation_of(std::uint64_t step) const {
    if (session_.options.augment == Switch::kOff) return std::nullopt;
    return session_.order.key_of(step);
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

  [[nodiscard]] bool check_is_due() const {
    const auto every = session_.options.check_every;
    return every != 0 && state_.step % every == 0;
  }

  void check_weights() {
    if (session_.parallel) session_.parallel->sync_buffers();  // statistics differ between steps
    const auto healed = heal(session_);
    if (healed.empty() || !session_.reporter) return;
    session_.reporter->say(healed_sentence(healed, state_.step));
  }

  // Only rank 0 checks the clock: writing is not a collective.
  void save_if_due() {
    if (!session_.leads()) return;
    session_.report(session_.saver.poll());
    if (session_.saver.due()) save_last();
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

  // Equal on all ranks of a world.
  [[nodiscard]] bool has_sums() const {
    return session_.tree ? session_.shared_sums.samples() > 0 : samples_since_row_ > 0;
  }

  [[nodiscard]] MetricSums take_sums() {
    if (session_.tree) return std::exchange(session_.shared_sums, {});
    return session_.train_sums.take(*session_.group);
  }

  void train_row() {
    const auto means = take_sums().means();
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
    if (has_sums()) train_row();
    last_test_ = evaluate(session_);
    session_.log_committed();  // every rank has taken part in the test
    auto row = row_of(Phase::kTest, last_test_);
    if (session_.reporter) session_.reporter->row(row);
    session_.report(session_.saver.wait());
    if (last_test_.top1 > state_.best_top1) save_best();
    if (session_.leads()) save_last();
    session_.evaluated = state_.step;
    row_at_ = Clock::now();  // excludes the evaluation from the next row's speed
  }

  [[nodiscard]] NamedTensors saved_tensors() const { return session_.model_state().all(); }

  [[nodiscard]] TrainingState state_now() const {
    auto state = state_;
    state.seconds += seconds_since(started_at_);
    return state;
  }

  // The last one of the run is complete before its result is printed.
  void save_last() {
    const auto how =
        state_.step < session_.total_steps() ? Saver::Write::kInBackground : Saver::Write::kNow;
    write_or_continue([&] { session_.saver.save_last(saved_tensors(), state_now(), how); });
  }

  void save_best() {
    const auto before = state_;
    state_.best_top1 = last_test_.top1;
    state_.best_step = state_.step;
    if (!session_.leads()) return;
    const bool written =
        write_or_continue([this] { session_.saver.save_best(saved_tensors(), state_now()); });
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
      session_.report(error.what());
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
    if (!session_.reporter || session_.finished) return;
    session_.finished = true;
    if (session_.options.export_file) export_best(*session_.options.export_file);
    const auto& costs = session_.saver.costs();
    if (costs.saved > 0) session_.reporter->say(checkpoints_sentence(costs));
    session_.reporter->say(final_sentence(state_.step, last_test_));
    session_.reporter->say("weights " + hex_text(digest_of_tensors(weights())));
    session_.reporter->finish();
  }

  Session& session_;
  TrainingState& state_;
  Clock::time_point started_at_ = Clock::now();
  Clock::time_point row_at_ = started_at_;
  double samples_since_row_ = 0;
  MetricRow last_row_;
  Means last_test_;
};

}  // namespace

void train(Session& session) {
  Loop loop(session);
  try {
    loop.run();
  } catch (...) {
    loop.keep_time();
    throw;
  }
}

}  // namespace ddprun::trainer
