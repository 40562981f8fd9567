#!/usr/bin/env python3
"""A program that survives: rounds that the agent pushes, taken by the Python module over the C
library. The test plays the agent.

python3 tests/worker_api/survivor_test.py path/to/ddprun path/to/build/python
"""

import os
import shutil
import subprocess
import sys
import unittest

from fake_agent import (HUNG, STOP, SURVIVES, FakeAgent, FakeStore, joined, push, receive,
                        variables_of)

PYTHON_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
DDPRUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
TORCHRUN = shutil.which("torchrun", path=os.path.dirname(sys.executable))
IMPORTS = "import ddprun, os, signal, socket, sys, threading, time\n"
SURVIVES_FIRST = ("assert ddprun.survive() and ddprun.survive()\nfirst = ddprun.next_round(0)\n"
                  "print('in round 1')\n")

# That of the module's documentation, around a bug.
LOOP = """
import textwrap, ddprun
def train(_):
    raise RuntimeError("shapes cannot be multiplied")
from_agreed_step, ddprun.reconfigure = str, str
loop = ddprun.__doc__[ddprun.__doc__.index("    ddprun.survive()"):]
exec(textwrap.dedent(loop).replace("600", "LIMIT"))
"""
ENDLESS = LOOP.replace("LIMIT", "600")


