"""Who of this machine may use the store of a run: its user, root, users as whom its workers run.

    users_test.py DDPRUN
"""

import encodings.idna  # noqa: F401  another user may not be able to read it
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
from eventually import eventually  # noqa: E402
from sentences import kOtherUser  # noqa: E402

SKIPPED = 77
STRANGER = 65532
OF_A_WORKER = 65533

WORKER = """
import os, sys, threading
sys.path.append(sys.argv[1])
from users_test import answers
folder = sys.argv[2]
answered = answers(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], int(sys.argv[3]))
with open(os.path.join(folder, "new"), "w") as file:
    print(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], answered, file=file)
os.rename(os.path.join(folder, "new"), os.path.join(folder, "worker"))
while not os.path.exists(os.path.join(folder, "finish")):
    threading.Event().wait(0.01)
"""


def answers(host: str, port: str, user: int) -> bool:
    """Whether the store answers a process of that user."""
    child = os.fork()
    if child == 0:
        os.setuid(user)
        code = 1
        try:
            with socket.create_connection((host, int(port)), timeout=20) as one:
                one.sendall(struct.pack("<BIBI", 0, 0x3C85F7CE, 13, 77))
                code = 0 if one.recv(4) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main() -> int:
    if os.geteuid() != 0:
        print("skipped: only root can run a process as another user")
        return SKIPPED
    for options, admitted in (([], False), (["--store-open"], True)):
        check(sys.argv[1], options, admitted)
    return 0


def check(ddprun: str, options: list[str], admitted: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "worker.py").write_text(WORKER)
        run = subprocess.Popen(
            [ddprun, "--standalone", *options, str(folder / "worker.py"), str(HERE), name,
             str(OF_A_WORKER)],
            env=os.environ | {"XDG_RUNTIME_DIR": name}, stderr=subprocess.PIPE, text=True)
        try:
            assert eventually((folder / "worker").exists), "the worker does not start"
            host, port, of_worker = (folder / "worker").read_text().split()
            answered = [answers(host, port, user) for user in (STRANGER, STRANGER, 0)]
            (folder / "finish").touch()
            said = run.communicate(timeout=60)[1]
        finally:
            run.kill()
    refused = re.findall(rf"uid (\d+){kOtherUser}", said)
    assert run.returncode == 0, said
    assert of_worker == "True", f"what a worker had started was refused\n{said}"
    assert answered == [admitted, admitted, True], f"{answered}\n{said}"
    assert refused == ([] if admitted else [str(STRANGER)]), said


if __name__ == "__main__":
    sys.exit(main())
