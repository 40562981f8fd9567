"""The catalogue: one line per injected failure, and per healthy run that must raise no alarm.

What is injected, the cause code of the report's first line, the exit code, a phrase of the report.
The culprit is rank 1 of three ranks unless the line says otherwise; the others wait for a signal.
"""

import children
import controls
import groups
import moments
from case import SHARED, alike, fault, python
from needs import USER
from sentences import kLimitSet

SHM = ("unshare", "--mount", "sh", "-c",
       'mount -t tmpfs -o size=2m none /dev/shm && exec "$@"', "sh")
DISK = ("unshare", "--mount", "sh", "-c",
        'mkdir full && mount -t tmpfs -o size=1m none full && exec "$@"', "sh")
FULL_LOGS = ("unshare", "--mount", "sh", "-c",
             'mkdir full && mount -t tmpfs -o size=200k none full && mkdir full/logs && '
             '{ head -c 300000 /dev/zero > full/fill 2>/dev/null; exec "$@"; }', "sh")
BAD_INTERPRETER = ("sh", "-c", r'printf "#!/nonexistent/python\n" > bad && chmod +x bad && '
                   'exec "$@"', "sh")
FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 64 && exec "$@"', "sh")
FEW_PROCESSES = (*USER, "prlimit", "--nproc=12")
ONE_PROCESS = (*USER, "prlimit", "--nproc=1")
OWN = 'echo $$ > "$CASE_CGROUP/cgroup.procs" && '

PYTHON = (
    fault("a Python exception", python("plain"), "W-EXIT", 1, "KeyError: 'labels'"),
    fault("a chained exception", python("chained"), "W-EXIT", 1, "No such file or directory"),
    fault("a chain of 30 exceptions", python("deep_chain"), "W-EXIT", 1, "the first cause"),
    fault("an exception in a thread", python("in_thread"), "W-EXIT", 1, "ZeroDivisionError"),
    fault("an exit after an exception that ended a thread", python("thread_then_exit"), "W-EXIT", 1,
          "config mismatch: 3 layers, not 4"),
    fault("a SyntaxError", python("syntax"), "W-EXIT", 1, "SyntaxError"),
    fault("a missing module", python("no_module"), "W-IMPORT", 1, "module_that_does_not_exist",
          culprit=None),
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
    fault("a progress bar before the traceback", python("progress_bar"), "W-EXIT", 1,
          "behind the progress bar"),
    fault("text that is no UTF-8", python("not_utf8"), "W-EXIT", 1, "der Grund: Größe 数据"),
    fault("an exception of 100,000 characters", python("long_exception"), "W-EXIT", 1,
          "ValueError: needle"),
    fault("an exception group", python("exception_group"), "W-EXIT", 1, "needle in the group"),
    fault("a warning after the traceback", python("warning_after_traceback"), "W-EXIT", 1,
          "RuntimeError: the true reason"),
    fault("KeyboardInterrupt of itself", python("interrupted"), "W-SIGNAL", 130, "SIGINT"),
    fault("20,000 lines before the last", python("many_lines"), "W-EXIT", 9, "the last line"),
)

# What a process survived is not why it ended, whatever it printed about it.
CAUGHT = tuple(
    fault(f"a CUDA out of memory that was caught, and exit code {code}",
          python("caught_memory", code), "W-EXIT", int(code),
          "FATAL: checkpoint shard 3 is corrupt", never="with the exception") for code in "13"
) + (
    fault("a time-out of a collective that was survived", python("caught_timeout"), "W-EXIT", 1,
          "the data set is unusable"),
    fault("a missing module that was done without", python("caught_import"), "W-EXIT", 3,
          "FATAL: checkpoint shard 3 is corrupt"),
    fault("an error.json of an exception that was caught", python("caught_recorded"), "W-EXIT", 3,
          "FATAL: checkpoint shard 3 is corrupt", never="its error.json:"),
    fault("an error of logging after the traceback", python("logged_and_raised"), "W-EXIT", 1,
          "ValueError: the true reason"),
    fault("an exception that Python ignores after the traceback", python("ignored_after"),
          "W-EXIT", 1, "KeyError: 'layer.11.weight'"),
    fault("an exception of a program that does without a module", python("without_a_module"),
          "W-EXIT", 1, "KeyError: 'learning_rate'"),
    fault("a pool of GPU memory that ran out", python("gpu_pool_memory"), "W-GPU", 1,
          "GPU memory ran out"),
    fault("a CUDA out of memory that was logged, and a checkpoint as before",
          python("memory_and_saved"), "W-GPU", 1, "GPU memory ran out"),
)

