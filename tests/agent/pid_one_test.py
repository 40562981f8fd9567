#!/usr/bin/env python3
"""As pid 1 of a container ddprun and ddprun-rdzvd reap the orphans that come to them.

python3 tests/agent/pid_one_test.py path/to/ddprun path/to/ddprun-rdzvd
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from anyone import for_anyone
from eventually import HUNG, eventually

DDPRUN = RDZVD = ""
USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
CONTAINER = ["unshare", *USER, "--pid", "--fork", "--mount-proc", "--kill-child"]

# Leaves 20 processes behind, each of which ends once its parent is ddprun or ddguard, and continues
# when no zombie is left. A shell has no other way to learn that than to look. ddprun makes one $ of
# two.
WORKER = """
for i in $(seq 20); do
  (sh -c 'until read x x x parent x < /proc/$$$$/stat && grep -q ^dd /proc/$parent/comm; do :; done
          echo $$$$ >> $DIR/orphans' &)
done
until [ $(wc -l < $DIR/orphans) = 20 ] && ! grep -qs "^State:.Z" /proc/[0-9]*/status; do :; done
exit 7
"""


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


class PidOne(unittest.TestCase):
    def test_ddprun_reaps_orphans_and_still_learns_how_its_workers_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            open(folder + "/orphans", "w").close()
            run = subprocess.run(
                [*CONTAINER, DDPRUN, "--standalone", "sh", "-c", WORKER],
                env={**os.environ, "DIR": folder},
                timeout=HUNG,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assertIn("ended with exit code 7", run.stderr)

    def test_user_0_of_a_rootless_container_may_use_folders_of_the_machines_root(self):
        user = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "--"]
        container = ["unshare", "--user", "--map-root-user"]
        with tempfile.TemporaryDirectory() as folder, for_anyone(DDPRUN) as (ddprun, passed):
            os.chmod(folder, 0o777)
            run = subprocess.run(
                [*(user if os.geteuid() == 0 else []), *container, ddprun, "--standalone", "true"],
                env={**os.environ, "TMPDIR": folder}, timeout=HUNG, stderr=subprocess.PIPE,
                text=True, **passed)
        if "Operation not permitted" in run.stderr:
            self.skipTest("no user namespaces for ordinary users")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_the_daemon_reaps_what_is_left_in_its_container(self):
        daemon = subprocess.Popen(
            [*CONTAINER, RDZVD, "--port=0"], stdout=subprocess.PIPE, text=True
        )
        try:
            self.assertIn("ready", daemon.stdout.readline())
            (pid_one,) = children_of(daemon.pid)
            enter = ["nsenter", f"--target={pid_one}", "--pid", "--mount"]
            if USER:
                enter += ["--user", "--preserve-credentials"]
            line = 'sh -c \'until grep -q "^PPid:.1$" /proc/$$/status; do :; done; echo\' &'
            orphan = subprocess.run(
                [*enter, "sh", "-c", line], timeout=HUNG, stdout=subprocess.PIPE
            )
            self.assertEqual(orphan.stdout, b"\n")
            self.assertTrue(eventually(lambda: children_of(pid_one) == []))
            os.kill(pid_one, signal.SIGTERM)
            self.assertEqual(daemon.wait(HUNG), 0)
        finally:
            daemon.kill()
            daemon.communicate()


if __name__ == "__main__":
    DDPRUN, RDZVD = (os.path.abspath(path) for path in sys.argv[1:3])
    probe = subprocess.run([*CONTAINER, "true"], stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode != 0:
        print("no PID namespace for this user:", probe.stderr.strip())
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
