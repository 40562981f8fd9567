#!/usr/bin/env python3
"""Restarted Python workers start from a template (--warm), or cold with one line that says why.

    tests/warm/warm_test.py path/to/ddprun path/to/folder/of/the/package
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support"), str(HERE.parent / "front")]
from eventually import HUNG, eventually
from sentences import kFromTemplate, kNoHook, kOtherPython, kTemplateEnded, kWaitingIsSilent

DDPRUN, PACKAGE = "", ""
RESTARTS = int(os.environ.get("DDPRUN_TEST_REPEATS", "8"))
ALL_WARM = "note [WARM] all 2 ranks" + kFromTemplate

# A rank says which round it is in and whether json was there before it was imported; rank 1 fails
# when the file `fail` appears, and all end when `end` does.
PROGRAM = """import os, select, sys
ROUND, RANK = os.environ["DDPRUN_ROUND"], os.environ["RANK"]
os.write(1, f"up {ROUND} {RANK} {os.getpid()} {'json' in sys.modules}\\n".encode())
while not os.path.exists("end"):
    if RANK == "1" and os.path.exists("fail" + ROUND):
        os._exit(3)
    select.select([], [], [], 0.005)
"""


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def stat_of(pid):
    """The fields of /proc/PID/stat from the state on; empty when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return [""]


def state_of(pid):
    return stat_of(pid)[0]


RECORD = ("import os\nwith open('record', 'a') as record:\n"
          "    record.write(os.environ.get('RANK', 'none') + '\\n')\n")


