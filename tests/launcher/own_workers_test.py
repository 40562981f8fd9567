#!/usr/bin/env python3
"""Scripts that start their own workers under ddprun get one sentence, and other programs none. With
a Python that has torch its Gloo groups are used; any other Python speaks to the store itself.

python3 tests/launcher/own_workers_test.py path/to/ddprun [Plain|Torch]
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402

DDPRUN = ""
HUNG = 120  # seconds after which a test counts as hung
HAS_TORCH = importlib.util.find_spec("torch") is not None
SAID = "warning [SPAWN] rank 0 "

# A store client as torch has it; a rank announces itself as Gloo or NCCL do, and waits until all
# have.
PLAIN = """
import os, socket, struct, subprocess, sys
class Store:
    def __init__(self):
        self.link = socket.create_connection(
            (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        self.link.sendall(struct.pack("<BI", 0, 0x3C85F7CE) + struct.pack("<BI", 13, os.getpid()))
        self.read(4)
    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.link.recv(size - len(data))
            assert part, "the store has closed the connection"
            data += part
        return data
    def text(self, text):
        return struct.pack("<Q", len(text)) + text.encode()
    def set(self, key):
        self.link.sendall(b"\\x01" + self.text(key) + self.text("address"))
    def meet(self, key, count):
        self.link.sendall(b"\\x04" + self.text(key) + struct.pack("<q", 1))
        if struct.unpack("<q", self.read(8))[0] == count:
            self.set(key + ":all")
        self.wait(key + ":all")
    def wait(self, key):
        self.link.sendall(b"\\x06" + struct.pack("<Q", 1) + self.text(key))
        self.read(1)
def announce(rank, key="/default_pg/0//cpu//0/"):
    store = Store()
    store.set(key + str(rank))
    return store
def spawn(count):
    here = [sys.executable, __file__, "child"]
    children = [subprocess.Popen([*here, str(i)]) for i in range(count)]
    assert [child.wait() for child in children] == [0] * count
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
child = int(sys.argv[2]) if sys.argv[1:2] == ["child"] else None
"""
# As torch.multiprocessing.spawn(nprocs=2).
SPAWNS = PLAIN + """
if child is None:
    spawn(2)
else:
    announce(child).meet("all", 2 * world)
"""

TORCH = """
import os, signal
from datetime import timedelta
import torch, torch.distributed as dist, torch.multiprocessing as mp
def meet(count):  # through a store of its own, until all have announced themselves
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]),
                          is_master=False, wait_for_workers=False)
    if store.add("met", 1) == count:
        store.set("all met", "")
    store.wait(["all met"], timedelta(seconds=60))
def all_reduce():
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == dist.get_world_size()
"""


class Done:
    """What is left of a run, on all its nodes."""

    def __init__(self, script, *options, nodes=((),), until=None):
        with tempfile.TemporaryDirectory() as folder:
            worker = pathlib.Path(folder) / "worker.py"
            worker.write_text(script)
            runs = [subprocess.Popen(
                [DDPRUN, f"--log-dir={folder}/logs{place}", *options, *node, worker], text=True,
                env={**os.environ, "PYTHON_EXEC": sys.executable, "TMPDIR": folder},
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for place, node in enumerate(nodes)]
            self.err = ""
            if until:  # the program does not end
                for line in runs[0].stderr:
                    self.err += line
                    if until in line:
                        break
                runs[0].terminate()
            self.err += "".join(run.communicate(timeout=HUNG)[1] for run in runs)
            self.code = max(run.returncode for run in runs)
            events = list(pathlib.Path(folder).rglob("events.jsonl"))
            lines = [line for file in events for line in file.read_text().splitlines()]
            told = [json.loads(line) for line in lines]
            self.events = [event for event in told if event["event"] == "own_workers"]


class Case(unittest.TestCase):
    def assert_said(self, done, advice="--nproc-per-node=1,"):
        self.assertEqual(done.err.count(SAID), 1, done.err)
        self.assertIn(advice, done.err)
        self.assertEqual(len(done.events), 1)
        self.assertIn(done.events[0]["text"], done.err)

    def assert_silent(self, done, code=0):
        self.assertEqual(done.code, code, done.err)
        self.assertNotIn("SPAWN", done.err)
        self.assertEqual(done.events, [])


class Plain(Case):
    def test_workers_of_workers_are_said_once_and_the_program_is_left_alone(self):
        done = Done(SPAWNS, "--nproc-per-node=3")
        self.assertEqual(done.code, 0, done.err)
        self.assert_said(done)
        self.assertIn("in each of the 3 that ddprun has started", done.err)

    def test_the_communicator_of_nccl_shows_it_too(self):
        self.assert_said(Done(PLAIN + """
