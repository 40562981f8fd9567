// The agents' side of a world with one coordinator: their processes, and what reaches their
// threads.
#include "tests/sim/sole_world.hpp"

#include <algorithm>
#include <utility>

namespace ddprun::sim {

using namespace protocol;

void SoleWorld::make_agent(int id) {
  const int process = nodes_[index(id)].process;
  if (is_root(id)) start_coordinator();
  if (cut_off(id)) checker_.excuse(process, TimePoint(std::chrono::hours(1'000'000)));
  World::make_agent(id);
}

client::MembershipOptions SoleWorld::membership_options(int id) const {
  client::MembershipOptions options = World::membership_options(id);
  options.hello.runs_coordinator = is_root(id);
  return options;
}

void SoleWorld::to_agent(int id, int process, client::Event event) {
  if (!lives(id, process)) return;
  if (stands_still(id)) {
    return hold(id,
                [this, id, process, event = std::move(event)] { to_agent(id, process, event); });
  }
  Node& node = nodes_[index(id)];
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    if (incoming->link != node.link) return;  // closed meanwhile: it is not read any more
    take_note_of(id, incoming->message);
  }
  if (const auto* down = std::get_if<client::LinkDown>(&event)) {
    if (node.link == down->link) node.link = 0;
  }
  feed(id, std::move(event));
}

void SoleWorld::take_note_of(int id, const Message& message) {
  const Node& node = nodes_[index(id)];
  note_heard(id, message);
  if (const auto* start = std::get_if<StartRound>(&message)) checker_.on_told(node.process, *start);
  if (const auto* done = std::get_if<Done>(&message)) {
    checker_.on_verdict_told(connections_[index(node.connection)]->coordinator, *done);
  }
}

Checker::Coordinated SoleWorld::coordinated(int id) const {
  const std::string_view link = (*nodes_[index(id)].agent)->membership().link_name();
  const bool answers = link == "Answered" && run_ && now() >= coordinator_paused_until();
  return answers ? Checker::Coordinated::kYes : Checker::Coordinated::kNo;
}

// The root's process stays as the coordinator of the others until they have gone.
void SoleWorld::end_process(int id, int process) {
  on_thread(id, process, [this, id] {
    const bool hosts = is_root(id) && run_ && run_terms_ && !finished_ &&
                       !(*nodes_[index(id)].agent)->is_forced_stop();
    if (!hosts) exit_process(id);
  });
}

void SoleWorld::after_end(int id) {
  const Node& node = nodes_[index(id)];
  if (node.connection >= 0) close_agent_end(node.connection);
  if (is_root(id) && run_ && (*node.agent)->ends_run()) {
    tell_coordinator(
        round::Shutdown{(*node.agent)->run_exit_code(), node.options.host + " leaves"});
  }
  const TimePoint written = std::max(now(), node.output_stalled_until);
  if (written == now()) return end_process(id, node.process);
  timeline_.at(written, [this, id, process = node.process] { end_process(id, process); });
}

void SoleWorld::lose_process(int id, Gone how) {
  const int connection = nodes_[index(id)].connection;
  if (connection >= 0 && how == Gone::kPower) {
    connections_[index(connection)]->down.closed = true;
    detach(connection);
  } else if (connection >= 0) {
    close_agent_end(connection);
  }
  if (is_root(id)) crash_coordinator();
}

void SoleWorld::exit_process(int id) {
  if (is_root(id)) crash_coordinator();  // or it is over, and closes its links
  forget_agent(id);
}

void SoleWorld::pause_agent(int id, Duration time) {
  Node& node = nodes_[index(id)];
  node.paused_until = std::max(node.paused_until, now() + time);
  node.answers_from = node.paused_until + 2 * options_.delay_max;
  timeline_.at(node.paused_until, [this] { disturb(); });
  // The root's coordinator stands still with it, and so blames no agent.
  if (is_root(id)) return checker_.on_coordinator_paused(now(), node.paused_until);
  const auto borne = options_.terms.silence_max() - 2 * options_.terms.keep_alive_interval;
  if (Duration(borne) - 4 * options_.delay_max < time)
    checker_.on_suspended(node.process, node.paused_until);
}

bool SoleWorld::all_run() const {
  if (now() < coordinator_paused_until_ || frozen()) return false;
  return std::none_of(nodes_.begin(), nodes_.end(),
                      [this](const Node& node) { return now() < node.paused_until; });
}

// Without a root that only coordinates still. One that came when the run was over, and its
// coordinator gone, waits for another until join_timeout.
int SoleWorld::agents_joined() const {
  const bool coordinated = run_ && !finished_;
  return static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return node.agent && !node.ended && (coordinated || (*node.agent)->membership().joined());
  }));
}

}  // namespace ddprun::sim
