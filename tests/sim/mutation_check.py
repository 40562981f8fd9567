#!/usr/bin/env python3
"""Breaks rules of the cores on purpose, one by one; the simulator or a scenario must find each.

usage: mutation_check.py SOURCE BUILD CXX [WORDS]
BUILD holds the built libraries of SOURCE; WORDS: only the mutants whose name contains them.
Each mutant is one source file with one text replaced, compiled alone and linked before the
libraries, so that it takes the place of the original; all processors work. A life that breaks a
promise without the mutant, too, does not count. Exit 1 if a mutant survives or a text to replace is
gone.
"""
import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

MUTANTS = [
    ("a failure takes two from the budget", "rendezvous/round/restarts.cpp",
     "RestartCount(used_.value() + 1)", "RestartCount(used_.value() + 2)"),
    ("the same failure again is not recognized", "rendezvous/round/restarts.cpp",
     "repeated_.count() >= 2", "false"),
    ("a report of an ended round counts", "rendezvous/round/run_running.cpp",
     "if (report.round != agent.last.number)", "if (false)"),
    ("newcomers come before survivors", "rendezvous/round/ranks.cpp",
     "return or_last(left.previous) < or_last(right.previous);",
     "return or_last(left.previous) > or_last(right.previous);"),
    ("the lost are not missed", "rendezvous/round/live_round.cpp",
     "return has(agent) && !done;", "return false;"),
    ("success of most is success", "rendezvous/round/live_round.cpp",
     "succeeded_ >= nodes()", "succeeded_ + 1 >= nodes()"),
    ("a round's number may repeat after a coordinator's restart",
     "rendezvous/round/rounds.cpp",
     "Round(++highest_)", "Round(last_.number.value() + 1)"),
    ("an agent does not say again what a lost link may have swallowed",
     "rendezvous/client/membership_link.cpp",
     "  report();\n  if (round_ && round_->stopped) send(*round_->stopped);\n", ""),
    ("a resumed agent is not told the round it missed", "rendezvous/round/run_join.cpp",
     "  out_.send(agent.link, round.message_for(agent));\n", ""),
    ("a signal stays on the node where it came", "rendezvous/client/membership.cpp",
     "if (answered()) send(PassSignal{round(), came.signal, came.from, \"\", came.force});", ""),
    ("a scheduler's signal counts once for each node", "rendezvous/round/run_running.cpp",
     "  if (!signals_.is_new(passed.signal, agent.hello.agent, now_)) return;\n", ""),
    ("a node passes on what it has by another node, too", "rendezvous/client/membership.cpp",
     "if (!signals_.is_new(passed.signal, SignalOrigin::kElsewhere, now_)) return;", ""),
    ("ranks are given up without a second look", "rendezvous/round/hang_check.cpp",
     "if (question_ == 0) return Order::kLook;", ""),
    ("a node that finishes is no progress", "rendezvous/round/hang_check.cpp",
     "succeeded_at_ ? std::min(word.lasts, now - *succeeded_at_) : word.lasts", "word.lasts"),
    ("ranks of most nodes are quiet", "rendezvous/round/hang_check.cpp",
     "static_cast<std::size_t>(std::max(nodes, 1))",
     "static_cast<std::size_t>(std::max(nodes - 1, 1))"),
    ("silence is not noticed", "rendezvous/round/run.cpp",
     "if (now_ - longest->heard < terms().silence_max()) break;", "break;"),
    ("silence is a loss where no smaller round may be", "rendezvous/round/run_leave.cpp",
     "  return !may_go_on && !others_may;", "  return false;"),
    ("an agent that reconnects is taken for lost", "rendezvous/round/run.cpp",
     "  roster_.unlink(agent);\n}\n", '  lose(agent, "connection closed", LinkEnd::kGone);\n}\n'),
    ("after a stall silence limits do not start again", "rendezvous/round/run.cpp",
     "agent->heard = now_;", "(void)agent;"),
    ("the store of an ended round closes at once", "rendezvous/client/membership/states.cpp",
     "{*serving_, now + released_max_}", "{*serving_, now}"),
    ("rounds that fail at once start again at once", "rendezvous/round/restarts.cpp",
     "delay_.count() > 0 ?", "false ?"),
    ("the agent in the coordinator's process is lost by silence",
     "rendezvous/round/run.cpp",
     "if (longest->hello.runs_coordinator && longest->link != kNoLink)", "if (false)"),
    ("two commands share a round", "rendezvous/round/admission.cpp",
     "if (is_one_job || !has_other_command(hello, run_terms)) return", "return"),
    ("a signal replaces the failure that ended the run", "rendezvous/client/membership.cpp",
     "if (!answered()) stop_leaving();", "stop_leaving();"),
    ("a node that finished fails when its coordinator is gone",
     "rendezvous/client/membership_link.cpp",
     "if (state() == NodeState::kSucceeded) return end(succeeded_here(sentence));", ""),
    ("workers of a lost round are left alone", "rendezvous/round/run_rebuilding.cpp",
     "send_stop(*agent, reasons::stray(agent->last.number));", ""),
    ("a round with stopped or lost ranks may be a success", "rendezvous/round/run_leave.cpp",
     "if (!succeeded && agent.last == rounds_.last())", "if (false)"),
    ("a spare that leaves is sent a stop of no round", "rendezvous/round/run_leave.cpp",
     "if (!spare) send_stop", "send_stop"),
    ("a leave overtakes the success of the round", "rendezvous/round/run_leave.cpp",
     "if (!may_follow_success) return take_up", "return take_up"),
    ("a leave waits for a node that does not answer", "rendezvous/round/run_running.cpp",
     "  if (is_due(running.question_deadline)) running.withdraw_questions();\n", ""),
    ("a link that broke during a stall is a loss", "rendezvous/round/run.cpp",
     "if (unread_ && in<Over>() == nullptr) {", "if (false) {"),
    ("a stall near the silence limit is not noticed", "rendezvous/round/run.cpp",
     "if (!options_.single_node) take(now_ + terms().keep_alive_interval);", ""),
    ("after a stall a newcomer is read before successes", "rendezvous/round/run_running.cpp",
     "if (!newcomers || !settled || unread_) return;", "if (!newcomers || !settled) return;"),
    ("a success that meets a newcomer is lost", "rendezvous/round/run_running.cpp",
     "  if (completes_interrupted(agent, report)) return;\n", ""),
    ("an error and a first signal force a stop", "agent/node/node.cpp",
     "if (std::exchange(leaving_, true) && !forced_stop_) return;", ""),
    ("a stop between two spawns is forgotten", "agent/node/local_round.cpp",
     "if (!runs_here()) return give_up_spawn(rank);", ""),
    ("a stop waits for the log directory", "agent/node/local_round.cpp",
     "  tell_group(order);\n  give_up_opening();", "  tell_group(order);"),
    ("devices that are held are not waited for", "agent/node/local_round.cpp",
     "|| awaits_devices_", ""),
    ("a witness is heard without end", "agent/node/local_round.cpp",
     "  actions_.emplace_back(local::ArmHearing{now_ + kHearing});\n", ""),
    ("a round is over before its failure was told", "agent/node/local_round.cpp",
     "if (!over() ||", "if (!group_.over() ||"),
    ("a worker that cannot be started is not told", "agent/node/local_round.cpp",
     "  actions_.emplace_back(local::TellSpawnFailed{failure});\n", ""),
    ("SIGKILL comes before the end of the grace", "agent/node/kill_order.cpp",
     "rule.signal, rule.grace}", "rule.signal, rule.grace / 2}"),
    ("what SIGKILL does not end is waited for too long", "agent/node/kill_order.cpp",
     "SIGKILL, kWaitAfterKill}", "SIGKILL, 2 * kWaitAfterKill}"),
    ("a user who stops the run waits for stacks", "agent/node/worker_group.cpp",
     "  stop_rule_.stacks = false;\n", ""),
    ("what a worker left is not waited for", "agent/node/worker_group.cpp",
     "} else if (!anything_left()) {", "} else if (true) {"),
    ("what a worker left is not signalled", "agent/node/worker_group.cpp",
     "    actions_.push_back(Signal{rank, signal, spares_pipe_ends()});",
     "    static_cast<void>(rank);"),
    ("what a worker left and SIGKILL does not end is not told",
     "agent/node/local_round_result.cpp",
     "if (!end.left.empty()) {", "if (false) {"),
    ("a stop leaves held workers alone", "agent/node/worker_group.cpp",
     "const bool took_back = take_held_back();", "const bool took_back = false;"),
    ("a worker that does not join is waited for", "agent/node/worker_group_survivors.cpp",
     "    send(rank, SIGKILL);", ""),
    ("a worker is started beside one that is kept", "agent/node/local_round.cpp",
     "if (record.carried == WorkerRecord::Carried::kWaits) {", "if (false) {"),
    ("a worker is started beside what a kept one left", "agent/node/local_round.cpp",
     "  if (record.life == WorkerRecord::Life::kLeaving) return tell_group(PutOff{rank});\n", ""),
    ("what a held worker leaves during a stop is not ended",
     "agent/node/worker_group_survivors.cpp",
     "actions_.push_back(Signal{rank, kills ? SIGKILL : stop_rule_.signal});", ""),
    ("a worker that does not survive is held", "agent/node/worker_group_survivors.cpp",
     "if (runs && worker.survives)", "if (runs)"),
    ("a node does not tell workers that are held of a stop", "rendezvous/client/membership.cpp",
     "group_.is_none() || (order.after_failure && !options_.keeps_survivors)", "true"),
    ("a node starts a round beside what SIGKILL does not end", "agent/node/node.cpp",
     "if (const std::string alive = event.result.unkillable_worker(); !alive.empty()) {",
     "if (const std::string alive; false) {"),
    ("a spare that ends has finished a round", "agent/node/worker_group_survivors.cpp",
     "ended.first_signal == 0 && !ended.is_spare;", "ended.first_signal == 0;"),
    ("ranks that finish as a node joins are not believed", "rendezvous/client/membership.cpp",
     "  if (round_->finished > Round(0)) {", "  if (false) {"),
    ("a rank that was killed has finished its round", "agent/node/worker_group_survivors.cpp",
     "event.status.success() && ended.first_signal == 0 &&", "event.status.success() &&"),
    ("ranks are asked to save after a failure", "rendezvous/round/run_end.cpp",
     "stop.requested = stopping != nullptr && stopping->requested;", "stop.requested = true;"),
]
SEEDS_MAX = 40000  # for the few whose fault is rare


