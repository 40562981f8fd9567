"""Failures that several ranks, rounds or nodes are part of, and the end of ddprun itself."""

from case import EXPIRED, SOON, TIMERS, Case, alike, fault, python
from sentences import kNotExitedYet, kRanksDisagree

GOING = '"$I" note going; '
AFTER = '"$I" await going.1; '


def child(name: str, argument: str = "") -> str:
    """The same as a child of the shell, which continues after it."""
    return python(name, argument).removeprefix("exec ")


def watchdogs(ranks: str, number: str = "42") -> str:
    """The watchdogs of these ranks give up at nearly the same time: all have spoken, then abort."""
    return (child("nccl_words", number) + f'; "$I" note said; for rank in {ranks}; do '
            '"$I" await said.$rank; done; exec "$I" signal 6')


# All have spoken before one exits.
DISAGREES = (child("disagrees") + '; "$I" note said; for rank in 0 1 2; do "$I" await said.$rank; '
             'done; exit 1')

# As a rank looks that waits for the others.
POLLS = 'exec "$I" rest 60000'
AFTER_STOP = '"$I" await stopped.0; '

# Steps of two seconds after the time-out.
SURVIVES = ('echo "step 1"; echo "RuntimeError: Timed out waiting 1000ms for recv operation to '
            'complete" >&2; for i in 2 3 4 5 6; do "$I" rest 400; echo "step $i"; done; '
            'echo "loss is NaN"; exit 3')

COLLECTIVES = (
    fault("a lost connection reported after the culprit's exit", GOING + "echo mine >&2; exit 3",
          "W-EXIT", 3, "mine", peers=AFTER + python("gloo_lost")),
    fault("a lost connection reported before the culprit's exit",
          'trap "" TERM; "$I" await lost.0; "$I" rest 30; echo mine >&2; exit 3', "W-EXIT", 3,
          "mine", peers=child("gloo_lost") + '; "$I" note lost; exit 1'),
    fault("a reset connection after a SIGKILL", GOING + 'exec "$I" signal 9', "W-KILLED", 137,
          "SIGKILL", peers=AFTER + python("gloo_reset")),
    fault("NCCL's remote error after a SIGSEGV", GOING + 'exec "$I" null', "W-CRASH", 139,
          "SIGSEGV", peers=AFTER + python("nccl_remote")),
    fault("a victim with an error.json, the culprit has none", GOING + 'exec "$I" signal 9',
          "W-KILLED", 137, "SIGKILL", peers=AFTER + python("recorded_by_victim")),
    fault("a stopped rank, its peers' NCCL times out", 'exec "$I" wait', "W-COLLECTIVE", 134,
          "rank 1", peers=AFTER_STOP + watchdogs("0 2"), outside="stop_worker"),
    fault("a stopped rank, its peers' Gloo times out", 'exec "$I" wait', "W-COLLECTIVE", 1,
          "rank 1", peers='"$I" await stopped.0; ' + python("gloo_timeout"),
          outside="stop_worker"),
    fault("a collective with another size", python("gloo_mismatch"), "W-COLLECTIVE", 134,
          kRanksDisagree),
    fault("a collective of another size with TORCH_DISTRIBUTED_DEBUG=DETAIL", DISAGREES,
          "W-COLLECTIVE", 1, "the ranks disagree; rank 1 ", peers=DISAGREES),
    fault("a sleeping rank, its peers' Gloo times out", 'exec "$I" wait', "W-COLLECTIVE", 1,
          "rank 1", peers='"$I" rest 200; ' + python("gloo_timeout")),
    fault("an early exit 0, its peers complain", "exit 0", "W-PEER", 1, "rank 1",
          peers='"$I" rest 100; ' + python("gloo_lost")),
    fault("an early exit 0, its peers complain and print an ignored exception", "exit 0", "W-PEER",
          1, "rank 1", peers='"$I" rest 100; ' + python("lost_and_ignored")),
    fault("an early exit 0, its peers log the complaint and save as before", "exit 0", "W-PEER", 1,
          "rank 1", peers='"$I" rest 100; ' + python("lost_and_saved")),
    fault("an early exit 0, its peers complain on stdout, the streams apart", "exit 0", "W-PEER", 1,
          "rank 1", peers='"$I" rest 100; ' + python("lost_on_stdout"), options=("--tee=3",)),
    fault("a rank that raised and is slow to exit, its peers complain", python("raises_slowly"),
          "W-PEER", 1, "ValueError: the true cause",
          peers='"$I" await raised.1; ' + python("gloo_lost")),
    fault("a rank that raised and is slow to exit, its peers fail in words of their own",
          python("raises_slowly"), "W-EXIT", 1,
          f'were "ValueError: the true cause"{kNotExitedYet}',
          culprit=(0, 2), peers='"$I" await raised.1; ' + python("reset")),
    fault("a time-out that the rank survived, its streams apart", SURVIVES, "W-EXIT", 3,
          "loss is NaN", options=("--tee=3",), never="odd one out"),
    fault("a rank that never arrives", 'exec "$I" wait', "W-RENDEZVOUS", 1, "rank 1",
          peers='"$I" rest 100; ' + python("store_timeout")),
    fault("a rank that never calls init_process_group, without any other trace", POLLS,
          "W-RENDEZVOUS", 1, 'rank 2 waits in the store for key "worker_count" for ',
          peers=f'[ $RANK = 0 ] || {python("store_wait", "worker_count")}; '
          '"$I" await waiting.2; ' + python("store_timeout")),
    fault("a rank that waits for a key that no rank sets", python("store_wait", "worker/count"),
          "W-COLLECTIVE", 1, 'rank 1 waits in the store for key "worker/count" for ',
          peers=f'[ $RANK = 0 ] || {POLLS}; "$I" await waiting.1; ' + python("gloo_timeout")),
    fault("a rank that waits for a key that forges a report",
          python("store_wait", r"""'x"; rank 0 failed\nddprun: error [W-EXIT] rank 0 forged'"""),
          "W-COLLECTIVE", 1, "key \"x'; rank 0 failed",
          peers=f'[ $RANK = 0 ] || {POLLS}; "$I" await waiting.1; ' + python("gloo_timeout")),
    fault("a rank that is one collective behind", watchdogs("0 1 2", "41"),
          "W-COLLECTIVE", 134, "rank 1", peers=watchdogs("0 1 2")),
    fault("a monitored barrier that names a rank", 'exec "$I" wait', "W-COLLECTIVE", 1, "rank 1",
          peers='[ $RANK = 0 ] || exec "$I" wait; ' + python("monitored_barrier")),
)

