#!/usr/bin/env python3
"""ddprun ps and ddprun status show the runs of this user.

python3 tests/control/commands_test.py path/to/ddprun
"""

import contextlib
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from anyone import for_anyone
from ports import free_port
from runs import DDPRUN, HUNG, WAITS, Run, eventually, named, standalone
from supervisors import supervisors_of
from tables import members

FINISHED = "of this user is active on this machine"


class Shown(unittest.TestCase):
    def test_ps_shows_a_run_in_one_line_and_no_file_is_left_when_it_ends(self):
        with named("b7", "--nproc-per-node=2", "sh", "-c", WAITS) as run:
            run.wait_until_up(ranks=2)
            (line,) = run.listed()
            self.assertRegex(line, r"^b7 +1 +0-1 +running +20\d\d-\d\d-\d\d ")
            self.assertIn("sh -c", line)
            self.assertEqual(len(run.sockets()), 1)
            self.assertEqual(run.end()[0], 143)
            self.assertEqual(run.sockets(), [])
            self.assertEqual(run.listed(), [])

    def test_status_names_every_rank_with_its_process(self):
        with named("b7", "--nproc-per-node=2", "sh", "-c", WAITS) as run:
            run.wait_until_up(ranks=2)
            status = run.status()
            self.assertEqual([rank["rank"] for rank in status["ranks"]], [0, 1])
            for rank in status["ranks"]:
                with open(f"/proc/{rank['pid']}/comm") as name:
                    self.assertEqual(name.read(), "tail\n")
            sleep = lambda: [rank["state"] for rank in run.status()["ranks"]] == ["S", "S"]
            self.assertTrue(eventually(sleep))
            self.assertEqual(status["state"], "running")
            text = run.command("status", "b7").stdout
            self.assertIn(f"  0     0      {status['ranks'][0]['pid']}", text)
            self.assertIn(status["store"], text)

    def test_a_status_has_the_members_that_are_documented(self):
        documented = members("COMMANDS.md", "## `ddprun status RUN --json`")
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            status = run.status()
        self.assertEqual(set(status), set(documented))
        for name in status["ranks"][0]:
            self.assertIn(f"`{name}`", documented["ranks"])

    def test_a_stopped_rank_is_shown_as_stopped(self):
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            (rank,) = run.status()["ranks"]
            os.kill(rank["pid"], signal.SIGSTOP)
            self.assertTrue(eventually(lambda: run.status()["ranks"][0]["state"] == "T"))
            os.kill(rank["pid"], signal.SIGCONT)

    def test_a_node_that_waits_for_others_is_shown_and_knows_who_is_here(self):
        endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        with Run("--nnodes=2", "--rdzv-id=w", "--rdzv-backend=c10d", endpoint, "true") as run:
            self.assertTrue(eventually(lambda: run.listed()))
            self.assertIn("waiting for nodes", run.listed()[0])
            nodes = lambda: run.status()["cluster"]["runs"]  # the coordinator is in this process
            self.assertTrue(eventually(lambda: nodes() and len(nodes()[0]["nodes"]) == 1))
            self.assertEqual(nodes()[0]["run_id"], "w")
            run.end()

    def test_a_status_tells_how_long_its_state_lasts_not_how_old_its_ddprun_is(self):
        with standalone("--max-restarts=1", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            self.assertTrue(eventually(lambda: run.status()["age_ms"] > 500))
            os.kill(run.status()["ranks"][0]["pid"], signal.SIGKILL)
            run.wait_until_up()
            status = run.status()
            self.assertEqual((status["round"], status["state"]), (2, "running"))
            self.assertLessEqual(status["state_ms"], status["age_ms"] - 500)
            text = run.command("status", str(run.process.pid)).stdout
            self.assertRegex(text, r"round 2: running on \S+, for [\d.]+ m?s, 1 of 1 restart used")
            self.assertRegex(text, r"\n  started      20\d\d-.*Z, .*s ago\n")
            self.assertNotIn("waits", text)

    def test_a_node_whose_run_has_lost_another_says_what_it_waits_for(self):
        endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        words = ["--nnodes=2", "--rdzv-id=w", "--rdzv-backend=c10d", endpoint, "sh", "-c", WAITS]
        with Run(*words) as run, Run(*words) as other:
            run.wait_until_up()
            other.wait_until_up()
            other.process.kill()
            waits = lambda: run.status()["waits"]
            self.assertTrue(eventually(waits), run.status())
            self.assertRegex(waits(), r"waiting for nodes: 1 of 2; .*; gives up in .* join_timeout")
            self.assertIn(" stopped, waiting ", run.listed()[0])
            text = run.command("status", "w").stdout
            self.assertRegex(text, r"round 1: stopped on ")
            self.assertRegex(text, r"\n  waits +lost .*; waiting for nodes: 1 of 2; .*; gives up")
            run.end()


class Named(unittest.TestCase):
    def test_a_run_is_found_by_id_by_prefix_and_by_pid(self):
        with named("alpha-1", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            for name in ("alpha-1", "alp", str(run.process.pid)):
                self.assertIn("run alpha-1 ", run.command("status", name).stdout, name)

    def test_a_prefix_of_two_runs_is_refused_with_both(self):
        with named("beta-1", "sh", "-c", WAITS) as one:
            one.wait_until_up()
            place = {"XDG_RUNTIME_DIR": one.folder.name}
            with named("beta-2", "sh", "-c", WAITS, environment=place) as other:
                other.wait_until_up()
                refused = one.command("status", "beta")
                self.assertEqual(refused.returncode, 1)
                self.assertIn(f"beta-1 (pid {one.process.pid})", refused.stderr)
                self.assertIn(f"beta-2 (pid {other.process.pid})", refused.stderr)
                self.assertEqual(one.command("status", "beta-2").returncode, 0)

    def test_a_run_id_with_odd_characters_forges_no_line(self):
        with named("a b\tc\u202e\u00e9", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            (line,) = run.listed()
            self.assertIn("\\u202e", line)
            self.assertEqual(run.command("status", "a b\tc\u202e").returncode, 0)

    def test_a_run_that_has_ended_is_unknown(self):
        with named("over", "true") as run:
            run.process.communicate()
            unknown = run.command("status", "over")
            self.assertEqual(unknown.returncode, 1)
            self.assertIn(f"no run over {FINISHED}", unknown.stderr)

    def test_wrong_arguments_are_a_usage_error(self):
        with standalone("true") as run:
            for words in (["ps", "x"], ["status"], ["status", "a", "b"]):
                self.assertEqual(run.command(*words).returncode, 2, words)
            self.assertIn("ddprun status RUN", run.command("status", "--help").stdout)


class Sockets(unittest.TestCase):
    def test_the_socket_of_a_killed_ddprun_is_removed_by_the_next_ps(self):
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            (path,) = run.sockets()
            front, guard, agent = supervisors_of(run.process.pid)
            os.kill(front, signal.SIGSTOP)  # it would continue the guard
            os.kill(guard, signal.SIGSTOP)  # it would remove the socket, or kill the agent
            os.kill(agent, signal.SIGKILL)
            os.kill(guard, signal.SIGKILL)
            os.kill(front, signal.SIGCONT)
            run.process.communicate()
            self.assertTrue(path.exists())
            self.assertEqual(run.listed(), [])
            self.assertFalse(path.exists())

    def test_what_a_ddprun_left_that_was_killed_before_it_listened_is_removed(self):
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            (path,) = run.sockets()
            own = path.with_name(path.name + ".new")
            left = path.with_name("2147483647-12345678.sock.new")  # no process has this pid
            own.touch()
            left.touch()
            self.assertEqual(len(run.listed()), 1)
            self.assertTrue(own.exists())
            self.assertFalse(left.exists())

    def test_a_ddprun_that_is_stopped_is_listed_as_silent(self):
        with named("silent-1", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            with self.stopped(run):
                answer = run.command("ps").stdout
            self.assertRegex(answer, rf"silent-1 +- +- +does not answer .* {run.process.pid} +sh")

    def test_a_run_that_does_not_answer_is_not_taken_for_one_that_is_not_there(self):
        with named("silent-2", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            pid = str(run.process.pid)
            with self.stopped(run) as agent:
                for words in (["status", "silent-2"], ["status", "silent"], ["status", pid],
                              ["stop", pid], ["stop", pid, "--all-nodes"], ["stacks", pid],
                              ["signal", pid, "USR1"]):
                    silent = run.command(*words)
                    self.assertEqual((silent.returncode, silent.stdout), (3, ""), words)
                    self.assertIn("run silent-2 does not answer: ", silent.stderr)
                    self.assertIn(f'"kill -CONT {agent}" continues it', silent.stderr)
                    self.assertIn(f'"kill -KILL {pid}" ends it here', silent.stderr)
                unknown = run.command("status", "none-such")
                self.assertEqual(unknown.returncode, 1)
            self.assertTrue(eventually(lambda: run.command("status", pid).returncode == 0))

    def test_one_that_has_written_nothing_of_itself_and_does_not_answer_may_be_meant(self):
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            (path,) = run.sockets()
            os.remove(path.with_suffix(".run"))  # an older version
            with self.stopped(run):
                silent = run.command("status", "some-run")
            self.assertEqual(silent.returncode, 3)
            self.assertIn("a ddprun that may be run some-run does not answer", silent.stderr)

    def test_the_advice_for_one_that_is_stopped_ends_its_ranks(self):
        with named("silent-3", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            (rank,) = run.status()["ranks"]
            with self.stopped(run):
                run.process.kill()  # as the message says
                self.assertTrue(eventually(lambda: not os.path.exists(f"/proc/{rank['pid']}")))
            self.assertTrue(eventually(lambda: not run.sockets()))
            self.assertEqual(run.command("status", "silent-3").returncode, 1)

    def test_a_run_whose_socket_is_elsewhere_is_told(self):
        with named("hidden", "sh", "-c", WAITS) as run, tempfile.TemporaryDirectory(
            dir="/tmp"
        ) as elsewhere:
            run.wait_until_up()
            run.environment["XDG_RUNTIME_DIR"] = elsewhere
            unknown = run.command("status", "hidden")
            self.assertEqual(unknown.returncode, 1)
            pids = rf"ddprun also runs as pid [\d, ]*\b{run.process.pid}\b"
            self.assertRegex(unknown.stderr, pids)

    @contextlib.contextmanager
    def stopped(self, run):
        """Its agent does not run meanwhile."""
        agent = int(run.sockets()[0].name.split("-")[0])
        os.kill(agent, signal.SIGSTOP)
        try:
            yield agent
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(agent, signal.SIGCONT)

    def test_several_that_are_stopped_cost_the_time_of_one(self):
        with contextlib.ExitStack() as runs:
            first = runs.enter_context(standalone("sh", "-c", WAITS))
            place = {"XDG_RUNTIME_DIR": first.folder.name}
            for _ in range(3):
                runs.enter_context(standalone("sh", "-c", WAITS, environment=place))
            self.assertTrue(eventually(lambda: len(first.sockets()) == 4))
            agents = [int(path.name.split("-")[0]) for path in first.sockets()]
            for agent in agents:
                os.kill(agent, signal.SIGSTOP)
            began = time.monotonic()
            answer = first.command("ps").stdout
            took = time.monotonic() - began
            for agent in agents:
                os.kill(agent, signal.SIGCONT)
            self.assertGreaterEqual(answer.count("does not answer"), 4)
            self.assertLess(took, 8)  # each has 3 s

    def test_one_that_is_stopped_does_not_delay_a_command_for_another_one(self):
        with named("silent-4", "sh", "-c", WAITS) as silent:
            silent.wait_until_up()
            place = {"XDG_RUNTIME_DIR": silent.folder.name}
            with named("lively", "sh", "-c", WAITS, environment=place) as run:
                run.wait_until_up()
                self.assertTrue(eventually(lambda: len(silent.sockets()) == 2))
                (path,) = [one for one in silent.sockets()
                           if "silent-4" in one.with_suffix(".run").read_text()]
                agent = int(path.name.split("-")[0])
                os.kill(agent, signal.SIGSTOP)
                began = time.monotonic()
                answer = silent.command("status", "lively")
                took = time.monotonic() - began
                os.kill(agent, signal.SIGCONT)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertLess(took, 3)  # which the one that is stopped would take

    def test_status_tells_when_a_rank_last_wrote(self):
        quiet = "exec tail -f /dev/null"
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, standalone(
            "--tee=3", "--log-dir=" + folder, "sh", "-c", quiet
        ) as run:
            self.assertTrue(eventually(lambda: run.listed()))
            self.assertGreaterEqual(run.status()["ranks"][0]["silent_ms"], 0)
            self.assertIn(" ago", run.command("status", str(run.process.pid)).stdout)

    def test_a_long_runtime_directory_is_passed_over(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            deep = os.path.join(folder, "d" * 100)
            os.mkdir(deep)
            with standalone("sh", "-c", WAITS, environment={"XDG_RUNTIME_DIR": deep}) as run:
                run.wait_until_up()
                self.assertEqual(os.listdir(deep + "/ddprun"), [])
                self.assertEqual(run.end()[0], 143)

    def test_a_directory_that_another_user_has_made_is_replaced_by_one_of_another_name(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        user = random.randrange(200_000, 2_000_000)
        for place in (f"/tmp/ddprun-{user}", f"/dev/shm/ddprun-{user}"):
            os.mkdir(place)
            self.addCleanup(
                lambda place=place: [shutil.rmtree(one) for one in glob.glob(place + "*")]
            )
        other = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        environment = {name: text for name, text in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        script = 'test -S "$DDPRUN_WORKER_SOCKET" && echo linked; ' + WAITS
        with for_anyone(DDPRUN) as (ddprun, passed), subprocess.Popen(
            [*other, ddprun, "--standalone", "sh", "-c", script], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **passed,
        ) as run:
            self.assertEqual(run.stdout.readline(), "linked\n")

            def listed():
                shown = subprocess.run([*other, ddprun, "ps"], env=environment, text=True,
                                       capture_output=True, timeout=HUNG, check=False, **passed)
                return str(run.pid) in shown.stdout

            self.assertTrue(eventually(listed))
            run.send_signal(signal.SIGTERM)
            _, err = run.communicate(timeout=HUNG)
        self.assertEqual(run.returncode, 143, err)
        self.assertNotIn("[CONTROL]", err)
        self.assertNotIn("[LINK]", err)

    def test_without_a_private_directory_the_run_says_so_once_and_continues(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("needs root and unshare")
        alone = ["unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs -o ro none /tmp || exit 77; exec "$@"', "-"]
        place = f"/tmp/ddprun-{os.geteuid()}"
        words = [*alone, DDPRUN, "--standalone", "sh", "-c", WAITS]
        environment = {name: text for name, text in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        environment["TMPDIR"] = "/dev/shm"
        with subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            lines = iter(run.stderr.readline, "")
            note = next(line for line in lines if "[CONTROL]" in line)
            self.assertIn(f"cannot make {place}: Read-only file system", note)
            run.send_signal(signal.SIGTERM)
            _, err = run.communicate(timeout=HUNG)
        self.assertEqual(run.returncode, 143, err)
        self.assertNotIn("[CONTROL]", err)


class Dispatch(unittest.TestCase):
    def test_a_file_of_the_name_of_a_command_is_a_program(self):
        with tempfile.TemporaryDirectory() as folder, standalone("true") as run:
            with open(folder + "/status", "w") as program:
                program.write("#!/bin/sh\necho ran\n")
            os.chmod(folder + "/status", 0o755)
            run.environment["PATH"] = folder + ":" + run.environment["PATH"]
            ran = run.command("status", cwd=folder)
            self.assertEqual((ran.returncode, ran.stdout), (0, "ran\n"), ran.stderr)
            self.assertEqual(run.command("status", cwd="/").returncode, 2)

    def test_a_command_after_an_option_is_a_program(self):
        with standalone("true") as run:
            ran = run.command("--standalone", "ps", "-o", "comm=", "-p", "1", cwd="/")
            self.assertNotIn("RUN", ran.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
