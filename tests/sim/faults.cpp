#include "tests/sim/faults.hpp"

#include <csignal>

#include "tests/sim/storm.hpp"

namespace ddprun::sim {

namespace {

void drop_link(Storm& storm, int node) {
  storm.world().drop_link(node);
}

void drop_all_links(Storm& storm, int) {
  for (int id = 0; id < storm.world().node_count(); ++id) storm.world().drop_link(id);
}

// Or its front, or its guard: whichever of the three dies, the others end all that is below them.
void kill_agent(Storm& storm, int node) {
  storm.world().kill_agent(node, "is killed");
  storm.start_later(node);
}

// A supervisor starts it again at once, and it does not live: many times in a row.
void come_and_go(Storm& storm, int node) {
  Duration when{};
  for (int time = storm.random().between(5, 25); time > 0; --time) {
    storm.later(when, [&storm, node] { storm.world().kill_agent(node, "is killed again"); });
    when += milliseconds(storm.random().between(1, 200));
    storm.later(when, [&storm, node] { storm.start(node); });
    when += milliseconds(storm.random().between(20, 500));
  }
}

void impersonate(Storm& storm, int node) {
  storm.world().impersonate(node);
}

void power_off(Storm& storm, int node) {
  storm.world().power_off(node);
  storm.start_later(node);
}

void cut_off(Storm& storm, int node) {
  storm.world().set_partitioned(node, true);
  storm.later(milliseconds(storm.random().between(50, 12'000)),
              [&storm, node] { storm.world().set_partitioned(node, false); });
}

// As long as a hiccup of a shared file system that a heartbeat survives.
void hiccup(Storm& storm, int node) {
  const auto& terms = storm.plan().world.terms;
  const auto borne = terms.silence_max() - 3 * terms.keep_alive_interval;
  if (borne.count() <= 0) return;
  storm.world().pause_agent(
      node, milliseconds(storm.random().between(1, static_cast<int>(borne.count()))));
}

/// Somewhere around one of the limits of a wait.
Duration around_a_limit(Storm& storm) {
  const auto& terms = storm.plan().world.terms;
  const Duration limits[] = {terms.keep_alive_interval, terms.silence_max(), client::kConnectMax,
                             round::kAnswerMax};
  const Duration limit = limits[storm.random().between(0, 3)];
  return std::max(Duration(milliseconds(10)),
                  limit + milliseconds(storm.random().between(-1500, 1500)));
}

void pause_agent(Storm& storm, int node) {
  const Duration random = milliseconds(storm.random().between(100, 9000));
  storm.world().pause_agent(node, storm.random().chance(50) ? random : around_a_limit(storm));
}

// Never so often in a row that agents may give it up.
void pause_coordinator(Storm& storm, int) {
  if (!storm.may_pause_coordinator()) return;
  const bool longest = storm.random().chance(20);
  const Duration time = longest ? Duration(seconds(30)) : Duration(0);
  storm.world().pause_coordinator(std::max(time, around_a_limit(storm)));
}

// A virtual machine that moves, or sleeps: the coordinator can tell if its timer was late.
void freeze_coordinator(Storm& storm, int) {
  const auto& terms = storm.plan().world.terms;
  const Duration least = 5 * terms.keep_alive_interval / 2;
  if (!storm.may_pause_coordinator()) return;
  storm.world().freeze_coordinator_machine(storm.random().between(least, Duration(seconds(20))));
}

void lose_coordinator(Storm& storm, int) {
  storm.lose_coordinator();
}

// For a reason of its own, which is told.
void leave(Storm& storm, int node) {
  storm.world().leave(node, 1, "no space left on device");
  storm.start_later(node);
}

void interrupt(Storm& storm, int node) {
  storm.world().signal_agent(node, SIGINT);
  if (storm.random().chance(50)) {
    storm.later(milliseconds(storm.random().between(1, 3000)),
                [&storm, node] { storm.world().signal_agent(node, SIGINT); });
  }
  storm.start_later(node);
}

void terminate_root(Storm& storm, int) {
  storm.world().signal_agent(0, SIGTERM);
  storm.start_later(0);
}

// kill -USR1 of one agent.
void notify(Storm& storm, int node) {
  storm.world().notify_agents({node}, SIGUSR1);
}

// A scheduler that tells every node: scancel --signal=USR1.
void notify_job(Storm& storm, int) {
  std::vector<int> all;
  for (int id = 0; id < storm.world().node_count(); ++id) {
    if (storm.world().agent_alive(id)) all.push_back(id);
  }
  storm.world().notify_agents(all, SIGUSR1);
}

void cancel_job(Storm& storm, int) {
  for (int id = 0; id < storm.world().node_count(); ++id) {
    storm.later(milliseconds(storm.random().between(0, 300)),
                [&storm, id] { storm.world().signal_agent(id, SIGTERM); });
  }
}

const Faults<Storm>::Fault kFaults[] = {
    {"drop-link", 14, false, drop_link},
    {"drop-all-links", 4, false, drop_all_links},
    {"kill-agent", 14, false, kill_agent},
    {"come-and-go", 3, false, come_and_go},
    {"impersonate", 4, false, impersonate},
    {"power-off", 8, false, power_off},
    {"cut-off", 10, false, cut_off},
    {"pause-agent", 8, false, pause_agent},
    {"hiccup", 4, true, hiccup},
    {"pause-coordinator", 6, true, pause_coordinator},
    {"freeze-coordinator", 3, false, freeze_coordinator},
    {"lose-coordinator", 9, false, lose_coordinator},
    {"leave", 1, false, leave},
    {"interrupt", 2, false, interrupt},
    {"terminate-root", 1, false, terminate_root},
    {"cancel-job", 1, false, cancel_job},
    {"notify", 4, true, notify},
    {"notify-job", 4, true, notify_job},
};

}  // namespace

Faults<Storm> sole_faults() {
  return Faults<Storm>({std::begin(kFaults), std::end(kFaults)});
}

}  // namespace ddprun::sim
