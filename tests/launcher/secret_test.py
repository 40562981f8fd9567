"""A run with a secret, from the command line to the workers: who joins, and where the secret is.

    secret_test.py DDPRUN RDZVD
"""

import contextlib
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.support.eventually import eventually  # noqa: E402
from tests.support.ports import free_port  # noqa: E402
from tests.support.sentences import kHasOtherSecret, kOthersMayAccess  # noqa: E402
from tests.support.sentences import kPeerHasOtherSecret, kSecretHasAtLeast  # noqa: E402
from tests.support.supervisors import children_of, supervisors_of  # noqa: E402

DDPRUN, RDZVD = sys.argv[1:3]
SECRET = "correct-horse-battery-staple-0123456789"
OTHER = "another-horse-battery-staple-0123456789"
HUNG = 60
PARTLY = SECRET[:20]  # of which nothing may show a part either


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.port = free_port()

    def enterContext(self, manager):  # Python 3.11 has it
        result = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return result

    def file(self, secret=SECRET, mode=0o600):
        path = self.folder / f"secret-{secret[:7]}-{mode:o}"
        path.write_text(secret + "\n")
        path.chmod(mode)
        return path

    def environment(self, secret):
        names = ("DDPRUN", "PET_", "SLURM", "TORCH")
        own = {k: v for k, v in os.environ.items() if not k.startswith(names)}
        own["XDG_RUNTIME_DIR"] = str(self.folder)
        own["HOME"] = str(self.folder / "home")
        own.pop("XDG_CONFIG_HOME", None)
        if secret is not None:
            own["DDPRUN_SECRET"] = secret
        return own

    def at_home(self, *words):
        return subprocess.run([DDPRUN, "secret", *words], env=self.environment(None), text=True,
                              capture_output=True, timeout=HUNG)

    def node(self, *options, secret=None, program=("true",), nodes="2", typed=None):
        words = [DDPRUN, f"--nnodes={nodes}", "--rdzv-backend=c10d", "--rdzv-id=run",
                 f"--rdzv-endpoint=127.0.0.1:{self.port}", f"--log-dir={self.folder}/logs",
                 "--rdzv-conf=join_timeout=30,is_host=" + str("own" in options).lower(),
                 *(o for o in options if o != "own"), "--no-python", *program]
        given = subprocess.DEVNULL if typed is None else subprocess.PIPE
        process = subprocess.Popen(words, env=self.environment(secret), stdin=given,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(end, process)
        if typed is not None:
            process.stdin.write(typed)
            process.stdin.flush()
        return process

    def first(self, *options, **more):
        """The node that runs the coordinator."""
        return self.node("own", *options, **more)


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=HUNG)


def output_of(process):
    text, _ = process.communicate(timeout=HUNG)
    assert PARTLY not in text, text
    return process.returncode, text


