"""What workers record for the test: one file per worker, replaced atomically.

A worker is told what to do by files too: `finish` ends all with 0, `finish.RANK` one rank,
`exit.RANK.ROUND` holds the code with which that rank of that round fails.
"""

import json
import os
import pathlib
import time

FIELDS = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR "
          "MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID DDPRUN_ROUND "
          "CHAOS_AGENT").split()


class Notebook:
    """The worker's side."""

    def __init__(self):
        self.folder = pathlib.Path(os.environ["CHAOS_FOLDER"])
        self.facts = {name: os.environ.get(name, "") for name in FIELDS}
        self.facts |= {"pid": os.getpid(), "began": time.monotonic(), "met": None, "token": ""}

    def write(self, **more) -> None:
        self.facts |= more
        final = self.folder / "notes" / f"{os.getpid()}.json"
        partial = final.with_suffix(".part")
        partial.write_text(json.dumps(self.facts))
        partial.rename(final)

    def order(self) -> int | None:
        """The exit code that the test currently requests, if any."""
        rank, number = self.facts["RANK"], self.facts["DDPRUN_ROUND"]
        if (self.folder / "finish").exists() or (self.folder / f"finish.{rank}").exists():
            return 0
        wanted = self.folder / f"exit.{rank}.{number}"
        return int(wanted.read_text()) if wanted.exists() else None


def read_all(folder: pathlib.Path) -> list[dict]:
    """The test's side."""
    return [json.loads(path.read_text()) for path in (folder / "notes").glob("*.json")]
