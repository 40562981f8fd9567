#!/usr/bin/env python3
"""A worker that survives a change of the round, without the library: it speaks the packets of
docs/WORKER_API.md.

usage: survivor.py FOLDER [BEHAVIOUR...]
Writes FOLDER/<pid>.<round> with its variables for every round that it takes. BEHAVIOUR applies to
ranks of round 1: stay-out:RANK (never takes another round), fall-out:RANK (ends, with code 5, when
it is told of one), complain:RANK (writes an error about rank 1 when it is told of one, and ends
with code 3 when FOLDER/fail exists), no-survivor:RANK, fork:RANK (has a child that outlives it),
done:RANK (ends with 0 when it is told of one), go:RANK (ends with 0 when FOLDER/go exists),
timer:RANK (sets a timer that expires at once when FOLDER/expire exists). Ends with 0 when
FOLDER/done exists.

A spare writes FOLDER/<pid>.spare with its environment, and takes its first round when it is told of
one. BEHAVIOUR unready:spare: it ends with code 3 before it waits; fork:spare; timer:spare.
"""
import array
import fcntl
import json
import os
import pathlib
import select
import signal
import socket
import struct
import sys
import time

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
READY, SURVIVES, JOINED, ROUND = 3, 5, 6, 17
OF_THE_ROUND_BEFORE = "RuntimeError: Rank 1 failed to pass monitoredBarrier in 60000 ms"
folder = pathlib.Path(sys.argv[1])
is_spare = "DDPRUN_SPARE" in os.environ
place = "spare" if is_spare else os.environ["RANK"] if os.environ["DDPRUN_ROUND"] == "1" else ""
behaviour = [one.split(":")[0] for one in sys.argv[2:] if one.split(":")[1] == place]


def connect():
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.connect(os.environ["DDPRUN_WORKER_SOCKET"])
    page = os.memfd_create("page", os.MFD_ALLOW_SEALING)
    os.ftruncate(page, 4096)
    fcntl.fcntl(page, fcntl.F_ADD_SEALS, SEALS)
    link.sendmsg([b"\1\1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [page]))])
    return link


def expire():
    line = {"pid": os.getpid(), "scope_id": "step", "expiration_time": 0, "signal": 9}
    with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w", encoding="utf-8") as pipe:
        pipe.write(json.dumps(line) + "\n")
    (folder / "expire").unlink()


def note(number, variables, told=0):
    text = "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))
    made = folder / f".{os.getpid()}.{number}"
    made.write_text(text + f"told={told}\nat={time.monotonic()}\n")
    made.rename(folder / f"{os.getpid()}.{number}")


def take(variables, told):
    number = variables["DDPRUN_ROUND"]
    note(number, variables, told)
    print(f"rank {variables['RANK']} of {variables['WORLD_SIZE']} in round {number}", flush=True)


if "unready" in behaviour:
    sys.exit(3)
link = connect()
if "no-survivor" not in behaviour:
    link.send(bytes([1, SURVIVES]))
link.send(bytes([1, READY]))
if "fork" in behaviour and os.fork() == 0:
    signal.pause()
if is_spare:
    print("waits for a place", flush=True)
    note("spare", dict(os.environ))
else:
    take(dict(os.environ), 0)
while not (folder / "done").exists():
    if "complain" in behaviour and (folder / "fail").exists():
        sys.exit(3)
    if "go" in behaviour and (folder / "go").exists():
        sys.exit(0)
    if "timer" in behaviour and (folder / "expire").exists():
        behaviour.remove("timer")
        expire()
    if not select.select([link], [], [], 0.02)[0]:
        continue
    packet = link.recv(1 << 17)
    if not packet:
        sys.exit("the agent is gone")
    if packet[1] != ROUND:
        continue
    if "fall-out" in behaviour:
        sys.exit(5)
    if "done" in behaviour:
        sys.exit(0)
    if "stay-out" in behaviour:
        continue
    if "complain" in behaviour:
        print(OF_THE_ROUND_BEFORE, file=sys.stderr, flush=True)
    number, cause = struct.unpack_from("<IB", packet, 2)
    variables = dict(one.split("=", 1) for one in packet[7:].decode().split("\0") if one)
    assert variables["DDPRUN_ROUND"] == str(number)
    link.send(struct.pack("<BBI", 1, JOINED, number))
    take(variables, cause)
