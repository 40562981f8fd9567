"""A worker without torch: connects to the others through the store, then runs until told to exit.

Ranks connect late on purpose, each by up to CHAOS_LATE seconds. Special exit codes: 90 the store
has seen this rank before, 91 the others are of another round, 92 timeout after 60 s, 93 the store
is gone (only with CHAOS_BRITTLE).
"""

import json
import os
import random
import select
import signal
import sys
import threading
import uuid

from notes import Notebook
from store_client import Store

SECONDS = 60
POLL_SECONDS = 0.02


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    notebook = Notebook()
    notebook.write()
    late = float(os.environ.get("CHAOS_LATE", "0.1"))
    threading.Event().wait(random.uniform(0, late))
    try:
        store = Store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SECONDS)
        save_when_stopped(store, notebook.facts["RANK"])
        return meet(store, notebook) or hang(store, notebook) or stay(store, notebook)
    except (OSError, ConnectionError) as error:
        print(f"rank {os.environ['RANK']}: {error}", file=sys.stderr)
        return 92


def save_when_stopped(store: Store, rank: str) -> None:
    """With CHAOS_SAVES every rank but 0 takes so many seconds to end, and uses the store then."""
    seconds = float(os.environ.get("CHAOS_SAVES", "0"))

    def save(*_):
        if rank != "0":
            threading.Event().wait(seconds)
            store.add("saved", 1)
            print(f"rank {rank}: saved with the store", flush=True)
        os._exit(0)

    if seconds > 0:
        signal.signal(signal.SIGTERM, save)


def meet(store: Store, notebook: Notebook) -> int:
    facts = notebook.facts
    rank, world = facts["RANK"], int(facts["WORLD_SIZE"])
    if store.add(f"rank/{rank}", 1) != 1:
        print(f"rank {rank}: the store knows this rank already: it is not fresh", file=sys.stderr)
        return 90
    mine = [facts["WORLD_SIZE"], facts["GROUP_WORLD_SIZE"], facts["TORCHELASTIC_RESTART_COUNT"],
            facts["DDPRUN_ROUND"], facts["MASTER_PORT"]]
    if "CHAOS_OWN_ADDRESSES" not in os.environ:  # each host may know the store by another one
        mine.append(facts["MASTER_ADDR"])
    store.set(f"facts/{rank}", json.dumps(mine).encode())
    if rank == "0":
        store.set("token", uuid.uuid4().hex.encode())
    if store.add("arrived", 1) == world:
        store.set("all", b"1")
    store.wait("all")
    for other in range(world):
        theirs = json.loads(store.get(f"facts/{other}"))
        if theirs != mine:
            print(f"rank {rank} has {mine}, rank {other} has {theirs}", file=sys.stderr)
            return 91
    notebook.write(met=world, token=store.get("token").decode())
    return 0


def hang(store: Store, notebook: Notebook) -> None:
    """With CHAOS_HANG=RANK that rank waits for a signal, and the others for it."""
    hangs = os.environ.get("CHAOS_HANG")
    first = notebook.facts["TORCHELASTIC_RESTART_COUNT"] == "0"
    if hangs is None or not first:
        return
    if hangs == notebook.facts["RANK"]:
        signal.pause()
    store.wait("never")


def stay(store: Store, notebook: Notebook) -> int:
    brittle = "CHAOS_BRITTLE" in os.environ
    watched = [store.socket] if brittle else []
    chatter = "x" * int(os.environ.get("CHAOS_CHATTER", "0"))  # a line of that length each time
    while True:
        if chatter:
            print(chatter, file=sys.stderr, flush=True)
        if (code := notebook.order()) is not None:
            return code
        if select.select(watched, [], [], POLL_SECONDS)[0]:
            print(f"rank {notebook.facts['RANK']}: the store went away", file=sys.stderr)
            return 93


if __name__ == "__main__":
    sys.exit(main())
