#!/usr/bin/env python3
"""--event-log-handler under the real torchrun and under ddprun: the same records, field by field.

events_parity_test.py path/to/ddprun, with a Python that has torch
"""

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
WORKER = """
import os, signal, sys
what, until = sys.argv[1:]
record = lambda function: function
if what == "raise":
    from torch.distributed.elastic.multiprocessing.errors import record
rank, restarts = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
@record
def main():
    if what == "well" or restarts >= int(until):
        return
    if rank == "0":
        signal.pause()  # until the launcher stops it
    if what == "raise":
        raise ValueError("needle")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)
main()
"""
METADATA = ["run_id", "global_rank", "group_rank", "worker_id", "role", "hostname", "state",
            "total_run_time", "rdzv_backend", "raw_error", "metadata", "agent_restarts",
            "duration_ms"]


class Run:
    """The records of one run, or of one node of it."""

    def __init__(self, launcher, handler, *words, options=(), **variables):
        self.folder = tempfile.TemporaryDirectory()
        script = pathlib.Path(self.folder.name) / "worker.py"
        script.write_text(WORKER)
        self.process = subprocess.Popen(
            [*launcher, "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=foo",
             "--rdzv-endpoint=localhost:0", "--role=trainer", f"--event-log-handler={handler}",
             f"--log-dir={self.folder.name}/logs", "--max-restarts=1", *options, script, *words],
            env={**os.environ, "PYTHON_EXEC": sys.executable, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        with self.folder, self.process:
            try:
                _, self.err = self.process.communicate(timeout=HUNG)
            finally:
                self.process.kill()
        self.code = self.process.returncode
        lines = [line for line in self.err.splitlines() if line.startswith("{")]
        self.records = [json.loads(line) for line in lines]
        for record in self.records:
            record["details"] = json.loads(record["metadata"]["metadata"])
        return self

    def of(self, state, rank=None):
        return [record for record in self.records if record["metadata"]["state"] == state
                and record["metadata"]["global_rank"] == rank]

    def order(self):
        return [(record["source"], record["metadata"]["state"], record["metadata"]["global_rank"],
                 record["metadata"]["agent_restarts"]) for record in self.records]


def comparable(record):
    """What has to agree: all but times, pids, the host's name and texts of the launcher."""
    before_ranks = record["metadata"]["state"] in ("RENDEZVOUS", "ASSIGN_WORKER_RANKS")
    metadata = dict(record["metadata"])
    for name in ("hostname", "metadata", "duration_ms", "total_run_time", "worker_id"):
        metadata.pop(name)
    raw_error = metadata.pop("raw_error", None)
    if record["source"] == "WORKER" and raw_error:
        metadata["error"] = json.loads(raw_error)
    details = {name: value for name, value in record["details"].items() if name != "worker_pid"}
    if before_ranks:  # torchrun has those of the round before
        metadata.pop("group_rank")
        details.pop("group_world_size")
    return record["name"], record["source"], metadata, details


class Events(unittest.TestCase):
    def both(self, *words, handler="console", **named):
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        theirs = self.check_run(Run(torchrun, handler, *words, **named).end())
        ours = self.check_run(Run([DDPRUN], handler, *words, **named).end())
        self.check_times(ours)
        return theirs, ours

    def nodes(self, launcher, *words):
        """Two nodes of one run, by rank."""
        options = ["--nnodes=2", f"--rdzv-endpoint=localhost:{free_port()}"]
        runs = [Run(launcher, "console", *words, options=options) for _ in range(2)]
        ended = [self.check_run(run.end()) for run in runs]
        return sorted(ended, key=lambda run: run.records[-1]["metadata"]["group_rank"])

    def check_run(self, run):
        for record in run.records:
            self.check_form(record)
        return run

    def check_times(self, run):
        for record in run.records:
            self.assertGreater(record["timestamp"], 1_600_000_000_000)

    def check_form(self, record):
        self.assertEqual(list(record), ["name", "source", "timestamp", "metadata", "details"])
        metadata, details = record["metadata"], record["details"]
        self.assertEqual(list(metadata), METADATA)
        self.assertEqual(record["name"], "torchelastic.worker.status." + metadata["state"])
        self.assertIsInstance(metadata["total_run_time"], int)
        self.assertTrue(metadata["hostname"])
        of_worker = ["local_rank", "role_rank", "role_world_size", "exit_code", "worker_pid"]
        is_worker = record["source"] == "WORKER"
        self.assertEqual(list(details), ["group_world_size", "entry_point",
                                         *(of_worker if is_worker else [])])
        if is_worker:
            self.assertGreater(int(metadata["worker_id"]), 0)
        else:
            self.assertIsNone(metadata["worker_id"])
        timed = metadata["state"] in ("RENDEZVOUS", "ASSIGN_WORKER_RANKS")
        self.assertIsInstance(metadata["duration_ms"], float if timed else type(None))

    def assert_same(self, theirs, ours):
        self.assertEqual(len(theirs), len(ours))
        for left, right in zip(theirs, ours):
            self.assertEqual(comparable(left), comparable(right))

    def test_a_run_that_succeeds_has_the_same_records(self):
        theirs, ours = self.both("well", "1")
        self.assertEqual((theirs.code, ours.code), (0, 0), ours.err)
        self.assertEqual(theirs.order(), ours.order())
        self.assert_same(theirs.records, ours.records)

    def test_a_restart_begins_with_the_same_records_again(self):
        theirs, ours = self.both("exit", "1")
        self.assertEqual((theirs.code, ours.code), (0, 0), ours.err)
        self.assertEqual(theirs.order(), ours.order())
        self.assert_same(theirs.records, ours.records)

    def test_a_rank_that_fails_has_the_same_record(self):
        for how, code in (("exit", 3), ("kill", 128 + 9), ("raise", 1)):
            with self.subTest(how=how):
                theirs, ours = self.both(how, "9")
                self.assertEqual((theirs.code, ours.code), (1, code), ours.err)
                left, right = theirs.of("FAILED", 1), ours.of("FAILED", 1)
                for run, record in ((theirs, left[0]), (ours, right[0])):
                    self.assertEqual(record["details"]["worker_pid"],
                                     [int(record["metadata"]["worker_id"])])
                self.assertEqual(left[0]["details"]["exit_code"], right[0]["details"]["exit_code"])
                if how == "raise":  # the time and the stack are those of the run
                    for record in (*left, *right):
                        raw = json.loads(record["metadata"].pop("raw_error"))
                        self.assertEqual(raw["message"]["message"], "ValueError: needle")
                        self.assertEqual(list(raw["message"]["extraInfo"]),
                                         ["py_callstack", "timestamp"])
                self.assert_same(left, right)

    def test_ranks_that_were_stopped_and_a_failed_run_say_so(self):
        theirs, ours = self.both("exit", "9")
        self.assertEqual(len(theirs.of("FAILED", 0)), 1)  # although torchrun stopped it
        self.assertEqual([record["details"]["exit_code"] for record in ours.of("TERMINATED", 0)],
                         [[None]])
        self.assertEqual(len(theirs.of("SUCCEEDED")), 1)  # although the run failed
        self.assertEqual(len(ours.of("FAILED")), 1)
        self.assertIn("exit code 3", ours.of("FAILED")[0]["metadata"]["raw_error"])

    def test_an_error_file_is_the_record_also_where_the_output_is_in_files(self):
        theirs, ours = self.both("raise", "9", options=["--redirects=3"])
        raised = [json.loads(run.of("FAILED", 1)[0]["metadata"]["raw_error"])["message"]
                  for run in (theirs, ours)]
        self.assertEqual([error["message"] for error in raised], ["ValueError: needle"] * 2)
        self.assertEqual(len(ours.records), len(theirs.records))

    def test_each_of_two_nodes_has_the_records_of_its_own_ranks(self):
        for words in (("well", "1"), ("exit", "1")):  # ranks 1 and 3 fail in the first round
            with self.subTest(words):
                theirs = self.nodes([sys.executable, "-m", "torch.distributed.run"], *words)
                ours = self.nodes([DDPRUN], *words)
                for left, right in zip(theirs, ours):
                    self.assertEqual((left.code, right.code), (0, 0), right.err)
                    self.assertEqual(left.order(), right.order())
                    self.assert_same(left.records, right.records)

    def test_a_level_above_info_has_none(self):
        theirs, ours = self.both("well", "1", LOGLEVEL="WARNING")
        self.assertEqual((theirs.code, ours.code), (0, 0), ours.err)
        self.assertEqual((theirs.records, ours.records), ([], []))

    def test_the_handler_of_the_rendezvous_is_silent(self):
        theirs, ours = self.both("well", "1", handler="dynamic_rendezvous")
        self.assertEqual((theirs.code, ours.code), (0, 0), ours.err)
        self.assertEqual((theirs.records, ours.records), ([], []))


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
