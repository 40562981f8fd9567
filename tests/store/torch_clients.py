#!/usr/bin/env python3
"""Unmodified PyTorch clients against ddprun-rdzvd: TCPStore, process groups, torch elastic.

python tests/store/torch_clients.py path/to/ddprun-rdzvd [name of one test]
"""

import contextlib
import multiprocessing
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
import unittest
from datetime import timedelta

try:
    import torch
    import torch.distributed as dist
except ImportError as missing:
    print(f"skipped: this Python has no torch ({missing})")
    sys.exit(77)

RDZVD = ""
SHORT = timedelta(milliseconds=100)
LONG = timedelta(seconds=60)
VERSION = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())
WORLD = 4


class Daemon:
    """A running ddprun-rdzvd."""

    def __init__(self):
        self.process = subprocess.Popen([RDZVD, "--port", "0"], stdout=subprocess.PIPE, text=True)
        readable, _, _ = select.select([self.process.stdout], [], [], 20)
        assert readable, "no ready line within 20 s"
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code

    def client(self, timeout=LONG, **more):
        return dist.TCPStore("127.0.0.1", self.port, is_master=False, timeout=timeout, **more)


class WithDaemon(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(lambda: self.daemon.process.poll() is None and self.daemon.stop())
        self.store = self.daemon.client(world_size=1)


class Methods(WithDaemon):
    def test_values_are_returned_byte_for_byte(self):
        sizes = (0, 1, 1439, 1440, 1441, 4095, 4096, 4097, 65535, 65536, 65537, 8 << 20)
        generator = random.Random(1)
        for size in sizes:
            value = generator.randbytes(size)
            self.store.set("k", value)
            self.assertEqual(self.store.get("k"), value)
        self.store.set("text", "vä\0l")
        self.assertEqual(self.store.get("text"), "vä\0l".encode())

    def test_odd_keys_are_opaque(self):
        keys = ("-key", "//a//0//cuda//0", " ", "\t", "/%2f", "a//b", "a/b", "k" * 8191)
        for key in keys:
            self.store.set(key, "of " + key)
        for key in keys:
            self.assertEqual(self.store.get(key), ("of " + key).encode())

    def test_add_counts(self):
        self.assertEqual([self.store.add("n", k) for k in (1, 2, 3)], [1, 3, 6])
        self.assertEqual(self.store.get("n"), b"6")

    def test_counts_checks_and_deletes_keys(self):
        self.assertEqual(self.store.num_keys(), 1)  # init/
        for key in range(5):
            self.store.set(str(key), "")
        self.assertEqual(self.store.num_keys(), 6)
        self.assertTrue(self.store.check(["0", "4"]))
        self.assertFalse(self.store.check(["0", "no"]))
        self.assertTrue(self.store.check([]))
        self.assertTrue(self.store.delete_key("0"))
        self.assertFalse(self.store.delete_key("0"))
        self.assertEqual(self.store.num_keys(), 5)

    def test_compare_set(self):
        self.assertEqual(self.store.compare_set("k", "old", "new"), b"old")
        self.assertFalse(self.store.check(["k"]))
        self.assertEqual(self.store.compare_set("k", "", "new"), b"new")
        self.assertEqual(self.store.compare_set("k", "wrong", "x"), b"new")
        self.assertEqual(self.store.compare_set("k", "new", ""), b"")

    def test_append_and_lists(self):
        self.store.append("p", "po")
        self.store.append("p", "tato")
        self.store.multi_set(["a", "b"], ["1", "2"])
        self.assertEqual(self.store.multi_get(["p", "b", "a"]), [b"potato", b"2", b"1"])
        self.store.multi_set([], [])
        self.assertEqual(self.store.multi_get([]), [])

    def test_a_wait_that_times_out_leaves_the_connection_usable(self):
        for _ in range(20):
            with self.assertRaisesRegex(dist.DistStoreError, "wait timeout after 100ms, keys: /no"):
                self.store.wait(["no"], SHORT)
            self.store.set("yes", "1")
            self.store.wait(["yes"], LONG)
            self.assertEqual(self.store.get("yes"), b"1")

    def test_a_wait_is_woken_by_another_client(self):
        other = self.daemon.client()
        setter = multiprocessing.get_context("fork").Process(target=set_after_hello, args=(other,))
        setter.start()
        self.store.wait(["hello", "world"], LONG)
        setter.join()

    def test_queues(self):
        self.assertEqual(self.store.queue_len("q"), 0)
        with self.assertRaises(dist.QueueEmptyError):
            self.store.queue_pop("q", False)
        self.store.queue_push("q", "a")
        self.store.queue_push("q", b"b\0" * 500_000)
        self.assertEqual(self.store.queue_len("q"), 2)
        self.assertEqual(self.store.queue_pop("q"), b"a")
        self.assertEqual(self.store.queue_pop("q"), b"b\0" * 500_000)
        self.store.set_timeout(SHORT)
        with self.assertRaises(dist.DistStoreError):
            self.store.queue_pop("q")
        self.assertEqual(self.store.num_keys(), 1)

    def test_list_keys(self):
        if not hasattr(self.store, "list_keys"):
            self.skipTest(f"torch {torch.__version__} has no list_keys")
        for key in range(1000):
            self.store.set(f"key{key}", "")
        self.assertEqual(sorted(self.store.list_keys()), sorted(f"key{key}" for key in range(1000)))

    def test_barrier(self):
        if not hasattr(self.store, "barrier"):
            self.skipTest(f"torch {torch.__version__} has no barrier")
        run_ranks(cross_barrier, self.daemon.port)
        self.assertEqual(self.daemon.client().get("gate"), str(WORLD).encode())

    def test_clones_and_prefixes_share_the_store(self):
        clone = self.store.clone()
        dist.PrefixStore("p", clone).set("foo", "bar")
        self.assertEqual(self.store.get("p/foo"), b"bar")
        del clone
        self.assertEqual(self.daemon.client().get("p/foo"), b"bar")

    def test_sixteen_clients_count_together(self):
        run_ranks(add_a_thousand, self.daemon.port, ranks=16)
        self.assertEqual(self.store.add("sum", 1), 16_001)

    def test_an_overlong_key_fails_the_next_call_and_no_other_client(self):
        with contextlib.suppress(dist.DistNetworkError):
            self.store.set("k" * 9000, "v")
        with self.assertRaises(dist.DistNetworkError):
            self.store.get("anything")
        self.assertEqual(self.daemon.client().num_keys(), 1)

    def test_a_blocked_client_fails_at_once_when_the_server_stops(self):
        blocked = multiprocessing.get_context("fork").Process(
            target=expect_network_error, args=(self.daemon.port,)
        )
        blocked.start()
        self.store.wait(["about to block"], LONG)
        self.assertEqual(self.daemon.stop(), 0)
        blocked.join(timeout=60)
        self.assertEqual(blocked.exitcode, 0)


def set_after_hello(store):
    store.set("hello", "")
    store.set("world", "")


def expect_network_error(port):
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=LONG)
    store.set("about to block", "")
    try:
        store.get("never set")
    except dist.DistNetworkError:
        return
    sys.exit("get() of a key that is never set returned")


