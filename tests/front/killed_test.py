#!/usr/bin/env python3
"""Kills front, guard and agent, alone and in pairs: nothing of the run may be left.

    tests/front/killed_test.py path/to/ddprun
"""

import fcntl
import itertools
import os
import pathlib
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from unittest import mock

from processes_of_run import HUNG, SHAPES, Run, stat_of, wait_for
from streams import read_until

DDPRUN = ""


def cgroups_of(prefix):
    """Cgroups of runs, wherever the v2 hierarchy is mounted."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    return [path for root in roots for path, _, _ in os.walk(root)
            if os.path.basename(path).startswith(prefix)]


def sockets_of(agent):
    user = os.geteuid()
    places = [f"/dev/shm/ddprun-{user}", f"/tmp/ddprun-{user}",
              os.environ.get("XDG_RUNTIME_DIR", "/nowhere") + "/ddprun"]
    return [path for place in places for path in pathlib.Path(place).glob(f"{agent}-*")
            if path.suffix != ".new"]


# A rank with a helper process that has the pipe of the resource tracker, too, as data loaders have.
SHARES_MEMORY = """
import os, signal
from multiprocessing import resource_tracker, shared_memory
signal.signal(signal.SIGINT, signal.SIG_IGN)
memory = shared_memory.SharedMemory(create=True, size=4096)
def ignored(pid):
    with open(f"/proc/{pid}/status") as status: return status.read().split("SigIgn:")[1].split()[0]
# The tracker ignores SIGTERM once it runs.
while not int(ignored(resource_tracker._resource_tracker._pid), 16) >> 14 & 1: pass
if os.fork() == 0:
    while True: signal.pause()
