#!/usr/bin/env python3
"""Templates where something goes wrong beside them, or is unusual.

    tests/warm/harsh_test.py path/to/ddprun
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "support")]
import warm_test
from eventually import HUNG, eventually
from ports import free_port
from sentences import kFromTemplate, kTemplateEnded
from warm_test import ALL_WARM, Run, stat_of, state_of

IMPORTS = "import os, select\nopen('importing', 'w')\nselect.select([], [], [], 1000)\n"
SURVIVOR = HERE.parent / "survivors" / "survivor.py"
STARVED = 0.8  # seconds; 0.5 are allowed to a worker that runs
ROUNDS = {"rounds/empty": ""}
PID_1 = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def works(*words):
    try:
        return subprocess.run(words, capture_output=True, timeout=HUNG, check=False).returncode == 0
    except OSError:
        return False


class Harsh(unittest.TestCase):
    def test_ctrl_z_stops_the_template_and_those_that_wait(self):
        with Run() as run:
            ranks = [pid for _, pid, _ in run.wait_for_round(1)]
            template, waiting = run.wait_until_parked()
            run.process.send_signal(signal.SIGTSTP)
            stopped = [*ranks, *template, *waiting]
            self.assertTrue(eventually(lambda: {state_of(pid) for pid in stopped} == {"T"}))
            run.process.send_signal(signal.SIGCONT)
            self.assertTrue(eventually(lambda: "T" not in {state_of(pid) for pid in stopped}))
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.end()
            run.check_nothing_left()

    @unittest.skipUnless(os.getuid() == 0, "gives a process its priority back")
    def test_one_that_waits_and_gets_no_processor_is_waited_for(self):
        with Run() as run:
            run.wait_for_round(1)
            _, waiting = run.wait_until_parked()
            processor = min(os.sched_getaffinity(0))
            busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
            try:
                for pid in [waiting[0], *[one.pid for one in busy]]:
                    os.sched_setaffinity(pid, {processor})
                os.sched_setscheduler(waiting[0], os.SCHED_IDLE, os.sched_param(0))
                run.fail(1)
                run.wait_for_text("[RESTART]")
                until = time.monotonic() + STARVED
                eventually(lambda: run.up(2) or time.monotonic() > until)
                os.sched_setscheduler(waiting[0], os.SCHED_OTHER, os.sched_param(0))
                self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            finally:
                for one in busy:
                    one.kill()
                    one.wait()
            run.end()
            run.check_nothing_left()

    def test_a_template_that_is_killed_while_it_imports_costs_warmth_and_nothing_else(self):
        with Run("--warm=10ms,force", preload="waits", files={"lib/waits.py": IMPORTS}) as run:
            run.wait_for_round(1)
            self.assertTrue(eventually((run.path / "importing").exists))
            template, _ = run.template_and_waiting()
            os.kill(template[0], signal.SIGKILL)
            run.wait_for_text("note [WARM] cold: " + kTemplateEnded)
            run.fail(1)
            run.wait_for_round(2)
            run.end()
            run.check_nothing_left()

    def test_a_template_that_is_killed_while_it_forks_leaves_nothing_behind(self):
        holds = ("import os, select\ndef hold():\n    if os.path.exists('hold'):\n"
                 "        open('forking', 'w')\n        select.select([], [], [], 1000)\n"
                 "os.register_at_fork(before=hold)\n")
        with Run(preload="holds,json", files={"lib/holds.py": holds}) as run:
            run.wait_for_round(1)
            template, _ = run.wait_until_parked()
            (run.path / "hold").touch()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            self.assertTrue(eventually((run.path / "forking").exists))
            os.kill(template[0], signal.SIGKILL)
            run.wait_for_text("the template ended")
            (run.path / "hold").unlink()
            run.fail(2)
            run.wait_for_round(3)
            run.end()
            run.check_nothing_left()

    def test_an_agent_that_is_killed_while_the_template_imports_leaves_nothing_behind(self):
        with Run("--warm=10ms,force", preload="waits", files={"lib/waits.py": IMPORTS}) as run:
            run.wait_for_round(1)
            self.assertTrue(eventually((run.path / "importing").exists))
            template, _ = run.template_and_waiting()
            os.kill(int(stat_of(template[0])[1]), signal.SIGKILL)
            run.check_nothing_left()

    def test_forks_that_fail_cost_warmth_and_nothing_else(self):
        fails = ("import os\nfork = os.fork\ndef limited():\n    if os.path.exists('limit'):\n"
                 "        raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
                 "    return fork()\nos.fork = limited\n")
        with Run(preload="fails,json", files={"lib/fails.py": fails}) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            (run.path / "limit").touch()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.wait_for_text("Resource temporarily unavailable")
            run.fail(2)
            run.wait_for_round(3)
            run.end()
            run.check_nothing_left()

    def test_a_module_that_puts_itself_in_front_of_the_programs_folder_is_refused(self):
        front = "import sys\nsys.path.insert(0, '/front')\n"
        with Run(preload="front,json", files={"lib/front.py": front}) as run:
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(1)))
            run.wait_for_text("cold: an imported module changes sys.path")
            run.end()
        behind = front.replace("insert(0, ", "append(")
        with Run(preload="behind,json", files={"lib/behind.py": behind}) as run:
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(1)), run.text())
            run.end()

    @unittest.skipUnless(works(*PID_1, "true"), "no rights for a PID namespace")
    def test_ddprun_may_be_process_1(self):
        with Run(before=PID_1) as run:
            run.wait_for_round(1)
            for number in (1, 2):
                self.assertTrue(eventually(lambda run=run: len(run.processes()) >= 6))
                run.fail(number)
                self.assertTrue(all(warm for _, _, warm in run.wait_for_round(number + 1)),
                                run.text())
            run.end()
            run.check_nothing_left()

    @unittest.skipUnless(works("unshare", "--mount", "true"), "no rights for a mount namespace")
    def test_a_full_disk_is_no_obstacle(self):
        full = ('mount -t tmpfs -o size=64k none "$WARM_TEST/full" && '
                'dd if=/dev/zero of="$WARM_TEST/full/all" bs=1k count=100 2> /dev/null; '
                'export TMPDIR="$WARM_TEST/full"; exec "$0" "$@"')
        with Run("--warm=first,force", "--log-dir=full/logs", files={"full/empty": ""},
                 before=("unshare", "--mount", "sh", "-c", full)) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.wait_for_text("No space left on device")
            run.end()
            run.check_nothing_left()

    def test_a_list_is_learned_again_where_the_template_has_ended(self):
        imports = warm_test.PROGRAM.replace("while not", "import json, other\nwhile not", 1)
        with tempfile.TemporaryDirectory() as lib, \
                Run("--warm=200ms,force", "--log-dir=logs", preload="",
                    files={"program.py": imports}, environment={"PYTHONPATH": lib}) as run:
            other = pathlib.Path(lib) / "other.py"
            other.write_text("X = 1\n")
            run.wait_for_round(1)
            run.wait_until_parked()
            other.write_text("X = 22\n")
            run.fail(1)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.wait_for_text(f"cold: {other} has changed")
            self.assertTrue(eventually(lambda: len(run.events("template_ready")) == 2), run.text())
            run.wait_until_parked()
            run.fail(2)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(3)), run.text())
            run.end()
            run.check_nothing_left()


def two_nodes(warm):
    return [warm, "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-id=warm",
            f"--rdzv-endpoint=127.0.0.1:{free_port()}"]


def pids(run, number):
    """Of those that take part in a round: {rank: pid}."""
    found = {}
    for path in (run.path / "rounds").glob(f"[0-9]*.{number}"):
        rank = re.search(r"^RANK=(\d+)$", path.read_text(), re.M).group(1)
        found[rank] = int(path.name.split(".")[0])
    return found


def can_take_another(run, number, ranks):
    heard = [one for name in ("ready", "worker_joined") for one in run.events(name)
             if one["round"] == number]
    return len(heard) >= ranks and len(pids(run, number)) >= ranks


class Kept(unittest.TestCase):
    def test_a_lost_rank_comes_from_the_template_and_the_others_stay(self):
        with Run("--warm=first,force", "--restart=failed", "--log-dir=logs",
                 words=(str(SURVIVOR), "rounds"), files=ROUNDS) as run:
            for number in (1, 2):
                self.assertTrue(eventually(lambda n=number: can_take_another(run, n, 2)),
                                run.text())
                run.wait_until_parked()
                before = pids(run, number)
                os.kill(before["1"], signal.SIGKILL)
                self.assertTrue(eventually(lambda n=number: len(pids(run, n + 1)) == 2),
                                run.text())
                after = pids(run, number + 1)
                self.assertEqual(after["0"], before["0"])
                self.assertNotEqual(after["1"], before["1"])
            self.assertTrue(eventually(lambda: run.text().count("note [WARM] rank 1"
                                                                + kFromTemplate + "\n") == 2),
                            run.text())
            self.assertTrue(eventually(lambda: len(run.events("all_running")) == 3))
            self.assertEqual([one["warm"] for one in run.events("all_running")], [[0, 1], [1], [1]])
            (run.path / "rounds" / "done").touch()
            self.assertEqual(run.process.wait(HUNG), 0, run.text())
            run.check_nothing_left()

    def test_a_node_whose_ranks_are_all_kept_gets_its_template_later(self):
        words = [*two_nodes("--warm=3s,force"), "--restart=failed", "--log-dir=logs"]
        with Run(*words, ranks=1, words=(str(SURVIVOR), "rounds"), files=ROUNDS) as one, \
                Run(*words, ranks=1, words=(str(SURVIVOR), "rounds"), files=ROUNDS) as other:
            for run in (one, other):
                self.assertTrue(eventually(lambda run=run: can_take_another(run, 1, 1)), run.text())
            os.kill(next(iter(pids(other, 1).values())), signal.SIGKILL)
            self.assertTrue(eventually(lambda: pids(one, 2) and pids(other, 2)), other.text())
            self.assertEqual(set(pids(one, 1).values()), set(pids(one, 2).values()))
            self.assertTrue(eventually(lambda: one.events("template_ready")), one.text())
            for run in (one, other):
                (run.path / "rounds" / "done").touch()
            for run in (one, other):
                self.assertEqual(run.process.wait(HUNG), 0, run.text())
                run.check_nothing_left()

    def test_each_of_two_nodes_has_a_template(self):
        words = two_nodes("--warm=first,force")
        with Run(*words) as one, Run(*words) as other:
            def up(number):
                return one.up(number) + other.up(number)
            for number in range(1, 4):
                self.assertTrue(eventually(lambda n=number: len(up(n)) == 4), other.text())
                self.assertTrue(all(warm for _, _, warm in up(number)), one.text() + other.text())
                one.fail(number)
                other.fail(number)
            self.assertTrue(eventually(lambda: len(up(4)) == 4))
            for run in (one, other):
                self.assertTrue(eventually(lambda run=run: run.text().count(ALL_WARM) == 4),
                                run.text())
                (run.path / "end").touch()
            for run in (one, other):
                self.assertEqual(run.process.wait(HUNG), 0, run.text())
                run.check_nothing_left()


if __name__ == "__main__":
    warm_test.DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
