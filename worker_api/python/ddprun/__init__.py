"""What a training program may report to ddprun, and learn from it; worker_api/worker.h says more.

Works under ddprun, under torchrun and alone: without ddprun every call returns at once and does
nothing. Thread rule: any thread, and after a fork.

    import ddprun

    ddprun.handle_stop()
    ddprun.ready()
    for step in range(first, last):
        with ddprun.section("step", timeout=600):
            train(step)
        ddprun.step_done(step)
        if stop_on_every_rank(ddprun.stop_requested()):  # an all-reduce with MAX
            save(step)
            ddprun.checkpoint_written(step, path)
            break

A program that survives the failure of another rank (--restart=failed) takes the next round with the
process it has; with torch 2.15 or later:

    ddprun.survive()
    world = ddprun.next_round()
    while True:
        try:
            ddprun.reconfigure(world)  # the default group of torch.distributed
            train(from_agreed_step())
            break
        except RuntimeError:  # a collective failed: the round is over, or this is a bug
            world = ddprun.next_round(timeout=600)
            if world is None:
                raise
"""

import os

from ddprun._launch import RankFailed, launch
from ddprun._library import library as _library
from ddprun._library import milliseconds_of as _milliseconds_of
from ddprun._reconfigure import reconfigure
from ddprun._rounds import (World, abandon_sockets, agree, group_sockets, next_round, on_round,
                            round_pending, survive)

__all__ = ["RankFailed", "World", "abandon_sockets", "agree", "checkpoint_written", "connected",
           "group_sockets", "handle_stop", "launch", "next_round", "on_round", "ready",
           "reconfigure", "round_pending", "section", "step_done", "stop_requested", "survive",
           "wait_for_stop"]

_step_done = _library.ddprun_worker_step_done


def step_done(step):
    """Step `step` (from 0) is finished. Whether ddprun learns of it."""
    return _step_done(step) == 0


def ready():
    """The program is ready to train."""
    return _library.ddprun_worker_ready() == 0


def checkpoint_written(step, path):
    """A checkpoint of `step` is complete at `path`."""
    return _library.ddprun_worker_checkpoint_written(step, os.fsencode(path)) == 0


class section:  # pylint: disable=invalid-name
    """`with section("save", timeout=60):` ddprun ends the round if it takes longer (in seconds)."""

    def __init__(self, name, timeout):
        self._name = name.encode()
        self._timeout_ms = _milliseconds_of(timeout, 1)
        self._number = -1

    def __enter__(self):
        self._number = _library.ddprun_worker_section_begin(self._name, self._timeout_ms)
        return self

    def __exit__(self, *_):
        _library.ddprun_worker_section_end(self._number)


def handle_stop():
    """A stop that leaves time to save no longer ends this process: see stop_requested()."""
    error = _library.ddprun_worker_handle_stop()
    if error:
        raise OSError(error, os.strerror(error))


def stop_requested():
    """The signal of the stop that was requested, or 0. Ranks learn of it at different steps."""
    return _library.ddprun_worker_stop_requested()


def connected():
    """Whether ddprun is at the other end."""
    return _library.ddprun_worker_connected() == 1


def wait_for_stop(timeout):
    """Waits at most `timeout` seconds. True: a stop is requested; None: there is no link."""
    found = _library.ddprun_worker_wait_for_stop(_milliseconds_of(timeout))
    return None if found < 0 else found == 1
