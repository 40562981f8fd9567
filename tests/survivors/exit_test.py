#!/usr/bin/env python3
"""A lost rank with much memory: the next round does not wait until the kernel has torn that down,
but a process in the same place does.

python3 tests/survivors/exit_test.py path/to/ddprun folder/with/the/module
"""
import contextlib
import json
import mmap
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import HUNG, eventually

KILLS, RANKS = 6, 3
# Pages that are only read cost no memory but their entries, which the kernel takes down one by one.
MAPPED_BYTES, MAP_NORESERVE, MADV_POPULATE_READ = 8 << 30, 0x4000, 22


def map_much():
    mapped = mmap.mmap(-1, MAPPED_BYTES, flags=mmap.MAP_PRIVATE | MAP_NORESERVE)
    mapped.madvise(mmap.MADV_NOHUGEPAGE)
    mapped.madvise(MADV_POPULATE_READ)
    return mapped


def work(folder, forks):
    """Writes FOLDER/<round>.<rank> with its pid, and whether the process before it is gone."""
    import ddprun
    kept = map_much()
    if forks and os.fork() == 0:
        signal.pause()
    ddprun.survive()
    while world := ddprun.next_round():
        before = folder / f"{world.round - 1}.{world.rank}"
        pid = int(before.read_text().split()[0]) if before.exists() else 0
        is_gone = pid in (0, os.getpid()) or not os.path.exists(f"/proc/{pid}")
        (made := folder / f".{os.getpid()}").write_text(f"{os.getpid()} {is_gone}")
        made.rename(folder / f"{world.round}.{world.rank}")
        while not ddprun.round_pending():
            if (folder / "done").exists():
                return kept
            signal.sigtimedwait([], 0.01)
    return kept


class Exits(unittest.TestCase):
    def start(self, *words):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.errors = self.enterContext(open(self.folder / "errors", "w+", encoding="utf-8"))
        environment = {**os.environ, "PYTHONPATH": MODULE, "PYTHON_EXEC": sys.executable}
        options = [word for word in words if word.startswith("--")]
        run = subprocess.Popen(
            [DDPRUN, "--standalone", "--restart=failed", f"--nproc-per-node={RANKS}",
             "--max-restarts=100", f"--log-dir={self.folder / 'logs'}", *options, __file__,
             "--work", str(self.folder), *[word for word in words if word not in options]],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def taken(self, number):
        """Of each rank of a round: its pid, and whether the process before it was gone."""
        found = [path.read_text().split() for path in self.folder.glob(f"{number}.[0-9]")]
        return [(int(pid), is_gone == "True") for pid, is_gone in found]

    def round(self, number):
        self.assertTrue(eventually(lambda: len(self.taken(number)) == RANKS),
                        (self.folder / "errors").read_text())
        return self.taken(number)

    def events(self, name):
        found = []
        for path in self.folder.glob("logs/*/events.jsonl"):
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return [event for event in found if event["event"] == name]

    def lose_ranks(self, run, kills=KILLS, spare=False):
        """Whether the end of one was known before it was gone."""
        known = False
        for number in range(1, kills + 1):
            taken = self.round(number)
            if spare:
                gone = number - 1
                self.assertTrue(eventually(lambda: len(self.events("spare_ready")) > gone))
            victim = taken[0][0]
            os.kill(victim, signal.SIGKILL)
            after = self.round(number + 1)
            self.assertEqual(len({pid for pid, _ in taken} & {pid for pid, _ in after}), RANKS - 1)
            if not spare:
                self.assertTrue(all(is_gone for _, is_gone in after))
            self.assertTrue(eventually(lambda pid=victim: not os.path.exists(f"/proc/{pid}")))
            (exited,) = [one for one in self.events("worker_exited") if one["pid"] == victim]
            self.assertEqual((exited["signal"], exited["sent_signal"]), (signal.SIGKILL, 0))
            known = known or exited["exiting"]
        (self.folder / "done").touch()
        self.assertEqual(run.wait(HUNG), 0, (self.folder / "errors").read_text())
        return known

    def test_the_next_round_does_not_wait_for_its_memory(self):
        self.assertTrue(self.lose_ranks(self.start("--spares=1"), spare=True))

    def test_a_start_in_its_place_waits_until_it_is_gone(self):
        self.assertTrue(self.lose_ranks(self.start()))

    def test_the_end_of_what_has_started_processes_is_waited_for(self):
        self.assertFalse(self.lose_ranks(self.start("forks"), kills=2))


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(pathlib.Path(sys.argv[2]), "forks" in sys.argv)
        sys.exit(0)
    DDPRUN, MODULE = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    try:
        map_much().close()
    except OSError as why:
        print(f"skipped: pages cannot be mapped ahead: {why}")
        sys.exit(77)
    unittest.main()