class Joining(Folder):
    def test_nodes_with_one_secret_form_a_run_by_file_or_variable(self):
        one = self.first(f"--rdzv-secret-file={self.file()}")
        two = self.node(secret=SECRET)
        for node in (one, two):
            code, text = output_of(node)
            self.assertEqual(code, 0, text)

    def test_a_secret_comes_through_standard_input_and_workers_get_the_rest(self):
        program = ("sh", "-c", "read word; echo worker read $word")
        nodes = [start("--rdzv-secret-file=-", typed=f"{SECRET}\nof the worker\n", program=program)
                 for start in (self.first, self.node)]
        for node in nodes:
            code, text = output_of(node)
            self.assertEqual(code, 0, text)
            self.assertIn("worker read of the worker", text)
        one = self.first("--rdzv-secret-file=-", "--detach", typed=SECRET + "\n")
        code, text = output_of(self.node("--rdzv-secret-file=-", typed=OTHER + "\n"))
        self.assertEqual(code, 111, text)
        self.assertIn(kHasOtherSecret, text)
        self.assertEqual(output_of(self.node("--rdzv-secret-file=-", typed=SECRET))[0], 0)
        code, text = output_of(one)
        self.assertEqual(code, 0, text)
        pid = re.search(r"\(pid (\d+)\)", text)[1]
        self.assertTrue(eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists()))

    def test_a_secret_at_home_closes_runs_by_itself(self):
        path = self.folder / "home/.config/ddprun/secret"
        missing = self.at_home()
        self.assertEqual(missing.returncode, 1)
        self.assertIn("ddprun secret --new makes it", missing.stderr)
        made = self.at_home("--new")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn(str(path), made.stdout)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(path.parent.stat().st_mode & 0o777, 0o700)
        text = path.read_text()
        self.assertRegex(text, "^[0-9a-f]{64}\n$")
        again = self.at_home("--new")
        self.assertEqual((again.returncode, path.read_text()), (1, text))
        self.assertIn("exists", again.stderr)
        self.assertEqual(self.at_home().returncode, 0)
        one = self.first()
        code, told = output_of(self.node(secret=OTHER))
        self.assertEqual(code, 111, told)
        code, told = output_of(self.node("--rdzv-secret-file=off"))
        self.assertEqual(code, 111, told)
        self.assertEqual(output_of(self.node())[0], 0)
        self.assertEqual(output_of(one)[0], 0)

    def test_a_secret_at_home_that_others_can_read_is_refused_and_off_runs_without(self):
        self.assertEqual(self.at_home("--new").returncode, 0)
        path = self.folder / "home/.config/ddprun/secret"
        path.chmod(0o644)
        code, text = output_of(self.first())
        self.assertEqual(code, 2, text)
        self.assertIn(f"{path}: {kOthersMayAccess}", text)
        self.assertEqual(self.at_home().returncode, 1)
        nodes = [self.first("--rdzv-secret-file=off"), self.node("--rdzv-secret-file=off")]
        for node in nodes:
            code, text = output_of(node)
            self.assertEqual(code, 0, text)

    def test_an_open_coordinator_is_told_once_and_one_with_a_secret_is_not(self):
        told = "can join this run, and end it: it has no secret"
        words = [DDPRUN, "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-id=open",
                 "--rdzv-conf=is_host=true,last_call_timeout=0.1", f"--log-dir={self.folder}/logs"]

        def told_with(endpoint, *more, secret=None):
            run = subprocess.run([*words, f"--rdzv-endpoint={endpoint}:{free_port()}", *more,
                                  "--no-python", "true"], env=self.environment(secret), text=True,
                                 capture_output=True, timeout=HUNG)
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stderr.count(told)

        self.assertEqual(told_with("127.0.0.1"), 1)  # others may name it otherwise
        here = address_beyond_loopback()
        if here is not None:
            self.assertEqual(told_with(here), 1)
            self.assertEqual(told_with(here, secret=SECRET), 0)
            self.assertEqual(told_with(here, "--rdzv-secret-file=off"), 0)
        daemon = subprocess.Popen([RDZVD, "--port=0", "--bind=0.0.0.0"], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(end, daemon)
        self.assertIn("can join every run of this daemon", daemon.stderr.readline())

    def test_a_node_with_another_secret_is_refused_by_one_sentence(self):
        one = self.first(secret=SECRET)
        code, text = output_of(self.node(secret=OTHER))
        self.assertEqual(code, 111, text)
        self.assertIn(kHasOtherSecret, text)
        self.assertIn("compare --rdzv-secret-file", text)
        code, text = output_of(self.node())
        self.assertEqual(code, 111, text)
        self.assertIn("pass --rdzv-secret-file on every node", text)
        two = self.node(secret=SECRET)
        self.assertEqual(output_of(two)[0], 0)
        code, text = output_of(one)
        self.assertEqual(code, 0, text)
        self.assertIn(kPeerHasOtherSecret, text)

    def test_a_node_with_a_secret_joins_no_coordinator_without(self):
        one = self.first()
        code, text = output_of(self.node(secret=SECRET))
        self.assertEqual(code, 111, text)
        self.assertIn(kHasOtherSecret, text)
        self.assertEqual(output_of(self.node())[0], 0)
        self.assertEqual(output_of(one)[0], 0)

    def test_ddprun_rdzvd_has_one_for_all_its_runs(self):
        for name in (self.file(), "-"):
            self.meet_at_daemon(name)

    def meet_at_daemon(self, name):
        daemon = subprocess.Popen([RDZVD, "--port=0", f"--secret-file={name}"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        self.addCleanup(end, daemon)
        daemon.stdin.write(SECRET + "\n")
        daemon.stdin.flush()
        ready, _, _ = select.select([daemon.stdout], [], [], HUNG)
        self.assertTrue(ready)
        self.port = int(daemon.stdout.readline().rpartition(":")[2])
        self.assertEqual(output_of(self.node(nodes="1"))[0], 111)
        self.assertEqual(output_of(self.node(secret=OTHER, nodes="1"))[0], 111)
        self.assertEqual(output_of(self.node(secret=SECRET, nodes="1"))[0], 0)


class Refusing(Folder):
    def test_a_file_that_others_may_read_is_refused(self):
        code, text = output_of(self.node(f"--rdzv-secret-file={self.file(mode=0o644)}"))
        self.assertEqual(code, 2, text)
        self.assertIn(kOthersMayAccess + "644); run chmod 600 on it", text)
        daemon = subprocess.run([RDZVD, "--port=0", f"--secret-file={self.file(mode=0o644)}"],
                                capture_output=True, text=True, timeout=HUNG)
        self.assertEqual(daemon.returncode, 2)
        self.assertIn(kOthersMayAccess, daemon.stderr)

    def test_a_short_secret_an_empty_one_and_an_empty_name_are_refused(self):
        for options, secret, what in (
                ([f"--rdzv-secret-file={self.file('short')}"], None, "this one has 5"),
                ([], "short", "DDPRUN_SECRET: " + kSecretHasAtLeast),
                ([], "", "this one has 0"),
                (["--rdzv-secret-file="], SECRET, "names no file"),
                (["--rdzv-secret-file=-"], SECRET, "this one has 0"),
                (["--rdzv-secret-file=-", "--detach"], SECRET, "this one has 0"),
                ([f"--rdzv-secret-file={self.folder}/none"], SECRET, "No such file")):
            code, text = output_of(self.node(*options, secret=secret))
            self.assertEqual(code, 2, text)
            self.assertIn(what, text)

    def test_one_node_needs_no_secret(self):
        path = self.file()
        for options, secret in (([f"--rdzv-secret-file={path}"], None), ([], SECRET)):
            run = subprocess.run([DDPRUN, *options, f"--log-dir={self.folder}/logs", "--no-python",
                                  "true"], env=self.environment(secret), capture_output=True,
                                 text=True, timeout=HUNG)
            self.assertEqual(run.returncode, 0, run.stderr)
            if options:
                self.assertIn("--rdzv-secret-file", run.stderr)  # that it is not used


class Hiding(Folder):
    """The secret is nowhere but in the memory of ddprun."""

    def environ_of(self, pid):
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()

    def test_no_process_of_the_run_shows_it(self):
        fifo = self.folder / "up"
        os.mkfifo(fifo)
        program = ("sh", "-c", f'env > {self.folder}/env.$RANK; echo up > {fifo}; '
                   f'read line < {self.folder}/go')
        os.mkfifo(self.folder / "go")
        one = self.first("--verbose", secret=SECRET, program=program)
        two = self.node("--verbose", "--rdzv-secret-file=-", typed=SECRET + "\n", program=program)
        up = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, up)
        seen = b""
        while seen.count(b"up\n") < 2:
            ready, _, _ = select.select([up], [], [], HUNG)
            self.assertTrue(ready, "the workers do not start")
            seen += os.read(up, 100)
        pids = []
        for node in (one, two):
            supervisors = supervisors_of(node.pid)
            workers = children_of(supervisors[-1])
            self.assertTrue(workers)
            pids += [*supervisors, *workers]
        for pid in pids:
            self.assertNotIn(PARTLY.encode(), self.environ_of(pid), pid)
            arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            self.assertNotIn(PARTLY.encode(), arguments)
            self.assertIn(b"XDG_RUNTIME_DIR=", self.environ_of(pid))  # it is the environment
        status = subprocess.run([DDPRUN, "status", "--json"], env=self.environment(None),
                                capture_output=True, text=True, timeout=HUNG)
        self.assertNotIn(PARTLY, status.stdout + status.stderr)
        with contextlib.closing(open(self.folder / "go", "w")) as go:
            go.write("1\n1\n")
            go.flush()
            for node in (one, two):
                code, _ = output_of(node)
                self.assertEqual(code, 0)
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(PARTLY.encode(), path.read_bytes(), path)

    def test_a_dry_run_and_ddprun_config_do_not_show_it(self):
        path = self.file()
        words = ["--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-backend=c10d"]
        for given in ([], [f"--rdzv-secret-file={path}"]):
            for line in ([DDPRUN, *words, *given, "--dry-run", "--json", "--no-python", "true"],
                         [DDPRUN, "config", *words, *given, "--no-python", "true"]):
                run = subprocess.run(line, env=self.environment(SECRET), capture_output=True,
                                     text=True, timeout=HUNG)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertNotIn(PARTLY, run.stdout + run.stderr)
                self.assertNotIn("DDPRUN_SECRET", run.stdout)

    def test_the_messages_between_nodes_are_not_readable(self):
        trace = subprocess.run(["strace", "-V"], capture_output=True) if which("strace") else None
        if trace is None:
            self.skipTest("no strace")
        log = self.folder / "trace"
        words = [DDPRUN, "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-id=run",
                 f"--rdzv-endpoint=127.0.0.1:{self.port}", "--rdzv-conf=is_host=true,"
                 "last_call_timeout=1", f"--log-dir={self.folder}/logs", "--no-python", "true"]
        for secret, readable in ((None, True), (SECRET, False)):
            run = subprocess.run(["strace", "-f", "-s", "4096", "-o", str(log),
                                  "-e", "trace=%network,read,write", *words],
                                 env=self.environment(secret), capture_output=True, text=True,
                                 timeout=HUNG)
            self.assertEqual(run.returncode, 0, run.stderr)
            sent = "".join(line for line in log.read_text(errors="replace").splitlines(True)
                           if re.search(r"(send|write|sendmsg|sendto)\(", line))
            self.assertEqual("local_world_size" in sent, readable)
            self.assertNotIn(PARTLY, sent)


def address_beyond_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]


def which(program):
    return any(os.access(os.path.join(folder, program), os.X_OK)
               for folder in os.environ.get("PATH", "").split(os.pathsep))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
