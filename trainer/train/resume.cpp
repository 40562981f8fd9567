#include "trainer/train/resume.hpp"

#include <algorithm>
#include <optional>

#include "trainer/error.hpp"
#include "trainer/train/transfer.hpp"

namespace ddprun::trainer {

namespace {

// Exchanged as doubles beside steps, which are not negative.
constexpr double kNoCheckpoint = -1;
constexpr double kUnusable = -2;

struct Origin {
  int rank = 0;  // whose checkpoint it is
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> notes;
};

Origin find_origin(const Session& session) {
  Origin origin;
  origin.rank = session.world.rank;
  if (session.options.resume.kind == Resume::Kind::kAuto) {
    auto found = session.folder.find_last();
    origin.checkpoint = std::move(found.checkpoint);
    origin.notes = std::move(found.passed_over);
  } else if (session.options.resume.kind == Resume::Kind::kFile && session.leads()) {
    origin.checkpoint = read_checkpoint(session.options.resume.file);
  }
  if (origin.checkpoint) {
    const auto& file = origin.checkpoint->file;
    check_same_run(origin.checkpoint->state, session.state, file.path().string());
  }
  return origin;
}

// Collective: every rank looks into its own --model-dir, which need not be a shared folder, and the
// newest checkpoint wins; of equals that of the lowest rank. If a rank has only unusable ones, all
// ranks end: a new run would overwrite what the user wanted to resume.
Origin agree_on_origin(Session& session) {
  Origin own;
  std::optional<TrainerError> problem;
  double newest = kNoCheckpoint;
  try {
    own = find_origin(session);
    if (own.checkpoint) newest = static_cast<double>(own.checkpoint->state.step);
  } catch (const TrainerError& error) {
    problem = error;
    newest = kUnusable;
  }
  const auto values = rows_of_ranks(session, {newest});
  const auto failed = static_cast<int>(std::ranges::find(values, kUnusable) - values.begin());
  if (failed == session.world.rank) throw *problem;
  if (failed < session.world.world_size) {
    throw TrainerError("rank " + std::to_string(failed) +
                       " cannot resume from its --model-dir; see its message");
  }
  const auto winner = static_cast<int>(std::ranges::max_element(values) - values.begin());
  if (winner == session.world.rank) return own;
  return {winner, {}, std::move(own.notes)};
}

// Collective: the state of the origin's checkpoint on every rank. Its tensors are sent by the rank
// that has the file; those of rank 0 follow with the reducer.
void load(Session& session, const Origin& origin) {
  if (session.leads()) session.folder.clean();
  const auto tensors = session.model_state().all();
  if (origin.checkpoint) {
    const auto& saved = origin.checkpoint->state;
    load_tensors(origin.checkpoint->file, tensors);
    session.state.step = saved.step;
    session.state.best_top1 = saved.best_top1;
    session.state.best_step = saved.best_step;
    session.state.seconds = saved.seconds;
  }
  share_progress(session, origin.rank);
  session.evaluated = session.state.step;
  if (origin.rank != 0) session.group->broadcast(detached(tensors), origin.rank);
}

void require_equal_bits(Session& session) {
  const auto own = digest_of_tensors(session.model_state().all());
  if (vote_on(digests_of_ranks(session, own)).others.empty()) return;
  throw TrainerError(
      "the ranks start from different weights; do all use the same program and torch version?");
}

RunFacts facts_of(const Session& session) {
  RunFacts facts;
  facts.parameters = session.model.parameter_count();
  facts.world = session.world.world_size;
  facts.threads = threads_in_use();
  facts.device = session.placement.description;
  facts.collectives = session.group->alone() ? "no collectives"
                      : session.placement.device.is_cuda() &&
                              session.placement.collectives == DeviceCollectives::kNccl
                          ? "nccl"
                          : "gloo";
  facts.precision = session.precision == Precision::kBf16 ? "bf16" : "fp32";
  facts.torch = session.state.torch_version;
  facts.total_steps = session.total_steps();
  return facts;
}

void greet(Session& session) {
  const auto facts = facts_of(session);
  session.reporter.emplace(session.options, facts, session.state.step);
  auto& reporter = *session.reporter;
  reporter.say(model_sentence(session.options, facts));
  reporter.say(plan_sentence(session.options, facts));
  reporter.say(session.data.source);
  if (!session.data.announcement.empty()) reporter.say(session.data.announcement);
}

void announce(Session& session, const Origin& origin) {
  greet(session);
  auto& reporter = *session.reporter;
  for (const auto& note : origin.notes) reporter.say(note);
  const std::string resumed = "resumed from step " + std::to_string(session.state.step) + " (";
  if (origin.checkpoint) reporter.say(resumed + origin.checkpoint->file.path().string() + ")");
  if (origin.rank != 0) {
    reporter.say(resumed + "sent by rank " + std::to_string(origin.rank) +
                 ", whose --model-dir has the newest checkpoint)");
  }
}

void make_parallel(Session& session, Weights weights) {
  std::vector<at::Tensor> parameters;
  for (const auto& item : session.model.parameters()) parameters.push_back(item.tensor);
  session.parallel = std::make_unique<DataParallel>(*session.group, std::move(parameters),
                                                    detached(session.model.buffers()), weights);
}

// Collective: all processes are new.
void begin(Session& session) {
  const auto origin = agree_on_origin(session);
  load(session, origin);
  follow_the_leader(session);
  if (session.tree) {
    session.group->broadcast(detached(session.model_state().all()));
  } else {
    make_parallel(session, Weights::kOfRankZero);
    session.group->broadcast(detached(session.sgd.momentum()));
  }
  require_equal_bits(session);
  session.whole = true;
  if (session.leads()) announce(session, origin);
}

// Collective: at least one rank has trained until now.
void go_on(Session& session, const Source& source) {
  take_state(session, source);
  follow_the_leader(session);
  if (!session.tree) make_parallel(session, Weights::kEqual);
  if (!session.leads()) session.reporter.reset();
  if (session.leads() && !session.reporter) greet(session);
  if (session.reporter) {
    session.reporter->say(recovered_sentence(session.state.step, session.world.world_size,
                                             source.rank, session.recovery.times()));
  }
}

}  // namespace

void start(Session& session) {
  session.at(Moment::kJoined);
  // A rank that no longer leads has written before it takes part in the next collective, and the
  // one that leads now writes after that.
  if (!session.leads() || !session.whole) session.report(session.saver.wait());
  if (const auto source = live_source(session)) {
    go_on(session, *source);
  } else {
    begin(session);
  }
  session.at(Moment::kVerified);
}

}  // namespace ddprun::trainer
