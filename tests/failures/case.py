"""One case of the failure catalogue: what is injected, and what the report must say."""

import dataclasses

# Shell words of the workers. $I is the compiled injector, $P a Python without site packages.
WAIT = 'exec "$I" wait'
SHARED = ("sh", "-c", 'echo $$ > "$CASE_CGROUP/cgroup.procs" && exec "$@"', "sh")
SOON = ("--rdzv-conf=join_timeout=1,coordinator_timeout=1",)

# A child in the background that is stopped, and the wait until it is.
STOPPED_CHILD = ('sh -c \'kill -STOP $$; exec "$I" rest 100\' & until grep -q "^State:.T" '
                 '/proc/$!/status; do "$I" rest 5; done; ')

# For a worker that sets a timer which has expired already, or any other line.
TIMERS = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
TO_TIMERS = '> "$TORCHELASTIC_TIMER_FILE"'
EXPIRED = ('echo "{\\"pid\\": $$, \\"scope_id\\": \\"step\\", \\"expiration_time\\": 1, '
           f'\\"signal\\": 9}}" {TO_TIMERS}')


def python(name: str, argument: str = "") -> str:
    """The shell text that replaces the worker by a fault of faults.py."""
    return f'exec $P "$FAULTS" {name} {argument}'.rstrip()


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    worker: str = ""  # shell text of the culprit
    peers: str = WAIT  # and of all other ranks
    cause: object = ""  # code of the report's first line; a tuple: one of these; empty: healthy
    code: object = 0  # exit code of every ddprun; a tuple: of each; None: any, if all have it
    says: str = ""  # a phrase of the report (of the console, if the run is healthy)
    culprit: object = 1  # rank; a tuple: one of these; None: the first line names no rank
    ranks: int = 3  # per node
    nodes: int = 1
    absent: int = 0  # of these, never started
    console: int = 0  # the node whose console is judged: the one with the coordinator
    options: tuple = ()
    program: tuple = ()  # instead of the shell script with the roles
    prefix: tuple = ()  # words before ddprun
    environment: dict = dataclasses.field(default_factory=dict)
    outside: str = ""  # what the runner does once the workers have met: a name in outside.py
    needs: str = ""  # what the machine must have: a name in needs.py
    never: str = ""  # a phrase that must not be in the report
    allowed: tuple = ()  # codes of warnings, or of errors beside the report, that are right

    @property
    def healthy(self) -> bool:
        return not self.cause


def fault(name, worker, cause, code, says="", **more) -> Case:
    return Case(name, worker, cause=cause, code=code, says=says, **more)


def alike(name, worker, cause, code, says="", **more) -> Case:
    """All ranks do the same."""
    more.setdefault("culprit", (0, 1, 2))
    return Case(name, worker, peers=worker, cause=cause, code=code, says=says, **more)


def control(name, worker, peers="exit 0", **more) -> Case:
    return Case(name, worker, peers=peers, **more)