class Survivor(unittest.TestCase):
    def start(self, script, **more):
        self.agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(self.agent.close)
        process = self.agent.start(IMPORTS + script, {**variables_of(1, 4, 1), **more})
        return process, self.agent.accept()

    def survives(self, script):
        """A worker that has taken the round of its environment."""
        process, link = self.start(script)
        receive(link, SURVIVES)
        self.assertEqual(process.stdout.readline(), "in round 1\n")
        return process, link

    def ends(self, process, code=0):
        out, _ = process.communicate(timeout=HUNG)
        self.assertEqual(process.returncode, code, out)
        return out

    def test_it_takes_the_round_that_is_pushed_and_knows_what_it_was(self):
        process, link = self.survives(
            SURVIVES_FIRST +
            "assert first.round == 1 and first.rank == 1 and first.cause == 'start', first\n"
            "assert first.previous_rank == -1 and not first.variables, first\n"
            "assert ddprun.next_round(0.01) is None and ddprun.round_pending() == 0\n"
            "print('waits')\n"
            "world = ddprun.next_round()\n"
            "assert (world.round, world.rank, world.world_size) == (2, 0, 3), world\n"
            "assert (world.previous_rank, world.previous_world_size) == (1, 4), world\n"
            "assert world.cause == 'failure' and world.master_port == 77, world\n"
            "assert os.environ['RANK'] == '0' and os.environ['WORLD_SIZE'] == '3'\n"
            "assert ddprun.round_pending() == 0\n")
        self.assertEqual(process.stdout.readline(), "waits\n")
        push(link, 2, variables_of(0, 3, 2, port=77, restarts=1))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def start_spare(self, script):
        self.agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(self.agent.close)
        self.assertNotIn("RANK", os.environ)
        return self.agent.start(IMPORTS + script, {"DDPRUN_SPARE": "1"})

    def test_a_spare_waits_for_its_place_longer_than_the_time_out(self):
        process = self.start_spare(
            "assert ddprun.survive()\n"
            "threading.Timer(0.5, lambda: print('waits', flush=True)).start()\n"
            "world = ddprun.next_round(0.01)\n"
            "assert (world.round, world.rank, world.world_size) == (3, 2, 4), world\n"
            "assert (world.previous_rank, world.previous_world_size) == (-1, -1), world\n"
            "assert world.cause == 'failure' and os.environ['RANK'] == '2', world\n"
            "assert ddprun.next_round(0.01) is None\n"
            "print('nothing else')\n"
            "world = ddprun.next_round(60)\n"
            "assert (world.round, world.rank, world.previous_rank) == (4, 1, 2), world\n")
        link = self.agent.accept()
        receive(link, SURVIVES)
        self.assertEqual(process.stdout.readline(), "waits\n")
        push(link, 3, variables_of(2, 4, 3))
        self.assertEqual(joined(link), 3)
        self.assertEqual(process.stdout.readline(), "nothing else\n")
        push(link, 4, variables_of(1, 4, 4))
        self.assertEqual(joined(link), 4)
        self.ends(process)

    def test_a_spare_that_gets_no_place_is_never_a_rank(self):
        process = self.start_spare(
            "try: print('is a rank', ddprun.next_round(0))\n"  # it does not say that it survives
            "except ConnectionError: print('without survive()')\n"
            "assert ddprun.survive()\n"
            "try: ddprun.agree('name', b'x', 0)\n"
            "except ValueError: print('no round')\n"
            "print('waits')\n"
            "try: print('is a rank', ddprun.next_round(0))\n"
            "except ConnectionError: print('the agent is gone')\n")
        for line in ("without survive()", "no round", "waits"):
            self.assertEqual(process.stdout.readline(), line + "\n")
        self.agent.vanish(self.agent.accept())
        self.assertEqual(self.ends(process), "the agent is gone\n")

    def test_of_several_rounds_it_takes_the_last(self):
        process, link = self.survives(
            SURVIVES_FIRST +
            "while ddprun.round_pending() < 5: time.sleep(0.001)\n"
            "world = ddprun.next_round(60)\n"
            "while world.round < 5: world = ddprun.next_round(60)\n")
        for number in (2, 3, 4, 5):
            push(link, number, variables_of(1, 4, number))
        while joined(link) != 5:
            pass
        self.ends(process)

    def test_the_callback_comes_on_another_thread_before_the_round_is_taken(self):
        process, link = self.survives(
            "told = []\n"
            "ddprun.on_round(lambda *what: told.append((*what, threading.get_ident())))\n"
            + SURVIVES_FIRST + "world = ddprun.next_round(60)\n"
            "assert told[0][:2] == (2, 'failure'), told\n"
            "assert told[0][2] != threading.get_ident()\n")
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_a_round_that_is_invalid_is_not_taken(self):
        process, link = self.survives(SURVIVES_FIRST + "world = ddprun.next_round(60)\n"
                                   "assert world.round == 9, world\n")
        link.send(bytes((1, 17)))
        link.send(bytes((1, 17, 3, 0, 0, 0, 1)))
        link.send(bytes((1, 17, 3, 0, 0, 0, 1)) + b"RANK=1")
        push(link, 4, {"RANK": "7", "WORLD_SIZE": "2"})
        push(link, 1, variables_of(1, 4, 1))
        push(link, 9, variables_of(1, 4, 9))
        self.assertEqual(joined(link), 9)
        self.ends(process)

    def test_the_largest_round_arrives_whole(self):
        process, link = self.survives(SURVIVES_FIRST + "world = ddprun.next_round(60)\n"
                                   "assert os.environ['LONG'] == 'x' * 60000\n")
        push(link, 2, {**variables_of(1, 4, 2), "LONG": "x" * 60000})
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_the_end_of_the_agent_is_noticed(self):
        process, link = self.survives(
            SURVIVES_FIRST + "print('waits')\n"
            "try: ddprun.next_round()\n"
            "except ConnectionError: print('gone', ddprun.wait_for_stop(60), ddprun.survive())\n")
        self.assertEqual(process.stdout.readline(), "waits\n")
        self.agent.vanish(link)
        self.assertEqual(self.ends(process), "gone None False\n")

    def test_the_end_of_an_agent_that_refuses_links_is_noticed(self):
        process, link = self.survives(
            SURVIVES_FIRST + "print('waits')\n"
            "try: ddprun.next_round()\n"
            "except ConnectionError: print('gone')\n")
        self.assertEqual(process.stdout.readline(), "waits\n")
        for _ in range(2):
            link.close()
            link = self.agent.accept()
        self.agent.vanish(link)
        self.assertEqual(self.ends(process), "gone\n")

    def test_a_link_that_is_refused_is_made_again_and_takes_the_round(self):
        process, link = self.start(
            "ddprun.step_done(1)\n"
            "while ddprun.connected(): time.sleep(0.001)\n"
            + SURVIVES_FIRST + "world = ddprun.next_round()\n"
            "assert (world.round, world.cause) == (2, 'failure'), world\n"
            "print('freed')\n"
            "assert ddprun.next_round().round == 3\n")
        link.close()  # while survive() is called, or before
        link = self.agent.accept()
        receive(link, SURVIVES)
        self.assertEqual(process.stdout.readline(), "in round 1\n")
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.assertEqual(process.stdout.readline(), "freed\n")
        link.close()
        link = self.agent.accept()
        receive(link, SURVIVES)
        push(link, 3, variables_of(1, 4, 3))
        self.assertEqual(joined(link), 3)
        self.ends(process)

    def test_who_waits_for_a_round_is_told_that_each_link_is_refused(self):
        process, link = self.survives(
            SURVIVES_FIRST + "print('waits')\n"
            "try: ddprun.next_round()\n"
            "except ConnectionError: print('refused')\n"
            "while not ddprun.connected() or not ddprun.survive(): time.sleep(0.001)\n"
            "assert ddprun.next_round().round == 2\n")
        self.assertEqual(process.stdout.readline(), "waits\n")
        for _ in range(2):
            link.close()
            link = self.agent.accept()
        link.close()
        self.assertEqual(process.stdout.readline(), "refused\n")
        link = self.agent.accept()
        receive(link, SURVIVES)
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_a_stop_is_noticed_beside_the_thread_that_reads(self):
        process, link = self.survives(
            "waiting = threading.Thread(target=lambda: print(ddprun.wait_for_stop(60)))\n"
            "waiting.start()\n" + SURVIVES_FIRST +
            "print('waits')\n"
            "waiting.join()\n")
        self.assertEqual(process.stdout.readline(), "waits\n")
        # Without the page, which says why: it continues to wait, and the thread takes the packet.
        link.send(bytes((1, STOP)))
        push(link, 2, variables_of(1, 4, 2))
        self.agent.vanish(link)
        self.assertEqual(self.ends(process), "None\n")

    def test_processes_that_it_forks_are_not_told_of_rounds(self):
        process, link = self.survives(
            SURVIVES_FIRST +
            "children = []\n"
            "for _ in range(20):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        assert not ddprun.survive() and ddprun.step_done(5)\n"
            "        try: ddprun.next_round(600)\n"
            "        except ConnectionError: os._exit(0)\n"
            "        os._exit(1)\n"
            "    children.append(child)\n"
            "assert all(os.waitpid(child, 0)[1] == 0 for child in children)\n"
            "world = ddprun.next_round(60)\n")
        for number in range(2, 30):
            push(link, number, variables_of(1, 4, number))
        while joined(link) < 2:
            pass
        self.ends(process)

    def test_a_process_below_the_worker_does_not_survive(self):
        process, _ = self.start(
            "import subprocess\n"
            "ddprun.step_done(1)\n"
            "subprocess.run([sys.executable, '-c', 'import ddprun; "
            "assert not ddprun.survive() and ddprun.next_round(0).rank == 1'], check=True)\n")
        self.ends(process)

    def test_only_sockets_of_the_group_are_shut_when_a_round_comes(self):
        process, link = self.survives(
            "listener = socket.create_server(('127.0.0.1', 0))\n"
            "def pair():\n"
            "    near = socket.create_connection(listener.getsockname())\n"
            "    return near, listener.accept()[0]\n"
            "kept = pair()\n"
            "with ddprun.group_sockets():\n"
            "    group = pair()\n"
            "    local = socket.socketpair()\n"
            "after = pair()\n"
            "number = group[0].fileno()\n"
            + SURVIVES_FIRST + "print('blocked')\n"
            "assert group[0].recv(1) == b''\n"  # until the round comes
            "ddprun.next_round(60)\n"
            "for near, far in (kept, after, local):\n"
            "    near.send(b'x'); assert far.recv(1) == b'x'\n"
            "assert group[0].fileno() == number\n"  # not closed
            "with ddprun.group_sockets():\n"
            "    again = pair()\n"
            "    again[0].send(b'x'); assert again[1].recv(1) == b'x'\n"
            "assert ddprun.abandon_sockets() >= 1 and again[0].recv(1) == b''\n")
        self.assertEqual(process.stdout.readline(), "blocked\n")
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_sockets_that_are_made_for_a_round_that_is_over_are_shut(self):
        process, link = self.survives(
            "listener = socket.create_server(('127.0.0.1', 0))\n"
            + SURVIVES_FIRST +
            "with ddprun.group_sockets():\n"
            "    print('makes')\n"
            "    while not ddprun.round_pending(): time.sleep(0.001)\n"
            "    late = socket.create_connection(listener.getsockname())\n"
            "    assert late.recv(1) == b''\n"
            "ddprun.next_round(60)\n")
        self.assertEqual(process.stdout.readline(), "makes\n")
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_sockets_are_shut_of_a_group_that_is_begun_when_its_round_is_over(self):
        process, link = self.survives(
            "listener = socket.create_server(('127.0.0.1', 0))\n"
            "def watcher_sleeps():\n"  # it waits for the next packet
            "    threads = [open(f'/proc/self/task/{task}/stat').read()\n"
            "               for task in os.listdir('/proc/self/task')]\n"
            "    return any('(ddprun-rounds) S' in thread for thread in threads)\n"
            + SURVIVES_FIRST +
            "while not ddprun.round_pending() or not watcher_sleeps(): time.sleep(0.001)\n"
            "with ddprun.group_sockets():\n"
            "    assert socket.create_connection(listener.getsockname()).recv(1) == b''\n"
            "ddprun.next_round(60)\n")
        push(link, 2, variables_of(1, 4, 2))
        self.assertEqual(joined(link), 2)
        self.ends(process)

    def test_all_ranks_of_a_round_agree_on_the_first_value(self):
        store = FakeStore()
        self.addCleanup(store.close)
        script = (IMPORTS + "value = sys.argv[0] and b'of rank ' + os.environ['RANK'].encode()\n"
                  "print(ddprun.agree('source', value))\n"
                  "assert ddprun.agree('month', b'x', timeout=30 * 86400) == b'x'\n"
                  "assert ddprun.agree('ever', b'x', timeout=float('inf')) == b'x'\n"
                  "print(ddprun.agree('empty', b''), len(ddprun.agree('big', b'x' * 65536)))\n"
                  "try: ddprun.agree('x', b'x' * 65537)\n"
                  "except ValueError: print('too long')\n")
        agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(agent.close)
        ranks = [agent.start(script, variables_of(rank, 4, 1, store.port)) for rank in range(4)]
        said = {self.ends(rank) for rank in ranks}
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said.pop(), r"^b'of rank \d'\nb'' 65536\ntoo long\n$")

    def test_agreeing_ends_in_time_and_with_the_store(self):
        silent = FakeStore()
        self.addCleanup(silent.close)
        silent.lock.acquire()
        script = IMPORTS + ("try: ddprun.agree('x', b'y', timeout=%s)\n"
                            "except (TimeoutError, ConnectionError) as error: "
                            "print(type(error).__name__)\n")
        agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(agent.close)
        late = agent.start(script % 0.2, variables_of(0, 2, 1, silent.port))
        self.assertEqual(self.ends(late), "TimeoutError\n")
        refused = agent.start(script % 60, variables_of(0, 2, 1, port=1))
        self.assertEqual(self.ends(refused), "ConnectionError\n")


