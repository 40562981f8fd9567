#include "tests/failover/world.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/duration_text.hpp"

namespace ddprun::failover {

using namespace protocol;

namespace {

constexpr Duration kSampleInterval = milliseconds(100);

}  // namespace

World::World(WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed * 104'729 + 11),
      zero_(timeline_.now()),
      net_(timeline_, random_, {options_.nodes, options_.latency_min, options_.latency_max},
           [this](ProcessId process) { wake(process); }),
      hosts_(static_cast<std::size_t>(options_.nodes)),
      processes_(1),  // kNoProcess
      exits_(static_cast<std::size_t>(options_.nodes)) {
  for (Host& one : hosts_) {
    one.clock.rate = 1.0 + 0.01 * random_.between(-options_.drift_percent, options_.drift_percent);
    one.clock.offset = seconds(random_.between(0, 100'000));
  }
  sample();
}

World::~World() = default;

void World::say(const std::string& line) {
  if (!trace_) return;
  const auto us = std::chrono::duration_cast<microseconds>(now() - zero_).count();
  std::array<char, 32> at{};
  std::snprintf(at.data(), at.size(), "%9.3f  ", static_cast<double>(us) / 1000.0);
  trace_(at.data() + line);
}

void World::run_for(Duration time) {
  const TimePoint end = now() + time;
  while (timeline_.run_one(end)) {
  }
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now() + limit;
  while (!done()) {
    if (!timeline_.run_one(end)) return done();
  }
  return true;
}

Node* World::find(ProcessId process) const {
  if (process == kNoProcess) return nullptr;
  Node* node = processes_[static_cast<std::size_t>(process)].get();
  return host(node->host()).process == process ? node : nullptr;
}

const Node* World::node(int number) const {
  return find(host(number).process);
}

void World::wake(ProcessId process) {
  if (find(process) == nullptr || !woken_.insert(process).second) return;
  const Duration turn = random_.between(Duration(0), options_.turn_max);
  timeline_.after(turn, [this, process] { run_process(process); });
}

void World::run_process(ProcessId process) {
  Node* node = find(process);
  if (node == nullptr) return;
  if (paused_.contains(node->host()) || net_.is_frozen(node->host())) return;  // until resume()
  woken_.erase(process);
  node->run();
  if (joins_anew(*node)) host(node->host()).stray_since.reset();
  host(node->host()).had_coordinator = node->membership().has_coordinator();
  note_end(*node);
  check_deadlines(*node);
  note_workers(*node);
  if (node->is_over()) end_process(node->host(), "exits");
}

void World::note_end(Node& node) {
  const auto& end = node.end_of_agent();
  if (!end || !noted_.insert(host(node.host()).process).second) return;
  say("n" + std::to_string(node.host()) + " ends with " + std::to_string(end->exit_code) + ": " +
      end->text);
  exits_[static_cast<std::size_t>(node.host())] = Exit{end->exit_code, end->text};
  require(!end->text.empty(), "an end without a sentence");
  require(end->text.find("announced what cannot be") == std::string::npos,
          "an agent disbelieves its coordinator: " + end->text);
  require(end->text.find("an agent with this id") == std::string::npos, end->text);
}

void World::check_deadlines(const Node& node) const {
  const bool waits = !node.end_of_agent() && !node.group();
  require(!waits || node.armed(), "n" + std::to_string(node.host()) + " waits without a deadline");
  for (const Server* server : node.servers()) {
    const round::Run* run = server->run();
    if (run == nullptr || server->is_finished()) continue;
    require(server->armed().has_value(), server->name() + " waits without a deadline");
  }
}

// Of a process that runs, or has just ended.
void World::note_workers(const Node& node) {
  const bool lives = find(node.process()) != nullptr;
  const bool works = lives && node.works();
  const RoundStamp stamp = works ? node.group()->start.stamp : RoundStamp();
  Checker::Key& works_for = host(node.host()).works_for;
  const Checker::Key now = Checker::key_of(stamp);
  if (works_for != now) {
    if (works_for.first > 0) --running_[works_for];
    if (now.first > 0) ++running_[now];
    works_for = now;
  }
  checker_.on_agent({node.id().value(), node.stamp(), works && stamp == node.stamp()});
}

int World::running(const RoundStamp& stamp) const {
  const auto found = running_.find(Checker::key_of(stamp));
  return found == running_.end() ? 0 : found->second;
}

void World::on_round_sent(const StartRound& start, const AgentId& to, const RoundStamp& base) {
  checker_.on_round_sent(start, to, base);
}

void World::on_round_taken(ProcessId process, const RoundStamp& before, const StartRound& start) {
  const Node& node = this->process(process);
  say("n" + std::to_string(node.host()) + " takes round " + text_of(start.stamp) + " on");
  checker_.on_round_taken(node.id(), before, start);
}

void World::on_group(ProcessId process) {
  const Node& node = this->process(process);
  const char* state = !node.group()  ? "has no worker left"
                      : node.works() ? "has its workers running"
                      : node.group()->state == Node::Group::State::kSpawning ? "starts its workers"
                                                                             : "ends its workers";
  say("n" + std::to_string(node.host()) + " " + state);
}

// An agent that hears a coordinator begins to count again when that is lost.
bool World::joins_anew(const Node& node) {
  const bool has = node.membership().has_coordinator();
  return has && !std::exchange(host(node.host()).had_coordinator, has);
}

// Longer than an agent looks for a coordinator, no worker runs without one.
void World::check_stray(int number) {
  Host& one = host(number);
  const bool sleeps = is_paused(number) || net_.is_frozen(number);
  const Server* server = coordinator_of(number);
  const round::Run* run = server == nullptr ? nullptr : server->run();
  const bool served =
      run != nullptr && run->phase() != round::Phase::kForming && !server->is_finished();
  if (!works(number) || sleeps || served) {
    one.stray_since.reset();
    return;
  }
  if (!one.stray_since) one.stray_since = now();
  const Duration limit = options_.coordinator_timeout + 2 * options_.terms.silence_max() +
                         options_.stop_max + seconds(3);
  require(now() - *one.stray_since < limit,
          "workers of n" + std::to_string(number) + " run without a coordinator that acts for " +
              duration_text(std::chrono::duration_cast<milliseconds>(limit)));
}

void World::sample() {
  for (int number = 0; number < nodes(); ++number) check_stray(number);
  if (finishing_) finish_round();
  timeline_.after(kSampleInterval, [this] { sample(); });
}

// A step of all ranks ends together.
void World::finish_round() {
  std::map<Checker::Key, std::vector<Node*>> ranks;
  for (const Host& one : hosts_) {
    Node* node = find(one.process);
    if (node == nullptr || !node->works()) continue;
    const StartRound& start = node->group()->start;
    const bool ends = running(start.stamp) == start.group_size &&
                      !finished_.contains(Checker::key_of(start.stamp));
    if (ends) ranks[Checker::key_of(start.stamp)].push_back(node);
  }
  for (const auto& [key, members] : ranks) {
    finished_.insert(key);
    for (Node* member : members) member->succeed();
  }
}

}  // namespace ddprun::failover
