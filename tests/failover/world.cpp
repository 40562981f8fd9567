#include "tests/failover/world.hpp"

#include <algorithm>
#include <utility>

#include "base/format.hpp"
#include "tests/failover/process.hpp"

namespace ddprun::failover {

using namespace protocol;

namespace {

constexpr Duration kSampleInterval = milliseconds(100);

}  // namespace

World::World(const WorldOptions& options)
    : sim::World(options),
      several_(options),
      net_(timeline(), random(), {options.nodes, options.delay_min, options.delay_max},
           [this](ProcessId process) { wake(process); }),
      hosts_(index(options.nodes)) {
  checker_.expect_several_coordinators();
  for (int number = 0; number < options.nodes; ++number) {
    sim::NodeOptions node;
    node.host = "n" + std::to_string(number);
    node.workers = options.workers;
    add_node(std::move(node));
  }
  sample();
}

World::~World() = default;

void World::make_agent(int number) {
  const int process = nodes_[index(number)].process;
  net_.power_on(number);
  host_of_process_.push_back(number);
  host(number).stray_since.reset();
  host(number).process = std::make_unique<Process>(*this, number, process);
  sim::World::make_agent(number);
  nodes_[index(number)].agent->core().stand_by(host(number).process->standby_port());
  let_run(number);
}

client::MembershipOptions World::membership_options(int number) const {
  client::MembershipOptions own = sim::World::membership_options(number);
  own.coordinator = "n0:" + std::to_string(kEndpointPort);
  own.hello.run_id = RunId("run");
  own.hello.stop_timeout = std::chrono::duration_cast<Milliseconds>(several_.stop_grace);
  own.hello.runs_coordinator = host(number).process->has_coordinator();
  return own;
}

void World::connect(int number, const client::Connect& order) {
  host(number).process->connect(order);
}

void World::close_link(int number, client::LinkId link) {
  host(number).process->close_link(link);
}

void World::send(int number, const client::SendMessage& order) {
  host(number).process->send(order);
}

void World::coordinate(int number, const client::Coordinate& order) {
  host(number).process->coordinate(order);
}

void World::withdraw(int number) {
  host(number).process->withdraw();
}

void World::arm_agent(int number, TimePoint deadline) {
  nodes_[index(number)].timer_pending = true;
  host(number).process->arm(deadline);
}

void World::on_step(int number, const node::Stepped& step) {
  sim::World::on_step(number, step);
  host(number).process->on_step();
}

void World::hold(int number, std::function<void()> what) {
  nodes_[index(number)].held.push_back(std::move(what));
  wake(nodes_[index(number)].process);
}

void World::run_held(int number) {
  auto& held = nodes_[index(number)].held;
  while (!held.empty()) {
    const auto what = std::move(held.front());
    held.pop_front();
    what();
  }
}

void World::wake(ProcessId process) {
  if (!lives(host_of_process_[index(process)], process)) return;
  if (!woken_.insert(process).second) return;
  const Duration turn = random().between(Duration(0), several_.turn_max);
  timeline().after(turn, [this, process] { run_process(process); });
}

void World::run_process(ProcessId process) {
  const int number = host_of_process_[index(process)];
  if (!lives(number, process) || paused(number)) return;  // until let_run()
  woken_.erase(process);
  runs_now_ = number;
  host(number).process->run();
  runs_now_ = -1;
  if (joins_anew(number)) host(number).stray_since.reset();
  check_deadlines(number);
  note_workers(number, works(number));
  if (!host(number).process->is_over()) {
    if (!nodes_[index(number)].held.empty()) wake(process);
    return;
  }
  say(host_of(number) + "'s process exits");
  end_process(number);
  forget_agent(number);
}

void World::after_end(int number) {
  const client::End& end = *nodes_[index(number)].end;
  require(end.text.find("announced what cannot be") == std::string::npos,
          "an agent disbelieves its coordinator: " + end.text);
  require(end.text.find("an agent with this id") == std::string::npos, end.text);
}

void World::exit_process(int number) {
  host(number).process->exit();
}

void World::lose_process(int number, Gone how) {
  if (how == Gone::kPower) {
    net_.power_off(number);
    net_.freeze(number, false);
  }
  end_process(number);
}

void World::end_process(int number) {
  note_workers(number, false);
  lineage_.on_process_gone(host(number).process->id());
  net_.end_process(nodes_[index(number)].process);
  host(number).process.reset();
  paused_.erase(number);
  host(number).stray_since.reset();
}

void World::check_deadlines(int number) const {
  for (const Server* server : process(number)->servers()) {
    const round::Run* run = server->run();
    if (run == nullptr || server->is_finished()) continue;
    require(server->armed().has_value(), server->name() + " waits without a deadline");
  }
}

// Of a process that runs, or has just ended.
void World::note_workers(int number, bool works) {
  const RoundStamp stamp = works ? nodes_[index(number)].group->round.stamp : RoundStamp();
  Lineage::Key& works_for = host(number).works_for;
  const Lineage::Key now = Lineage::key_of(stamp);
  if (works_for != now) {
    if (works_for.first > 0) --working_[works_for];
    if (now.first > 0) ++working_[now];
    works_for = now;
  }
  const Process& own = *process(number);
  lineage_.on_agent({own.id().value(), own.stamp(), works && stamp == own.stamp()});
}

int World::working(const RoundStamp& stamp) const {
  const auto found = working_.find(Lineage::key_of(stamp));
  return found == working_.end() ? 0 : found->second;
}

void World::on_sent(int number, const Message& message) {
  checker_.on_message(message);
  if (const auto* hang = std::get_if<Hang>(&message)) on_hang_sent(number, *hang);
}

// "n3#7" is process 7, on host 3.
void World::on_rounds_sent(const std::vector<Sent>& rounds, const RoundStamp& base) {
  std::vector<sim::Checker::Sent> sent;
  for (const Sent& one : rounds) {
    lineage_.on_round_sent(one.start, one.to, base, checker_.failures());
    const std::string& id = one.to.value();
    const int process = std::stoi(id.substr(id.find('#') + 1));
    const sim::NodeOptions& to = nodes_[index(host_of_process_[index(process)])].options;
    sent.push_back({process, to.workers, to.role, to.fingerprint, one.start});
  }
  checker_.on_rounds(sent, now());
}

void World::on_round_taken(int number, const RoundStamp& before, const StartRound& start) {
  say([&] { return host_of(number) + " takes round " + text_of(start.stamp) + " on"; });
  checker_.on_told(nodes_[index(number)].process, start);
  lineage_.on_round_taken(process(number)->id(), before, start);
}

// An agent that hears a coordinator begins to count again when that is lost.
bool World::joins_anew(int number) {
  const bool has = process(number)->membership().has_coordinator();
  return has && !std::exchange(host(number).had_coordinator, has);
}

// Longer than an agent looks for a coordinator, no worker runs without one.
void World::check_stray(int number) {
  Host& one = host(number);
  const Server* server = coordinator_of(number);
  const round::Run* run = server == nullptr ? nullptr : server->run();
  const bool served =
      run != nullptr && run->phase() != round::Phase::kForming && !server->is_finished();
  if (!works(number) || paused(number) || served) {
    one.stray_since.reset();
    return;
  }
  if (!one.stray_since) one.stray_since = now();
  const Duration limit = several_.coordinator_timeout + 2 * several_.terms.silence_max() +
                         several_.stop_max + seconds(3);
  require(now() - *one.stray_since < limit,
          "workers of n" + std::to_string(number) + " run without a coordinator that acts for " +
              duration_text(std::chrono::duration_cast<milliseconds>(limit)));
}

void World::sample() {
  for (int number = 0; number < node_count(); ++number) check_stray(number);
  if (finishing_) finish_round();
  timeline().after(kSampleInterval, [this] { sample(); });
}

// A step of all ranks ends together.
void World::finish_round() {
  std::map<Lineage::Key, std::vector<int>> ranks;
  for (int number = 0; number < node_count(); ++number) {
    if (!works(number)) continue;
    const StartRound& start = nodes_[index(number)].group->round;
    const bool ends = working(start.stamp) == start.group_size &&
                      !finished_.contains(Lineage::key_of(start.stamp));
    if (ends) ranks[Lineage::key_of(start.stamp)].push_back(number);
  }
  for (const auto& [key, members] : ranks) {
    finished_.insert(key);
    for (const int member : members) finish_worker_group(member);
  }
}

}  // namespace ddprun::failover
