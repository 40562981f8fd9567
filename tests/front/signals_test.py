#!/usr/bin/env python3
"""Signals to the front, by kill and from the keyboard, in every state of a run.

    tests/front/signals_test.py path/to/ddprun
"""

import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

from processes_of_run import (HUNG, Run, children_of, free_port, kTerminalClosed, processes,
                              stat_of, wait_for)
from streams import read_until

DDPRUN = ""
REPEATS = int(os.environ.get("DDPRUN_TEST_REPEATS", "1"))

READY = "echo > $DIR/ready.$RANK; "
STAY = READY + "exec sleep 1000"
# Counts what it gets in files, and ends with the first.
COUNT = ("trap 'echo >> $DIR/got.$RANK; sleep 0.3; exit 0' INT TERM; " + READY +
         "while :; do sleep 0.01; done")


def ready(run):
    wait_for(lambda: all(run.path(f"ready.{rank}").exists() for rank in range(run.ranks)),
             "workers")

# A resolver that is asked and never answers, until the launcher beside it has gone.
SILENT_RESOLVER = """
import os, pathlib, select, socket
folder, launcher = pathlib.Path(os.environ["DIR"]), os.getppid()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.1", 53))
    (folder / "bound").touch()
    while os.getppid() == launcher:
        if select.select([server], [], [], 0.02)[0]:
            server.recv(512)
            (folder / "asked").touch()
"""
BESIDE_RESOLVER = ["unshare", "--mount", "--net", "sh", "-c",
                   "ip link set lo up && echo nameserver 127.0.0.1 > $DIR/resolv.conf && "
                   "mount --bind $DIR/resolv.conf /etc/resolv.conf || exit 77; "
                   "python3 -c \"$RESOLVER\" & until [ -e $DIR/bound ]; do sleep 0.01; done; "
                   "exec \"$@\"", "sh"]


