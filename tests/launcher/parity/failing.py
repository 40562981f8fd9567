"""A worker whose main torch's recorder wraps; rank 1 raises."""

import os

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("needle in a haystack")


main()
