#!/usr/bin/env python3
"""What a program reports to ddprun and learns from it, by the Python module over the C library.

python3 tests/worker_api/link_test.py path/to/ddprun path/to/build/python
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "control"))
from fake_agent import FakeAgent, variables_of
from runs import HUNG, Run, eventually

DDPRUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PYTHON_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
WAITS = "import ddprun, os, signal, sys, threading, time\n"
# One write: with PYTHONUNBUFFERED a print is two, and those of ranks mix.
SAYS_UP = "os.write(1, b'up\\n')\n"
UP = SAYS_UP + "signal.pause()\n"
LONG = "600"  # seconds of grace that no test waits for


class LinkedRun(Run):
    """Workers that run `script` in Python, with the module."""

    def __init__(self, script, *options, workers=1):
        super().__init__("--standalone", f"--nproc-per-node={workers}", "--no-python", *options,
                         sys.executable, "-c", WAITS + script,
                         environment={"PYTHONPATH": PYTHON_DIR})

    def step(self, rank=0):
        return self.status()["ranks"][rank]["step"]

    def finish(self):
        """Exit code, output and messages of a run that ends by itself."""
        out, err = self.process.communicate(timeout=HUNG)
        return self.process.returncode, out, err


def alone(script, **variables):
    environment = {**os.environ, "PYTHONPATH": PYTHON_DIR, **variables}
    environment.pop("DDPRUN_WORKER_SOCKET", None)
    return subprocess.Popen([sys.executable, "-c", WAITS + script], env=environment, text=True,
                            stdout=subprocess.PIPE)


class Link(unittest.TestCase):
    def start(self, script, *options, workers=1):
        run = LinkedRun(script, *options, workers=workers)
        self.addCleanup(run.__exit__)
        return run

    def test_the_last_step_of_each_rank_is_shown(self):
        run = self.start("for step in range(43):\n"
                         "    ddprun.step_done(step + 100 * int(os.environ['RANK']))\n"
                         + UP, workers=2)
        run.wait_until_up(2)
        self.assertTrue(eventually(lambda: run.step() == 42 and run.step(1) == 142))
        shown = run.command("status", str(run.process.pid)).stdout
        self.assertRegex(shown, r"LAST STEP\n.* 42, .* ago\n.* 142, .* ago\n")

    def test_rounds_whose_ranks_have_finished_a_step_start_again_without_a_delay(self):
        script = ("mark = os.path.join(folder, os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
                  "if steps: ddprun.step_done(0)\n"
                  "if os.environ['RANK'] == '1': open(mark, 'x'); signal.pause()\n"
                  "while not os.path.exists(mark): time.sleep(0.001)\n"
                  "os._exit(1)\n")
        for steps in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                facts = f"folder, steps = {folder!r}, {steps}\n"
                code, _, err = self.start(facts + script, "--max-restarts=4", workers=2).finish()
            self.assertEqual(code, 1, err)
            self.assertEqual("the delay doubles" in err, not steps, err)

    def test_threads_and_a_forked_process_continue_with_the_link(self):
        run = self.start("def steps():\n"
                         "    for _ in range(1000): ddprun.step_done(1)\n"
                         "threads = [threading.Thread(target=steps) for _ in range(8)]\n"
                         "for thread in threads: thread.start()\n"
                         "for thread in threads: thread.join()\n"
                         "if os.fork() == 0:\n"
                         "    assert ddprun.connected() and ddprun.step_done(7)\n"
                         "    os._exit(0)\n"
                         "os.wait()\n" + UP)
        run.wait_until_up()
        self.assertTrue(eventually(lambda: run.step() == 7))

    def test_a_process_that_a_worker_started_reports_for_its_rank(self):
        run = self.start("import subprocess\n"
                         "child = subprocess.Popen([sys.executable, '-c',\n"
                         "    'import ddprun, signal; ddprun.step_done(9); signal.pause()'],\n"
                         "    start_new_session=True)\n" + UP, workers=2)
        run.wait_until_up(2)
        self.assertTrue(eventually(lambda: run.step(0) == 9 and run.step(1) == 9))

    def test_processes_that_a_worker_has_forked_do_not_take_its_place(self):
        run = self.start("up, says = os.pipe()\n"
                         "for _ in range(32):\n"
                         "    if os.fork() == 0:\n"
                         "        os.write(says, b'1' if ddprun.step_done(1) else b'0')\n"
                         "        signal.pause()\n"
                         "told = b''\n"
                         "while len(told) < 32: told += os.read(up, 32)\n"
                         "assert ddprun.survive() and ddprun.step_done(77)\n" + UP,
                         "--restart=failed")
        run.wait_until_up()
        self.assertTrue(eventually(lambda: run.step() == 77))

    def test_readiness_and_checkpoints_are_events(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.start("assert ddprun.ready()\n"
                             "assert ddprun.checkpoint_written(12, b'/saved/a\\n\\xff')\n"
                             "with ddprun.section('save', timeout=0.05): signal.pause()\n",
                             f"--log-dir={folder}")
            code, _, err = run.finish()
            self.assertEqual(code, 114, err)
            (path,) = pathlib.Path(folder).glob("*/events.jsonl")
            events = [json.loads(line) for line in path.read_text().splitlines()]
        told = {event["event"]: event for event in events}
        self.assertEqual(told["ready"]["rank"], 0)
        self.assertEqual(told["checkpoint"]["step"], 12)
        self.assertTrue(told["checkpoint"]["path"].startswith("/saved/a"))
        self.assertEqual(told["section_exceeded"]["name"], "save")
        self.assertGreaterEqual(told["section_exceeded"]["lasts_ms"], 50)
        self.assertEqual(told["section_exceeded"]["limit_ms"], 50)

    def test_a_section_that_takes_too_long_ends_the_run_and_is_named(self):
        began = time.monotonic()
        run = self.start("ddprun.step_done(5)\n"
                         "with ddprun.section('quick', timeout=600): pass\n"
                         "if os.environ['RANK'] == '1':\n"
                         "    with ddprun.section('month', timeout=30 * 86400): pass\n"
                         "    with ddprun.section('all\\x1breduce', timeout=0.2): signal.pause()\n"
                         "signal.pause()\n", workers=2)
        code, _, err = run.finish()
        self.assertEqual(code, 114, err)
        self.assertIn("W-SECTION", err)
        self.assertRegex(err, r"rank 1 .*is in its section \"all\\x1breduce\"")
        self.assertLess(time.monotonic() - began, HUNG)

    def test_sections_that_end_in_time_cost_nothing(self):
        code, _, err = self.start("for step in range(2000):\n"
                                  "    with ddprun.section('step', timeout=0.5):\n"
                                  "        with ddprun.section('inner', timeout=0.4): pass\n"
                                  ).finish()
        self.assertEqual(code, 0, err)

    def test_a_failure_shows_the_last_steps(self):
        run = self.start("ddprun.step_done(1041 + (os.environ['RANK'] != '1'))\n" + SAYS_UP +
                         "signal.pause()\n", workers=3)
        run.wait_until_up(3)
        self.assertTrue(eventually(lambda: [run.step(rank) for rank in range(3)]
                                   == [1042, 1041, 1042]))
        failed = run.status()["ranks"][1]["pid"]
        os.kill(failed, signal.SIGKILL)
        _, _, err = run.finish()
        self.assertIn("rank 1 last finished step 1041, others 1042\n", err)

    def test_a_stop_leaves_time_to_save(self):
        run = self.start("ddprun.handle_stop()\n"
                         "ddprun.step_done(1)\n" + SAYS_UP +
                         "while not ddprun.stop_requested(): ddprun.wait_for_stop(0.05)\n"
                         "os.write(1, b'saved %d\\n' % ddprun.stop_requested())\n",
                         f"--shutdown-timeout={LONG}", workers=2)
        run.wait_until_up(2)
        self.assertTrue(eventually(lambda: run.step(0) == 1 and run.step(1) == 1))
        run.process.send_signal(signal.SIGTERM)
        code, out, err = run.finish()
        self.assertEqual(code, 143, err)
        self.assertEqual(out, "saved 15\nsaved 15\n")

    def test_a_stop_reaches_a_program_that_survives(self):
        run = self.start("ddprun.handle_stop()\n"
                         "assert ddprun.survive() and ddprun.next_round(0).round == 1\n" + SAYS_UP +
                         "os.write(1, b'asked %d\\n' % ddprun.wait_for_stop(600))\n",
                         f"--shutdown-timeout={LONG}", "--restart=failed")
        run.wait_until_up()
        run.process.send_signal(signal.SIGTERM)
        code, out, err = run.finish()
        self.assertEqual((code, out), (143, "asked 1\n"), err)

    def test_a_failure_of_another_rank_is_no_request_to_save(self):
        run = self.start("ddprun.handle_stop()\n"
                         "if os.environ['RANK'] == '1': sys.exit(3)\n"
                         "while True: signal.pause()\n", f"--shutdown-timeout={LONG}", workers=2)
        code, _, err = run.finish()
        self.assertEqual(code, 3, err)

    def test_every_round_has_the_same_link(self):
        run = self.start("assert ddprun.connected()\n"
                         "os.write(1, os.environ['DDPRUN_WORKER_SOCKET'].encode() + b'\\n')\n"
                         "sys.exit(os.environ['DDPRUN_ROUND'] == '1')\n", "--max-restarts=1")
        code, out, err = run.finish()
        self.assertEqual(code, 0, err)
        first, second = out.split()
        self.assertEqual(first, second)
        self.assertFalse(os.path.exists(first))

    @unittest.skipUnless(os.path.ismount("/dev/shm"), "no /dev/shm")
    def test_what_a_killed_agent_left_is_removed_and_a_live_link_is_not(self):
        folder = pathlib.Path(f"/dev/shm/ddprun-{os.geteuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        dead = folder / f"{os.getpid()}-dead-1.link"
        live = folder / f"999999999-{os.getpid()}-1.link"  # of another PID namespace
        unfinished = folder / f"999999999-{os.getpid()}-2.link.new"
        begins = folder / f"{os.getpid()}-begins-1.link.new"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listens:
            for path in (dead, unfinished, begins):
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
                    left.bind(str(path))
            self.addCleanup(begins.unlink)
            listens.bind(str(live))
            listens.listen()
            self.addCleanup(live.unlink, missing_ok=True)  # another run may remove it
            self.assertEqual(self.start("pass").finish()[0], 0)
            self.assertFalse(dead.exists() or unfinished.exists())
            self.assertTrue(begins.exists())
            self.assertTrue(live.exists())

    def test_a_directory_that_others_may_enter_is_left_alone_and_another_one_is_made(self):
        open_one = "mount -t tmpfs none /dev/shm && mkdir -m 0755 /dev/shm/ddprun-$(id -u)"
        mounted = ["unshare", "--mount", "sh", "-c", open_one + ' && exec "$@"', DDPRUN]
        if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mounts of its own")
        run = subprocess.run(
            [*mounted, DDPRUN, "--standalone", "--restart=failed", "--spares=1",
             "--max-restarts=1", "--log-dir=/dev/null", "--no-python", "sh", "-c",
             "echo link=$DDPRUN_WORKER_SOCKET; exit $((2 - DDPRUN_ROUND))"], text=True,
            timeout=HUNG, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertRegex(run.stdout, rf"link=/dev/shm/ddprun-{os.geteuid()}-\w{{6}}/")
        self.assertNotIn("LINK", run.stderr)

    def test_without_a_directory_in_memory_one_note_says_that_there_is_no_link(self):
        with tempfile.TemporaryDirectory() as folder:
            names = subprocess.run(["stat", "-f", "-c", "%T", folder], text=True, check=True,
                                   stdout=subprocess.PIPE).stdout
            private = ["unshare", "--mount", "sh", "-c",
                       'mount --bind "$0" /dev/shm && exec "$@"', folder]
            may_mount = subprocess.run([*private, "true"], capture_output=True, check=False)
            if names.strip() == "tmpfs" or may_mount.returncode != 0:
                self.skipTest("no mounts of its own, or no directory that is not in memory")
            run = subprocess.run(
                [*private, os.path.abspath(sys.argv[1]), "--standalone", "--max-restarts=1",
                 "--no-python", sys.executable, "-c", WAITS +
                 "assert not ddprun.step_done(1) and not ddprun.survive()\n"
                 "sys.exit(os.environ['DDPRUN_ROUND'] == '1')\n"],
                env={**os.environ, "PYTHONPATH": PYTHON_DIR}, text=True, timeout=HUNG,
                stderr=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr.count("note [LINK] workers cannot report steps"), 1)

    def test_without_ddprun_every_call_does_nothing(self):
        process = alone("for limit in (30 * 86400, float('inf')):\n"
                        "    assert ddprun._milliseconds_of(limit) == 2 ** 31 - 1\n"
                        "assert not ddprun.step_done(1) and not ddprun.ready()\n"
                        "assert not ddprun.checkpoint_written(1, '/x') and not ddprun.connected()\n"
                        "assert ddprun.wait_for_stop(0) is None and ddprun.stop_requested() == 0\n"
                        "with ddprun.section('x', timeout=0.001): pass\n"
                        "print('done')\n", RANK="0", WORLD_SIZE="1")
        out, _ = process.communicate(timeout=HUNG)
        self.assertEqual((process.returncode, out), (0, "done\n"))

    def test_under_another_launcher_the_first_signal_asks_and_the_second_ends(self):
        process = alone("ddprun.handle_stop()\n"
                        "print('up', flush=True)\n"
                        "while not ddprun.stop_requested(): time.sleep(0.005)\n"
                        "print('asked', flush=True)\n"
                        "while True: signal.pause()\n")
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "asked\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HUNG)
        self.assertEqual(process.returncode, -signal.SIGTERM)


# Longer than until the library looks at its link, and tries once more.
STEPS = """
import select
until = time.monotonic() + 2.5
while time.monotonic() < until:
    ddprun.step_done(2)
    select.select([], [], [], 0.01)
