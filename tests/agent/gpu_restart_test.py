#!/usr/bin/env python3
"""A worker with memory on a real GPU is killed: when the next one starts, that memory is free.

    tests/agent/gpu_restart_test.py path/to/ddprun
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

DDPRUN = ""
BYTES = 2 << 30
TOLERANCE = 256 << 20


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def why_no_device():
    """None where there is one."""
    nvml = load("libnvidia-ml.so.1")
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return "no NVIDIA driver"
    cuda = load("libcuda.so.1")
    count = ctypes.c_int()
    if cuda is None or cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return "no CUDA driver"
    return None if count.value > 0 else "no GPU"


def used_bytes():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    device, memory = ctypes.c_void_p(), Memory()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    return memory.used


def take_memory_and_die():
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_ulonglong()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(BYTES)) == 0
    assert used_bytes() >= BYTES
    os.kill(os.getpid(), signal.SIGKILL)


def worker():
    if os.environ["DDPRUN_ROUND"] == "1":
        take_memory_and_die()
    pathlib.Path(os.environ["FOUND"]).write_text(str(used_bytes()), encoding="utf-8")


class GpuRestart(unittest.TestCase):
    def test_memory_is_free_when_the_next_round_starts(self):
        with tempfile.TemporaryDirectory() as directory:
            found = pathlib.Path(directory, "found")
            logs = pathlib.Path(directory, "logs")
            before = used_bytes()
            run = subprocess.run(
                [DDPRUN, "--nproc-per-node=1", "--max-restarts=1", f"--log-dir={logs}",
                 "--no-python", sys.executable, os.path.abspath(__file__), "worker"],
                env={**os.environ, "FOUND": str(found), "CUDA_VISIBLE_DEVICES": "0",
                     "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
                capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            lines = next(logs.glob("*/events.jsonl")).read_text(encoding="utf-8").splitlines()
            events = [json.loads(line) for line in lines]
            waits = [event for event in events if event["event"] == "gpu_release"]
            self.assertEqual([wait["state"] for wait in waits], ["released"], run.stderr)
            print("waited", waits[0]["waited_ms"], "ms")
            self.assertLess(int(found.read_text(encoding="utf-8")), before + TOLERANCE)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker()
        sys.exit(0)
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    reason = why_no_device()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main()
