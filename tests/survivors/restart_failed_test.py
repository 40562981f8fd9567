#!/usr/bin/env python3
"""--restart=failed with real processes: who keeps its process, who is started again, what is told.

python3 tests/survivors/restart_failed_test.py path/to/ddprun path/to/ddprun-rdzvd
"""
import os
import signal
import sys
import unittest
from unittest import mock

from runs import (HUNG, NOT_JOINED, Runs, agent_of, children_of, eventually,
                  free_port, lives)


class Survivors(Runs):
    def test_one_of_four_is_killed(self):
        run = self.single("--tee=3")
        first = self.round(1)
        os.kill(self.pid_of(first, 3), signal.SIGKILL)
        second = self.round(2)
        for rank in range(3):
            self.assertEqual(self.pid_of(first, rank), self.pid_of(second, rank))
            self.assertEqual(second[self.pid_of(second, rank)]["told"], "1")
        self.assertNotIn(self.pid_of(second, 3), first)
        self.assertEqual({one["TORCHELASTIC_RESTART_COUNT"] for one in second.values()}, {"1"})
        ports = [next(iter(taken.values()))["MASTER_PORT"] for taken in (first, second)]
        self.assertNotEqual(*ports)
        said = self.finish(run)
        self.assertRegex(said, r"\[RECOVER\] round 2: rank 3 started again, 3 ranks kept, \d+ ms")
        self.assertIn("all 4 ranks exited with code 0", said)
        self.assertIn("1 restart\n", said)
        (kept,) = self.folder.glob("logs/*/attempt_0/0/stdout.log")
        self.assertEqual(kept.read_text(), "rank 0 of 4 in round 1\nrank 0 of 4 in round 2\n")
        self.assert_nothing_left()

    @mock.patch.dict(os.environ, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    def test_a_timer_that_expires_starts_all_again(self):
        run = self.single(behaviour=["timer:2"])
        first = self.round(1)
        (self.rounds / "expire").touch()
        self.assertFalse(set(first) & set(self.round(2)))
        (expired,) = self.events("timer_expired")
        self.assertEqual((expired["rank"], expired["pid"]), (2, self.pid_of(first, 2)))
        self.assertIn("warning [W-TIMER] rank 2 ", self.finish(run))

    def test_restart_all_starts_all_again(self):
        run = self.single(which="--restart=all")
        first = self.round(1)
        os.kill(self.pid_of(first, 3), signal.SIGKILL)
        self.assertFalse(set(first) & set(self.round(2)))
        self.assertNotIn("RECOVER", self.finish(run))

    def test_a_rank_that_has_not_said_that_it_survives_is_stopped(self):
        run = self.single(behaviour=["no-survivor:1"])
        first = self.round(1)
        os.kill(self.pid_of(first, 3), signal.SIGKILL)
        second = self.round(2)
        self.assertEqual(len(set(first) & set(second)), 2)
        self.assertFalse(lives(self.pid_of(first, 1)))
        self.assertIn("ranks 1, 3 started again, 2 ranks kept", self.finish(run))

    def test_a_rank_that_never_joins_is_killed_and_started_again(self):
        run = self.single("--rejoin-timeout=1", behaviour=["stay-out:1"])
        first = self.round(1)
        os.kill(self.pid_of(first, 3), signal.SIGKILL)
        second = self.round(2)
        self.assertEqual(len(set(first) & set(second)), 2)
        self.assertFalse(lives(self.pid_of(first, 1)))
        said = self.finish(run)
        self.assertEqual([event["workers"] for event in self.events("kill_began")], [1])
        self.assertIn(NOT_JOINED, said)
        self.assertIn("ranks 1, 3 started again, 2 ranks kept", said)
        self.assertIn("1 restart\n", said)

    def test_a_rank_that_ends_when_it_is_told_is_started_again(self):
        for what, status in (("fall-out:1", "exit code 5"), ("done:1", "exit code 0")):
            with self.subTest(what):
                self.setUp()
                run = self.single(behaviour=[what])
                os.kill(self.pid_of(self.round(1), 3), signal.SIGKILL)
                self.round(2)
                said = self.finish(run)
                self.assertIn(f"ended before it took part ({status}); started again", said)
                self.assertIn("1 restart\n", said)

    def test_what_a_rank_wrote_in_the_round_before_is_no_evidence(self):
        for words in ((), ("--redirects=3",)):
            with self.subTest(words):
                self.setUp()
                run = self.single("--max-restarts=1", *words, behaviour=["complain:0"])
                os.kill(self.pid_of(self.round(1), 3), signal.SIGKILL)
                self.round(2)
                (self.rounds / "fail").touch()
                self.assertEqual(run.wait(HUNG), 3)
                report = self.said(run).split("[RECOVER]")[1]
                self.assertRegex(report, r"\[W-EXIT\] rank 0 .* exit code 3")
                self.assertNotIn("monitoredBarrier", report)

    def test_what_the_lost_rank_left_behind_is_ended_and_survivors_stay(self):
        run = self.single(behaviour=["fork:3"])
        first = self.round(1)
        lost = self.pid_of(first, 3)
        (child,) = children_of(lost)
        os.kill(lost, signal.SIGKILL)
        self.assertEqual(len(set(first) & set(self.round(2))), 3)
        self.assertFalse(lives(child))
        self.finish(run)

    def test_each_failure_is_a_round_and_survivors_outlive_them_all(self):
        run = self.single()
        before = self.round(1)
        for number in (2, 3, 4):
            os.kill(self.pid_of(before, number % 4), signal.SIGKILL)
            taken = self.round(number)
            self.assertEqual(len(set(before) & set(taken)), 3)
            before = taken
        self.assertIn("3 restarts\n", self.finish(run))

    def test_without_restarts_survivors_are_stopped_like_all_others(self):
        run = self.single("--max-restarts=0")
        os.kill(self.pid_of(self.round(1), 3), signal.SIGKILL)
        self.assertEqual(run.wait(HUNG), 137)
        self.assertRegex(self.said(run),  # what is measured may be 1.0 s, too
                         r"3 ranks were still running 1(\.\d)? s later; ddprun stopped them")
        self.assert_nothing_left()

    def test_survivors_of_two_nodes(self):
        port, _ = self.coordinator()
        nodes = [self.node(port, "--nnodes=2", ranks=2) for _ in range(2)]
        first = self.round(1)
        os.kill(self.pid_of(first, 0), signal.SIGKILL)
        second = self.round(2)
        self.assertEqual(len(set(first) & set(second)), 3)
        for node in nodes:
            self.finish(node)
        said = "".join(self.said(node) for node in nodes)
        self.assertIn("rank 0 started again, 1 rank kept", said)
        self.assertIn("round 2: 2 ranks kept", said)

    def test_status_says_that_ranks_are_held_while_the_run_waits_for_a_node(self):
        port = free_port()
        stays, goes = [self.start("--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}",
                                  "--rdzv-backend=c10d", "--rdzv-id=held",
                                  f"--rdzv-conf=is_host={here}", ranks=2) for here in (1, 0)]
        first = self.round(1)
        goes.kill()
        self.assertTrue(eventually(lambda: "round 1: holding on" in self.shown(stays)),
                        self.shown(stays))
        held = [rank["pid"] for rank in self.status(stays)["ranks"]]
        self.assertTrue(set(held) <= set(first) and all(lives(pid) for pid in held))
        self.assertRegex(self.shown(stays), r"127.0.0.1 +- +stopping or holding ")

    def test_the_world_shrinks_and_grows_around_survivors(self):
        port, _ = self.coordinator()
        stays = self.node(port, ranks=2)
        alone = set(self.round(1, ranks=2))
        goes = self.node(port, ranks=2)
        both = set(self.round(2))
        self.assertTrue(alone < both)
        goes.kill()
        self.assertEqual(set(self.round(3, ranks=2)), alone)
        self.assertTrue(eventually(lambda: not any(lives(pid) for pid in both - alone)))
        comes = self.node(port, ranks=2)
        self.assertTrue(alone < set(self.round(4)))
        for node in (stays, comes):
            self.assertIn("0 restarts", self.finish(node))
        self.assert_nothing_left()

    def test_a_rank_that_never_takes_the_round_of_a_node_that_joins_is_started_again(self):
        port, _ = self.coordinator()
        words = ["--rejoin-timeout=1"]
        node = self.node(port, *words, ranks=2, behaviour=["stay-out:1"])
        first = self.round(1, ranks=2)
        other = self.node(port, *words, ranks=2, behaviour=["stay-out:1"])
        self.assertEqual(set(first) & set(self.round(2)), {self.pid_of(first, 0)})
        self.assertIn(NOT_JOINED, self.finish(node))
        self.assertIn("0 restarts", self.finish(other))

    def test_one_that_dies_while_it_is_held_is_started_again(self):
        run, coordinator, first, held = self.hold()
        os.kill(self.pid_of(first, 0), signal.SIGKILL)
        self.assertTrue(eventually(lambda: not lives(self.pid_of(first, 0))))
        coordinator.send_signal(signal.SIGCONT)
        second = self.round(2)
        self.assertEqual(set(first) & set(second), held - {self.pid_of(first, 0)})
        said = self.finish(run)
        self.assertIn("ranks 0, 3 started again, 2 ranks kept", said)
        self.assertIn("1 restart", said)

    def test_a_signal_ends_those_that_are_held(self):
        run, coordinator, _, _ = self.hold()
        run.send_signal(signal.SIGTERM)
        self.assert_nothing_left()
        coordinator.send_signal(signal.SIGCONT)
        run.wait(HUNG)

    def test_nothing_is_left_when_the_front_or_the_agent_is_killed_while_ranks_are_held(self):
        for which in ("front", "agent"):
            with self.subTest(which):
                self.setUp()
                run, _, _, held = self.hold()
                agent = agent_of(next(iter(held)))
                os.kill(run.pid if which == "front" else agent, signal.SIGKILL)
                self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
