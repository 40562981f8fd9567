"""What the tests of schedulers have in common: a folder per case, commands, what workers say."""

import os
import pathlib
import shlex
import subprocess
import sys

from private_machine import HUNG_SECONDS, wait_for

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "chaos"), str(HERE.parent / "support")]
import notes  # noqa: E402

WORKER = str(HERE / "worker.py")


class Case:
    """One case's folder, and the commands that it started."""

    def __init__(self, folder: pathlib.Path, ddprun: str):
        self.folder = folder
        self.ddprun = ddprun
        self.shell_command = shlex.join([ddprun, WORKER])
        self.processes = []
        (folder / "notes").mkdir(parents=True)
        self.environment = os.environ | {"CHAOS_FOLDER": str(folder),
                                         "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, *words: str) -> subprocess.Popen:
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def clean_up(self) -> None:
        """Of a case that failed: what still runs ends, the others have the nodes to themselves."""
        self.let_workers_finish()
        for process in self.processes:
            process.terminate()
            try:
                print(f"It said:\n{process.communicate(timeout=20)[0]}", flush=True)
            except subprocess.TimeoutExpired:
                process.kill()

    def run(self, *words: str, code: int = 0) -> str:
        """The output of a command that must end by itself with this exit code."""
        return finish(self.start(*words), code)

    def let_workers_finish(self) -> None:
        (self.folder / "finish").touch()

    def met(self, count: int) -> list[dict]:
        """The notes of `count` workers that met in their stores, by run and rank."""

        def read():
            all_notes = [note for note in notes.read_all(self.folder) if note["met"]]
            return len(all_notes) == count and all_notes

        found = wait_for(f"{count} workers met", read)
        return sorted(found, key=lambda note: (note["TORCHELASTIC_RUN_ID"], int(note["RANK"])))


def finish(process: subprocess.Popen, code: int = 0) -> str:
    output = process.communicate(timeout=HUNG_SECONDS)[0]
    expect(process.returncode == code, f"exit code {process.returncode}, not {code}:\n{output}")
    return output


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise AssertionError(otherwise)


def expect_in(part: str, text: str) -> None:
    expect(part in text, f"{part!r} is not in:\n{text}")


def run_all(cases, make_case, explain=lambda: "") -> int:
    """Each case in a folder of its own; the first lines of the output say which failed."""
    failed = 0
    for case in cases:
        prepared = make_case(case.__name__)
        try:
            case(prepared)
            print(f"ok    {case.__doc__}", flush=True)
        except Exception as error:  # the others are worth knowing too
            failed += 1
            print(f"FAIL  {case.__doc__}\n{type(error).__name__}: {error}\n{explain()}", flush=True)
            prepared.clean_up()
    return 1 if failed else 0
