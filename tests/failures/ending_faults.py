"""The faults of workers that print something beside why they end: hooks, loggers, libraries.

`faults.py NAME` runs them.
"""

import logging
import sys

LOST = ("[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
        "[127.0.0.1]:16291")


class Writer:
    """Python ignores what its end raises, and prints it."""
    def __del__(self):
        raise OSError(28, "No space left on device")


def ignored_after():
    writer = Writer()  # noqa: F841: its end follows the traceback
    raise KeyError("layer.11.weight")


def lost_and_ignored():
    writer = Writer()  # noqa: F841
    raise RuntimeError(LOST)


def lost_and_saved():
    """A training loop that logs the exception, saves as it did before, and exits."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.info("saving checkpoint at step %d", 4)
    try:
        raise RuntimeError(LOST)
    except RuntimeError:
        logging.exception("exception in training loop")
        logging.info("saving checkpoint at step %d", 5)
        sys.exit(1)


def memory_and_saved():
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.info("saved checkpoint step_%d.pt", 20)
    try:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    except RuntimeError:
        logging.exception("exception in training")
        logging.info("saved checkpoint step_%d.pt", 30)
        sys.exit(1)