TOGETHER = 'trap "" TERM; echo "rank $RANK: no config.yaml" >&2; exec "$I" fail 3'

STEP = 'echo "rank $RANK: step 12" >&2; "$I" note step; '

ROUNDS = (
    alike("all ranks fail in the same way", TOGETHER, "W-EXIT", 3, "2 others failed alike"),
    alike("all ranks raise the same, and a library prints another line on each",
          'trap "" TERM; ' + python("alike_but_for_the_last"), "W-EXIT", 1,
          "2 others failed alike"),
    fault("a failure, and ranks whose handler of SIGTERM ends them alike",
          f'{STEP}for rank in 0 2; do "$I" await step.$rank; done; exit 1', "W-EXIT", 1,
          "2 ranks were still running", never="alike",
          peers="trap 'kill $!; exit 1' TERM; " + STEP + '"$I" wait & wait'),
    fault("a failure after the restart", "[ $DDPRUN_ROUND = 1 ] && exit 3; echo late >&2; exit 4",
          "W-EXIT", 4, "round 2", options=("--max-restarts=1",)),
    fault("the same failure in every round", "echo typo >&2; exit 3", "W-EXIT", 3,
          "rounds 1 to 3 ended alike", options=("--max-restarts=2",)),
    fault("the same failure with --min-uptime", "echo typo >&2; exit 3", "RESTARTS", 3,
          "rounds 1 and 2 ended alike", options=("--max-restarts=9", "--min-uptime=60s")),
    fault("another failure with --min-uptime", 'echo "$DDPRUN_ROUND" >&2; exit $DDPRUN_ROUND',
          "W-EXIT", 3, "all 2 restarts are used",
          options=("--max-restarts=2", "--min-uptime=60s")),
)


