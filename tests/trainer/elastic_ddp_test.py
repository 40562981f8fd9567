#!/usr/bin/env python3
"""examples/elastic/elastic_ddp.py loses ranks and trains on: no step is lost, none is computed
twice, and the weights are those of an undisturbed run. The test plays the agent.

python3 tests/trainer/elastic_ddp_test.py path/to/build/python [kills]
"""

import datetime
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "worker_api"))
from fake_agent import SURVIVES, FakeAgent, joined, push, receive, variables_of  # noqa: E402

PYTHON_DIR = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
CHANCE = random.Random(int(os.environ.get("ELASTIC_SEED", "1")))
PROGRAM = ROOT / "examples" / "elastic" / "elastic_ddp.py"
SCRIPT = PROGRAM.read_text()
STEPS = int(re.search(r"STEPS, .* = (\d+),", SCRIPT).group(1))
WORLD = 2  # with two ranks every sum of gradients has the same bits
LIMIT_S = 120


def store():
    limit = datetime.timedelta(seconds=60)
    return dist.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)


class Run:
    def __init__(self, agent):
        self.agent, self.links, self.number, self.ranks = agent, {}, 0, []

    def round_of(self, processes):
        """A new round: of these processes, None is one that is started."""
        self.number += 1
        self.store = store()  # the one before ends
        self.ranks = list(processes)
        for rank, process in enumerate(processes):
            variables = variables_of(rank, len(processes), self.number, self.store.port)
            if process is not None:
                push(self.links[process], self.number, variables)
                continue
            process = self.agent.start(SCRIPT, {**variables, "OMP_NUM_THREADS": "1"})
            link = self.agent.accept()
            receive(link, SURVIVES)
            self.links[process], self.ranks[rank] = link, process
        for process in processes:
            if process is not None:
                assert joined(self.links[process]) == self.number

    def lines_until(self, process, wanted):
        """What the process prints, to the line that matches."""
        lines = []
        for line in process.stdout:
            lines.append(line)
            if re.match(wanted, line):
                return lines
        raise AssertionError(f"{wanted} never came: {lines[-5:]}")

    def ends(self):
        outputs = [process.communicate(timeout=LIMIT_S)[0] for process in self.ranks]
        assert [process.returncode for process in self.ranks] == [0] * len(self.ranks), outputs
        done = {output.splitlines()[-1] for output in outputs}
        assert len(done) == 1, done
        return done.pop(), outputs


def run_with(agent, kills, shrinks=False):
    """Rank 1 is killed again and again; `shrinks`: rank 0 trains alone for a while."""
    run = Run(agent)
    run.round_of([None] * WORLD)
    survivor, seen, times = run.ranks[0], [], []
    for kill in range(kills):
        at = (kill + 1) * STEPS // (kills + 2) + CHANCE.randrange(9)
        seen += run.lines_until(survivor, f"step {at} of round {run.number} ")
        began = time.monotonic()
        run.ranks[1].kill()
        run.ranks[1].wait()
        if shrinks:
            run.round_of([survivor])
            seen += run.lines_until(survivor, f"step .* of round {run.number} on 1 ranks")
            times.append(round(1000 * (time.monotonic() - began)))
        run.round_of([survivor, None])
    done, outputs = run.ends()
    steps = [int(line.split()[1]) for line in [*seen, *outputs[0].splitlines()]
             if line.startswith("step ")]
    assert steps == list(range(1, STEPS + 1)), steps
    return done, times


def run_by(*launcher):
    """Its last line without ddprun: no rank can be replaced."""
    environment = {**os.environ, "PYTHONPATH": PYTHON_DIR, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, *launcher, PROGRAM]
    output = subprocess.run(words, env=environment, capture_output=True, text=True, check=False,
                            timeout=LIMIT_S)
    assert output.returncode == 0, output
    # An unbuffered print is two writes, and those of ranks mix.
    done = set(re.findall(r"done: step \d+, weights [0-9a-f]{8}", output.stdout))
    assert len(done) == 1, output
    return done.pop()


def fail_with_a_bug():
    """Alone no other round can come: the error ends the program at once."""
    bug = "torch.zeros(2, 3) @ torch.zeros(2, 3)"
    script, found = re.subn(r"( +)optimizer\.step\(\)", rf"\1{bug}\n\g<0>", SCRIPT)
    assert found == 1
    environment = {**os.environ, "PYTHONPATH": PYTHON_DIR, "OMP_NUM_THREADS": "1"}
    failed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True,
                            text=True, check=False, timeout=LIMIT_S)
    assert failed.returncode == 1 and "mat1 and mat2 shapes" in failed.stderr, failed
    assert "done" not in failed.stdout, failed


def main():
    fail_with_a_bug()
    with FakeAgent(PYTHON_DIR) as agent:
        expected, _ = run_with(agent, 0)
        assert expected.startswith(f"done: step {STEPS}, weights "), expected
        done, _ = run_with(agent, KILLS)
        assert done == expected, (done, expected)
        _, times = run_with(agent, 1, shrinks=True)
        print("SIGKILL to the next step of a smaller world, ms:", times)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={WORLD}"]
    assert run_by(*torchrun) == done
    assert run_by().startswith(f"done: step {STEPS}, ")  # one rank: the sums have other bits


if __name__ == "__main__":
    if not hasattr(dist.distributed_c10d, "ReconfigureOptions"):
        print("skipped: this torch has no reconfigure")
        sys.exit(77)
    main()
