"""Rounds that a process takes part in without being started again."""

import atexit
import collections
import contextlib
import ctypes
import errno
import os
import time

from ddprun._library import Change, RoundCallback, Worker, library, milliseconds_of

# A signal handler of Python runs between two waits.
_WAIT_MS = 200
_VALUE_BYTES_MAX = 65536
_CAUSES = ("start", "failure")
_callbacks = []  # the one that the library calls

World = collections.namedtuple("World", (
    "round", "rank", "world_size", "local_rank", "local_world_size", "group_rank", "restart_count",
    "master_addr", "master_port", "previous_rank", "previous_world_size", "cause", "variables"))
World.__doc__ = """A round that this process takes part in.

`previous_rank`, `previous_world_size`: in the round that it was in before; -1: in none. `cause`:
"start": the process was started for it; "failure": the round before is over, since a worker is
gone or nodes joined, and its collectives do not end.
`variables`: those of the environment that have new values."""


def survive():
    """This process can take a new round without being started again. False: no other round will
    come, because there is no ddprun, or it starts all ranks again (no --restart=failed)."""
    return library.ddprun_worker_survive() == 0


def round_pending():
    """The number of a round that next_round() would return, else 0. Costs no system call."""
    return library.ddprun_worker_round_pending()


def next_round(timeout=None):
    """Waits for a round newer than the one the process is in, and takes part in it.

    At most `timeout` seconds; None: no limit. The first call returns the round of the environment
    at once; of a spare (ddprun --spares), that in which it gets the place of a lost rank, whenever
    that is. Returns a World, or None when the time is over; os.environ has its variables by then.
    ConnectionError, at once: none can come, because ddprun is gone or survive() was False.
    ValueError: the environment is not a worker's."""
    while library.ddprun_worker_wait_for_place(_WAIT_MS) == errno.ETIMEDOUT:
        pass  # a spare: there is no round yet, and no limit
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _WAIT_MS
        if deadline is not None:
            left = milliseconds_of(deadline - time.monotonic() + 0.000999)
        worker = Worker(struct_size=ctypes.sizeof(Worker))
        change = Change(struct_size=ctypes.sizeof(Change))
        problem = ctypes.create_string_buffer(1024)
        failed = library.ddprun_worker_next_round(
            ctypes.byref(worker), ctypes.byref(change), min(left, _WAIT_MS), problem,
            len(problem))
        if failed == 0:
            return _world(worker, change)
        if failed == errno.EINVAL:
            raise ValueError(problem.value.decode(errors="replace"))
        if failed != errno.ETIMEDOUT:
            raise ConnectionError(failed, "no other round can come")
        if left <= _WAIT_MS and deadline is not None:
            return None


def _world(worker, change):
    variables = _variables()
    os.environ.update(variables)
    return World(worker.round, worker.rank, worker.world_size, worker.local_rank,
                 worker.local_world_size, worker.group_rank, worker.restart_count,
                 os.fsdecode(worker.master_addr), worker.master_port, change.previous_rank,
                 change.previous_world_size, _CAUSES[change.cause], variables)


def _variables():
    size = library.ddprun_worker_variables(None, 0)
    block = ctypes.create_string_buffer(size)
    library.ddprun_worker_variables(block, size)
    entries = [os.fsdecode(entry) for entry in block.raw[:size].split(b"\0") if entry]
    return dict(entry.split("=", 1) for entry in entries)


def on_round(callback):
    """`callback(round, cause)` is called on a thread of its own when a round comes, before
    next_round() returns it: to free a thread that waits in a collective. None: nothing is."""
    wrapped = RoundCallback(0) if callback is None else RoundCallback(
        lambda number, cause, _: callback(number, _CAUSES[cause]))
    library.ddprun_worker_on_round(wrapped, None)
    _callbacks.append(wrapped)  # the thread may be in the one before
    del _callbacks[:-2]


@atexit.register
def _end():
    if _callbacks:
        on_round(None)


@contextlib.contextmanager
def group_sockets():
    """Sockets that are made inside belong to a group of ranks: they are shut when a worker of its
    round is gone, or this process has taken the next one, so that no thread waits in a collective
    whose other ranks have left it (Gloo)."""
    library.ddprun_worker_sockets_begin()
    try:
        yield
    finally:
        library.ddprun_worker_sockets_end()


def abandon_sockets():
    """Shuts the sockets of group_sockets() now. Returns how many."""
    return library.ddprun_worker_abandon_sockets()


def agree(name, value, timeout=60.0):
    """Of the values (bytes, at most 65536) that ranks propose under one name in this round, the one
    that came first. TimeoutError; ConnectionError: the store of the round is not there any more."""
    agreed = ctypes.create_string_buffer(_VALUE_BYTES_MAX)
    size = ctypes.c_size_t(len(agreed))
    failed = library.ddprun_worker_agree(os.fsencode(name), value, len(value), agreed,
                                         ctypes.byref(size), milliseconds_of(timeout))
    if failed == 0:
        return agreed.raw[:size.value]
    if failed == errno.ETIMEDOUT:
        raise TimeoutError(failed, "the round's store did not answer in time")
    if failed == errno.ENOTCONN:
        raise ConnectionError(failed, "the round's store is not there")
    raise ValueError(os.strerror(failed))
