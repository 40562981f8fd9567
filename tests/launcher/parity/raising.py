"""A worker of rank 1 raises, when that of rank 0 has ended; neither knows of torch's recorder."""

import os

fifo = os.path.join(os.environ["PROBE_DIR"], os.pardir, "ended")
try:
    os.mkfifo(fifo)
except FileExistsError:
    pass
if os.environ["RANK"] == "1":
    with open(fifo, "rb") as other:
        other.read()
    raise ValueError("needle in a haystack")
with open(fifo, "wb"):
    pass
