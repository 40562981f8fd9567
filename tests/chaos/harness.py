"""The harness of the chaos cases: real launchers, real workers, real deadlines.

A Cluster starts agents (and ddprun-rdzvd) as processes, waits for rounds that its workers have
recorded, and at its end checks the invariants: nothing hangs, no process is left, exit codes agree,
every round is complete.
"""

import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import notes
import processes

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import certificates  # noqa: E402
from ports import free_port  # noqa: E402
from supervisors import agent_of  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SECRET = "of all runs with --secret, 32 characters"
WAIT_SECONDS = float(os.environ.get("DDPRUN_TEST_WAIT", "20"))  # a longer wait counts as a hang
# A silence limit of 10 s, so that a process that waits for a busy processor is not lost.
CONF = {"keep_alive_interval": "0.2", "keep_alive_max_attempt": "50", "last_call_timeout": "15",
        "join_timeout": "30", "coordinator_timeout": "30"}
# 1 s, for cases that wait for the silence limit.
SOON_LOST = {"keep_alive_max_attempt": "5"}


class Failed(Exception):
    """The failure of a case; the text is for the reader of the test."""


class Round:
    """All workers that connected to one store."""

    def __init__(self, members: list[dict]):
        self.members = sorted(members, key=lambda one: int(one["RANK"]))
        first = self.members[0]
        self.number = int(first["DDPRUN_ROUND"] or 0)
        self.restarts = int(first["TORCHELASTIC_RESTART_COUNT"])
        self.master = (first["MASTER_ADDR"], first["MASTER_PORT"])
        self.pids = {int(one["RANK"]): one["pid"] for one in self.members}
        self.agents = {one["CHAOS_AGENT"] for one in self.members}
        self.began = max(one["began"] for one in self.members)

    def pids_of(self, agent: "Agent") -> list[int]:
        return [one["pid"] for one in self.members if one["CHAOS_AGENT"] == agent.name]

    def rank_of(self, agent: "Agent") -> int:
        """The first rank on this agent."""
        return min(int(one["RANK"]) for one in self.members if one["CHAOS_AGENT"] == agent.name)


