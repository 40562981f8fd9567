"""Ranks that survive the loss of another one train on, to the same bits.

recover_test.py CASE, one of the functions below. The test plays the launcher: it tells survivors of
a new world, on stdin, and starts a process in place of a lost one.
"""

import csv
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading

import harness

SAMPLES, BATCH = 330, 32  # 11 steps an epoch
RUN = ["--deterministic", 4, "--epochs", 2, "--limit-train", SAMPLES, "--batch-size", BATCH]
RUN += ["--log-every", 5, "--checkpoint-every", "off"]
# An event that does not come in this time is a hang.
EVENT_S = 100


class Member:
    """One worker process; what it does goes to `events`."""

    def __init__(self, run, rank, variables):
        self.rank = rank
        self.process = subprocess.Popen(
            run.command,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.output, self.errors = [], []
        self.events = run.events
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.listen)]
        for thread in self.threads:
            thread.start()

    def read(self):
        for line in self.process.stdout:
            self.output.append(line)
            self.events.put(("line", self, line))
        self.events.put(("exit", self, self.process.wait()))

    def listen(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def tell(self, line):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which is an event of its own


class Run:
    """A run of `world` ranks. `moments`: rank -> MOMENT of its first process."""

    def __init__(self, folder, world, *flags, moments=None, respawn=True):
        self.folder, self.world, self.respawn = folder, world, respawn
        base = harness.generated(folder, *RUN, "--sample-log", folder / "log", *flags)
        self.command = [str(word) for word in [harness.program("RECOVER_WORKER"), *base[1:]]]
        self.events = queue.Queue()
        self.store, self.round, self.kills = None, 0, 0
        self.expected = 0
        self.moments = moments or {}
        self.started, self.members = [], []
        self.outputs = []

    def end_round(self):
        """Who waits for the store of the round notices."""
        if self.store:
            self.store.close()
            self.store = None

    def begin_round(self, survivors, size):
        self.end_round()
        self.store = harness.Store()
        self.round += 1
        port = self.store.port
        for rank, member in enumerate(survivors):
            if member is not None:
                member.rank = rank
                member.tell(f"{self.round} {rank} {size} {port}\n")
        self.members = [
            member or self.spawn(rank, size, port) for rank, member in enumerate(survivors)
        ]

    def spawn(self, rank, size, port):
        variables = dict(
            os.environ,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(size),
            LOCAL_WORLD_SIZE=str(size),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            DDPRUN_ROUND=str(self.round),
            TORCHELASTIC_USE_AGENT_STORE="True",
            OMP_NUM_THREADS="1",
            MOMENT=self.moments.pop(rank, ""),
        )
        member = Member(self, rank, variables)
        self.started.append(member)
        return member

    def regroup(self):
        """The next world: all processes that live, and processes in place of the lost ones."""
        alive = [member if member.process.poll() is None else None for member in self.members]
        if not self.respawn:
            alive = [member for member in alive if member is not None]
        self.begin_round(alive, len(alive))

    def event(self):
        try:
            return self.events.get(timeout=EVENT_S)
        except queue.Empty:
            told = [(m.rank, m.process.poll(), m.output[-3:], m.errors) for m in self.members]
            raise AssertionError(f"round {self.round} hangs: {told}") from None

    def finish(self, on_line=None, pretended=False):
        """Returns the output of all processes; every one must end as expected or by SIGKILL."""
        try:
            self.begin_round([None] * self.world, self.world)
            done = set()
            while not done.issuperset(self.members):
                kind, member, what = self.event()
                if kind == "line":
                    if on_line:
                        on_line(self, member, what)
                    if pretended and what.startswith("waits"):
                        pretended = False
                        self.regroup()
                elif member in self.members:
                    assert what in (self.expected, -signal.SIGKILL), (what, member.errors)
                    if what == self.expected:
                        done.add(member)
                    else:
                        self.kills += 1
                        self.regroup()
        finally:
            self.end_round()
            for member in self.started:
                member.process.kill()
                member.process.wait()
            for member in self.started:
                for thread in member.threads:
                    thread.join()
        return "".join(line for member in self.started for line in member.output)


def logged(folder):
    """step -> (count, digest); a step that is logged twice must be the same twice."""
    steps = {}
    for file in sorted(folder.glob("log.rank*.csv")):
        for row in csv.DictReader(file.open()):
            assert row["rank"] == "all", row
            sample = (int(row["count"]), int(row["digest"]))
            assert steps.setdefault(int(row["step"]), sample) == sample, (file, row)
    return steps


def result(output):
    """The hash of the weights and the accuracy; every process that prints them agrees."""
    finals = set(re.findall(r"^(?:final: .*|weights [0-9a-f]{16})$", output, re.MULTILINE))
    assert len(finals) == 2, output
    return finals


UNDISTURBED = {}


def undisturbed(*flags):
    if flags not in UNDISTURBED:
        folder = harness.folder()
        run = Run(folder, 1, *flags)
        UNDISTURBED[flags] = result(run.finish()), logged(folder)
        assert len(UNDISTURBED[flags][1]) == 22
    return UNDISTURBED[flags]


def expect_undisturbed(run, *flags, on_line=None, kills=1, pretended=False):
    output = run.finish(on_line, pretended)
    expected = undisturbed(*flags)
    assert run.kills == kills, run.kills
    assert result(output) == expected[0], output
    assert logged(run.folder) == expected[1]
    return output


def killed_at(moment, rank=1, world=3, **others):
    run = Run(harness.folder(), world, moments={rank: moment}, **others)
    output = expect_undisturbed(run)
    assert re.search(r"^recovered: ", output, re.MULTILINE), output
    print(moment, rank, "ok", flush=True)


def a_rank_lost_in_a_step_costs_no_step():
    for moment in ("forward", "reduce", "reduced", "updated"):
        killed_at(f"{moment}:7")


def rank_zero_lost_in_a_step_costs_no_step():
    for moment in ("forward", "reduce", "reduced", "updated"):
        killed_at(f"{moment}:7", rank=0)


def a_rank_lost_at_the_end_of_an_epoch_costs_no_step():
    killed_at("updated:10", rank=0)
    killed_at("forward:11", rank=0)
    killed_at("updated:21", rank=2)


def a_lost_rank_need_not_come_back():
    killed_at("reduce:7", rank=0, respawn=False)
    killed_at("updated:3", rank=2, world=2 + 1, respawn=False)


def a_rank_lost_while_others_recover_costs_no_step():
    for moment in ("join", "joined", "transfer", "received", "verified"):
        run = Run(harness.folder(), 3, moments={1: "reduce:7", 0: f"{moment}:7"})
        expect_undisturbed(run, kills=2)
        print(moment, "ok", flush=True)


def a_rank_that_has_applied_a_step_is_the_source():
    """The case of two generals: one rank has lost its peers before it could apply the step."""
    for behind in (0, 2):
        run = Run(harness.folder(), 3, moments={behind: "reduced:7:leave"})
        output = expect_undisturbed(run, kills=0, pretended=True)
        source = 1 if behind == 0 else 0
        wanted = f"at step 8 with the state of rank {source}( |$)"
        assert re.search(wanted, output, re.MULTILINE), output


def a_lost_rank_costs_no_step_without_the_flag_either():
    for moment in ("reduce:7", "updated:7"):
        run = Run(harness.folder(), 3, "--deterministic", 0, moments={1: moment})
        output = run.finish()
        assert run.kills == 1
        assert re.search(r"^recovered: 3 ranks continue at step [78] ", output, re.M), output
        assert "final: step 22," in output, output


def a_rank_that_led_ends_its_checkpoint_before_another_leads():
    folder = harness.folder()
    disk = harness.SlowDisk(folder)
    os.environ.update(disk.variables)
    flags = ["--log-every", 1, "--checkpoint-every", "1ms"]
    run = Run(folder, 3, *flags, moments={1: "reduce:7"})

    def regroup():
        first, lost, last = run.members
        assert lost.process.poll() is not None
        run.begin_round([last, None, first], 3)
        threading.Timer(2, disk.go_on).start()

    def on_line(_, member, line):
        if line.startswith("train step 3/"):
            disk.stall()
        if line.startswith("recovered"):
            assert member is not run.started[0] and not disk.flag.exists(), line

    run.regroup = regroup
    output = expect_undisturbed(run, on_line=on_line)
    assert re.search("^recovered: 3 ranks continue at step [78] ", output, re.M), output
    assert harness.step_in(folder / "resnet18.last.safetensors") == 22


def a_damaged_weight_is_found_and_replaced():
    for mode in ([], ["--deterministic", 0]):
        run = Run(
            harness.folder(), 3, "--check-every", 4, *mode, moments={1: "updated:7:damage"}
        )
        output = run.finish()
        found = re.findall("^rank.* held other weights .*$", output, re.MULTILINE)
        print(found)
        wanted = "rank 1 held other weights than the majority at step 8: replaced by the majority's"
        assert found == [wanted], output
        if not mode:
            assert result(output) == undisturbed()[0], output


def weights_without_a_majority_end_every_rank():
    flags = ["--check-every", 4]
    run = Run(harness.folder(), 2, *flags, moments={1: "updated:7:damage"})
    run.expected = 1
    run.finish()
    for member in run.started:
        assert member.process.returncode == 1
        assert "rank 1 and rank 0 hold different weights at step 8" in "".join(member.errors)


def random_kills():
    """RECOVER_KILLS: how many; RECOVER_SEED."""
    usual = "12" if os.environ.get("DDPRUN_TEST_LONG") else "6"
    count = int(os.environ.get("RECOVER_KILLS", usual))
    seed = int(os.environ.get("RECOVER_SEED", str(random.randrange(1 << 30))))
    print("seed", seed, flush=True)
    chance = random.Random(seed)
    killed, flags = 0, ["--log-every", 1]
    while killed < count:

        def on_line(run, member, line):
            if line.startswith(("train step", "recovered", "waits")) and chance.random() < 0.12:
                chance.choice(run.members).process.kill()

        run = Run(harness.folder(), 4, *flags)
        output = run.finish(on_line)
        expected = undisturbed(*flags)
        assert result(output) == expected[0], output
        assert logged(run.folder) == expected[1]
        killed += run.kills
        print(run.kills, "kills, round", run.round, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
