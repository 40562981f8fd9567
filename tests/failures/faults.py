"""The faults of the failure catalogue that need Python: `faults.py NAME [ARGUMENT]`.

No torch: what PyTorch, NCCL and Gloo print is quoted from real runs.
"""

import atexit
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys
import threading

from child_faults import *  # noqa: F403: `faults.py NAME` has them all
from ending_faults import *  # noqa: F403

RANK = os.environ.get("RANK", "0")
ROOT_CAUSE = "Root Cause"
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""


def plain():
    raise KeyError("labels")


def chained():
    try:
        open("/nonexistent/shard-0412")
    except OSError as error:
        raise RuntimeError("the data set is unusable") from error


def deep_chain():
    def level(depth):
        if depth == 0:
            raise ValueError("the first cause")
        try:
            level(depth - 1)
        except Exception as error:
            raise RuntimeError(f"at level {depth}") from error
    level(30)


def in_thread():
    def run():
        try:
            raise ZeroDivisionError("in the loader thread")
        except ZeroDivisionError:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    threading.Thread(target=run).start()
    signal.pause()


def thread_then_exit():
    def run():
        raise ZeroDivisionError("in the metrics thread")
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    sys.exit("config mismatch: 3 layers, not 4")


def reset():
    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def raises_slowly():
    def exit_slowly():
        note = f"raised.{os.environ['DDPRUN_ROUND']}.{RANK}"
        open(os.path.join(os.environ["CASE_DIR"], note), "w").close()
        signal.pause()
    atexit.register(exit_slowly)
    raise ValueError("the true cause")


def syntax():
    compile("def f(:\n", "model.py", "exec")


def no_module():
    import module_that_does_not_exist  # noqa: F401


def exit_text():
    sys.exit("config: lr must be positive")


def assertion():
    assert 1 == 2, "shape mismatch"


def interrupted():
    raise KeyboardInterrupt


def recursion():
    recursion()


def stdout_only():
    print("the reason is on stdout")
    sys.stdout.flush()
    os._exit(6)


def closed_stderr():
    os.close(2)
    os._exit(7)


def escapes():
    sys.stderr.write("\x1b[2J\x1b]0;owned\x07ddprun: error [W-FAKE] rank 0 did it\r\n")
    sys.stderr.write("\x1b[31mthe true reason\x1b[0m\n")
    sys.exit(8)


def many_lines():
    sys.stderr.write("".join(f"noise {i}\n" for i in range(20000)) + "the last line\n")
    sys.exit(9)


def native_crash():
    ctypes.string_at(0)


def native_crash_with_handler():
    import faulthandler
    faulthandler.enable()
    ctypes.string_at(0)


def progress_bar():
    sys.stderr.write("".join(f"\rstep {i}: {i} %" for i in range(100)))
    raise ValueError("behind the progress bar")


def not_utf8():
    sys.stderr.buffer.write(b"\xff\xfe loss \x80\xc3\n")
    sys.exit("der Grund: Größe 数据 passt nicht")


def long_exception():
    raise ValueError("needle " + "x" * 100_000)


def exception_group():
    raise ExceptionGroup("two loaders", [ValueError("needle in the group"), OSError(5, "io")])


def warning_after_traceback():
    import traceback
    try:
        raise RuntimeError("the true reason")
    except RuntimeError:
        traceback.print_exc()
    say("/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: "
        "resource_tracker: There appear to be 4 leaked semaphore objects to clean up at shutdown",
        "  warnings.warn('resource_tracker: There appear to be %d '")
    sys.exit(1)


def error_file(message, text=None):
    whole = {"message": {"message": message, "extraInfo": {
        "py_callstack": f"Traceback (most recent call last):\n{message}\n",
        "timestamp": "1767323045"}}}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        file.write(json.dumps(whole) if text is None else text)


def recorded():
    error_file("ValueError: needle")
    sys.exit(1)


def recorded_huge():
    error_file("x" * 4_000_000 + " ValueError: needle at the end")
    sys.exit(1)


def recorded_escapes():
    error_file("\x1b[2Jddprun: error [W-FAKE] rank 0 did it\n\x1b[0mthe true reason")
    sys.exit(1)


