#include "trainer/train/resume.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

struct Origin {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> notes;
};

Origin find_origin(const Session& session) {
  switch (session.options.resume.kind) {
    case Resume::Kind::kFile:
      return {read_checkpoint(session.options.resume.file), {}};
    case Resume::Kind::kAuto: {
      auto found = session.folder.find_last();
      return {std::move(found.checkpoint), std::move(found.passed_over)};
    }
    case Resume::Kind::kNone:
      break;
  }
  return {};
}

// Rank 0 reads; the broadcasts below send the tensors to the other ranks.
Origin load_on_rank_zero(Session& session) {
  if (!session.leads()) return {};
  auto origin = find_origin(session);
  session.folder.clean();
  if (!origin.checkpoint) return origin;
  const auto& saved = origin.checkpoint->state;
  check_same_run(saved, session.state, origin.checkpoint->file.path().string());
  load_tensors(origin.checkpoint->file, session.model_state().all());
  session.state.step = saved.step;
  if (session.folder.has_best(saved)) {  // otherwise the next test becomes the best
    session.state.best_top1 = saved.best_top1;
    session.state.best_step = saved.best_step;
  }
  session.state.seconds = saved.seconds;
  return origin;
}

// Doubles represent up to 2^53 steps exactly.
void share_progress(Session& session) {
  auto& state = session.state;
  auto numbers = at::tensor({static_cast<double>(state.step), state.best_top1,
                             static_cast<double>(state.best_step), state.seconds},
                            at::kDouble);
  session.group.broadcast({numbers});
  const auto* values = numbers.const_data_ptr<double>();
  state.step = static_cast<std::uint64_t>(values[0]);
  state.best_top1 = values[1];
  state.best_step = static_cast<std::uint64_t>(values[2]);
  state.seconds = values[3];
}

void require_equal_bits(Session& session) {
  const auto digest = digest_of_tensors(session.model_state().all());
  auto halves = at::tensor(
      {static_cast<double>(digest >> 32U), static_cast<double>(digest << 32U >> 32U)}, at::kDouble);
  auto lowest = at::cat({halves, halves.neg()});
  session.group.minimum(lowest);
  // min(x) + min(-x) is 0 if and only if all ranks have the same x.
  if (lowest.sum().item<double>() == 0.0) return;
  throw TrainerError(
      "the ranks start from different weights; do all use the same program and torch version?");
}

RunFacts facts_of(const Session& session) {
  RunFacts facts;
  facts.parameters = session.model.parameter_count();
  facts.world = session.world.world_size;
  facts.threads = threads_in_use();
  facts.device = session.placement.description;
  facts.collectives = session.group.alone() ? "no collectives"
                      : session.placement.device.is_cuda() &&
                              session.placement.collectives == DeviceCollectives::kNccl
                          ? "nccl"
                          : "gloo";
  facts.precision = session.precision == Precision::kBf16 ? "bf16" : "fp32";
  facts.torch = session.state.torch_version;
  facts.total_steps = session.total_steps();
  return facts;
}

void announce(Session& session, const Origin& origin) {
  const auto facts = facts_of(session);
  session.reporter.emplace(session.options, facts, session.state.step);
  auto& reporter = *session.reporter;
  reporter.say(model_sentence(session.options, facts));
  reporter.say(plan_sentence(session.options, facts));
  reporter.say(session.data.source);
  if (!session.data.announcement.empty()) reporter.say(session.data.announcement);
  for (const auto& note : origin.notes) reporter.say(note);
  if (origin.checkpoint) {
    reporter.say("resumed from step " + std::to_string(session.state.step) + " (" +
                 origin.checkpoint->file.path().string() + ")");
  }
}

}  // namespace

void start(Session& session) {
  const auto origin = load_on_rank_zero(session);
  share_progress(session);
  std::vector<at::Tensor> parameters;
  for (const auto& item : session.model.parameters()) parameters.push_back(item.tensor);
  session.parallel = std::make_unique<DataParallel>(session.group, std::move(parameters),
                                                    detached(session.model.buffers()));
  session.group.broadcast(detached(session.sgd.momentum()));
  require_equal_bits(session);
  if (session.leads()) announce(session, origin);
}

}  // namespace ddprun::trainer