if child is None:
    spawn(2)
else:
    store = announce(0, "/default_pg/0//cuda//") if child == 0 else Store()
    store.meet("all", 2 * world)
""", "--nproc-per-node=2"))

    def test_the_report_of_a_hang_has_the_sentence(self):
        done = Done(PLAIN + """
if child is None:
    spawn(2)
else:
    announce(child).wait("never")
""", "--nproc-per-node=2", "--hang-timeout=2")
        self.assertNotEqual(done.code, 0)
        self.assert_said(done)
        self.assertIn("  likely    " + done.events[0]["text"], done.err)

    def test_children_that_inherit_the_rank_of_one_worker_get_other_advice(self):
        self.assert_said(Done(PLAIN + """
spawn(2) if child is None else announce(rank).meet("all", 2)
"""), "WORLD_SIZE of their own")

    def test_one_node_of_two_says_it(self):
        master = ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
        endpoint = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
        for meeting, second in ((master, "--node-rank=1"), (endpoint, "--rdzv-id=spawns")):
            first = second.replace("=1", "=0")
            self.assert_said(Done(SPAWNS, "--nproc-per-node=2", "--nnodes=2", *meeting,
                                  nodes=([first], [second])))

    def test_one_worker_may_start_the_others(self):
        self.assert_silent(Done(SPAWNS))

    def test_groups_that_are_made_again_and_keys_of_applications_are_no_sign(self):
        self.assert_silent(Done(PLAIN + """
old = announce(rank)
old.meet("first", world)
new = announce(rank)                       # while the old store is still open
new.set("/default_pg/0//1//cpu//0/0")      # a subgroup of each rank alone
new.set("/default_pg/0//done")
new.set("/default_pg/store_based_barrier_key:0:last_worker")
more = [Store() for _ in range(8)]
new.meet("second", world)
""", "--nproc-per-node=3"))

    def test_a_restart_is_no_sign(self):
        self.assert_silent(Done(PLAIN + """
announce(rank).meet("all", world)
sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")
""", "--nproc-per-node=2", "--max-restarts=1"))

    def test_workers_that_are_alone_in_a_group_of_one_are_no_sign(self):
        self.assert_silent(Done(PLAIN + """
announce(0).meet("all", world)
""", "--nproc-per-node=2"))


    def test_the_same_below_programs_that_wait_for_them_is_no_sign(self):
        self.assert_silent(Done(PLAIN + """
if child is None:
    spawn(1)
else:
    announce(0).meet("all", world)
""", "--nproc-per-node=2"))

    def test_an_evaluation_below_a_rank_that_a_program_waits_for_is_no_sign(self):
        self.assert_silent(Done(PLAIN + """
if child is None:
    sys.exit(subprocess.run([sys.executable, __file__, "child", str(rank)]).returncode)
elif sys.argv[3:]:
    announce(0).meet("evaluation", 1)
else:
    store = announce(rank)
    if rank == 0:
        subprocess.run([sys.executable, __file__, "child", "0", "evaluation"], check=True)
    store.meet("all", world)
""", "--nproc-per-node=2"))


@unittest.skipUnless(HAS_TORCH, "no torch")
class Torch(Case):
    def test_spawn_with_ranks_of_its_own_is_said(self):
        for init in ('dist.init_process_group("gloo", rank=i, world_size=2)',
                     'os.environ.update(RANK=str(i), WORLD_SIZE="2"); '
                     'dist.init_process_group("gloo")'):
            self.assert_said(Done(TORCH + f"""
def train(i):
    meet(4)
    try:
        {init}
    except RuntimeError:
        pass  # they disturb one another
    signal.pause()
if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
""", "--nproc-per-node=2", until=SAID))

    def test_a_program_that_makes_a_group_again_hears_nothing(self):
        self.assert_silent(Done(TORCH + """
dist.init_process_group("gloo")
all_reduce()
dist.new_group([0])
dist.barrier()
dist.destroy_process_group()
if os.environ["RANK"] == "0":  # alone: a second group of all reads what the first has left
    dist.init_process_group("gloo", rank=0, world_size=1)
    all_reduce()
    dist.destroy_process_group()
""", "--nproc-per-node=2"))

    def test_one_worker_that_spawns_all_hears_nothing(self):
        self.assert_silent(Done(TORCH + """
def train(i):
    dist.init_process_group("gloo", rank=i, world_size=2)
    all_reduce()
    dist.barrier()
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
""", "--nproc-per-node=1"))


if __name__ == "__main__":
    DDPRUN = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
