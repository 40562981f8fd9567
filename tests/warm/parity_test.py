#!/usr/bin/env python3
"""Programs print the same and end in the same way whether they start cold, from a template (forked
ahead, forked on demand), or cold because a template was refused.

    tests/warm/parity_test.py path/to/ddprun programs|torch_programs|pypi_programs [name...]
"""

import importlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "support")]
from sentences import kFromTemplate

DDPRUN, PROGRAMS, ONLY = "", None, []
LONG = bool(os.environ.get("DDPRUN_TEST_LONG"))
HUNG = 240
PARKED, DEMAND = ["--warm=first,force"], ["--warm=first,demand,force"]
MODES = {"cold": [], "warm": PARKED, "on demand": DEMAND, "refused": PARKED}
# What differs between any two runs: addresses, times, process ids, ports, names and folders.
MASKS = (
    (r"0x[0-9a-f]{4,}", "0xX"),
    (r"\b[IWE]\d{4} \d\d:\d\d:\d\d\.\d+( \d+)?", "LOGGED"),
    (r"(MASTER_PORT|TORCHELASTIC_RUN_ID|DDPRUN_WORKER|DDPRUN_WORKER_SOCKET|"
     r"TORCHELASTIC_ERROR_FILE)=\S*", r"\1=X"),
    (r"DDPRUN_(WARM|PRELOAD)=\S*\n", ""),
    (r"(train_runtime|per_second)': '[^']*'", r"\1"),
    (r"\[\d{2,}\]|pid[ =]\d+", "PID"),
)


class Outcome:
    """What one run printed, per rank and stream, and how it ended."""

    def __init__(self, name, mode, files, words, more):
        with tempfile.TemporaryDirectory(prefix="ddprun-parity-") as folder:
            self.folder = pathlib.Path(folder).resolve()
            for file, text in files.items():
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / file).write_text(text)
            self.run(name, mode, words, more)

    def make_venv(self, line):
        """Whose Python runs this line when it starts."""
        venv.create(self.folder / "venv", symlinks=True, with_pip=False)
        packages, = self.folder.glob("venv/lib/python*/site-packages")
        (packages / "own.pth").write_text(line + "\n")
        return str(self.folder / "venv/bin/python")

    def run(self, name, mode, words, more):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": sys.executable,
                       **more.get("environment", {})}
        for variable in ("PYTHONPATH", *more.get("unset", ())):
            environment.pop(variable, None)
        if "pth" in more:
            environment["PYTHON_EXEC"] = self.make_venv(more["pth"])
        if "path" in more:
            environment["PYTHONPATH"] = str(self.folder / more["path"])
        preload = more.get("preload", PROGRAMS.PRELOAD)
        if mode == "refused":
            preload += ",no_such_module_anywhere"
        warm = [*MODES[mode], "--preload", preload] if MODES[mode] else []
        ranks = more.get("ranks", 1 if "code" in more else 2)  # the first failure stops the others
        streams = more.get("options", ["--redirects=3"])
        done = subprocess.run(
            [DDPRUN, f"--nproc-per-node={ranks}", "--log-dir", "logs", *streams, *warm,
             *words],
            cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=HUNG, check=False)
        self.console = done.stderr
        self.result = {"exit code": done.returncode}
        for log in sorted(self.folder.glob("logs/*/attempt_0/*/std*.log")):
            text = log.read_text().replace(str(self.folder), "FOLDER")
            for pattern, mask in MASKS:
                text = re.sub(pattern, mask, text)
            self.result[f"{log.parent.name} {log.name}"] = text
        assert "console" in more or len(self.result) > 1, done


def some(names):
    """The programs that run so, of a list that is no longer than time allows."""
    return PROGRAMS.PROGRAMS if LONG else getattr(PROGRAMS, names, PROGRAMS.PROGRAMS)


class Parity(unittest.TestCase):
    maxDiff = 4000

    def check_modes(self, name, files, words, more):
        cold = Outcome(name, "cold", files, words, more)
        self.assertEqual(cold.result["exit code"], more.get("code", 0), cold.console)
        for mode in ("warm", "on demand") if name in some("ON_DEMAND") else ("warm",):
            warm = Outcome(name, mode, files, words, more)
            self.assertRegex(warm.console, r"note \[WARM\] (all \d+ ranks|rank 0)" + kFromTemplate +
                                           r"(?m:$)")
            self.assertEqual(warm.result, cold.result, mode)
        if name not in some("REFUSED"):
            return
        refused = Outcome(name, "refused", files, words, more)
        self.assertIn("note [WARM] cold: cannot import no_such_module_anywhere", refused.console)
        self.assertEqual(refused.result, cold.result)

    def test_programs(self):
        for name, (files, words, more) in PROGRAMS.PROGRAMS.items():
            if ONLY and name not in ONLY:
                continue
            with self.subTest(program=name):
                self.check_modes(name, files, words, more)

    def test_every_rank_draws_for_itself(self):
        if not hasattr(PROGRAMS, "DRAWS") or ONLY:
            return
        for mode in list(MODES)[:3]:  # cold, when refused, is cold
            drawn = []
            for _ in range(2):
                outcome = Outcome("draws", mode, {"program.py": PROGRAMS.DRAWS}, ["program.py"], {})
                drawn += [line for stream, text in outcome.result.items()
                          if str(stream).endswith("stdout.log") for line in text.splitlines()]
            self.assertEqual(len(drawn), 4 * PROGRAMS.DRAWN, mode)
            self.assertEqual(len(set(drawn)), len(drawn), mode)


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv[1])
    PROGRAMS = importlib.import_module(sys.argv[2])
    ONLY = sys.argv[3:]
    missing = [name for name in getattr(PROGRAMS, "NEEDS", ())
               if importlib.util.find_spec(name) is None]
    if missing:
        print("skipped: this Python has no " + ", ".join(missing))
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