class Signals(unittest.TestCase):
    def check_end(self, run, code):
        self.assertEqual(run.end(), code, run.text())
        run.check_nothing_left()

    def test_ctrl_z_stops_ddprun_and_its_workers_until_they_are_continued(self):
        script = "sleep 1000 & " + READY + "wait"  # none forks: vfork() delays the stop of a parent
        # A process group of its own, as of a shell's job.
        with Run(DDPRUN, script, preexec_fn=os.setpgrp) as run:
            front, _, agent = run.supervisors()
            ready(run)
            wait_for(lambda: run.count("sleep") == 2, "processes of the workers")
            workers = [pid for pid in run.left() if stat_of(pid)[0] in ("sh", "sleep")]
            self.assertEqual(len(workers), 4)
            stopped = [front, agent, *workers]
            for _ in range(3):
                os.kill(front, signal.SIGTSTP)
                wait_for(lambda: all(stat_of(pid)[1] == "T" for pid in stopped), "stop")
                os.kill(front, signal.SIGCONT)
                wait_for(lambda: all(stat_of(pid)[1] in "SRD" for pid in stopped), "continuation")
            self.assertIn("[PAUSE] Ctrl-Z: 2 ranks are stopped", run.text())
            run.process.send_signal(signal.SIGTERM)
            self.check_end(run, 143)

    def test_ctrl_z_counts_the_ranks_that_run(self):
        with Run(DDPRUN, f"{READY} [ $RANK = 1 ] || exec sleep 1000", ranks=3,
                 preexec_fn=os.setpgrp) as run:
            front, _, agent = run.supervisors()
            ready(run)
            wait_for(lambda: run.count("sleep") == 2 and len(children_of(agent)) == 2,
                     "end of rank 1")
            os.kill(front, signal.SIGTSTP)
            wait_for(lambda: "[PAUSE] Ctrl-Z: " in run.text(), "note")
            self.assertIn("[PAUSE] Ctrl-Z: 2 ranks are stopped", run.text())
            os.kill(front, signal.SIGCONT)
            run.process.send_signal(signal.SIGTERM)
            self.check_end(run, 143)

    @mock.patch.dict(os.environ, TORCHELASTIC_ENABLE_FILE_TIMER="1")
    def test_a_timer_does_not_count_the_time_of_ctrl_z(self):
        timer = ("echo '{\"pid\": '$$', \"scope_id\": \"step\", \"signal\": 9, "
                 "\"expiration_time\": '%s'}' > $TORCHELASTIC_TIMER_FILE; ")
        script = (timer % "$(($(date +%s) + 4))" + READY +
                  "until [ -e $DIR/go ]; do sleep 0.01; done; " + timer % "-1")
        with Run(DDPRUN, script, preexec_fn=os.setpgrp) as run:
            front, _, agent = run.supervisors()
            ready(run)
            os.kill(front, signal.SIGTSTP)
            expired = time.time() + 4
            wait_for(lambda: stat_of(agent)[1] == "T" and time.time() > expired, "expiry")
            run.path("go").touch()
            os.kill(front, signal.SIGCONT)
            self.check_end(run, 0)

    def test_ctrl_z_and_fg_of_a_shell(self):
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(PS1="> ", LC_ALL="C")  # "Stopped", in English
            os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
        try:
            read_until(terminal, b"> ", HUNG)
            os.write(terminal, f"'{DDPRUN}' --standalone sh -c 'echo begin; sleep 1000'\n".encode())
            read_until(terminal, b"\nbegin", HUNG)
            for _ in range(3):
                os.write(terminal, b"\x1a")
                stopped = read_until(terminal, b"Stopped", HUNG)
                self.assertIn(b"\nddprun: note [PAUSE] Ctrl-Z: 1 rank is stopped", stopped)
                os.write(terminal, b"fg\n")
                read_until(terminal, b"[PAUSE] continued", HUNG)
            os.write(terminal, b"\x03")
            read_until(terminal, b"exit 130", HUNG)
        finally:
            os.close(terminal)  # SIGHUP
            os.waitpid(child, 0)

    def test_ctrl_z_and_fg_at_once_leave_nothing_stopped(self):
        for own_session in (False, True):  # in one of its own no shell could continue it
            group = {} if own_session else {"preexec_fn": os.setpgrp}
            script = READY + "until [ -e $DIR/go ]; do sleep 0.01; done"
            with Run(DDPRUN, script, start_new_session=own_session, **group) as run:
                ready(run)
                for _ in range(20):
                    run.process.send_signal(signal.SIGTSTP)
                    if not own_session:
                        run.process.send_signal(signal.SIGCONT)
                run.path("go").touch()
                self.check_end(run, 0)

    def test_sigterm_at_any_moment_of_a_start(self):
        for step in range(30 * REPEATS):
            with Run(DDPRUN, "exec sleep 1000", ranks=8) as run:
                threading.Event().wait(0.002 * (step % 30))
                run.process.send_signal(signal.SIGTERM)
                self.check_end(run, 143)

    def test_while_a_name_is_looked_up(self):
        os.environ["RESOLVER"] = SILENT_RESOLVER
        options = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=slow.example:29400"]
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with Run([*BESIDE_RESOLVER, DDPRUN], "true", options) as run:
                wait_for(lambda: run.path("asked").exists() or run.process.poll(), "question")
                if run.process.poll() is not None:
                    self.skipTest("no network namespace for this user: " + run.text())
                run.process.send_signal(number)
                self.assertEqual(run.end(10), code)
                run.check_nothing_left()

    def test_sigint_at_any_moment_of_an_end(self):
        for step in range(20 * REPEATS):
            with Run(DDPRUN, "exit 0", ranks=2) as run:
                wait_for(lambda: ": 2 ranks" in run.text(), "start")
                threading.Event().wait(0.001 * (step % 20))
                run.process.send_signal(signal.SIGINT)
                code = run.end()
                self.assertEqual(code, 0 if "ddprun: done" in run.text() else 130, run.text())
                run.check_nothing_left()

    def test_one_that_is_sent_names_its_sender(self):
        with Run(DDPRUN, STAY) as run:
            ready(run)
            kill = subprocess.Popen(["sh", "-c", f"kill -TERM {run.process.pid}; read line"],
                                    stdin=subprocess.PIPE)
            try:
                wait_for(lambda: "[STOP]" in run.text(), "stop")
            finally:
                kill.communicate()
            self.assertIn(f"SIGTERM from sh (pid {kill.pid}), stopping 2 ranks", run.text())
            self.check_end(run, 143)

    def test_a_sender_that_has_ended(self):
        with Run(DDPRUN, STAY) as run:
            ready(run)
            os.kill(run.process.pid, signal.SIGSTOP)
            kill = subprocess.Popen(["kill", "-TERM", str(run.process.pid)])
            kill.wait()
            os.kill(run.process.pid, signal.SIGCONT)
            self.check_end(run, 143)
            self.assertIn(f"SIGTERM from pid {kill.pid}, which has ended, stopping", run.text())

    def test_they_arrive_where_the_queue_of_the_user_is_full(self):
        def no_queue():
            resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
            with Run(DDPRUN, COUNT.replace("INT TERM", "INT TERM HUP"),
                     preexec_fn=no_queue) as run:
                ready(run)
                run.process.send_signal(number)
                self.check_end(run, code)
                self.assertEqual(run.path("got.0").read_text(), "\n")
                self.assertIn(f"{number.name} received", run.text())

    def test_they_arrive_while_the_guard_is_stopped(self):
        with Run(DDPRUN, STAY) as run:
            ready(run)
            _, guard, _ = run.supervisors()
            os.kill(guard, signal.SIGSTOP)
            run.process.send_signal(signal.SIGTERM)
            self.check_end(run, 143)

    def test_one_to_every_process_of_ddprun_is_one_stop(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with Run(DDPRUN, COUNT) as run:
                ready(run)
                for pid in run.supervisors():
                    processes.kill(pid, number)
                self.check_end(run, code)
                self.assertEqual(run.path("got.0").read_text(), "\n")
                self.assertNotIn("needed SIGKILL", run.text())

    def test_the_second_one_kills_at_once(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with Run(DDPRUN, f"trap '' INT TERM; {READY} while :; do sleep 0.01; done") as run:
                ready(run)
                run.process.send_signal(number)
                wait_for(lambda: "stopping 2 ranks" in run.text(), "stop")
                run.process.send_signal(number)
                self.assertEqual(run.end(5), code)
                run.check_nothing_left()

    def test_a_stop_that_takes_long_names_the_ranks_that_still_run(self):
        script = f"[ $RANK = 1 ] || trap '' TERM; {READY} while :; do sleep 0.01; done"
        with Run(DDPRUN, script, ["--standalone", "--shutdown-timeout=12"]) as run:
            ready(run)
            run.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "[STOP] 2 s left: 1 rank still running: 0\n" in run.text(), "line")
            self.check_end(run, 143)
            self.assertEqual(run.text().count(" left: "), 1)

    def test_a_notify_signal_reaches_every_rank_once(self):
        script = ("trap 'echo >> $DIR/got.$RANK; exit 0' USR1; " + READY +
                  "while :; do sleep 0.01; done")
        with Run(DDPRUN, script) as run:
            ready(run)
            run.process.send_signal(signal.SIGUSR1)
            self.check_end(run, 0)
            self.assertEqual([run.path(f"got.{rank}").read_text() for rank in (0, 1)], ["\n"] * 2)

    def test_an_unhandled_one_ends_the_run_like_a_shell_says(self):
        with Run(DDPRUN, STAY) as run:
            ready(run)
            run.process.send_signal(signal.SIGALRM)
            self.check_end(run, 142)
            self.assertIn("was killed by SIGALRM", run.text())

    def test_signals_that_a_batch_script_ignores_stay_ignored_in_ddprun_and_its_ranks(self):
        ignoring = ["sh", "-c", "trap '' USR1 USR2 TERM ALRM; exec \"$@\"", "sh", DDPRUN]
        script = ("grep SigIgn /proc/self/status > $DIR/mask.$RANK; " + READY +
                  "until [ -e $DIR/go ]; do sleep 0.01; done")
        with Run(ignoring, script) as run:
            ready(run)
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGALRM):
                run.process.send_signal(number)
                bit = 1 << (number - 1)
                for rank in (0, 1):
                    mask = int(run.path(f"mask.{rank}").read_text().split()[1], 16)
                    self.assertTrue(mask & bit, f"rank {rank} does not ignore signal {number}")
            run.path("go").touch()
            self.check_end(run, 0)
            self.assertNotIn("[SIGNAL]", run.text())

    def test_a_notify_signal_spares_ranks_that_would_end_by_it(self):
        takes = "trap 'echo >> $DIR/got' USR1; "
        script = (f"if [ $RANK = 0 ]; then {takes}fi; " + READY +
                  "until [ -e $DIR/got ]; do sleep 0.01; done")
        with Run(DDPRUN, script) as run:
            ready(run)
            run.process.send_signal(signal.SIGUSR1)
            self.check_end(run, 0)
            self.assertIn("; passed to 1 rank here; not to rank 1, which would end by it\n",
                          run.text())

    def test_nohup_is_kept(self):
        with Run(["nohup", DDPRUN], READY + "until [ -e $DIR/go ]; do sleep 0.01; done") as run:
            ready(run)
            run.process.send_signal(signal.SIGHUP)
            run.path("go").touch()
            self.check_end(run, 0)


