"""Healthy runs: whatever they look like, the console has no error and no false warning."""

from case import STOPPED_CHILD, TIMERS, TO_TIMERS, WAIT, control, python


def child(name: str) -> str:
    """A Python program as a child of the shell, which continues after it."""
    return python(name).removeprefix("exec ")


def stopped(name, worker, code, outside, **more):
    """ddprun is stopped by a signal: that is no failure."""
    more.setdefault("peers", WAIT)
    return control(name, worker, code=code, outside=outside, **more)


CASES = (
    control("all ranks exit 0", "exit 0"),
    control("one rank alone", "exit 0", ranks=1),
    control("16 ranks", "exit 0", ranks=16),
    control("a slow rank", '"$I" rest 700'),
    control("a quiet rank beside chatty ones", '"$I" rest 400',
            peers='for i in 1 2 3 4 5 6 7 8; do echo step $i; "$I" rest 40; done'),
    control("long steps of all ranks", '"$I" rest 600', peers='"$I" rest 600'),
    control("an early finisher that is meant", "exit 0", peers='"$I" rest 500'),
    control("a busy rank", 'timeout 0.3 "$I" spin; exit 0'),
    control("scary words", python("scary"), peers=python("scary")),
    control("chatty stderr", 'seq 20000 >&2'),
    control("binary output and success", '"$I" binary 20000; exit 0'),
    control("a line of 300 KB", '"$I" line 300000; exit 0'),
    control("a closed stderr and success", "exec 2>&-; exit 0"),
    control("a closed stdout", "exec 1>&-; exit 0"),
    control("a closed stdin", "exec 0<&-; exit 0"),
    control("exit 0 after a child failed", "false; true"),
    control("a failing Python child", child("plain") + "; exit 0"),
    control("a child that died of SIGSEGV", '"$I" null; exit 0'),
    control("a child that died of SIGKILL", '"$I" signal 9; exit 0'),
    control("an exception that is caught", python("caught")),
    control("an error.json of a failure that was handled", child("recorded") + "; exit 0"),
    control("threads", python("threads_that_end")),
    control("a background helper that ends in time", '"$I" rest 100 & wait; exit 0'),
    control("a child that its parent never waited for", '"$I" rest 50 & exec "$I" rest 200'),
    control("a helper in another session that ends in time", 'setsid "$I" rest 100 & wait'),
    control("memory within the limit", 'echo $$ > "$CASE_CGROUP/cgroup.procs"; "$I" eat 20; exit 0',
            needs="memory"),
    control("a nested ddprun that succeeds",
            '"$DDPRUN" --standalone --nproc-per-node=2 --no-python /bin/true'),
    control("logs and tee", "echo out; echo err >&2", options=("--tee=3", "--log-dir=logs")),
    control("a restart that succeeds", "[ $DDPRUN_ROUND = 2 ] || exit 3", says="restart 1 of 1",
            options=("--max-restarts=1",), allowed=("W-EXIT",)),
    control("SIGUSR1 that the workers handle", "trap 'kill $!; exit 0' USR1; \"$I\" note set; "
            '"$I" wait & wait', peers="trap 'kill $!; exit 0' USR1; \"$I\" note set; "
            '"$I" wait & wait', outside="usr1"),
    control("a rank that was stopped and continued", '"$I" await continued.0',
            peers='"$I" await continued.0', outside="stop_and_continue"),
    control("two nodes", "exit 0", nodes=2, ranks=2),
    control("two nodes, one is slow", '"$I" rest 600', nodes=2, ranks=2),
    control("all descriptors closed and success", python("closed_all_and_well")),
    control("another program in the same process that succeeds", python("execs", "rest 50")),
    control("a process of a pool that is replaced", python("child_that_is_replaced")),
    control("a grandchild that was stopped and continued", STOPPED_CHILD + "kill -CONT $!; wait"),
    control("a worker in another session", 'exec setsid --wait "$I" rest 100'),
    control("a nested ddprun that fails, which the worker handles",
            '"$DDPRUN" --standalone --no-python /bin/false; exit 0', allowed=("W-EXIT",)),
    control("SIGALRM as a timer of the worker", "trap 'exit 0' ALRM; kill -ALRM $$; exit 1"),
    control("redirected output", "echo out; echo err >&2",
            options=("--redirects=3", "--log-dir=logs")),
    control("a chatty run with --hang-timeout", 'for i in 1 2 3 4 5 6; do echo step >&2; '
            '"$I" rest 300; done', options=("--hang-timeout=1s",)),
    control("garbage in the pipe for timers", f'echo garbage {TO_TIMERS}; head -c 99999 /dev/zero '
            f'{TO_TIMERS}', environment=TIMERS, allowed=("TIMER",)),
    control("a busy run with --hang-timeout", 'timeout 1.5 "$I" spin; exit 0',
            peers='exec "$I" rest 1600', options=("--hang-timeout=1s",)),
    control("a late rank within --finish-timeout", '"$I" rest 300',
            options=("--finish-timeout=20s",)),
    control("two failures that differ with --min-uptime, and hydra's last line",
            python("hydra_once_each"), says="restart 2 of 2",
            options=("--max-restarts=2", "--min-uptime=60s"), allowed=("W-EXIT",)),
    control("a restart with --min-uptime that succeeds", "[ $DDPRUN_ROUND = 2 ] || exit 3",
            says="restart 1 of 1", options=("--max-restarts=1", "--min-uptime=60s"),
            allowed=("W-EXIT",)),
    control("two nodes: a restart that succeeds", "[ $DDPRUN_ROUND = 2 ] || exit 3", nodes=2,
            ranks=2, options=("--max-restarts=1",), allowed=("W-EXIT",)),
    stopped("Ctrl-C", WAIT, 130, "interrupt", says="SIGINT"),
    stopped("SIGTERM", WAIT, 143, "terminate", says="SIGTERM"),
    stopped("SIGHUP", WAIT, 129, "hang_up", says="SIGHUP", allowed=("HUP",)),
    stopped("SIGTERM, the workers exit 0", "trap 'kill $!; exit 0' TERM; \"$I\" note set; "
            '"$I" wait & wait', 143, "terminate_traps", says="SIGTERM",
            peers="trap 'kill $!; exit 0' TERM; \"$I\" note set; \"$I\" wait & wait"),
)