path = os.path.join(os.environ["DIR"], "shm." + os.environ["RANK"])
with open(path + ".new", "w") as file: file.write(memory.name)
os.rename(path + ".new", path)
while True: signal.pause()
"""
REPEATS = int(os.environ.get("DDPRUN_TEST_REPEATS", "1"))
NAMES = ("front", "guard", "agent")
VICTIMS = [one for count in (1, 2) for one in itertools.combinations(range(3), count)]


def removed(box):
    try:
        box.rmdir()
    except OSError:
        return False
    return True


class Killed(unittest.TestCase):
    def check(self, victims, shape):
        script, sleeps = SHAPES[shape]
        with Run(DDPRUN, script, sleeps=sleeps) as run:
            supervisors = run.supervisors()
            seconds = run.kill([supervisors[at] for at in victims])
            self.assertEqual(run.end(), 137)
            return seconds, run.text()

    def test_any_one_or_two_of_the_supervisors(self):
        for victims, shape in itertools.product(VICTIMS, SHAPES):
            who = " and ".join(NAMES[at] for at in victims)
            with self.subTest(killed=who, worker=shape):
                taken = [self.check(victims, shape)[0] for _ in range(REPEATS)]
                print(f"{who} killed, {shape}: {max(taken) * 1e3:.0f} ms at most", flush=True)

    def test_a_stopped_agent_does_not_outlive_its_supervisors(self):
        for shape, (script, sleeps) in SHAPES.items():
            with self.subTest(worker=shape), Run(DDPRUN, script, sleeps=sleeps) as run:
                front, guard, agent = run.supervisors()
                os.kill(agent, signal.SIGSTOP)
                wait_for(lambda: stat_of(agent)[1] == "T", "stopped agent")
                os.kill(front, signal.SIGSTOP)  # it would continue the agent with its guard
                run.kill([front, guard])

    def test_the_death_of_the_agent_is_one_line(self):
        with Run(DDPRUN, "sleep 1000; true", sleeps=1) as run:
            _, _, agent = run.supervisors()
            run.kill([agent])
            self.assertEqual(run.end(), 137)
            said = [line for line in run.text().splitlines() if "[AGENT]" in line]
            # A shell that dies last may have collected its child itself.
            self.assertRegex("\n".join(said),
                             rf"^ddprun: error \[AGENT\] the agent \(pid {agent}\) "
                             r"was killed by SIGKILL; its [2-4] processes were ended$")

    @mock.patch.dict(os.environ, TERM="xterm")
    def test_the_line_about_a_killed_agent_does_not_stand_behind_a_bar(self):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with Run(DDPRUN, "printf '\\r50 of 100' >&2; exec sleep 1000", sleeps=1, ranks=1,
                 stdout=follower, stderr=follower) as run:
            os.close(follower)
            _, _, agent = run.supervisors()
            seen = read_until(leader, b"50 of 100", HUNG)
            run.kill([agent])
            seen += read_until(leader, b" ended\r\n", HUNG)
            self.assertRegex(seen, rb"50 of 100\S* {80}\r\x1b\[Kddprun: error \[AGENT\]")

    def test_a_crash_of_the_agent_is_128_and_the_signal(self):
        with Run(DDPRUN, "sleep 1000; true", sleeps=1) as run:
            _, _, agent = run.supervisors()
            run.kill([agent], signal.SIGSEGV)
            self.assertEqual(run.end(), 139)
            self.assertIn(f"[AGENT] the agent (pid {agent}) was killed by SIGSEGV", run.text())

    def test_a_worker_that_forks_into_a_new_session_each_time_does_not_outlive_the_agent(self):
        loop = "echo 'setsid sh $DIR/loop.$RANK &' > $DIR/loop.$RANK; sh $DIR/loop.$RANK; "
        with Run(DDPRUN, loop + "exec sleep 1000", sleeps=1) as run:
            _, _, agent = run.supervisors()
            if not cgroups_of(f"ddprun.{agent}-"):
                self.skipTest("no cgroup v2 hierarchy that can be written")
            run.kill([agent])

    def test_the_cgroups_of_a_run_whose_agent_is_killed_are_removed(self):
        with Run(DDPRUN, "sleep 1000; true", sleeps=1) as run:
            _, _, agent = run.supervisors()
            if not cgroups_of(f"ddprun.{agent}-"):
                self.skipTest("no cgroup v2 hierarchy that can be written")
            run.kill([agent])
            self.assertEqual(run.end(), 137)
            self.assertEqual(cgroups_of(f"ddprun.{agent}-"), [])

    def test_the_sockets_and_pipes_of_a_run_whose_agent_is_killed_are_removed(self):
        for victims in ((2,), (0, 2)):
            with self.subTest(killed=victims), tempfile.TemporaryDirectory(dir="/tmp") as runtime, \
                 mock.patch.dict(os.environ, XDG_RUNTIME_DIR=runtime,
                                 TORCHELASTIC_ENABLE_FILE_TIMER="1"), \
                 Run(DDPRUN, "sleep 1000; true", sleeps=1) as run, \
                 socket.socket(socket.AF_UNIX) as listens:
                supervisors = run.supervisors()
                agent = supervisors[2]
                commands = pathlib.Path(runtime, "ddprun")
                wait_for(lambda: list(commands.glob("*.sock")), "socket for commands")
                self.assertIn(".timers", [path.suffix for path in sockets_of(agent)])
                live = commands / f"{agent}-another.sock"  # of another PID namespace
                listens.bind(str(live))
                listens.listen()
                run.kill([supervisors[at] for at in victims])
                wait_for(lambda: sockets_of(agent) == [live], "end of its sockets")

    def test_what_no_signal_ends_is_named_once_and_not_waited_for_long(self):
        box = pathlib.Path(f"/sys/fs/cgroup/freezer/ddprun_front_test_{os.getpid()}")
        try:
            box.mkdir()
        except OSError as error:
            self.skipTest(f"no freezer, whose processes SIGKILL does not end: {error}")
        self.addCleanup(lambda: wait_for(lambda: removed(box), "end of the frozen process"))
        with Run(DDPRUN, "setsid sleep 1000 & exec sleep 1000", sleeps=2, ranks=1) as run:
            _, _, agent = run.supervisors()
            frozen = next(pid for pid in run.left() if stat_of(pid)[0] == "sleep")
            (box / "cgroup.procs").write_text(str(frozen))
            (box / "freezer.state").write_text("FROZEN")
            os.kill(agent, signal.SIGKILL)
            self.assertEqual(run.end(), 137)
            (box / "freezer.state").write_text("THAWED")
            self.assertEqual(run.text().count("still alive after SIGKILL: sleep (pid "
                                              f"{frozen}, state D)"), 1, run.text())
            run.check_nothing_left()

    def test_shared_memory_is_removed_by_its_tracker_whoever_is_killed(self):
        for victims in ((0,), (2,), ()):
            with self.subTest(killed=victims):
                # On a busy machine a tracker may need more than the 200 ms that it gets.
                self.assertIn(0, (self.shared_memory_left(victims) for _ in range(5)))

    def shared_memory_left(self, victims):
        with Run(DDPRUN, f"exec {sys.executable} -c '{SHARES_MEMORY}'", ranks=2) as run:
            wait_for(lambda: all(run.path(f"shm.{rank}").exists() for rank in (0, 1)), "memory")
            paths = [pathlib.Path("/dev/shm", run.path(f"shm.{rank}").read_text())
                     for rank in (0, 1)]
            self.assertTrue(all(path.exists() for path in paths))
            if victims:
                supervisors = run.supervisors()
                run.kill([supervisors[at] for at in victims])
            else:  # the second one demands an immediate stop
                run.process.send_signal(signal.SIGINT)
                wait_for(lambda: "stopping 2 ranks" in run.text(), "stop")
                run.process.send_signal(signal.SIGINT)
                self.assertEqual(run.end(), 130)
                run.check_nothing_left()
            left = [path for path in paths if path.exists()]
            for path in left:
                path.unlink()
            return len(left)

    def test_killall_by_the_name_of_the_program_spares_the_guard(self):
        with Run(DDPRUN, "sleep 1000; true", sleeps=1) as run:
            named = [pid for pid in run.supervisors() if stat_of(pid)[0] == "ddprun"]
            self.assertEqual(len(named), 2)
            run.kill(named)

    def test_pkill_by_a_word_of_the_command_line_spares_the_guard(self):
        with Run(DDPRUN, "(setsid sleep 1000 &); exec sleep 1000", sleeps=2) as run:
            front, guard, agent = run.supervisors()
            with open(f"/proc/{guard}/cmdline", encoding="ascii") as file:
                self.assertEqual(file.read().strip("\0"), f"ddguard of {front}")
            run.kill([front, agent])

    def test_a_front_in_a_stopped_state_does_not_stop_the_run(self):
        script = "until [ -e $DIR/go ]; do sleep 0.01; done; echo > $DIR/done.$RANK"
        with Run(DDPRUN, script) as run:
            front, _, _ = run.supervisors()
            os.kill(front, signal.SIGSTOP)
            run.path("go").touch()
            wait_for(lambda: run.path("done.0").exists() and run.path("done.1").exists(), "workers")
            os.kill(front, signal.SIGCONT)
            self.assertEqual(run.end(), 0)

    def test_a_stopped_guard_ends_the_run_all_the_same(self):
        for victim in range(3):
            with self.subTest(killed=NAMES[victim]):
                script, sleeps = SHAPES["a daemon"]
                with Run(DDPRUN, script, sleeps=sleeps) as run:
                    supervisors = run.supervisors()
                    os.kill(supervisors[0], signal.SIGSTOP)  # it would continue the guard at once
                    os.kill(supervisors[1], signal.SIGSTOP)
                    os.kill(supervisors[victim], signal.SIGKILL)
                    os.kill(supervisors[0], signal.SIGCONT)
                    self.assertEqual(run.end(), 137)
                    run.check_nothing_left()

    def test_a_run_beside_another_is_not_disturbed(self):
        with Run(DDPRUN, "sleep 1000; true", sleeps=1) as one, \
             Run(DDPRUN, "until [ -e $DIR/go ]; do sleep 0.01; done") as other:
            other.supervisors()
            one.kill([one.supervisors()[2]])
            other.path("go").touch()
            self.assertEqual(other.end(), 0)

    def test_children_that_an_earlier_program_left_to_the_front_are_spared(self):
        script = ('sleep 1000 >/dev/null & echo $!; setsid sleep 1000 >/dev/null & echo $!; '
                  'exec "$@"')
        command = ["sh", "-c", script, "sh", DDPRUN, "--standalone", "--no-python", "true"]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             timeout=20, check=True, text=True)
        strangers = [int(line) for line in ran.stdout.split()]
        try:
            self.assertEqual([stat_of(pid)[0] for pid in strangers], ["sleep", "sleep"])
        finally:
            for pid in strangers:
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