"""


class Closed(unittest.TestCase):
    """The test plays the agent, which closes links."""

    def setUp(self):
        self.agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(self.agent.close)

    def start(self, script):
        return self.agent.start(WAITS + script, variables_of(0, 1, 1))

    def ends_well(self, process):
        process.communicate(timeout=HUNG)
        self.assertEqual(process.returncode, 0)

    def test_a_link_that_is_refused_is_made_again_more_and_more_slowly_with_the_same_page(self):
        began = time.monotonic()
        self.start(STEPS.replace("2.5", str(HUNG)))
        pages = []
        for _ in range(3):
            link = self.agent.accept()
            pages += socket.recv_fds(link, 16, 1)[1]
            link.close()
        self.addCleanup(lambda: [os.close(page) for page in pages])
        self.assertEqual(len({os.fstat(page).st_ino for page in pages}), 1)
        self.assertGreaterEqual(time.monotonic() - began, 1 + 2)

    def test_a_descriptor_of_the_program_with_the_number_of_the_link_stays_what_it_is(self):
        process = self.start("def hung_up():\n"
                             "    end, other = os.pipe()\n"
                             "    os.close(other)\n"
                             "    return end\n"
                             "def files(): return [os.fstat(end).st_ino for end in ends]\n"
                             "assert ddprun.step_done(1)\n"
                             "os.closerange(3, 64)\n"
                             "ends = [hung_up() for _ in range(8)]\n"
                             "before = files()\n" + STEPS + "assert files() == before\n")
        self.ends_well(process)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
