"""Failures at an awkward moment: together, while others are stopped, in a later round; no end."""

from case import EXPIRED, TIMERS, Case, alike, fault, python

FAILS_ON_FROST = 'until [ -e frost ]; do "$I" rest 20; done; echo mine >&2; exit 3'
# A round of one node: before the other one has joined, and after it has left.
ALONE = '[ $WORLD_SIZE = 4 ] || { [ -e frost ] && exit 0; exec "$I" wait; }; '
CANNOT_DIE = 'echo $$ > "$CASE_CGROUP/cgroup.procs"; "$I" note in; exec "$I" wait'
TRAP = "trap '{}' TERM; \"$I\" note trap; \"$I\" wait & wait"
AFTER_TRAPS = '"$I" await trap.0; "$I" await trap.2; '


def in_the_stop(name, peer, **more) -> Case:
    """What the peers do when ddprun stops them is no failure of theirs."""
    return fault(f"in the stop, a peer {name}", AFTER_TRAPS + "echo mine >&2; exit 3", "W-EXIT", 3,
                 "mine", peers=TRAP.format(peer), **more)


TOGETHER = (
    fault("an exit code and a crash at the same moment", '"$I" note go; exec "$I" null',
          ("W-EXIT", "W-CRASH"), None, "", culprit=(1, 2),
          peers='"$I" await go.1; [ $RANK = 2 ] || exec "$I" wait; exit 3'),
    alike("an exception and a kill at the same moment", '"$I" note go; for rank in 0 1 2; do '
          '"$I" await go.$rank; done; [ $RANK = 1 ] || exec "$I" signal 9; ' + python("plain"),
          ("W-EXIT", "W-KILLED"), None, ""),
    alike("two nodes: both fail at the same moment", '"$I" note go; for rank in 0 1 2 3; do '
          '"$I" await go.$rank; done; echo "reason $RANK" >&2; exit 1$RANK', "W-EXIT", None,
          "reason", ranks=2, nodes=2, culprit=(0, 1, 2, 3)),
)

STOPS = (
    in_the_stop("crashes", 'exec "$I" null'),
    in_the_stop("raises an exception", python("plain")),
    in_the_stop("writes an error.json", python("recorded")),
    in_the_stop("kills itself", 'exec "$I" signal 9'),
    in_the_stop("complains of a lost connection", python("gloo_lost")),
)

ROUNDS = (
    fault("a crash in round 2 after an exit code in round 1",
          '[ $DDPRUN_ROUND = 2 ] && exec "$I" null; exec "$I" wait', "W-CRASH", 139, "round 2",
          culprit=2, peers='[ $DDPRUN_ROUND.$RANK = 1.1 ] && exit 3; exec "$I" wait',
          options=("--max-restarts=1",)),
    fault("an error.json of an earlier round", python("recorded_in_round_1"), "W-EXIT", 4,
          "the reason of round 2", never="needle of round 1", options=("--max-restarts=1",)),
    fault("an error.json of an earlier run", "echo fresh >&2; exit 3", "W-EXIT", 3, "fresh",
          never="stale", prefix=("sh", "-c", 'echo \'{"message": "stale"}\' > error.json && exec '
                                 '"$@"', "sh"),
          environment={"TORCHELASTIC_ERROR_FILE": "error.json"}),
)

NO_END = (
    fault("a peer that cannot die", FAILS_ON_FROST, "W-EXIT", 3, "mine",
          peers=f'[ $RANK = 0 ] || exec "$I" wait; {CANNOT_DIE}', outside="freeze",
          options=("--shutdown-timeout=1",), needs="freezer", allowed=("W-UNKILLABLE",)),
    Case("two nodes: a worker that cannot die, with a restart left", FAILS_ON_FROST,
         f'[ $RANK = 2 ] || exec "$I" wait; {CANNOT_DIE}', "W-EXIT", 3, "not restarted: ",
         ranks=2, nodes=2, outside="freeze", needs="freezer", allowed=("W-UNKILLABLE",),
         options=("--max-restarts=1", "--shutdown-timeout=1")),
    Case("two nodes of which one suffices: a worker that cannot die", ALONE + CANNOT_DIE,
         ALONE + f'[ $RANK = 1 ] || exec "$I" wait; {FAILS_ON_FROST}', "RUN", (0, 116),
         "is still alive after SIGKILL", culprit=2, console=1, ranks=2, nodes=2,
         outside="freeze", needs="freezer", allowed=("W-UNKILLABLE",),
         options=("--nnodes=1:2", "--max-restarts=1", "--shutdown-timeout=1")),
    fault("all ranks hang, with --hang-timeout", 'exec "$I" wait', "HANG", 114, "--hang-timeout",
          culprit=None, options=("--hang-timeout=1s",)),
    fault("a timer that expires", f'{EXPIRED}; exec "$I" wait', "W-TIMER", 137,
          'the timer "step" expired; ddprun sends SIGKILL', environment=TIMERS),
    fault("a rank that does not finish, with --finish-timeout", 'exec "$I" wait', "PARTIAL", 115,
          "--finish-timeout", peers="exit 0", options=("--finish-timeout=1s",)),
)

CASES = (*TOGETHER, *STOPS, *ROUNDS, *NO_END)
