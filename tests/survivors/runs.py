"""Runs of survivor.py with --restart=failed. Arguments: ddprun, ddprun-rdzvd."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import HUNG, eventually
from ports import free_port

DDPRUN, RDZVD = (os.path.abspath(path) for path in sys.argv[1:3])
WORKER = str(pathlib.Path(__file__).resolve().parent / "survivor.py")
FAILED = "--restart=failed"
NOT_JOINED = "did not take part within 1 s (--rejoin-timeout); killed and started"


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def lives(pid):
    return state_of(pid) not in "ZX"


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid:
                found.append(int(stat.parent.name))
    return found


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.rounds = self.folder / "rounds"
        self.rounds.mkdir()
        self.started = []

    def spawn(self, *words):
        errors = open(self.folder / f"errors{len(self.started)}", "w+", encoding="utf-8")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                   process_group=0)  # a job, as of a shell
        process.errors = errors
        self.started.append(process)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        process.errors.close()

    def start(self, *words, behaviour=(), ranks=4, which=FAILED):
        return self.spawn(DDPRUN, which, f"--nproc-per-node={ranks}", "--max-restarts=3",
                          "--shutdown-timeout=5", f"--log-dir={self.folder / 'logs'}", *words,
                          "--no-python", sys.executable, WORKER, str(self.rounds), *behaviour)

    def single(self, *words, **options):
        return self.start("--standalone", *words, **options)

    def node(self, port, *words, **options):
        return self.start("--nnodes=1:2", f"--rdzv-endpoint=127.0.0.1:{port}",
                          "--rdzv-backend=c10d", "--rdzv-id=survivors",
                          "--rdzv-conf=is_host=0,last_call_timeout=1,keep_alive_interval=1,"
                          "keep_alive_max_attempt=3", *words, **options)

    def coordinator(self):
        port = free_port()
        return port, self.spawn(RDZVD, f"--port={port}", "--state-file=off")

    def hold(self, *words, before=lambda: None):
        """A failure that no coordinator decides about yet: its process stands still."""
        port, coordinator = self.coordinator()
        run = self.node(port, "--nnodes=1", *words)
        first = self.round(1)
        before()
        coordinator.send_signal(signal.SIGSTOP)
        os.kill(self.pid_of(first, 3), signal.SIGKILL)
        self.assertTrue(eventually(lambda: "received SIGKILL" in self.said(run)))
        held = set(first) - {self.pid_of(first, 3)}
        self.assertTrue(all(lives(pid) for pid in held))
        return run, coordinator, first, held

    def takers(self, number):
        """Who takes part in a round: its variables by pid."""
        found = {}
        for path in self.rounds.glob(f"[0-9]*.{number}"):
            lines = path.read_text().splitlines()
            found[int(path.name.split(".")[0])] = dict(line.split("=", 1) for line in lines)
        return found

    def round(self, number, ranks=4):
        arrived = eventually(lambda: len(self.takers(number)) >= ranks and
                             len(self.heard(number)) >= ranks)
        said = [self.said(one) for one in self.started]
        self.assertTrue(arrived, f"{self.takers(number)}\n" + "\n".join(said))
        taken = self.takers(number)
        self.assertEqual(sorted(int(one["RANK"]) for one in taken.values()), list(range(ranks)))
        self.assertEqual({one["WORLD_SIZE"] for one in taken.values()}, {str(ranks)})
        self.assertEqual(len({one["MASTER_PORT"] for one in taken.values()}), 1)
        return taken

    def heard(self, number):
        """The ranks whose agents know that they take part in a round, and can take another one."""
        heard = self.events("ready", "worker_joined")
        return {event["rank"] for event in heard if event["round"] == number}

    def events(self, *names):
        found = []
        for path in self.folder.glob("logs/*/events.jsonl"):
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if event["event"] in names:
                        found.append(event)
        return found

    def pid_of(self, taken, rank):
        (pid,) = [pid for pid, one in taken.items() if one["RANK"] == str(rank)]
        return pid

    def said(self, process):
        process.errors.flush()
        return pathlib.Path(process.errors.name).read_text()

    def shown(self, process, *words):
        return subprocess.run([DDPRUN, "status", str(process.pid), *words], capture_output=True,
                              text=True, check=True, timeout=HUNG).stdout

    def status(self, process):
        return json.loads(self.shown(process, "--json"))

    def finish(self, process, code=0):
        (self.rounds / "done").touch()
        self.assertEqual(process.wait(HUNG), code, self.said(process))
        return self.said(process)

    def pids(self):
        return {int(path.name.split(".")[0]) for path in self.rounds.glob("[0-9]*.*")}

    def assert_nothing_left(self):
        self.assertTrue(eventually(lambda: not any(lives(pid) for pid in self.pids())),
                        [pid for pid in self.pids() if lives(pid)])


def agent_of(worker):
    return int(pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