NAN = "learning rate is nan at step 7"
FORMS = tuple(
    fault(f"an exception as {form} prints it", python("captured", form), "W-EXIT", 1,
          f"ValueError: {NAN}") for form in (
              "rich", "rich-locals", "loguru", "ipython", "papermill", "hydra",
              "better-exceptions")
) + tuple(
    fault(f"an exception as {runtime} prints it", python("captured", runtime), "W-EXIT", 1, text)
    for runtime, text in (
        ("go", "panic: runtime error: index out of range [7] with length 1"),
        ("java", f"IllegalStateException: {NAN}"), ("julia", "ERROR: LoadError: BoundsError"),
        ("node", f"TypeError: {NAN}"), ("perl", f"{NAN} at -e line 1."),
        ("rust", "index out of bounds: the len is 1 but the index is 7"))
) + tuple(
    fault(f"an abort after '{text[:30]}'", python("native_abort", f"'{text}'"), "W-CRASH", 134,
          f"| {text}\n            | Fatal Python error: Aborted") for text in (
              "double free or corruption (!prev)",
              "OMP: Error #15: Initializing libA.so, but found libB.so already initialized.",
              "LLVM ERROR: out of memory", "*** stack smashing detected ***: terminated")
) + (
    fault("an exception of Node, 30 frames deep",
          "exec node -e 'function level(depth) { if (!depth) "
          f"throw new TypeError(\"{NAN}\"); level(depth - 1); }} level(30)'", "W-EXIT", 1,
          f"TypeError: {NAN}", needs="program node"),
    fault("an exception of Perl, 40 frames deep", "exec perl -MCarp -e 'sub level { $_[0] ? "
          f"level($_[0] - 1) : confess(\"{NAN}\") }} level(40)'", "W-EXIT", 255, f"| {NAN}",
          needs="program perl"),
    fault("a block that is freed twice", python("double_free"), "W-CRASH", 134, "double free"),
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
    fault("a full disk with the rank's own log files", "echo mine >&2; exit 3", "W-DISK", 3,
          "is full: 0 B of", prefix=FULL_LOGS, options=("--log-dir=full/logs", "-r", "3"),
          needs="mount"),
    fault("a stale file of a network file system", python("stale_file"), "W-DISK", 1,
          "Stale file handle"),
    fault("a disk that cannot be read", python("broken_disk"), "W-DISK", 1, "Input/output error"),
    fault("the memory limit of a worker's own cgroup", OWN + 'exec "$I" eat 200', "W-OOM", 137,
          "memory", needs="memory"),
    fault("a memory limit shared with ddprun", 'exec "$I" eat 200', "W-OOM", 137, "memory",
          prefix=SHARED, needs="plain memory"),
    fault("RLIMIT_AS", python("memory"), "W-LIMIT", 1, "MemoryError"),
    fault("RLIMIT_NOFILE", python("descriptors"), "W-LIMIT", 1, kLimitSet + "n"),
    fault("no more threads", python("threads"), "W-LIMIT", 1,
          "Resource temporarily unavailable"),
    fault("RLIMIT_NPROC", python("processes"), "W-LIMIT", 1, "its limit on processes",
          needs="root"),
    fault("RLIMIT_NPROC in a shell", 'exec setpriv --reuid=61234 prlimit --nproc=1 /bin/sh -c '
          '"/bin/true; exit 3"', "W-LIMIT", 2, "its limit on processes", needs="root"),
    fault("RLIMIT_FSIZE", python("file_size"), "W-LIMIT", 153, "SIGXFSZ"),
    fault("RLIMIT_CPU", 'ulimit -S -t 1; exec "$I" spin', "W-LIMIT", 152, "SIGXCPU"),
    fault("CUDA out of memory", python("cuda_memory"), "W-GPU", 1, "CUDA out of memory"),
    fault("a device-side assert", python("cuda_assert"), "W-GPU", 1, "device-side assert"),
    fault("an ECC error", python("cuda_ecc"), "W-GPU", 1, "uncorrectable ECC error"),
    fault("NCCL's system error", python("nccl_system"), "W-NCCL", 1, "unhandled system error"),
    fault("a full /dev/shm in Python", python("shared_memory"), "W-SHM", 1,
          "/dev/shm", prefix=SHM, needs="mount"),
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
    fault("a missing package of a module", "", "EXEC", 1, "nope", culprit=None,
          program=("-m", "nope.train")),
    fault("a peer that fails by itself shortly after", "echo mine >&2; exit 3", "W-EXIT", 3,
          'rank 0 failed, too, ', peers='[ $RANK = 2 ] || { "$I" rest 200; echo left >&2; exit 4; '
          '}; exec "$I" wait'),
    alike("several ranks fail, each in its own way", 'echo "reason $RANK" >&2; exit 1$RANK',
          "W-EXIT", None, "reason"),
    fault("a peer that fails in the stop", "echo mine >&2; exit 3", "W-EXIT", 3, "mine",
          peers="trap 'exit 9' TERM; \"$I\" note trap; \"$I\" wait & wait"),
    fault("a peer that ignores the stop", '"$I" await ignores.0; echo mine >&2; exit 3', "W-EXIT",
          3, "needed SIGKILL", peers='exec "$I" ignore', options=("--shutdown-timeout=1",)),
    fault("too few descriptors for the ranks", 'exec "$I" wait', "EXEC", 1, "ulimit -n",
          culprit=tuple(range(30)), ranks=30, prefix=FEW_DESCRIPTORS),
    fault("too few processes for the ranks", 'exec "$I" wait', "EXEC", 1, "ulimit -u",
          culprit=tuple(range(30)), ranks=30, prefix=FEW_PROCESSES, needs="user"),
    fault("too few processes for ddprun", 'exec "$I" wait', "EXEC", 1, "ulimit -u", culprit=0,
          prefix=ONE_PROCESS, needs="plain user"),
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

FILE = "$TORCHELASTIC_ERROR_FILE"


def hostile_file(what, command):
    """What stands where error.json belongs is neither waited for nor believed."""
    return fault(f"an error.json that is {what}", f"{command} && echo mine >&2; exit 3", "W-EXIT",
                 3, "mine", never="its error.json:")


HOSTILE = (
    hostile_file("a FIFO", f"mkfifo {FILE}"),
    hostile_file("a link to an endless device", f"ln -s /dev/zero {FILE}"),
    hostile_file("a folder", f"mkdir {FILE}"),
    hostile_file("gone with its folder", f"rm -rf $(dirname {FILE})"),
    fault("an error.json with escape sequences", python("recorded_escapes"), "W-EXIT", 1,
          "the true reason", never="\x1b"),
)

CASES = (*PYTHON, *CAUGHT, *FORMS, *CODES, *SIGNALS, *RESOURCES, *STARTS, *WRAPPERS, *HOSTILE,
         *children.CASES, *moments.CASES, *groups.CASES, *controls.CASES)
assert len({case.name for case in CASES}) == len(CASES), "a name stands for one case"
