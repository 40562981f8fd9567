// What happens to the hosts, processes and wires of a World.
#include "tests/failover/world.hpp"

namespace ddprun::failover {

namespace {

[[nodiscard]] std::string n(int host) {
  return "n" + std::to_string(host);
}

}  // namespace

void World::start(int number) {
  Host& one = host(number);
  if (one.process != kNoProcess) return;
  net_.power_on(number);
  one.process = ++last_process_;
  one.stray_since.reset();
  exits_[static_cast<std::size_t>(number)].reset();
  say("-- " + n(number) + " starts as process " + std::to_string(one.process));
  NodeOptions options;
  options.process = one.process;
  options.host = number;
  options.terms = options_.terms;
  options.coordinator_timeout = options_.coordinator_timeout;
  options.clock = one.clock;
  options.spawn_max = options_.spawn_max;
  options.stop_max = options_.stop_max;
  processes_.push_back(std::make_unique<Node>(*this, net_, options));
  processes_.back()->begin();
}

void World::start_all() {
  for (int number = 0; number < nodes(); ++number) start(number);
}

void World::kill(int number) {
  if (host(number).process == kNoProcess) return;
  const Node* node = find(host(number).process);
  say("-- " + n(number) + "'s process is killed");
  end_process(number, "is gone");
  fail_peers_of(*node);
}

void World::kill_host(int number) {
  if (net_.is_off(number)) return;
  say("-- " + n(number) + "'s host loses power");
  const Node* node = find(host(number).process);
  net_.power_off(number);
  net_.freeze(number, false);
  end_process(number, "is gone");
  if (node != nullptr) fail_peers_of(*node);
}

void World::end_process(int number, const std::string& how) {
  Host& one = host(number);
  if (one.process == kNoProcess) return;
  say(n(number) + "'s process " + how);
  const ProcessId process = std::exchange(one.process, kNoProcess);
  checker_.on_process_gone(this->process(process).id());
  net_.end_process(process);
  note_workers(this->process(process));
  paused_.erase(number);
  one.stray_since.reset();
}

void World::fail_peers_of(const Node& node) {
  if (!node.group() || options_.peer_failure_percent == 0) return;
  for (int other = 0; other < nodes(); ++other) {
    const Node* peer = this->node(other);
    const bool shares =
        peer != nullptr && peer->works() && peer->group()->start.stamp == node.group()->start.stamp;
    if (!shares || !random_.chance(options_.peer_failure_percent)) continue;
    const Duration when = random_.between(Duration(milliseconds(5)), Duration(milliseconds(500)));
    after(when, [this, other] { fail_worker(other, 1); });
  }
}

void World::pause(int number) {
  if (host(number).process == kNoProcess || !paused_.insert(number).second) return;
  say("-- " + n(number) + "'s process is suspended");
}

void World::resume(int number) {
  if (paused_.erase(number) == 0) return;
  say("-- " + n(number) + "'s process resumes");
  woken_.erase(host(number).process);
  wake(host(number).process);
}

void World::freeze(int number) {
  if (net_.is_off(number) || net_.is_frozen(number)) return;
  say("-- " + n(number) + "'s host freezes");
  net_.freeze(number, true);
}

void World::thaw(int number) {
  if (!net_.is_frozen(number)) return;
  say("-- " + n(number) + "'s host continues");
  net_.freeze(number, false);
  woken_.erase(host(number).process);
  wake(host(number).process);
}

void World::cut(int from, int to) {
  if (net_.is_cut(from, to)) return;
  say("-- " + n(to) + " does not hear " + n(from));
  net_.cut(from, to, true);
}

void World::mend(int from, int to) {
  if (!net_.is_cut(from, to)) return;
  say("-- " + n(to) + " hears " + n(from) + " again");
  net_.cut(from, to, false);
}

void World::split(const std::set<int>& side) {
  for (int one = 0; one < nodes(); ++one) {
    for (int other = 0; other < nodes(); ++other) {
      if (side.contains(one) != side.contains(other)) cut(one, other);
    }
  }
}

void World::break_links(int left, int right) {
  say("-- the connections of " + n(left) + " and " + n(right) + " break");
  net_.break_links(left, right);
}

void World::heal() {
  say("-- all hosts hear each other, and all processes run");
  for (int one = 0; one < nodes(); ++one) {
    for (int other = 0; other < nodes(); ++other) net_.cut(one, other, false);
    thaw(one);
    resume(one);
  }
}

void World::fail_worker(int number, int exit_code) {
  Node* node = find(host(number).process);
  if (node == nullptr || !node->works()) return;
  say("-- a worker of " + n(number) + " fails");
  checker_.on_worker_failed();
  node->fail_worker(exit_code);
}

void World::ask_to_stop(int number) {
  Node* node = find(host(number).process);
  if (node == nullptr || node->end_of_agent()) return;
  say("-- " + n(number) + " gets SIGTERM");
  node->ask_to_stop();
}

void World::finish() {
  say("-- workers succeed from now on");
  finishing_ = true;
}

}  // namespace ddprun::failover