class Keyboard(unittest.TestCase):
    """ddprun in the foreground of a terminal of its own."""

    def start(self, script, *options):
        main, terminal = pty.openpty()

        def take_terminal():
            os.setsid()
            import fcntl
            import termios
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        run = Run(DDPRUN, script, options, stdin=terminal, preexec_fn=take_terminal)
        os.close(terminal)
        return main, run

    def test_ctrl_c_reaches_each_rank_once(self):
        main, run = self.start(COUNT)
        with run:
            ready(run)
            os.write(main, b"\x03")
            self.assertEqual(run.end(), 130)
            self.assertIn("stopping 2 ranks (Ctrl-C); press", run.text())
            self.assertEqual([run.path(f"got.{rank}").read_text() for rank in (0, 1)], ["\n"] * 2)
            run.check_nothing_left()

    def test_ctrl_c_while_nodes_are_waited_for(self):
        main, run = self.start("true", "--nnodes=2", "--rdzv-backend=c10d",
                               f"--rdzv-endpoint=127.0.0.1:{free_port()}")
        with run:
            wait_for(lambda: "2 nodes" in run.text(), "wait for nodes")
            os.write(main, b"\x03")
            self.assertEqual(run.end(5), 130)
            run.check_nothing_left()

    def test_ctrl_backslash_is_128_and_3(self):
        main, run = self.start(STAY)
        with run:
            ready(run)
            os.write(main, b"\x1c")
            self.assertEqual(run.end(), 131)
            run.check_nothing_left()

    def test_ctrl_z_stops_the_front_alone(self):
        main, run = self.start(READY + "until [ -e $DIR/go ]; do sleep 0.01; done; "
                               "echo > $DIR/done.$RANK")
        with run:
            ready(run)
            # A session leader's group is orphaned, so the key alone would not stop it.
            os.kill(run.process.pid, signal.SIGSTOP)
            run.path("go").touch()
            wait_for(lambda: run.path("done.0").exists() and run.path("done.1").exists(), "ends")
            os.kill(run.process.pid, signal.SIGCONT)
            self.assertEqual(run.end(), 0)

    def test_a_terminal_that_goes_away_stops_the_run(self):
        main, run = self.start(COUNT.replace("INT TERM", "HUP"))
        with run:
            ready(run)
            os.close(main)
            self.assertEqual(run.end(), 129)
            self.assertIn(kTerminalClosed, run.text())
            self.assertEqual(run.path("got.0").read_text(), "\n")
            run.check_nothing_left()


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
