"""The C library that the module calls: worker_api/worker.h."""

import ctypes
import os
import pathlib

TEXT_MAX = 512
_MILLISECONDS_MAX = 2**31 - 1  # of a C int: 24 days; a longer time counts as this
RoundCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


class Worker(ctypes.Structure):
    """struct ddprun_worker"""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_int) for name in (
            "launched", "rank", "local_rank", "world_size", "local_world_size", "group_rank",
            "group_world_size", "restart_count", "max_restarts", "round", "use_agent_store")] + [
        ("master_port", ctypes.c_uint16), ("master_addr", ctypes.c_char * TEXT_MAX),
        ("run_id", ctypes.c_char * TEXT_MAX)]


class Change(ctypes.Structure):
    """struct ddprun_worker_change"""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_int) for name in ("cause", "previous_rank", "previous_world_size")]


def _load():
    name = os.environ.get("DDPRUN_WORKER_LIBRARY") or str(
        pathlib.Path(__file__).resolve().parent / "libddprun_worker.so")
    loaded = ctypes.CDLL(name)
    text, number, milliseconds = ctypes.c_char_p, ctypes.c_int64, ctypes.c_int
    size = ctypes.c_size_t
    types = {
        "step_done": [number],
        "checkpoint_written": [number, text],
        "section_begin": [text, number],
        "section_end": [number],
        "wait_for_stop": [milliseconds],
        "wait_for_place": [milliseconds],
        "next_round": [ctypes.POINTER(Worker), ctypes.POINTER(Change), milliseconds, text, size],
        "variables": [text, size],
        "on_round": [RoundCallback, ctypes.c_void_p],
        "agree": [text, text, size, text, ctypes.POINTER(size), milliseconds],
    }
    for function, arguments in types.items():
        getattr(loaded, "ddprun_worker_" + function).argtypes = arguments
    loaded.ddprun_worker_section_begin.restype = number
    loaded.ddprun_worker_variables.restype = size
    for function in ("section_end", "on_round", "sockets_begin"):
        getattr(loaded, "ddprun_worker_" + function).restype = None
    return loaded


def milliseconds_of(seconds, least=0):
    """What the library takes for a time-out."""
    return int(max(least, min(seconds * 1000, _MILLISECONDS_MAX)))


library = _load()