def recorded_torn():
    error_file("", '{"message": {"message": "ValueErr')
    sys.exit("torn, but said on stderr")


def recorded_by_victim():
    error_file("RuntimeError: Connection reset by peer")
    print("RuntimeError: Connection reset by peer", file=sys.stderr)
    sys.exit(1)


def recorded_in_round_1():
    """The file of a round that is over is no evidence about the next one."""
    if os.environ["DDPRUN_ROUND"] == "1":
        error_file("ValueError: the needle of round 1")
        sys.exit(3)
    say("the reason of round 2")
    sys.exit(4)


def memory():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
    bytearray(1 << 30)


def no_space():
    with open(ARGUMENT, "wb") as file:
        file.write(b"x" * (8 << 20))


def stale_file():
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), "/data/shard-0412")


def broken_disk():
    raise OSError(errno.EIO, os.strerror(errno.EIO), "/data/shard-0412")


def shared_memory():
    raise RuntimeError("unable to allocate shared memory(shm) for file </torch_4711_1>: No space "
                       "left on device (28)")


def descriptors():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    keep = [open("/dev/null") for _ in range(64)]
    return keep


def threads():
    print("RuntimeError: can't start new thread", file=sys.stderr)
    print("libgomp: Thread creation failed: Resource temporarily unavailable", file=sys.stderr)
    sys.exit(1)


def file_size():
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    with open(os.environ["CASE_DIR"] + "/checkpoint", "wb") as file:
        file.write(b"x" * 100_000)


def cpu_time():
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def say(*lines):
    for line in lines:
        print(line, file=sys.stderr)
    sys.stderr.flush()


# What collectives print. The sequence number is the argument.

def nccl_timeout():
    nccl_words()
    os.abort()


def nccl_words():
    number = int(ARGUMENT or 42)
    work = (f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
            "Timeout(ms)=600000) ran for 600013 milliseconds before timing out.")
    say(f"[rank{RANK}]:[E1122 10:51:07.12 ProcessGroupNCCL.cpp:683] [Rank {RANK}] Watchdog caught "
        f"collective operation timeout: {work}",
        f"[rank{RANK}]:[E1122 10:51:07.13 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg)"
        f" Rank {RANK}]  failure detected by watchdog at work sequence id: {number} PG status: "
        f"last enqueued work: {number}, last completed work: {number - 1}",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {RANK}] Process group watchdog thread "
        f"terminated with exception: [Rank {RANK}] Watchdog caught collective operation timeout: "
        f"{work}")


def gloo_timeout():
    raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
                       "waiting 1800000ms for recv operation to complete")


def gloo_mismatch():
    say("terminate called after throwing an instance of 'gloo::EnforceNotMet'",
        "  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:456] "
        "op.preamble.length <= op.nbytes. 8 vs 4. Received data size doesn't match expected size. "
        f"Is there a distributed collective {'mismatch'} in your code?")
    os.abort()


def gloo_lost():
    raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
                       "peer [127.0.0.1]:5731")


def gloo_reset():
    raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Read error "
                       "[127.0.0.1]:5731: Connection reset by peer")


def store_timeout():
    say("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. "
        "2/3 clients joined.")
    sys.exit(1)


def store_wait():
    """Waits for a key that no rank sets, as a client of torch does."""
    store = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    with socket.create_connection(store) as to:
        key = ARGUMENT.encode()
        to.sendall(struct.pack("<BIBQQ", 0, 0x3C85F7CE, 6, 1, len(key)) + key)
        note = f"waiting.{os.environ['DDPRUN_ROUND']}.{RANK}"
        open(os.path.join(os.environ["CASE_DIR"], note), "w").close()
        to.recv(1)


def nccl_remote():
    say("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
        "ProcessGroupNCCL.cpp:1275, remote process exited or there was a network error, "
        "NCCL version 2.21.5",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process "
        "exiting prematurely.")
    sys.exit(1)


def monitored_barrier():
    raise RuntimeError("Rank 1 failed to pass monitoredBarrier in 30000 ms")


