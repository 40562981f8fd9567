#!/usr/bin/env python3
"""Clients of the link that are hostile: they cost the agent a bounded amount of memory, descriptors
and time, and delay nothing.

python3 tests/worker_api/link_hostile_test.py path/to/ddprun path/to/build/python
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "control"))
from runs import HUNG, Run, eventually

PYTHON_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
PROCESSES = 16  # of one rank
# AddressSanitizer otherwise keeps up to 256 MB of freed memory.
NO_QUARANTINE = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0"

# What a worker needs to speak with its agent without the library.
RAW = """
import array, fcntl, os, signal, socket, sys
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

def connect():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(20)
    client.connect(os.environ["DDPRUN_WORKER_SOCKET"])
    return client

def memory(size=4096, seals=SEALS):
    made = os.memfd_create("page", os.MFD_ALLOW_SEALING)
    os.ftruncate(made, size)
    fcntl.fcntl(made, fcntl.F_ADD_SEALS, seals)
    return made

def hello(client, *descriptors, packet=b"\\1\\1"):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    client.sendmsg([packet], rights if descriptors else [])

def is_closed(client):
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True
"""
UP = "\nprint('up', flush=True)\nsignal.pause()\n"


def memory_of(pid):
    with open(f"/proc/{pid}/status") as status:
        (line,) = [one for one in status if one.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


class Hostile(unittest.TestCase):
    def start(self, script, *options):
        run = Run("--standalone", *options, "--no-python", sys.executable, "-c", RAW + script + UP,
                  environment={"PYTHONPATH": PYTHON_DIR, "ASAN_OPTIONS": NO_QUARANTINE})
        self.addCleanup(run.__exit__)
        run.wait_until_up()
        return run

    def agent(self, run):
        return int(run.sockets()[0].name.split("-")[0])

    def answers(self, run):
        return run.status()["state"] == "running"

    def test_what_is_no_hello_is_closed(self):
        run = self.start("""
for packet in (b"\\1", b"\\2\\1", b"\\1\\3", b"\\1\\1x", b"x" * 100000):
    client = connect()
    hello(client, memory(), packet=packet)
    assert is_closed(client), packet
for client in (connect(), connect()):
    hello(client)  # no page
    assert is_closed(client)
""")
        self.assertTrue(self.answers(run))

    def test_a_page_that_could_be_cut_or_is_none_is_refused(self):
        run = self.start("""
kept = connect()
for descriptor in (memory(seals=0), memory(size=8192), memory(size=0), memory(size=100), 1,
                   os.open("/dev/zero", os.O_RDWR), os.pipe()[0], kept.fileno(),
                   memory(seals=SEALS | fcntl.F_SEAL_WRITE)):
    client = connect()
    hello(client, descriptor)
    assert is_closed(client), descriptor
client = connect()
hello(client, memory(), memory())  # two
assert is_closed(client)
""")
        self.assertTrue(self.answers(run))

    def test_any_content_of_a_page_is_harmless(self):
        run = self.start("""
import mmap
for filled in (b"\\xff", b"\\x7f", b"\\x02", b"\\x01", b"\\x80"):
    made = memory()
    with mmap.mmap(made, 4096) as page:
        page[:] = filled * 4096
        client = connect()
        hello(client, made)
        client.send(b"\\1\\2")
""")
        self.assertTrue(self.answers(run))

    def test_a_flood_of_packets_and_connections_costs_no_memory_and_no_descriptors(self):
        quiet = self.start("")
        without = memory_of(self.agent(quiet))
        quiet.end()
        run = self.start("""
client = connect()
hello(client, memory())
client.setblocking(False)
for _ in range(100000):
    try:
        client.send(b"\\1\\4" + bytes(8) + b"/" * 4096)
    except BlockingIOError:
        pass
kept = [client]
pages = [memory() for _ in range(100)]
for round in range(2000):
    try:
        kept.append(connect())
        if round % 10 == 0:
            hello(kept[-1], *pages)
    except OSError:
        pass  # refused, or an ordinary user has too many descriptors in flight
""")
        agent = self.agent(run)
        self.assertTrue(self.answers(run))
        self.assertTrue(eventually(lambda: len(os.listdir(f"/proc/{agent}/fd")) < 3 * PROCESSES))
        self.assertLess(memory_of(agent) - without, 16_000_000)
        code, _, _ = run.end()
        self.assertEqual(code, 143)

    def test_a_worker_beyond_its_connections_is_linked_once_one_has_ended(self):
        run = self.start(f"""
import ddprun, select, threading
taken = [connect() for _ in range({PROCESSES})]
for client in taken:
    hello(client, memory())
assert ddprun.step_done(1)
while ddprun.connected():
    ddprun.wait_for_stop(1)
taken.pop().close()
def steps():
    while ddprun.step_done(2):
        select.select([], [], [], 0.01)
threading.Thread(target=steps, daemon=True).start()
""")
        self.assertTrue(eventually(lambda: run.status()["ranks"][0]["step"] == 2))

    def test_a_survivor_beyond_its_connections_is_kept_once_one_has_ended(self):
        logs = self.enterContext(tempfile.TemporaryDirectory())
        run = self.start(f"""
import ddprun
if os.environ["RANK"] == "0" and ddprun.next_round().round == 1:
    taken = [connect() for _ in range({PROCESSES})]
    for client in taken:
        hello(client, memory())
    assert ddprun.survive()
    while ddprun.connected():
        ddprun.wait_for_stop(0.01)
    taken.pop().close()
    while not ddprun.connected():
        ddprun.wait_for_stop(0.01)
    ddprun.ready()  # behind what says that it survives
    assert ddprun.next_round().round == 2
""", "--restart=failed", "--max-restarts=1", "--nproc-per-node=2", f"--log-dir={logs}")
        events = pathlib.Path(run.status()["log_dir"]).parent / "events.jsonl"
        self.assertTrue(eventually(lambda: '"ready"' in events.read_text()))
        kept, lost = (rank["pid"] for rank in run.status()["ranks"])
        os.kill(lost, signal.SIGKILL)
        run.wait_until_up(2)
        self.assertEqual(run.status()["ranks"][0]["pid"], kept)

    def test_a_process_that_is_no_workers_is_refused(self):
        run = self.start("open(os.environ['XDG_RUNTIME_DIR'] + '/name', 'w').write("
                         "os.environ['DDPRUN_WORKER_SOCKET'])")
        name = pathlib.Path(run.folder.name, "name").read_text()
        stranger = RAW + """
client = connect()
try:
    hello(client, memory())
except BrokenPipeError:
    pass  # closed already
print(is_closed(client))
"""
        prefixes = [[]]
        if os.geteuid() == 0 and shutil.which("setpriv"):
            prefixes.append(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        for prefix in prefixes:
            asked = subprocess.run([*prefix, sys.executable, "-c", stranger], text=True,
                                   env={**os.environ, "DDPRUN_WORKER_SOCKET": name}, timeout=HUNG,
                                   capture_output=True, check=False)
            refused = asked.stdout == "True\n" or "PermissionError" in asked.stderr
            self.assertTrue(refused, asked)
        self.assertTrue(self.answers(run))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