class Agent:
    """One launcher in the background, its console in a file."""

    def __init__(self, name: str, command: list[str], environment: dict, console: pathlib.Path):
        self.name = name
        self.console = console
        self.began = time.monotonic()
        with open(self.console, "wb") as output:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, start_new_session=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: int) -> None:
        """What cannot be caught is for the agent; the front would take it for itself."""
        if number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
            processes.kill(agent_of(self.pid), number)
        else:
            self.process.send_signal(number)

    def text(self) -> str:
        return self.console.read_text(errors="replace")

    def is_running(self) -> bool:
        return self.process.poll() is None

    def end(self, seconds: float = WAIT_SECONDS) -> int:
        """Waits for the exit code: 128 + n for signal n, as in a shell."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"hang: {self.name} did not exit within {seconds} s") from None
        return 128 - code if code < 0 else code


class Cluster:
    """Agents of one run id on one machine. Use in a `with` statement: it checks and cleans up."""

    def __init__(self, tools, seed: int):
        self.tools = tools
        self.random = random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_chaos_"))
        (self.folder / "notes").mkdir()
        self.run_id = "chaos-" + uuid.uuid4().hex[:8]
        self.port = free_port()
        self.agents: list[Agent] = []
        self.daemons: dict[str, subprocess.Popen] = {}
        self.hosts_are_cut_off = False  # some of them, now and then
        self.began_apart = False  # two runs of the id did: each has a round of a number
        self.flags = {"nproc-per-node": "1", "max-restarts": "0", "shutdown-timeout": "5",
                      "rdzv-backend": "c10d", "rdzv-id": self.run_id}
        self.conf = dict(CONF)
        self.environment = {"CHAOS_FOLDER": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.of_daemon = []  # its options
        if getattr(tools, "secret", False):
            self.environment["DDPRUN_SECRET"] = SECRET
            (self.folder / "secret").touch(0o600)
            (self.folder / "secret").write_text(SECRET)
            self.of_daemon = [f"--secret-file={self.folder}/secret"]
        if getattr(tools, "certificates", False):
            self.certify()
        self.worker = [sys.executable, "-S", "-u", str(HERE / "worker.py")]
        self.environment_of = {}  # agent name -> variables of its own
        self.console_of = {}  # agent name -> its console, when that is not a file in the folder
        self.prefix = {}  # agent name -> words before the launcher, for a network namespace
        self.host = "127.0.0.1"

    def certify(self) -> None:
        """One certificate for all, as if there was one host; ten of its addresses are 10.77.0.N."""
        names = ",".join(f"IP:10.77.0.{number}" for number in range(1, 11))
        own = certificates.Ca(self.folder, "ca").issue(f"{certificates.NAMES},{names}")
        for option, file in (("cert", own.cert), ("key", own.key), ("ca", own.ca)):
            self.environment[f"DDPRUN_RDZV_TLS_{option.upper()}"] = str(file)
            self.of_daemon.append(f"--tls-{option}={file}")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.check_rounds()
                self.check_nothing_left()
        except Failed as found:
            kind = Failed
            raise Failed(f"{found}\n{self.story()}") from None
        finally:
            story = self.story() if kind is Failed and error is not None else ""
            self.clean_up()
        if story:
            raise Failed(f"{error}\n{story}") from None
        return False

    # Starting.

    def command(self, name: str, **more) -> list[str]:
        flags = self.flags | {key.replace("_", "-"): str(value) for key, value in more.items()}
        flags.setdefault("rdzv-endpoint", f"{self.host}:{self.port}")
        flags.setdefault("rdzv-conf", ",".join(f"{k}={v}" for k, v in self.conf.items()))
        words = [f"--{key}={value}" for key, value in flags.items() if value != "None"]
        return [*self.prefix.get(name, []), *self.tools.launcher, *words, *self.tools.program_words,
                *self.worker]

    def start(self, name: str = "", **more) -> Agent:
        name = name or f"agent{len(self.agents)}"
        environment = clean_environment() | self.environment | {"CHAOS_AGENT": name}
        environment |= self.environment_of.get(name, {})
        console = self.console_of.get(name, self.folder / f"{name}.console")
        agent = Agent(name, self.command(name, **more), environment, console)
        self.agents.append(agent)
        return agent

    def start_many(self, count: int, **more) -> list[Agent]:
        return [self.start(**more) for _ in range(count)]

    def start_root(self, **more) -> Agent:
        """The agent that runs the coordinator, because no other agent has started yet."""
        root = self.start("root", **more)
        what = f"listener on port {self.port}"
        self.wait_for(lambda: processes.listens(root.pid, self.port), what)
        return root

    def start_with_root(self, count: int, **more) -> list[Agent]:
        """The first one is the root."""
        return [self.start_root(**more), *self.start_many(count - 1, **more)]

    @property
    def daemon(self) -> subprocess.Popen:
        return self.daemons["rdzvd"]

    def start_daemon(self, name: str = "rdzvd", host: str = "", port: int = 0) -> None:
        """Each of several has a name of its own; the others are at the cluster's endpoint."""
        environment = clean_environment() | {"CHAOS_FOLDER": str(self.folder),
                                             "XDG_STATE_HOME": str(self.folder / "state")}
        environment |= self.environment_of.get(name, {})
        with open(self.console_of.get(name, self.folder / f"{name}.console"), "ab") as console:
            daemon = self.daemons[name] = subprocess.Popen(
                [*self.prefix.get(name, []), self.tools.rdzvd, f"--port={port or self.port}",
                 f"--bind={host or self.host}", *self.of_daemon],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=console)
        if not select.select([daemon.stdout], [], [], WAIT_SECONDS)[0]:
            raise Failed("hang: ddprun-rdzvd has no ready line")
        ready = daemon.stdout.readline().decode()
        if not ready.startswith("ready "):
            raise Failed(f"ddprun-rdzvd printed '{ready}' instead of its ready line")

    def stop_daemon(self, number: int = signal.SIGKILL, name: str = "rdzvd") -> None:
        daemon = self.daemons[name]
        daemon.send_signal(number)
        daemon.wait(timeout=WAIT_SECONDS)
        daemon.stdout.close()

    def stop_daemons(self, number: int) -> None:
        for name, daemon in self.daemons.items():
            if daemon.poll() is None:
                self.stop_daemon(number, name)

    # Requests to workers.

    def finish(self, *ranks: int) -> None:
        names = [f"finish.{rank}" for rank in ranks] or ["finish"]
        for name in names:
            (self.folder / name).touch()

    def fail(self, rank: int, in_round: int, code: int) -> None:
        partial = self.folder / f"part.{rank}"
        partial.write_text(str(code))
        partial.rename(self.folder / f"exit.{rank}.{in_round}")

    def forget(self) -> None:
        """Checks the rounds of the finished run; the next one starts with empty notes."""
        self.check_rounds()
        for path in [*self.folder.glob("notes/*"), *self.folder.glob("finish*")]:
            path.unlink()

    # Waiting.

    def wait_for_round(self, agents, after: Round | None = None, seconds: float = WAIT_SECONDS):
        """A complete, running round on exactly these agents, later than `after`."""
        names = {agent.name for agent in agents}

        def look():
            for one in self.rounds():
                newer = after is None or one.began > after.began
                alive = all(map(processes.is_alive, one.pids.values()))
                if newer and alive and one.agents == names:
                    return one
            dead = [agent.name for agent in agents if not agent.is_running()]
            if dead:
                raise Failed(f"{', '.join(dead)} exited although its round was expected")
            return None

        return self.wait_for(look, f"a round on {', '.join(sorted(names))}", seconds)

    def wait_for_text(self, agent: Agent, pattern: str, seconds: float = WAIT_SECONDS):
        what = f"'{pattern}' on {agent.name}'s console"
        return self.wait_for(lambda: re.search(pattern, agent.text()), what, seconds)

    def wait_for(self, condition, what: str, seconds: float = WAIT_SECONDS):
        deadline = time.monotonic() + seconds
        while True:
            if found := condition():
                return found
            if time.monotonic() > deadline:
                raise Failed(f"hang: no {what} within {seconds} s")
            pause(0.01)

    def end_all(self, code: int, *besides: Agent, seconds: float = WAIT_SECONDS) -> None:
        """Every agent except `besides` exits with `code`."""
        deadline = time.monotonic() + seconds
        codes = {agent.name: agent.end(max(0.1, deadline - time.monotonic()))
                 for agent in self.agents if agent not in besides}
        if set(codes.values()) - {code}:
            raise Failed(f"exit codes {codes}, expected {code} everywhere")

    # Inspecting.

    def rounds(self) -> list[Round]:
        """The rounds whose workers have all connected, in order."""
        found: dict[str, list[dict]] = {}
        for note in notes.read_all(self.folder):
            if note["met"]:
                found.setdefault(note["token"], []).append(note)
        whole = [Round(members) for members in found.values()
                 if len(members) == members[0]["met"]]
        return sorted(whole, key=lambda one: (one.number, one.began))

    def check_rounds(self) -> None:
        by_number: dict[str, list[dict]] = {}
        for note in notes.read_all(self.folder):
            by_number.setdefault(note["DDPRUN_ROUND"], []).append(note)
        for number, members in by_number.items():
            split = self.hosts_are_cut_off
            for world in worlds(number, members, self.began_apart) if split else [members]:
                check_round(number, world, "CHAOS_OWN_ADDRESSES" not in self.environment)
        for agent in self.agents:
            if re.search(r"RendezvousClosed|Traceback|assertion|Sanitizer", agent.text()):
                raise Failed(f"{agent.name} printed forbidden output")

    def check_nothing_left(self) -> None:
        mark = f"CHAOS_FOLDER={self.folder}"
        self.stop_daemons(signal.SIGTERM)
        running = [agent.name for agent in self.agents if agent.is_running()]
        if running:
            raise Failed(f"agents still run at the end of the case: {running}")
        deadline = time.monotonic() + 5  # a killed process ends when it is next scheduled
        while (left := processes.with_mark(mark)) and time.monotonic() < deadline:
            pause(0.01)
        if left:
            raise Failed(f"processes left behind: {left}")

    def story(self) -> str:
        """Everything that is needed to understand a failure."""
        consoles = [f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}"
                    for path in sorted(self.folder.glob("*.console"))]
        states = [f"{agent.name}: {processes.describe(agent.pid)}" for agent in self.agents]
        seen = [f"round {note['DDPRUN_ROUND']} rank {note['RANK']} of {note['WORLD_SIZE']} on "
                f"{note['CHAOS_AGENT']} restart {note['TORCHELASTIC_RESTART_COUNT']} "
                f"store {note['MASTER_ADDR']}:{note['MASTER_PORT']} pid {note['pid']} "
                f"{'met' if note['met'] else 'did not meet'}, "
                f"{'alive' if processes.is_alive(note['pid']) else 'gone'}"
                for note in sorted(notes.read_all(self.folder), key=lambda one: one["began"])]
        return "\n".join([*states, "--- workers", *seen, *consoles])

    def stop_agents(self) -> None:
        for agent in self.agents:
            if agent.is_running():
                agent.process.kill()
            agent.process.wait()

    def clean_up(self) -> None:
        """SIGKILL to the processes of this cluster only."""
        self.stop_agents()
        self.stop_daemons(signal.SIGKILL)
        deadline = time.monotonic() + WAIT_SECONDS
        while left := processes.with_mark(f"CHAOS_FOLDER={self.folder}"):
            for pid in left:
                processes.kill(pid)
            if time.monotonic() > deadline:
                break
            pause(0.01)
        if "DDPRUN_TEST_KEEP" not in os.environ:
            shutil.rmtree(self.folder, ignore_errors=True)