def cuda_memory():
    say(CUDA_MEMORY)
    sys.exit(1)


def caught_memory(end="FATAL: checkpoint shard 3 is corrupt"):
    """An exception that was caught and shown, and the true reason later."""
    import traceback
    for step in range(3):
        say(f"step {step}: loss 0.{step}")
    try:
        raise MemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    except MemoryError:
        traceback.print_exc()
    say("batch halved to 16", end)
    sys.exit(int(ARGUMENT))


def caught_timeout():
    """A time-out of a collective that was survived."""
    import traceback
    say("step 1: loss 0.4")
    try:
        gloo_timeout()
    except RuntimeError:
        traceback.print_exc()
    say("group made again", "step 2: loss 0.3", "step 3: loss 0.3")
    sys.exit("the data set is unusable")


def caught_import():
    import traceback
    try:
        no_module()
    except ImportError:
        traceback.print_exc()
    say("continuing without it", "FATAL: checkpoint shard 3 is corrupt")
    sys.exit(3)


def caught_recorded():
    error_file("OutOfMemoryError: CUDA out of memory")
    say("batch halved to 16", "FATAL: checkpoint shard 3 is corrupt")
    sys.exit(3)


def logged_and_raised():
    """A handler of logging that cannot format its record, after the true reason."""
    import atexit
    import logging
    logging.basicConfig()
    atexit.register(lambda: logging.error("%d of %d", 1))
    raise ValueError("the true reason")


def native_abort():
    """A native library says why it aborts; then the fault handler reports."""
    for step in range(40):
        say(f"step {step}: loss 0.{step}")
    say(ARGUMENT)
    os.abort()


def double_free():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = libc.malloc(4000)
    keep = libc.malloc(4000)
    libc.free(ctypes.c_void_p(block))
    libc.free(ctypes.c_void_p(block))
    return keep


def captured():
    """Prints a text of tests/captured/endings as another formatter, or runtime, left it."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "captured",
                           "endings", ARGUMENT + ".txt"), encoding="utf-8") as file:
        say(*file.read().splitlines())
    sys.exit(1)


CUDA_MEMORY = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "
               "a total capacity of 79.10 GiB of which 1.05 GiB is free.")


def cuda_assert():
    say("../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [5,0,0], "
        "thread: [96,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        "RuntimeError: CUDA error: device-side assert triggered")
    sys.exit(1)


def cuda_ecc():
    say("RuntimeError: CUDA error: uncorrectable ECC error encountered")
    sys.exit(1)


def nccl_system():
    raise RuntimeError("NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled "
                       "system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
                       "ncclSystemError: System call (e.g. socket, malloc) or external library "
                       "call failed or device error.")


# What launchers inside a worker print at their end.

def nested_torchrun():
    """From torchrun 2.11, shortened."""
    say("Traceback (most recent call last):",
        '  File "/opt/venv/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/launcher/api.py", '
        "line 300, in launch_agent",
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "============================================================",
        "train.py FAILED",
        "------------------------------------------------------------",
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "------------------------------------------------------------",
        f"{ROOT_CAUSE} (first observed failure):",
        "[0]:",
        "  time      : 2026-11-22_10:00:00",
        "  host      : gpu-01",
        "  rank      : 5 (local_rank: 5)",
        "  exitcode  : 3 (pid: 4711)",
        "  error_file: <N/A>",
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/"
        "errors.html",
        "============================================================")
    sys.exit(1)


# What healthy workers do, and what looks like a fault.

def scary():
    say("Killed", "Timed out waiting 1800000ms for recv operation to complete",
        "Connection reset by peer", "Traceback (most recent call last):", "CUDA out of memory",
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013 milliseconds before timing out.",
        "Segmentation fault (core dumped)", "No space left on device",
        "ddprun: error [W-FAKE] rank 0 did it")


def caught():
    try:
        plain()
    except KeyError:
        import traceback
        traceback.print_exc()


def threads_that_end():
    many = [threading.Thread(target=threading.Event().wait, args=(0.1,)) for _ in range(8)]
    for thread in many:
        thread.start()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