def run(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "hangs", "")


def first_failure(outcome):
    """The first line of a program that failed; empty: it did not."""
    if outcome.returncode == 0:
        return ""
    return (outcome.stdout.splitlines() or ["crashes"])[0]


def build_libraries(build):
    libraries = [str(build / "tests/sim/libddprun_sim_world.a"),
                 str(build / "agent/node/libddprun_node.a")]
    libraries += [str(build / f"rendezvous/{room}/libddprun_{room}.a")
                  for room in ("round", "client", "protocol")]
    # Rooms are compiled in batches: a pure file can lie beside one that needs Asio.
    libraries += [str(build / f"net/libddprun_{part}.a") for part in ("tls", "net", "asio")]
    libraries += [str(build / f"agent/{room}/libddprun_{room}.a")
                  for room in ("watch", "report", "config", "explain")]
    return [*libraries, str(build / "base/libddprun_base.a"), "-lboost_json"]


class Hunt:
    def __init__(self, source, build, compiler):
        self.source, self.libraries = source, build_libraries(build)
        # Always the same folder: ccache tells by its path that a mutant was compiled before.
        self.folder = build / "tests/sim/mutants"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.compiler = compiler
        cached = [shutil.which("ccache"), compiler] if shutil.which("ccache") else [compiler]
        self.compile = [*cached, "-std=c++20", "-O1", "-w", f"-I{source}", "-c"]
        self.scenarios = sorted(glob.glob(str(source / "tests/scenario/*.txt")))
        self.original = str(build / "tests/sim/sim")
        self.programs = (("scenario", "scenario_main.cpp", self.fails_scenario),
                         ("simulator", "main.cpp", self.fails_life))
        for program, main_file, _ in self.programs:
            subprocess.run([*self.compile, str(source / "tests/sim" / main_file), "-o",
                            str(self.folder / f"{program}.o")], check=True)

    def find(self, number, mutant):
        """What became of the mutant, and whether it was found."""
        name, path, old, new = mutant
        text = (self.source / path).read_text()
        if text.count(old) != 1:
            return f"GONE      {name}: the text to replace is there {text.count(old)} times", False
        stem = self.folder / f"mutant{number}"
        stem.with_suffix(".cpp").write_text(text.replace(old, new))
        built = run([*self.compile, str(stem.with_suffix(".cpp")), "-o",
                     str(stem.with_suffix(".o"))])
        if built.returncode != 0:
            return f"BROKEN    {name}: does not compile\n{built.stderr[:2000]}", False
        for program, _, fails in self.programs:
            binary = str(stem) + program
            run([self.compiler, str(stem.with_suffix(".o")), str(self.folder / f"{program}.o"),
                 "-o", binary, "-Wl,--allow-multiple-definition",
                 *self.libraries]).check_returncode()
            said = fails(binary)
            if said:
                return f"found     {name}\n            {program}: {said[:110]}", True
        return f"SURVIVED  {name}", False

    def fails_scenario(self, binary):
        return first_failure(run([binary, *self.scenarios]))

    def fails_life(self, binary):
        first = 1
        while first <= SEEDS_MAX:
            said = first_failure(run([binary, "--first", str(first), "--count",
                                      str(SEEDS_MAX + 1 - first)]))
            failed = re.match(r"seed (\d+): ", said)
            if not failed:
                return said
            if first_failure(run([self.original, "--first", failed[1]])) != said:
                return said
            first = int(failed[1]) + 1
        return ""


def main():
    hunt = Hunt(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
    words = sys.argv[4] if len(sys.argv) > 4 else ""
    wanted = [(number, mutant) for number, mutant in enumerate(MUTANTS) if words in mutant[0]]
    all_found = True
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for text, found in pool.map(lambda one: hunt.find(*one), wanted):
            print(text, flush=True)
            all_found = all_found and found
    return 0 if all_found else 1


if __name__ == "__main__":
    sys.exit(main())