def on_two_nodes(name, worker, cause, code, says="", **more) -> Case:
    """The culprit is on the second node, the report on the first; both end with the code."""
    more.setdefault("culprit", 3)
    return Case(f"two nodes: {name}", worker, cause=cause, code=code, says=says, ranks=2, nodes=2,
                **more)


NODES = (
    on_two_nodes("a Python exception", python("plain"), "W-EXIT", 1, "KeyError: 'labels'"),
    on_two_nodes("exit code 42", "echo reason >&2; exit 42", "W-EXIT", 42, "| reason"),
    on_two_nodes("SIGSEGV", 'exec "$I" null', "W-CRASH", 139, "SIGSEGV"),
    on_two_nodes("SIGKILL from outside", 'exec "$I" wait', "W-KILLED", 137, "SIGKILL",
                 outside="kill_worker"),
    on_two_nodes("a lost connection reported after the culprit's exit",
                 GOING + "echo mine >&2; exit 3", "W-EXIT", 3, "mine",
                 peers='"$I" await going.3; ' + python("gloo_lost")),
    on_two_nodes("a stopped rank, its peers' NCCL times out", 'exec "$I" wait', "W-COLLECTIVE",
                 134, "rank 3", peers=AFTER_STOP + watchdogs("0 1 2"),
                 outside="stop_worker"),
    on_two_nodes("a rank that never calls init_process_group, without any other trace", POLLS,
                 "W-RENDEZVOUS", 1, 'ranks 1, 2 wait in the store for key "worker_count" for ',
                 peers=f'[ $RANK = 0 ] || {python("store_wait", "worker_count")}; '
                 '"$I" await waiting.1; "$I" await waiting.2; ' + python("store_timeout")),
    on_two_nodes("a rank that waits for a key that no rank sets",
                 python("store_wait", "worker/count"), "W-COLLECTIVE", 1,
                 'rank 3 waits in the store for key "worker/count" for ',
                 peers=f'[ $RANK = 0 ] || {POLLS}; "$I" await waiting.3; ' +
                 python("gloo_timeout")),
    on_two_nodes("an early exit 0, its peers complain", "exit 0", "W-PEER", 1, "rank 3",
                 peers='"$I" rest 100; ' + python("gloo_lost")),
    on_two_nodes("the memory limit of a worker's own cgroup",
                 'echo $$ > "$CASE_CGROUP/cgroup.procs" && exec "$I" eat 200', "W-OOM", 137,
                 "memory", needs="memory"),
    on_two_nodes("the same failure with --min-uptime", "echo typo >&2; exit 3", "RESTARTS", 3,
                 "ended alike", options=("--max-restarts=9", "--min-uptime=60s")),
    # The node that finds out first leaves the run. If that is the second one, the first one's last
    # line is that the run stops, with the reason in the note before it.
    alike("two nodes: a missing program", "", ("EXEC", "RUN"), 127, "", culprit=None, ranks=2,
          nodes=2, program=("--no-python", "./missing")),
    on_two_nodes("a timer that expires", f'{EXPIRED}; exec "$I" wait', "W-TIMER", 137,
                 'the timer "step" expired', environment=TIMERS),
    on_two_nodes("one never comes", 'exec "$I" wait', "RUN", 110, "join_timeout", culprit=None,
                 absent=1, options=SOON),
    on_two_nodes("one is killed", 'exec "$I" wait', "RUN", (112, 137), "lost", culprit=None,
                 outside="kill_second_node", options=SOON),
    on_two_nodes("the coordinator's is killed", 'exec "$I" wait', "RUN", (137, 112),
                 "lost the coordinator", culprit=None, console=1, outside="kill_front",
                 options=SOON),
)

LAUNCHER = (
    fault("the agent is killed", 'setsid "$I" wait & exec "$I" wait', "AGENT", 137, "SIGKILL",
          culprit=None, outside="kill_agent"),
    fault("the guard is killed", 'setsid "$I" wait & exec "$I" wait', "AGENT", 137, "",
          culprit=None, outside="kill_guard"),
    fault("the front is killed", 'setsid "$I" wait & exec "$I" wait', "FRONT", 137, "",
          culprit=None, outside="kill_front"),
)

CASES = (*COLLECTIVES, *ROUNDS, *NODES, *LAUNCHER)
