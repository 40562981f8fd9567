// The workers of a Node: they start, run, fail, succeed and stop when the world or the agent says.
#include <utility>

#include "tests/failover/node.hpp"

namespace ddprun::failover {

using namespace protocol;

/// In this process, when it runs.
void Node::later(Duration time, std::function<void()> what) {
  world_.after(time, [&world = world_, process = options_.process, posted = &posted_,
                      what = std::move(what)]() mutable {
    posted->push_back(std::move(what));
    world.wake(process);
  });
}

void Node::act(const client::StartGroup& action) {
  group_ = Group{action.round, Group::State::kSpawning, ++groups_};
  world_.on_group(options_.process);
  const Duration spawn = world_.random().between(Duration(0), options_.spawn_max);
  later(spawn, [this, number = groups_] {
    if (!group_ || group_->number != number || group_->state != Group::State::kSpawning) return;
    group_->state = Group::State::kRunning;
    world_.on_group(options_.process);
    agent_->feed(client::GroupRunning{group_->start.stamp.number});
  });
}

void Node::act(const client::StopGroup&) {
  end_group();
}

void Node::act(const node::PassStopSignal&) {
  end_group();
}

void Node::end_group() {
  if (!group_ || group_->state == Group::State::kEnding) return;
  group_->state = Group::State::kEnding;
  world_.on_group(options_.process);
  const Duration stop = world_.random().between(Duration(0), options_.stop_max);
  later(stop, [this, number = groups_] {
    if (!group_ || group_->number != number) return;
    const Round round = group_->start.stamp.number;
    group_.reset();
    world_.on_group(options_.process);
    agent_->feed(node::GroupOver{round, {}});
  });
}

void Node::fail_worker(int exit_code) {
  post([this, exit_code] {
    if (!works()) return;
    WorkerExit exit;
    exit.worker.rank = group_->start.rank_base;
    exit.status = ExitStatus::exited(exit_code);
    const Round round = group_->start.stamp.number;
    end_group();
    agent_->feed(client::GroupFailed{round, exit});
  });
}

void Node::succeed() {
  post([this] {
    if (!works()) return;
    const Round round = group_->start.stamp.number;
    agent_->feed(client::GroupSucceeded{round});
    end_group();
  });
}

}  // namespace ddprun::failover
