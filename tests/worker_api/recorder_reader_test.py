"""A C++ worker records its error; real torchrun must read and show it as the root cause."""

import os
import subprocess
import sys

torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
if not os.path.exists(torchrun):
    print("skipped: no torchrun next to", sys.executable)
    sys.exit(77)

result = subprocess.run(
    [torchrun, "--standalone", "--nproc-per-node=1", "--no-python", sys.argv[1]],
    capture_output=True,
    text=True,
    errors="replace",
    timeout=280,
    check=False,
)
shown = 'std::runtime_error: needle "7" \ufffd'
assert result.returncode == 1, result
root_cause = result.stderr.split("Root Cause")[1]
assert shown in root_cause, result.stderr