class Run:
    """A ddprun with two ranks of PROGRAM in a folder of its own; use in a `with` statement."""

    def __init__(self, *options, preload="json", files=None, ranks=2, environment=None,
                 restarts=1000, words=("program.py",), before=()):
        self.folder = tempfile.TemporaryDirectory(prefix="ddprun-warm-")
        self.path = pathlib.Path(self.folder.name)
        for name, text in {"program.py": PROGRAM, **(files or {})}.items():
            (self.path / name).parent.mkdir(exist_ok=True)
            (self.path / name).write_text(text)
        self.mark = f"WARM_TEST={self.folder.name}"
        own = {"PYTHON_EXEC": sys.executable, "XDG_RUNTIME_DIR": self.folder.name,
               "OMP_NUM_THREADS": "1",
               "WARM_TEST": self.folder.name, "PYTHONPATH": str(self.path / "lib")}
        self.environment = {**os.environ, **own, **(environment or {})}
        self.console = open(self.path / "console", "w+b")
        self.process = subprocess.Popen(
            [*before, DDPRUN, f"--nproc-per-node={ranks}", f"--max-restarts={restarts}",
             *(["--preload", preload] if preload else []),
             *(options or ["--warm=first,force"]), *words],
            cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.console,
            stderr=subprocess.STDOUT, process_group=0)  # a job, as of a shell

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.console.close()
        self.folder.cleanup()

    def text(self):
        return (self.path / "console").read_text()

    def up(self, round_number):
        """The ranks of a round: [(rank, pid, whether json was there)]."""
        found = re.findall(rf"^up {round_number} (\d+) (\d+) (True|False)$", self.text(), re.M)
        return [(int(rank), int(pid), warm == "True") for rank, pid, warm in found]

    def wait_for_round(self, number, ranks=2):
        assert eventually(lambda: len(self.up(number)) == ranks), self.text()
        return self.up(number)

    def wait_for_text(self, text):
        assert eventually(lambda: text in self.text()), self.text()

    def fail(self, round_number):
        (self.path / f"fail{round_number}").touch()

    def processes(self):
        """All that this run ever started, and that lives."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and self.mark.encode() in environment_of(entry):
                if state_of(entry) not in ("Z", "X", ""):
                    found.append(int(entry))
        return found

    def template_and_waiting(self):
        """The template, which is older, and those that wait."""
        here = [pid for pid in self.processes()
                if re.search(rb"DDPRUN_WORKER=[^/]*/-", environment_of(pid))]
        found = {pid: stat for pid in here if len(stat := stat_of(pid)) > 1}
        template = sorted(found, key=lambda pid: int(found[pid][19]))[:1]
        agent = {found[pid][1] for pid in template}
        waiting = [pid for pid, stat in found.items()  # no longer those that fork them
                   if pid not in template and {stat[1]} == agent and stat[3] == str(pid)]
        return template, waiting

    def events(self, name):
        """From events.jsonl, with --log-dir=logs."""
        lines = [line for log in self.path.glob("logs/*/events.jsonl")
                 for line in log.read_text().splitlines()]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait_until_parked(self, ranks=2):  # they sleep once they have told ddprun that they wait
        assert eventually(lambda: [state_of(pid) for pid in self.template_and_waiting()[1]]
                          == ["S"] * ranks), self.text()
        return self.template_and_waiting()

    def end(self, code=0):
        (self.path / "end").touch()
        assert self.process.wait(HUNG) == code, self.text()

    def check_nothing_left(self):
        assert eventually(lambda: not self.processes()), self.processes()


class Restarts(unittest.TestCase):
    def test_the_first_round_and_each_restart_start_from_the_template(self):
        with Run() as run:
            for number in range(1, RESTARTS + 1):
                ranks = run.wait_for_round(number)
                self.assertTrue(all(warm for _, _, warm in ranks), run.text())
                run.fail(number)
            run.wait_for_round(RESTARTS + 1)
            self.assertTrue(eventually(lambda: run.text().count(ALL_WARM) == RESTARTS + 1))
            run.end()
            run.check_nothing_left()

    def test_without_first_the_first_round_is_cold_and_the_next_is_warm(self):
        with Run("--warm=10ms,force") as run:
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(1)))
            run.wait_until_parked()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.end()

    def test_the_list_is_learned_from_a_worker_of_the_first_round(self):
        files = {"program.py": PROGRAM.replace("while not", "import beside, json\nwhile not", 1),
                 "beside.py": "X = 1\n"}
        for options in ("--warm=300ms,force", "--warm=300ms,force,demand"):
            with Run(options, "--log-dir=logs", preload="", files=files) as run:
                self.assertFalse(any(warm for _, _, warm in run.wait_for_round(1)))
                self.assertTrue(eventually(lambda run=run: run.events("template_ready")))
                run.fail(1)
                self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
                run.end()
                run.check_nothing_left()

    def test_a_learned_list_ends_before_the_module_that_cannot_be_shared(self):
        files = {"program.py": PROGRAM.replace("while not", "import json, spoils\nwhile not", 1)}
        with tempfile.TemporaryDirectory() as lib, \
                Run("--warm=300ms,force", preload="", files=files,
                    environment={"PYTHONPATH": lib}) as run:
            (pathlib.Path(lib) / "spoils.py").write_text("import os\nX = os.environ['RANK']\n")
            run.wait_for_round(1)
            run.wait_for_text("cold: from spoils on: spoils reads the variable RANK while it is")
            run.wait_until_parked()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            run.end()

    def test_a_program_that_reports_steps_is_learned_from_when_it_has_taken_one(self):
        steps = PROGRAM.replace("while not", "import ddprun\nddprun.ready()\n"
                                "while not os.path.exists('step'):\n"
                                "    select.select([], [], [], 0.005)\n"
                                "import json\nassert ddprun.step_done(1)\nwhile not", 1)
        with Run("--warm=2s,force", "--log-dir=logs", preload="", files={"program.py": steps},
                 environment={"PYTHONPATH": PACKAGE}) as run:
            run.wait_for_round(1)
            self.assertTrue(eventually(lambda: len(run.events("ready")) == 2), run.text())
            self.assertEqual(run.events("template_ready"), [])
            (run.path / "step").touch()
            self.assertTrue(eventually(lambda: run.events("template_ready")), run.text())
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            self.assertTrue(eventually(lambda: len(run.events("ready")) == 4), run.text())
            run.end()

    def test_the_last_restart_needs_no_template(self):
        with Run(restarts=1) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            self.assertTrue(eventually(lambda: run.template_and_waiting() == ([], [])))
            run.end()

    def test_events_and_the_console_name_the_ranks_that_started_warm(self):
        with Run("--warm=first,force", "--log-dir=logs") as run:
            run.wait_for_round(1)
            _, waiting = run.wait_until_parked()
            os.kill(waiting[0], signal.SIGSTOP)
            run.fail(1)
            warm = [rank for rank, _, warm in run.wait_for_round(2) if warm]
            self.assertEqual(len(warm), 1)
            run.wait_for_text(f"note [WARM] rank {warm[0]}{kFromTemplate}; {kWaitingIsSilent}")
            run.end()
            started = [event["warm"] for event in run.events("all_running")]
            self.assertEqual(started, [[0, 1], warm])
            self.assertIn(kWaitingIsSilent, [event["text"] for event in run.events("cold")])

    def test_status_says_which_ranks_started_warm(self):
        with Run() as run:
            run.wait_for_round(1)
            def status():
                name = re.search(r"run (\S+): ", run.text()).group(1)
                done = subprocess.run([DDPRUN, "status", name, "--json"], env=run.environment,
                                      capture_output=True, text=True, timeout=HUNG, check=False)
                return json.loads(done.stdout) if done.returncode == 0 else None
            self.assertTrue(eventually(status))
            self.assertEqual([rank["warm"] for rank in status()["ranks"]], [True, True])
            run.end()

    def test_a_stop_and_a_killed_agent_leave_nothing_behind(self):
        with Run() as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.process.wait(HUNG), 143)
            run.check_nothing_left()
        with Run() as run:
            run.wait_for_round(1)
            template, _ = run.wait_until_parked()
            os.kill(int(stat_of(template[0])[1]), signal.SIGKILL)  # its parent: the agent
            run.process.wait(HUNG)
            run.check_nothing_left()

    def test_each_process_of_ddprun_may_be_killed_and_nothing_that_waits_is_left(self):
        for which in range(2):
            with Run() as run:
                run.wait_for_round(1)
                template, _ = run.wait_until_parked()
                own = [int(stat_of(template[0])[1])]  # the agent, and what is above it
                while own[-1] != run.process.pid:
                    own.append(int(stat_of(own[-1])[1]))
                os.kill(own[-1 - which], signal.SIGKILL)
                run.check_nothing_left()

    def test_a_stop_ends_the_wait_for_the_imports(self):
        waits = "import os, select\nopen('importing', 'w')\nselect.select([], [], [], 1000)\n"
        with Run(preload="waits", files={"lib/waits.py": waits}) as run:
            self.assertTrue(eventually((run.path / "importing").exists))
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.process.wait(HUNG), 143, run.text())
            run.check_nothing_left()

    def test_what_a_warm_worker_leaves_behind_is_ended_with_it(self):
        leaves = PROGRAM.replace("while not", "if os.fork() == 0:\n    os.setsid()\n"
                                 "    select.select([], [], [], 1000)\nwhile not", 1)
        for no_cgroup in "01":
            with Run("--warm=first,force", files={"program.py": leaves},
                     environment={"DDPRUN_NO_CGROUP": no_cgroup}) as run:
                run.wait_for_round(1)
                run.wait_until_parked()
                run.fail(1)
                run.wait_for_round(2)
                old = [pid for pid in run.processes()
                       if re.search(rb"DDPRUN_WORKER=[^/]*/1/", environment_of(pid))]
                self.assertEqual(old, [], run.text())
                run.fail(2)
                run.wait_for_round(3)
                run.process.send_signal(signal.SIGTERM)
                run.process.wait(HUNG)
                run.check_nothing_left()


class Cold(unittest.TestCase):
    def check_cold(self, run, why):
        self.assertFalse(any(warm for _, _, warm in run.wait_for_round(1)), run.text())
        run.wait_for_text("note [WARM] cold: " + why)
        run.end()
        run.check_nothing_left()

    def test_modules_that_cannot_be_shared_are_refused_with_the_reason(self):
        modules = {
            "starts_thread": ("import threading\nthreading.Thread(target=threading.Event().wait, "
                              "daemon=True).start()", "an imported module started 1 thread"),
            "reads_rank": ("import os\nX = os.environ.get('LOCAL_RANK', '0')",
                           "reads_rank reads the variable LOCAL_RANK while it is imported"),
            "opens_socket": ("import socket\nS = socket.socket()",
                             "an imported module opened socket:"),
            "starts_process": ("import subprocess\nP = subprocess.Popen(['sleep', '9'])",
                               "an imported module started a process"),
            "starts_daemon": ("import os, select\nif os.fork() == 0:\n    if os.fork() == 0:\n"
                              "        os.setsid()\n        select.select([], [], [], 1000)\n"
                              "    os._exit(0)\nos.wait()", "an imported module started a process"),
            "starts_timer": ("import signal\nsignal.alarm(100)",
                             "an imported module started a timer"),
            "fails": ("1 / 0", "cannot import fails: ZeroDivisionError"),
            "exits": ("import sys\nsys.exit(0)", "cannot import exits: SystemExit"),
            "seeds": ("import random\nrandom.seed(0)",
                      "an imported module seeds the generator of random"),
            "shares": ("import multiprocessing\nL = multiprocessing.Lock()",
                       "an imported module shares memory: "),
            "prints_much": ("print('x' * 100000)", "imported modules print more than 65536 bytes"),
            "ends": ("import os\nos._exit(0)", kTemplateEnded),
        }
        for name, (text, why) in modules.items():
            files = {f"lib/{name}.py": text}
            with self.subTest(module=name), Run(preload=name, files=files) as run:
                self.check_cold(run, why)

    def test_the_users_sitecustomize_must_not_read_the_rank(self):
        reads = "import os\nRANK = os.environ.get('RANK')\n"
        with Run(files={"lib/sitecustomize.py": reads}) as run:
            self.check_cold(run, "sitecustomize reads the variable RANK while it is imported")

    def test_a_module_that_draws_at_random_is_no_obstacle(self):
        draws = "import random\nX = [random.random() for _ in range(500)]\n"
        with Run(preload="draws,json", files={"lib/draws.py": draws}) as run:
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(1)), run.text())
            run.end()

    def test_an_interpreter_that_ignores_the_hook_never_runs_the_program_as_a_template(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text("import os\nprint('rank', os.environ.get('RANK'))\n")
            done = subprocess.run(
                [DDPRUN, "--warm=first,force", "--preload=json", "--no-python", sys.executable,
                 "-u", "-E", str(program)], env={**os.environ, "PYTHON_EXEC": sys.executable},
                capture_output=True, text=True, timeout=HUNG, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "rank 0\n"), done.stderr)
        self.assertIn("note [WARM] cold: " + kOtherPython, done.stderr)

    def test_a_hook_that_is_not_imported_is_noticed_before_the_program_could_run(self):
        with tempfile.TemporaryDirectory() as folder, \
                Run(environment={"PYTHON_EXEC": f"{folder}/venv/bin/python"}, before=(
                    "sh", "-c", '"$1" "$2" "$3" && shift 3 && exec "$@"', "sh", sys.executable,
                    str(HERE / "front_venv.py"), folder),
                    files={"program.py": RECORD + PROGRAM}) as run:
            self.check_cold(run, kNoHook)
            record = (run.path / "record").read_text().split()
            self.assertEqual(sorted(record), ["0", "1"])

    def test_what_is_printed_before_the_hook_is_no_obstacle(self):
        with Run(environment={"PYTHONPROFILEIMPORTTIME": "1"}) as run:
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(1)), run.text())
            run.end()
            run.check_nothing_left()

    def test_a_file_that_shadows_a_module_is_found_before_and_after_the_import(self):
        with Run(files={"json.py": ""}) as run:
            run.wait_for_round(1)
            run.wait_for_text("json.py would be imported instead of the module json")
        with Run() as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            (run.path / "json.py").touch()
            run.fail(1)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(2)))
            run.wait_for_text("json.py would be imported instead of the module json")

    def test_a_module_that_changed_since_is_imported_again(self):
        with Run(preload="json,lib_of_user", files={"lib/lib_of_user.py": "X = 1\n"}) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            (run.path / "lib/lib_of_user.py").write_text("X = 22\n")
            run.fail(1)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(2)))
            run.wait_for_text("lib_of_user.py has changed since it was imported")
            run.end()

    def test_an_archive_of_modules_that_changed_since_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder) / "lib.zip"
            def write(text):
                with zipfile.ZipFile(archive, "w") as file:
                    file.writestr("zipped.py", text)
            write("X = 1\n")
            with Run(preload="json,zipped", environment={"PYTHONPATH": str(archive)}) as run:
                self.assertTrue(all(warm for _, _, warm in run.wait_for_round(1)), run.text())
                run.wait_until_parked()
                write("X = 22\n")
                run.fail(1)
                self.assertFalse(any(warm for _, _, warm in run.wait_for_round(2)))
                run.wait_for_text("lib.zip/zipped.py has changed since it was imported")
                run.end()

    def test_a_file_that_appears_in_front_of_a_module_on_the_path_is_found(self):
        with Run(files={"lib/other.py": ""}) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            (run.path / "lib/harmless.py").touch()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            (run.path / "lib/json.py").touch()
            run.fail(2)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(3)))
            run.wait_for_text("lib/json.py would be imported instead of the module json")
            run.end()

    def test_a_killed_template_costs_warmth_and_nothing_else(self):
        with Run() as run:
            run.wait_for_round(1)
            template, _ = run.wait_until_parked()
            os.kill(template[0], signal.SIGKILL)
            run.wait_for_text("note [WARM] cold: the template ended")
            run.fail(1)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(2)))
            run.end()
            run.check_nothing_left()

    def test_for_one_that_waits_and_is_killed_another_is_forked_on_demand(self):
        for kill in (1, 2):
            with Run() as run:
                run.wait_for_round(1)
                _, waiting = run.wait_until_parked()
                for pid in waiting[:kill]:
                    os.kill(pid, signal.SIGKILL)
                self.assertTrue(eventually(lambda run=run, kill=kill: len(
                    run.template_and_waiting()[1]) == 2 - kill))
                run.fail(1)
                self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
                run.end()
                run.check_nothing_left()

    def test_those_that_do_not_answer_are_killed_and_started_cold(self):
        for which in ("template", "waiting"):
            with self.subTest(stopped=which), Run() as run:
                run.wait_for_round(1)
                template, waiting = run.wait_until_parked()
                stopped = template if which == "template" else waiting[:1]
                os.kill(stopped[0], signal.SIGSTOP)
                run.fail(1)
                warm = sorted(warm for _, _, warm in run.wait_for_round(2))
                self.assertEqual(warm, [False, False] if which == "template" else [False, True])
                silent = kWaitingIsSilent if which == "waiting" else "the template gave no answer"
                run.wait_for_text(silent)
                self.assertTrue(eventually(lambda pid=stopped[0]: state_of(pid) in ("Z", "X", "")))
                run.end()
                run.check_nothing_left()

    def test_a_restart_does_not_wait_for_a_template_that_forks_slowly(self):
        holds = ("import os, select\ndef hold():\n    if os.path.exists('hold'):\n"
                 "        select.select([], [], [], 1000)\nos.register_at_fork(before=hold)\n")
        with Run(preload="holds,json", files={"lib/holds.py": holds}) as run:
            run.wait_for_round(1)
            run.wait_until_parked()
            (run.path / "hold").touch()
            run.fail(1)
            self.assertTrue(all(warm for _, _, warm in run.wait_for_round(2)), run.text())
            began = time.monotonic()
            run.fail(2)
            self.assertFalse(any(warm for _, _, warm in run.wait_for_round(3)), run.text())
            self.assertLess(time.monotonic() - began, 20)  # it may take 30 s to fork
            run.end()
            run.check_nothing_left()

    def test_an_interpreter_that_is_a_script_gets_no_template(self):
        wrapper = f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n"
        with tempfile.TemporaryDirectory() as folder:
            (python := pathlib.Path(folder) / "python").write_text(wrapper)
            python.chmod(0o755)
            with Run(environment={"PYTHON_EXEC": str(python)}) as run:
                self.check_cold(run, f"{python} is a script")

    def test_a_program_without_python_gets_no_template(self):
        done = subprocess.run([DDPRUN, "--warm=force", "--preload=json", "--no-python", "true"],
                              capture_output=True, text=True, timeout=HUNG, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note [WARM] cold: " + kOtherPython, done.stderr)


if __name__ == "__main__":
    DDPRUN, PACKAGE = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
