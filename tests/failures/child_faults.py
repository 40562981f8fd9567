"""The faults of workers that are not one plain process: children, threads, other programs.

`faults.py NAME` runs them.
"""

import ctypes
import os
import signal
import sys
import threading


def thread_exits():
    threading.Thread(target=os._exit, args=(5,)).start()
    signal.pause()


def thread_ends_process():
    """As ctypes code or a library does that calls exit() in a thread of its own."""
    threading.Thread(target=ctypes.CDLL(None).exit, args=(6,)).start()
    signal.pause()


def close_all():
    sys.stdin = sys.stdout = sys.stderr = None
    os.closerange(0, 4096)


def closed_all():
    close_all()
    os._exit(7)


def closed_all_and_well():
    close_all()
    os._exit(0)


def execs():
    """Another program in the same process: its exit is the rank's."""
    print("the loader starts the trainer", file=sys.stderr)
    sys.stderr.flush()
    os.execv(os.environ["I"], ["trainer", *sys.argv[2:]])


def new_name():
    """A hostile name in /proc/PID/comm, then a failure."""
    ctypes.CDLL(None).prctl(15, b"a)\nddprun: err", 0, 0, 0)
    os._exit(4)


def crash_at_end():
    """From torch 2.11, whose Gloo threads can end the process in its exit handlers."""
    import traceback
    try:
        raises()
    except KeyError:
        traceback.print_exc()
    print("terminate called without an active exception", "Fatal Python error: Aborted", "",
          "Thread 0x00007fe3d67e9b80 (most recent call first):", "  <no Python frame>", "",
          "Extension modules: torch._C, torch._C._fft (total: 2)", sep="\n", file=sys.stderr)
    sys.stderr.flush()
    import faulthandler
    faulthandler.disable()
    os.abort()


# Children of a worker.

def raises():
    raise KeyError("labels")


def child_raises():
    import multiprocessing
    context = multiprocessing.get_context("fork")
    process = context.Process(target=raises)
    process.start()
    process.join()
    sys.exit(process.exitcode)


def child_of_pool_killed():
    import concurrent.futures
    import multiprocessing
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        pool.submit(os.kill, 0, 0).result()
        pool.submit(kill_self).result()


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def loader(fault):
    """What PyTorch's DataLoader does when a process of it dies."""
    pid = os.fork()
    if pid == 0:
        fault()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    name = signal.strsignal(os.WTERMSIG(status))
    raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {name}. ")


def loader_killed():
    loader(kill_self)


def loader_crashed():
    loader(lambda: ctypes.string_at(0))


def loader_bus_error():
    loader(lambda: os.kill(os.getpid(), signal.SIGBUS))


def loader_out_of_memory():
    loader(lambda: os.execv(os.environ["I"], ["inject", "eat", "200"]))


def loader_exits():
    raise RuntimeError("DataLoader worker (pid(s) 4711) exited unexpectedly")


def called_process():
    """A launcher that starts the training as its child, as `accelerate launch` does."""
    import subprocess
    subprocess.run(["/bin/sh", "-c", "echo mine >&2; exit 3"], check=True)


def processes():
    """RLIMIT_NPROC, which does not bind root."""
    import resource
    import subprocess
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    if os.geteuid() == 0:
        os.setuid(61_234)
    subprocess.run(["/bin/true"])


def child_that_is_replaced():
    """A pool that starts another process for one that was killed."""
    for fault in (kill_self, lambda: None):
        pid = os.fork()
        if pid == 0:
            fault()
            os._exit(0)
        os.waitpid(pid, 0)
