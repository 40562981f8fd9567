"""The catalogue: one line per injected failure, and per healthy run that must raise no alarm.

What is injected, the cause code of the report's first line, the exit code, a phrase of the report.
The culprit is rank 1 of three ranks unless the line says otherwise; the others wait for a signal.
"""

from case import alike, control, fault, python

SHM = ("unshare", "--mount", "sh", "-c",
       'mount -t tmpfs -o size=2m none /dev/shm && exec "$@"', "sh")
DISK = ("unshare", "--mount", "sh", "-c",
        'mkdir full && mount -t tmpfs -o size=1m none full && exec "$@"', "sh")
SHARED = ("sh", "-c", 'echo $$ > "$CASE_CGROUP/cgroup.procs" && exec "$@"', "sh")
BAD_INTERPRETER = ("sh", "-c", r'printf "#!/nonexistent/python\n" > bad && chmod +x bad && '
                   'exec "$@"', "sh")
OWN = 'echo $$ > "$CASE_CGROUP/cgroup.procs" && '

PYTHON = (
    fault("a Python exception", python("plain"), "W-EXIT", 1, "KeyError: 'labels'"),
    fault("a chained exception", python("chained"), "W-EXIT", 1, "No such file or directory"),
    fault("a chain of 30 exceptions", python("deep_chain"), "W-EXIT", 1, "the first cause"),
    fault("an exception in a thread", python("in_thread"), "W-EXIT", 1, "ZeroDivisionError"),
    fault("a SyntaxError", python("syntax"), "W-EXIT", 1, "SyntaxError"),
    fault("a missing module", python("no_module"), "W-EXIT", 1, "ModuleNotFoundError"),
    fault("sys.exit with a text", python("exit_text"), "W-EXIT", 1, "lr must be positive"),
    fault("an AssertionError", python("assertion"), "W-EXIT", 1, "shape mismatch"),
    fault("endless recursion in Python", python("recursion"), "W-EXIT", 1, "RecursionError"),
    fault("the recorder's error.json", python("recorded"), "W-EXIT", 1, "ValueError: needle"),
    fault("an error.json of 4 MB", python("recorded_huge"), "W-EXIT", 1, "needle at the end"),
    fault("a torn error.json", python("recorded_torn"), "W-EXIT", 1, "torn, but said on stderr"),
    fault("the reason on stdout only", python("stdout_only"), "W-EXIT", 6,
          "the reason is on stdout", options=("--tee=3", "--log-dir=logs")),
    fault("a closed stderr", python("closed_stderr"), "W-EXIT", 7, "exit code 7"),
    fault("escape sequences and a forged headline", python("escapes"), "W-EXIT", 8,
          "the true reason", never="\x1b"),
    fault("20,000 lines before the last", python("many_lines"), "W-EXIT", 9, "the last line"),
)

CODES = tuple(
    fault(f"exit code {code}", f'echo "reason {code}" >&2; exit {code}', "W-EXIT", code,
          f"| reason {code}") for code in (1, 2, 3, 42, 100, 200, 254, 255)
)

SIGNALS = tuple(
    fault(f"signal {name} by itself", f'exec "$I" signal {number}', cause, 128 + number, name)
    for name, number, cause in (
        ("SIGHUP", 1, "W-SIGNAL"), ("SIGINT", 2, "W-SIGNAL"), ("SIGQUIT", 3, "W-SIGNAL"),
        ("SIGILL", 4, "W-CRASH"), ("SIGTRAP", 5, "W-CRASH"), ("SIGABRT", 6, "W-CRASH"),
        ("SIGFPE", 8, "W-CRASH"), ("SIGKILL", 9, "W-KILLED"), ("SIGUSR1", 10, "W-SIGNAL"),
        ("SIGPIPE", 13, "W-SIGNAL"), ("SIGALRM", 14, "W-SIGNAL"), ("SIGTERM", 15, "W-SIGNAL"),
        ("SIGSYS", 31, "W-CRASH"))
) + (
    fault("SIGSEGV of a null pointer", 'exec "$I" null', "W-CRASH", 139, "SIGSEGV"),
    fault("a stack overflow", 'exec "$I" stack', "W-CRASH", 139, "SIGSEGV"),
    fault("a native crash in Python", python("native_crash"), "W-CRASH", 139, "SIGSEGV"),
    fault("a native crash with a Python stack", python("native_crash_with_handler"), "W-CRASH",
          139, "in native_crash_with_handler"),
    fault("SIGKILL from outside", 'exec "$I" wait', "W-KILLED", 137, "SIGKILL",
          outside="kill_worker"),
    fault("SIGSEGV from outside", 'exec "$I" wait', "W-CRASH", 139, "SIGSEGV",
          outside="segv_worker"),
    fault("SIGTERM from outside to one rank", 'exec "$I" wait', "W-SIGNAL", 143, "SIGTERM",
          outside="term_worker"),
    fault("SIGKILL by a sibling", 'echo $$ > pid; "$I" note pid; exec "$I" wait', "W-KILLED", 137,
          "SIGKILL", peers='"$I" await pid.1; kill -9 $(cat pid); exec "$I" wait'),
)