def worlds(number: str, members: list[dict], apart: bool = False) -> list[list[dict]]:
    """Those of one number. A coordinator that is cut off may begin one that is never whole."""
    by_store: dict[str, list[dict]] = {}
    for one in members:
        by_store.setdefault(f"{one['MASTER_ADDR']}:{one['MASTER_PORT']}", []).append(one)
    whole = [store for store, world in by_store.items() if any(one["met"] for one in world)]
    if len(whole) > 1 and not apart:
        raise Failed(f"split world: round {number} at {whole}")
    return list(by_store.values())


def check_round(number: str, members: list[dict], one_address: bool = True) -> None:
    """All workers of one round agree, whether or not they connected."""
    def values(name):
        return {one[name] for one in members}

    for name in ("WORLD_SIZE", "GROUP_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT",
                 "TORCHELASTIC_RUN_ID", *(["MASTER_ADDR"] if one_address else [])):
        if len(values(name)) != 1:
            raise Failed(f"round {number} has several {name}: {values(name)}")
    ranks = [int(one["RANK"]) for one in members]
    world = int(members[0]["WORLD_SIZE"])
    if len(set(ranks)) != len(ranks) or not set(ranks) <= set(range(world)):
        raise Failed(f"round {number} has ranks {sorted(ranks)} in a world of {world}")
    groups: dict[str, list[int]] = {}
    for one in members:
        groups.setdefault(one["CHAOS_AGENT"], []).append(int(one["RANK"]) - int(one["LOCAL_RANK"]))
        if int(one["GROUP_RANK"]) >= int(one["GROUP_WORLD_SIZE"]):
            raise Failed(f"round {number}: group rank {one['GROUP_RANK']} of "
                         f"{one['GROUP_WORLD_SIZE']}")
    for agent, bases in groups.items():
        if len(set(bases)) != 1:
            raise Failed(f"round {number}: ranks on {agent} are not contiguous: {ranks}")


def pause(seconds: float) -> None:
    """Sleeps between checks of a condition with a deadline, or during a disturbance."""
    threading.Event().wait(seconds)


def clean_environment() -> dict:
    """Without the variables of an outer launcher or scheduler."""
    foreign = ("PET_", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI_", "PMIX_", "MASTER_", "DDPRUN_")
    return {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
