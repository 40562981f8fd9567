"""Waits for a condition, with a deadline."""

import select
import time

HUNG = 30  # seconds after which a test counts as hung


def eventually(condition, hung=HUNG):
    """Whether the condition holds before the deadline."""
    deadline = time.monotonic() + hung
    while not condition():
        if time.monotonic() > deadline:
            return False
        select.select([], [], [], 0.01)
    return True