class WithoutAgent(unittest.TestCase):
    SCRIPT = IMPORTS + (
        "assert not ddprun.survive()\n"
        "first = ddprun.next_round(60)\n"
        "assert first.cause == 'start' and first.rank == int(os.environ.get('RANK', 0)), first\n"
        "try: ddprun.next_round(600)\n"
        "except ConnectionError: assert ddprun.round_pending() == 0\n"
        "else: assert False\n"
        "value = ddprun.agree('v', b'%d' % first.rank)\n"
        "assert threading.active_count() == 1 and len(os.listdir('/proc/self/task')) == 1\n"
        "os.write(1, b'agreed %s\\n' % value)\n")

    def environment(self):
        without = {name: value for name, value in os.environ.items()
                   if name not in ("DDPRUN_WORKER_SOCKET", "RANK", "WORLD_SIZE")}
        return {**without, "PYTHONPATH": PYTHON_DIR}

    def said(self, command):
        done = subprocess.run(command, env=self.environment(), timeout=HUNG, text=True,
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0)
        return set(done.stdout.splitlines()), len(done.stdout.splitlines())

    def test_without_rounds_the_documented_loop_ends_at_once_with_the_error_of_a_bug(self):
        self.fails([sys.executable, "-c", ENDLESS])
        self.fails([DDPRUN, "--nproc-per-node=2", "--no-python", sys.executable, "-c", ENDLESS])

    @unittest.skipUnless(TORCHRUN, "no torchrun")
    def test_under_torchrun_the_documented_loop_ends_at_once_with_the_error_of_a_bug(self):
        self.fails([TORCHRUN, "--standalone", "--no-python", sys.executable, "-c", ENDLESS])

    def test_the_documented_loop_ends_with_the_error_of_a_bug_when_no_round_comes(self):
        self.fails([DDPRUN, "--restart=failed", "--max-restarts=0", "--nproc-per-node=2",
                    "--no-python", sys.executable, "-c", LOOP.replace("LIMIT", "0.5")])

    def fails(self, command):
        done = subprocess.run(command, env=self.environment(), timeout=HUNG, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("RuntimeError: shapes cannot be multiplied", done.stderr)

    def test_alone_the_first_round_is_the_only_one(self):
        self.assertEqual(self.said([sys.executable, "-c", self.SCRIPT]), ({"agreed 0"}, 1))

    def test_under_ddprun_the_ranks_agree(self):
        script = self.SCRIPT.replace("not ddprun.survive()", "ddprun.connected()").replace(
            "threading.active_count()", "1 or threading.active_count()")
        said, lines = self.said([DDPRUN, "--standalone", "--nproc-per-node=3", "--no-python",
                                 sys.executable, "-c", script])
        self.assertEqual((len(said), lines), (1, 3))

    @unittest.skipUnless(TORCHRUN, "no torchrun")
    def test_under_torchrun_the_first_round_is_the_only_one_and_the_ranks_agree(self):
        said, lines = self.said([TORCHRUN, "--standalone", "--nproc-per-node=2", "--no-python",
                                 sys.executable, "-c", self.SCRIPT])
        self.assertEqual((len(said), lines), (1, 2))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
