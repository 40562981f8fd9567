"""A worker wrapped by torch's recorder fails: its traceback is in the report and its error goes up.

    recorder_test.py DRIVER
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile


def main() -> int:
    if len(sys.argv) == 1:
        return worker()
    with tempfile.TemporaryDirectory() as directory:
        above = pathlib.Path(directory) / "above.json"
        run = subprocess.run(
            [sys.argv[1], "2", f"log={directory}/logs", "redirects=3", "--", sys.executable,
             __file__],
            env=dict(os.environ, TORCHELASTIC_ERROR_FILE=str(above)), capture_output=True,
            text=True, timeout=280)
        print(run.stderr)
        assert run.returncode == 1, run.returncode
        assert "evidence  its error.json:" in run.stderr
        assert "| Traceback (most recent call last):" in run.stderr
        assert "| ValueError: needle \u2713" in run.stderr
        message = json.loads(above.read_text())["message"]
        assert message["message"] == "ValueError: needle \u2713", message
        assert message["errorCode"] == 1, message
        assert "in fail" in message["extraInfo"]["py_callstack"], message
        assert int(message["extraInfo"]["timestamp"]) > 0, message
    return 0


def worker() -> int:
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def fail():
        if os.environ["RANK"] == "1":
            raise ValueError("needle \u2713")
        signal.pause()

    fail()
    return 0


if __name__ == "__main__":
    sys.exit(main())