RESOURCES = (
    fault("a mapped file that became shorter", 'exec "$I" mapped', "W-SIGBUS", 135, "SIGBUS"),
    fault("a full /dev/shm", 'exec "$I" shm 8000000', "W-SIGBUS", 135, "/dev/shm", prefix=SHM,
          needs="mount"),
    fault("a full disk", python("no_space", "full/checkpoint"), "W-DISK", 1, "No space left",
          prefix=DISK, needs="mount"),
    fault("the memory limit of a worker's own cgroup", OWN + 'exec "$I" eat 200', "W-OOM", 137,
          "memory", needs="memory"),
    fault("a memory limit shared with ddprun", 'exec "$I" eat 200', "W-OOM", 137, "memory",
          prefix=SHARED, needs="memory"),
    fault("RLIMIT_AS", python("memory"), "W-LIMIT", 1, "MemoryError"),
    fault("RLIMIT_NOFILE", python("descriptors"), "W-LIMIT", 1, "Too many open files"),
    fault("no more threads", python("threads"), "W-LIMIT", 1,
          "Resource temporarily unavailable"),
    fault("RLIMIT_FSIZE", python("file_size"), "W-LIMIT", 153, "SIGXFSZ"),
    fault("RLIMIT_CPU", 'ulimit -S -t 1; exec "$I" spin', "W-LIMIT", 152, "SIGXCPU"),
    fault("CUDA out of memory", python("cuda_memory"), "W-GPU", 1, "CUDA out of memory"),
    fault("a device-side assert", python("cuda_assert"), "W-GPU", 1, "device-side assert"),
    fault("an ECC error", python("cuda_ecc"), "W-GPU", 1, "uncorrectable ECC error"),
    fault("a line of 300 KB without its end", 'exec "$I" line 300000', "W-EXIT", 4, "THE END"),
    fault("binary output", 'exec "$I" binary 20000', "W-EXIT", 5, "the reason after the noise"),
)

STARTS = (
    fault("a missing program", "", "EXEC", 127, "no such file", culprit=None,
          program=("--no-python", "./missing")),
    fault("a program without permission", "", "EXEC", 126, "", culprit=None,
          program=("--no-python", "/etc/passwd")),
    fault("a folder as program", "", "EXEC", 126, "", culprit=None,
          program=("--no-python", "/tmp")),
    fault("a missing script", "", "EXEC", 2, "missing.py", culprit=None, program=("missing.py",)),
    fault("a missing interpreter", "", "EXEC", 127, "", culprit=None,
          program=("--no-python", "./bad"), prefix=BAD_INTERPRETER),
    alike("a missing library", 'echo "train: error while loading shared libraries: libnccl.so.2: '
          'cannot open shared object file: No such file or directory" >&2; exit 127', "EXEC", 127,
          "libnccl.so.2", culprit=None),
    alike("a command that the shell does not find", "exec python3.99 train.py", "EXEC", 127,
          "python3.99", culprit=None),
    alike("all ranks fail alike", "echo same reason >&2; exit 3", "W-EXIT", 3, "same reason"),
)

WRAPPERS = (
    fault("a shell wrapper that hides its child's SIGKILL", '"$I" signal 9; exit $?', "W-EXIT",
          137, "SIGKILL"),
    fault("a shell wrapper that hides a SIGSEGV", '"$I" null; exit $?', "W-EXIT", 139,
          "SIGSEGV"),
    fault("a pipeline", '(echo the reason >&2; exit 3) | cat; exit 3', "W-EXIT", 3, "the reason"),
    fault("a grandchild that outlives its shell",
          'setsid sh -c \'"$I" note out; exec "$I" wait\' & "$I" await out.1; exit 5', "W-EXIT", 5,
          "exit code 5"),
)

COLLECTIVES = (
    fault("a lost connection reported after the culprit's exit",
          '"$I" note going; echo mine >&2; exit 3', "W-EXIT", 3, "mine",
          peers='"$I" await going.1; ' + python("gloo_lost")),
    fault("a lost connection reported before the culprit's exit",
          'trap "" TERM; "$I" await lost.0; "$I" rest 30; echo mine >&2; exit 3', "W-EXIT", 3,
          "mine", peers=python("gloo_lost").removeprefix("exec ") + '; "$I" note lost; exit 1'),
    fault("a stopped rank, its peers' NCCL times out", 'exec "$I" wait', "W-COLLECTIVE", 134,
          "rank 1", peers='"$I" await stopped.0; ' + python("nccl_timeout"),
          outside="stop_worker"),
    fault("a sleeping rank, its peers' Gloo times out", 'exec "$I" wait', "W-COLLECTIVE", 1,
          "rank 1", peers='"$I" rest 200; ' + python("gloo_timeout")),
    fault("an early exit 0, its peers complain", "exit 0", "W-PEER", 1, "rank 1",
          peers='"$I" rest 100; ' + python("gloo_lost")),
)

CONTROLS = (
    control("all ranks exit 0", "exit 0"),
    control("a slow rank", '"$I" rest 700'),
    control("scary words", python("scary"), peers=python("scary")),
    control("exit 0 after a child failed", "false; true"),
    control("a failing Python child", python("plain") .removeprefix("exec ") + "; exit 0"),
    control("an exception that is caught", python("caught")),
    control("a background helper that ends in time", '"$I" rest 100 & wait; exit 0'),
)

CASES = (*PYTHON, *CODES, *SIGNALS, *RESOURCES, *STARTS, *WRAPPERS, *COLLECTIVES, *CONTROLS)
assert len({case.name for case in CASES}) == len(CASES), "a name stands for one case"
