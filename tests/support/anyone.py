"""A program for processes of another user, who may not pass through the folder that it is in."""

import contextlib
import os


@contextlib.contextmanager
def for_anyone(program):
    """The path by which any user can start it, and what subprocess needs for that."""
    descriptor = os.open(program, os.O_PATH)
    try:
        yield f"/proc/self/fd/{descriptor}", {"pass_fds": (descriptor,)}
    finally:
        os.close(descriptor)