def cross_barrier(rank, port):
    del rank
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=LONG)
    store.barrier("gate", WORLD, LONG)


def add_a_thousand(rank, port):
    del rank
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=LONG)
    for _ in range(1000):
        store.add("sum", 1)


def run_ranks(target, port, ranks=WORLD):
    """Runs target(rank, port) in `ranks` processes; all must exit with 0."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=target, args=(rank, port)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
        if process.is_alive():
            process.kill()
    codes = [process.exitcode for process in processes]
    assert codes == [0] * ranks, f"exit codes {codes}"


class ProcessGroups(WithDaemon):
    def test_gloo_ranks_rendezvous_through_the_agent_store(self):
        run_ranks(train_nothing, self.daemon.port)

    def test_two_groups_one_after_the_other_on_one_store(self):
        run_ranks(groups_in_a_row, self.daemon.port)


def join(rank, port):
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        WORLD_SIZE=str(WORLD),
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
        GLOO_SOCKET_IFNAME="lo",
    )
    dist.init_process_group("gloo", timeout=LONG)


def train_nothing(rank, port):
    join(rank, port)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    assert total.item() == WORLD * (WORLD + 1) / 2
    dist.monitored_barrier(timeout=LONG)
    half = dist.new_group([0, 1])
    if rank < 2:
        dist.barrier(group=half)
    boxes = [None] * WORLD
    dist.all_gather_object(boxes, {"rank": rank})
    assert [box["rank"] for box in boxes] == list(range(WORLD))
    dist.barrier()
    dist.destroy_process_group()


def groups_in_a_row(rank, port):
    for round_ in range(3):
        store = dist.PrefixStore(
            f"round{round_}", dist.TCPStore("127.0.0.1", port, WORLD, False, LONG, False)
        )
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=LONG)
        dist.barrier()
        dist.destroy_process_group()


class Elastic(WithDaemon):
    def test_the_c10d_rendezvous_backend_stores_its_state(self):
        from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import (
            C10dRendezvousBackend,
        )

        backend = C10dRendezvousBackend(self.store, "run")
        self.assertIsNone(backend.get_state())
        state, token, wrote = backend.set_state(b"first")
        self.assertEqual((state, wrote), (b"first", True))
        state, _, wrote = backend.set_state(b"late", None)
        self.assertEqual((state, wrote), (b"first", False))
        state, _, wrote = backend.set_state(b"second", token)
        self.assertEqual((state, wrote), (b"second", True))
        self.assertEqual(backend.get_state()[0], b"second")

    def test_two_stock_agents_rendezvous_through_it(self):
        torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
        if not os.path.exists(torchrun):
            self.skipTest("no torchrun next to this Python")
        command = [
            torchrun,
            "--nnodes=2",
            "--nproc-per-node=1",
            "--rdzv-backend=c10d",
            "--rdzv-conf=is_host=false",
            f"--rdzv-endpoint=127.0.0.1:{self.daemon.port}",
            "--rdzv-id=meet",
            "--local-addr=127.0.0.1",
            "--no-python",
            "/bin/true",
        ]
        environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "0"}
        agents = [subprocess.Popen(command, env=environment) for _ in range(2)]
        codes = []
        deadline = time.monotonic() + 240  # they import torch first
        for agent in agents:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(timeout=max(1, deadline - time.monotonic()))
            if agent.poll() is None:
                agent.kill()
            codes.append(agent.wait())
        self.assertEqual(codes, [0, 0])


if __name__ == "__main__":
    RDZVD = sys.argv[1]
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[2:]], warnings="ignore")
