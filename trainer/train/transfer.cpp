#include "trainer/train/transfer.hpp"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

constexpr std::uint64_t kLowHalf = 0xFFFFFFFFU;

// What is broadcast beside the tensors. Doubles represent integers up to 2^53 exactly.
std::vector<double> numbers_of(const Session& session) {
  const auto& state = session.state;
  std::vector<double> numbers{static_cast<double>(state.step), state.best_top1,
                              static_cast<double>(state.best_step), state.seconds,
                              static_cast<double>(session.evaluated)};
  const auto sums = session.shared_sums.vector();
  numbers.insert(numbers.end(), sums.begin(), sums.end());
  const auto row = session.uncommitted.value_or(LoggedStep{});
  for (const std::uint64_t number :
       {std::uint64_t{session.uncommitted ? 1U : 0U}, row.step, row.samples.count,
        row.samples.sum & kLowHalf, row.samples.sum >> 32U}) {
    numbers.push_back(static_cast<double>(number));
  }
  return numbers;
}

std::uint64_t whole(double number) {
  return static_cast<std::uint64_t>(number);
}

void adopt_numbers(Session& session, const std::vector<double>& numbers) {
  auto& state = session.state;
  state.step = whole(numbers[0]);
  state.best_top1 = numbers[1];
  state.best_step = whole(numbers[2]);
  state.seconds = numbers[3];
  session.evaluated = whole(numbers[4]);
  MetricSums::Vector sums{};
  std::copy_n(numbers.begin() + 5, sums.size(), sums.begin());
  session.shared_sums = MetricSums::from(sums);
  const auto* row = numbers.data() + 5 + sums.size();
  session.uncommitted.reset();
  if (row[0] == 0) return;
  session.uncommitted =
      LoggedStep{whole(row[1]), {whole(row[2]), whole(row[3]) + (whole(row[4]) << 32U)}};
}

std::vector<double> broadcast(Session& session, const std::vector<double>& own, int from) {
  auto tensor = at::tensor(own, at::kDouble);
  session.group->broadcast({tensor}, from);
  const auto* values = tensor.const_data_ptr<double>();
  return {values, values + own.size()};
}

NamedTensors clones_of(NamedTensors tensors) {
  for (auto& item : tensors) item.tensor = item.tensor.detach().clone();
  return tensors;
}

void require_what_was_sent(Session& session, std::uint64_t own, const Source& source) {
  const auto sent = source.digest;
  const auto digests = digests_of_ranks(session, own);
  const auto rank =
      std::ranges::find_if(digests, [&](auto digest) { return digest != sent; }) - digests.begin();
  if (rank == session.world.world_size) return;
  const std::string what =
      " holds other bits than rank " + std::to_string(source.rank) + " has sent";
  if (own != sent) throw TrainerError("this rank" + what + "; is its memory damaged?");
  throw LostPeer("rank " + std::to_string(rank) + what);
}

void take_tensors(Session& session, const Source& source) {
  const auto live = session.model_state().all();
  const bool keeps = session.world.rank != source.rank;
  const auto received = keeps ? clones_of(live) : live;
  session.group->broadcast(detached(received), source.rank);
  session.at(Moment::kReceived);
  require_what_was_sent(session, keeps ? digest_of_tensors(received) : source.digest, source);
  if (!keeps) return;
  const auto into = detached(live);
  for (std::size_t i = 0; i < into.size(); ++i) into[i].copy_(received[i].tensor);
}

}  // namespace

std::vector<double> rows_of_ranks(Session& session, std::initializer_list<double> own) {
  const auto columns = static_cast<std::int64_t>(own.size());
  auto rows = at::zeros({session.world.world_size * columns}, at::kDouble);
  std::copy(own.begin(), own.end(), rows.mutable_data_ptr<double>() + session.world.rank * columns);
  session.group->sum(rows);
  const auto* first = rows.const_data_ptr<double>();
  return {first, first + rows.numel()};
}

std::vector<std::uint64_t> digests_of_ranks(Session& session, std::uint64_t own) {
  const auto halves = rows_of_ranks(
      session, {static_cast<double>(own >> 32U), static_cast<double>(own & kLowHalf)});
  std::vector<std::uint64_t> digests;
  for (auto half = halves.begin(); half != halves.end(); half += 2)
    digests.push_back((whole(half[0]) << 32U) + whole(half[1]));
  return digests;
}

std::optional<Source> live_source(Session& session) {
  const auto digest = session.whole ? digest_of_tensors(session.model_state().all()) : 0;
  const auto rows = rows_of_ranks(
      session, {session.whole ? 1.0 : 0.0, static_cast<double>(session.state.step),
                static_cast<double>(digest >> 32U), static_cast<double>(digest & kLowHalf)});
  std::vector<Offer> offers;
  for (auto row = rows.begin(); row != rows.end(); row += 4)
    offers.push_back({row[0] > 0, whole(row[1]), (whole(row[2]) << 32U) + whole(row[3])});
  return choose_source(offers);
}

void take_state(Session& session, const Source& source) {
  session.at(Moment::kTransfer);
  const auto numbers = broadcast(session, numbers_of(session), source.rank);
  if (!source.of_all) take_tensors(session, source);
  adopt_numbers(session, numbers);
  session.whole = true;
}

std::vector<int> heal(Session& session) {
  const auto own = digest_of_tensors(session.model_state().all());
  const auto digests = digests_of_ranks(session, own);
  const auto vote = vote_on(digests);
  if (vote.others.empty()) return {};
  if (!vote.model) throw TrainerError(tie_sentence(vote.others, session.state.step));
  take_state(session, {*vote.model, digests[static_cast<std::size_t>(*vote.model)]});
  return vote.others;
}

void share_progress(Session& session, int from) {
  adopt_numbers(session, broadcast(session, numbers_of(session), from));
}

void follow_the_leader(Session& session) {
  auto& state = session.state;
  if (session.leads() && state.best_step != 0 && !session.folder.has_best(state)) {
    state.best_top1 = 0;
    state.best_step = 0;
  }
  share_progress(session, 0);
}

}  // namespace ddprun::trainer
