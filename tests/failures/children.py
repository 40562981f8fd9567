"""Workers that are not one plain process: threads, children, other programs, launchers inside."""

from case import SHARED, STOPPED_CHILD, fault, python

NESTED = '"$DDPRUN" --standalone --nproc-per-node=2 --no-python /bin/sh -c '

PROCESSES = (
    fault("os._exit in a thread", python("thread_exits"), "W-EXIT", 5, "exit code 5"),
    fault("exit() of C in a thread", python("thread_ends_process"), "W-EXIT", 6, "exit code 6"),
    fault("all descriptors closed", python("closed_all"), "W-EXIT", 7, "exit code 7"),
    fault("another program in the same process", python("execs", "null"), "W-CRASH", 139,
          "SIGSEGV"),
    fault("a hostile process name", python("new_name"), "W-EXIT", 4, "exit code 4"),
    fault("a crash while Python shuts down after an exception", python("crash_at_end"), "W-EXIT",
          134, "KeyError: 'labels'"),
)

CHILDREN = (
    fault("an exception in a child of multiprocessing", python("child_raises"), "W-EXIT", 1,
          "KeyError: 'labels'"),
    fault("a killed process of a pool", python("child_of_pool_killed"), "W-EXIT", 1,
          "terminated abruptly"),
    fault("a killed data loader", python("loader_killed"), "W-EXIT", 1,
          "is killed by signal: Killed"),
    fault("a data loader that crashed", python("loader_crashed"), "W-EXIT", 1,
          "is killed by signal: Segmentation fault"),
    fault("a data loader without shared memory", python("loader_bus_error"), "W-SHM", 1,
          "is killed by signal: Bus error"),
    fault("a data loader that exited", python("loader_exits"), "W-EXIT", 1,
          "exited unexpectedly"),
    fault("a data loader killed for memory", python("loader_out_of_memory"), "W-OOM", 1,
          "because host memory ran out", prefix=SHARED, needs="plain memory"),
    fault("a stopped grandchild", STOPPED_CHILD + "exit 5", "W-EXIT", 5, "exit code 5"),
    fault("a worker that waits for a stopped grandchild, its peers' Gloo times out",
          STOPPED_CHILD + '"$I" note stopped; wait', "W-COLLECTIVE", 1, "rank 1",
          peers='"$I" await stopped.1; "$I" rest 100; ' + python("gloo_timeout")),
)

LAUNCHERS = (
    fault("a nested ddprun", NESTED + "'echo innermost >&2; exit 7'; exit $?", "W-NESTED", 7,
          "rank 1", allowed=("W-EXIT",)),
    fault("a nested ddprun whose rank raises", NESTED + "'" + python("chained") + "'; exit $?",
          "W-NESTED", 1, "rank 1", allowed=("W-EXIT",)),
    fault("a nested ddprun whose ranks crash", NESTED + "'exec \"$I\" null'; exit $?", "W-NESTED",
          139, "SIGSEGV", allowed=("W-CRASH",)),
    fault("a nested ddprun that is killed", 'sh -c \'echo $$ > pid; "$I" note pid; exec ' + NESTED +
          '"exec sleep 80"\' & "$I" await pid.1; "$I" rest 200; kill -9 $(cat pid); wait $!',
          "W-EXIT", 137, "SIGKILL", allowed=("FRONT",)),
    fault("a nested torchrun", python("nested_torchrun"), "W-NESTED", 1, "rank 5"),
    fault("a launcher that starts the training as its child", python("called_process"), "W-EXIT",
          1, "returned non-zero exit status 3"),
)

CASES = (*PROCESSES, *CHILDREN, *LAUNCHERS)
