"""The default group of torch.distributed, connected again in every round (torch 2.15 or later)."""

import datetime
import os

from ddprun._rounds import group_sockets

_stores = []  # the one that the group was initialized with


def reconfigure(world, backend="gloo", timeout=1800.0):
    """Makes the default process group consist of the ranks of `world`. Returns it.

    The first call initializes torch.distributed with enable_reconfigure; the others keep the group.
    Fails with RuntimeError if the round is over before all ranks have come. `timeout`, in seconds,
    is for this call and for each collective; torch's is the same. Others may wait that long for a
    rank that has to be started again, so it is longer than --rejoin-timeout and a start."""
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    if not hasattr(dist.distributed_c10d, "ReconfigureOptions"):
        raise NotImplementedError("ddprun.reconfigure() needs torch 2.15 or later")
    limit = datetime.timedelta(seconds=timeout)
    with group_sockets():
        store = dist.TCPStore(world.master_addr, world.master_port, None, _serves(world), limit,
                              wait_for_workers=False)
        if not _stores:
            _initialize(dist, store, world, backend, limit)
        _stores[0].present = store
        try:
            _connect(dist, store, world, limit)
        except RuntimeError:
            _forget_unconnected(dist)
            raise
    return dist.group.WORLD


def _initialize(dist, store, world, backend, limit):
    _stores.append(_store_of_rounds(dist)(store))
    dist.init_process_group(backend, store=_stores[0], rank=world.rank,
                            world_size=world.world_size, timeout=limit, enable_reconfigure=True)


def _connect(dist, store, world, limit):
    group = dist.group.WORLD
    # A list: the position of a handle is a rank.
    store.set(_key(world, world.rank), group.get_reconfigure_handle())
    options = dist.distributed_c10d.ReconfigureOptions()
    options.handles = [store.get(_key(world, rank)).decode() for rank in range(world.world_size)]
    options.uuid = world.round
    options.timeout = limit
    group.reconfigure(options).wait()
    _stores[0].connected = True


# Of a run without a launcher's store.
def _serves(world):
    return world.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"


def _key(world, rank):
    return f"ddprun/reconfigure/{world.round}/{rank}"


# The handle of a group that was never connected has the rank of this round, which may be another
# process's in the next one; handles must be unique.
def _forget_unconnected(dist):
    if not _stores[0].connected:
        _stores.clear()
        dist.destroy_process_group()


# A round has a store of its own, and Gloo meets in the one that the group was initialized with.
def _store_of_rounds(dist):
    class StoreOfRounds(dist.Store):
        def __init__(self, present):
            super().__init__()
            self.present = present
            self.connected = False

    def delegate(name):
        def call(self, *arguments):
            return getattr(self.present, name)(*arguments)
        return call

    for name in ("set", "get", "add", "wait", "check", "compare_set", "delete_key", "num_keys",
                 "append", "multi_get", "multi_set", "set_timeout", "has_extended_api"):
        setattr(StoreOfRounds, name, delegate(name))
    return StoreOfRounds
