"""The C library that the module calls: worker_api/worker.h."""

import ctypes
import os
import pathlib

_MILLISECONDS_MAX = 2**31 - 1  # of a C int: 24 days; a longer time counts as this


def _load():
    name = os.environ.get("DDPRUN_WORKER_LIBRARY") or str(
        pathlib.Path(__file__).resolve().parent / "libddprun_worker.so")
    loaded = ctypes.CDLL(name)
    text, number, milliseconds = ctypes.c_char_p, ctypes.c_int64, ctypes.c_int
    types = {
        "step_done": [number],
        "checkpoint_written": [number, text],
        "section_begin": [text, number],
        "section_end": [number],
        "wait_for_stop": [milliseconds],
    }
    for function, arguments in types.items():
        getattr(loaded, "ddprun_worker_" + function).argtypes = arguments
    loaded.ddprun_worker_section_begin.restype = number
    loaded.ddprun_worker_section_end.restype = None
    return loaded


def milliseconds_of(seconds, least=0):
    """What the library takes for a time-out."""
    return int(max(least, min(seconds * 1000, _MILLISECONDS_MAX)))


library = _load()
