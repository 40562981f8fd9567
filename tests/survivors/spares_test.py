#!/usr/bin/env python3
"""--spares with real processes: who takes the place of a lost rank, and what becomes of the others.

python3 tests/survivors/spares_test.py path/to/ddprun path/to/ddprun-rdzvd
"""
import os
import pathlib
import signal
import sys
import unittest
from unittest import mock

from runs import HUNG, NOT_JOINED, Runs, agent_of, children_of, eventually, lives, state_of

COMMANDS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "COMMANDS.md"
PLACE = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "GROUP_WORLD_SIZE",
         "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "DDPRUN_ROUND",
         "TORCHELASTIC_RESTART_COUNT")


class Spares(Runs):
    def ready(self):
        """The pids of the spares that have ever waited for a place."""
        return [event["pid"] for event in self.events("spare_ready")]

    def wait_for_spares(self, count):
        self.assertTrue(eventually(lambda: len(self.ready()) >= count),
                        "".join(self.said(one) for one in self.started))
        return self.ready()[-1]

    def kill(self, taken, *ranks):
        for pid in [self.pid_of(taken, rank) for rank in ranks]:
            os.kill(pid, signal.SIGKILL)

    def test_a_spare_takes_the_place_of_a_lost_rank_and_is_replaced(self):
        run = self.single("--spares=1", "--tee=3")
        first = self.round(1)
        spare = self.wait_for_spares(1)
        # It writes this after it said that it is ready, and the lines that follow are a rank's.
        self.assertTrue(eventually(lambda: "[spare 1]:waits for a place" in self.said(run)))
        self.kill(first, 3)
        second = self.round(2)
        self.assertEqual(self.pid_of(second, 3), spare)
        for rank in range(3):
            self.assertEqual(self.pid_of(first, rank), self.pid_of(second, rank))
        self.assertEqual(self.wait_for_spares(2), self.ready()[1])
        self.kill(second, 0)
        self.assertEqual(self.pid_of(self.round(3), 0), self.ready()[1])
        said = self.finish(run)
        self.assertRegex(said, r"\[RECOVER\] round 2: rank 3 taken by a spare, 3 ranks kept, \d+ ")
        self.assertRegex(said, r"\[RECOVER\] round 3: rank 0 taken by a spare, 3 ranks kept, \d+ ")
        self.assertIn("[default3]:rank 3 of 4 in round 2", said)
        self.assertEqual([(event["rank"], event["pid"]) for event in self.events("spare_used")],
                         [(3, self.ready()[0]), (0, self.ready()[1])])
        (log,) = self.folder.glob("logs/*/spare_1/stdout.log")
        self.assertTrue(log.read_text().startswith("waits for a place\nrank 3 of 4 in round 2\n"))
        self.assert_nothing_left()

    def test_a_spare_that_becomes_rank_0_is_shown_as_such(self):
        run = self.single("--spares=1", "--console=rank0")
        first = self.round(1)
        spare = self.wait_for_spares(1)
        self.kill(first, 0)
        self.assertEqual(self.pid_of(self.round(2), 0), spare)
        said = self.finish(run).splitlines()
        self.assertIn("rank 0 of 4 in round 2", said)
        self.assertNotIn("rank 1 of 4 in round 2", said)

    def test_a_spare_has_the_environment_of_a_worker_without_a_place(self):
        run = self.single("--spares=1")
        worker = next(iter(self.round(1).values()))
        self.wait_for_spares(1)
        self.assertTrue(eventually(lambda: list(self.rounds.glob("[0-9]*.spare"))))
        (path,) = self.rounds.glob("[0-9]*.spare")
        spare = dict(line.split("=", 1) for line in path.read_text().splitlines())
        self.assertEqual([name for name in PLACE if name in spare], [])
        self.assertEqual(spare["DDPRUN_SPARE"], "1")
        for name in set(worker) - set(PLACE) - {"DDPRUN_WORKER", "TORCHELASTIC_ERROR_FILE", "at"}:
            self.assertEqual(spare[name], worker[name])
        self.finish(run)

    def lose_two(self, spares):
        """Two ranks are lost before the next round is decided; who takes part in that."""
        run, coordinator, first, _ = self.hold(f"--spares={spares}",
                                               before=lambda: self.wait_for_spares(spares))
        self.kill(first, 1)
        self.assertTrue(eventually(lambda: not lives(self.pid_of(first, 1))))
        coordinator.send_signal(signal.SIGCONT)
        second = self.round(2)
        self.assertEqual(len(set(first) & set(second)), 2)
        return run, set(second)

    def test_two_ranks_at_once_and_one_spare(self):
        run, second = self.lose_two(spares=1)
        self.assertIn(self.ready()[0], second)
        self.assertRegex(self.finish(run), "rank 1 taken by a spare, rank 3 started again, 2 ranks")

    def test_two_spares_take_two_places(self):
        run, second = self.lose_two(spares=2)
        self.assertLess(set(self.ready()), second)
        self.assertIn("ranks 1, 3 taken by spares, 2 ranks kept", self.finish(run))

    def test_one_that_dies_while_it_waits_is_replaced_and_fails_nothing(self):
        run = self.single("--spares=1")
        first = self.round(1)
        os.kill(self.wait_for_spares(1), signal.SIGKILL)
        spare = self.wait_for_spares(2)
        self.kill(first, 2)
        self.assertEqual(self.pid_of(self.round(2), 2), spare)
        said = self.finish(run)
        self.assertRegex(said, r"\[SPARE\] spare 1 \(pid \d+\) ended while it waited \(SIGKILL\)")
        self.assertIn("1 restart\n", said)

    def test_ctrl_z_stops_one_with_the_ranks(self):
        run = self.single("--spares=1")
        ranks = self.round(1)
        pids = [self.wait_for_spares(1), *ranks]
        os.kill(run.pid, signal.SIGTSTP)
        self.assertTrue(eventually(lambda: all(state_of(pid) == "T" for pid in pids)))
        self.assertIn("4 ranks are stopped", self.said(run))
        os.kill(run.pid, signal.SIGCONT)
        self.assertTrue(eventually(lambda: all(state_of(pid) in "RSD" for pid in pids)))
        self.finish(run)
        self.assert_nothing_left()

    @mock.patch.dict(os.environ, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    def test_the_timer_of_one_counts_from_when_it_takes_a_place(self):
        run = self.single("--spares=1", behaviour=["timer:spare"])
        first = self.round(1)
        spare = self.wait_for_spares(1)
        (self.rounds / "expire").touch()
        self.assertTrue(eventually(lambda: not (self.rounds / "expire").exists()))
        self.assertEqual(self.events("timer_expired"), [])
        self.kill(first, 3)
        self.round(3)
        (expired,) = self.events("timer_expired")
        self.assertEqual([expired[name] for name in ("round", "rank", "pid")], [2, 3, spare])
        self.assertIn("warning [W-TIMER] rank 3 ", self.finish(run))

    def test_one_that_never_joins_is_killed_and_the_rank_started(self):
        run = self.single("--spares=1", "--rejoin-timeout=1")
        first = self.round(1)
        spare = self.wait_for_spares(1)
        os.kill(spare, signal.SIGSTOP)
        self.kill(first, 3)
        self.assertNotIn(spare, self.round(2))
        self.assertTrue(eventually(lambda: not lives(spare)))
        said = self.finish(run)
        self.assertIn(NOT_JOINED, said)
        self.assertIn("round 2: rank 3 started again, 3 ranks kept", said)
        self.assertIn("1 restart\n", said)

    def test_one_that_ends_before_it_waits_is_the_last(self):
        run = self.single("--spares=1", behaviour=["unready:spare"])
        first = self.round(1)
        self.assertTrue(eventually(lambda: "before it waited" in self.said(run)))
        self.kill(first, 3)
        self.round(2)
        said = self.finish(run)
        self.assertRegex(said, r"warning \[SPARE\] spare 1 \(pid \d+\) ended \(exit code 3\) bef")
        self.assertEqual(said.count("[SPARE]"), 1)
        self.assertEqual(len(self.events("spare_ended")), 1)

    def test_a_program_that_does_not_survive_never_has_one(self):
        run = self.single("--spares=2", behaviour=["no-survivor:1"])
        self.kill(self.round(1), 3)
        self.round(2)  # in which all survive
        self.wait_for_spares(1)
        self.assertEqual({event["round"] for event in self.events("spare_used")}, set())
        said = self.finish(run)
        self.assertEqual(said.count("note [SPARE] no spare was there"), 1)

    def test_what_a_spare_has_started_ends_with_it(self):
        run = self.single("--spares=1", behaviour=["fork:spare"])
        self.round(1)
        spare = self.wait_for_spares(1)
        self.assertTrue(eventually(lambda: children_of(spare)))
        (child,) = children_of(spare)
        os.kill(spare, signal.SIGKILL)
        self.assertTrue(eventually(lambda: not lives(child)))
        self.finish(run)

    def test_nothing_is_left_however_the_run_ends(self):
        def stop(run, _):
            run.send_signal(signal.SIGTERM)

        def kill_front(run, _):
            run.kill()

        def kill_agent(_, worker):
            os.kill(agent_of(worker), signal.SIGKILL)

        for way in (stop, kill_front, kill_agent):
            with self.subTest(way.__name__):
                self.setUp()
                run = self.single("--spares=2", behaviour=["fork:spare"])
                worker = self.pid_of(self.round(1), 0)
                self.wait_for_spares(2)
                children = [child for spare in self.ready() for child in children_of(spare)]
                way(run, worker)
                self.assert_nothing_left()
                self.assertTrue(eventually(lambda c=children: not any(map(lives, c))))
                run.wait(HUNG)

    def test_without_restarts_none_is_started(self):
        run = self.single("--spares=1", "--max-restarts=1")
        self.kill(self.round(1), 3)
        self.round(2)
        self.finish(run)
        self.assertEqual(len(list(self.rounds.glob("[0-9]*.spare"))), len(self.ready()))

    def test_the_status_names_them(self):
        run = self.single("--spares=1")
        self.round(1)
        spare = self.wait_for_spares(1)
        status = self.status(run)
        told = [(it["spare"], it["pid"], it["waits"]) for it in status["spares"]]
        self.assertEqual(told, [(1, spare, True)])
        described = COMMANDS.read_text().split("--json`\n")[1]
        for members in (status, status["ranks"][0], status["spares"][0]):
            self.assertEqual([name for name in members if f"`{name}`" not in described], [])
        self.finish(run)

    def test_the_processes_of_a_spare_node_take_the_places_of_a_lost_one(self):
        port, _ = self.coordinator()
        node = lambda: self.node(port, "--nnodes=2:2", "--spares=1", ranks=2)
        stays, goes = node(), node()
        both = self.round(1)
        waits = node()
        self.assertTrue(eventually(lambda: "waits as a spare" in self.said(waits)))
        self.assertTrue(eventually(lambda: len(self.status(waits)["spares"]) == 2 and
                                   all(it["waits"] for it in self.status(waits)["spares"])))
        ready = {it["pid"] for it in self.status(waits)["spares"]}
        goes.kill()
        second = self.round(2)
        self.assertEqual(set(second) - set(both), ready)
        for one in (stays, waits):
            self.finish(one)
        self.assertRegex(self.said(waits), r"ranks \d, \d taken by spares, 0 ranks kept")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
