#!/usr/bin/env python3
"""Workers of --gpus see real GPUs: each finds by CUDA the device that ddprun chose for it.

tests/launcher/gpus_on_device_test.py path/to/ddprun
"""

import ctypes
import os
import subprocess
import sys
import unittest

DDPRUN = ""


def cuda_devices():
    """The UUIDs of the devices that CUDA shows this process, or why there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "no CUDA driver"
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or not count.value:
        return None, "no GPU"
    uuids = []
    for index in range(count.value):
        device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        assert cuda.cuDeviceGet(ctypes.byref(device), index) == 0
        assert cuda.cuDeviceGetUuid_v2(ctypes.byref(uuid), device) == 0
        uuids.append(bytes(uuid).hex())
    return uuids, ""


def seen_by_workers(*options):
    done = subprocess.run(
        [DDPRUN, "--standalone", *options, "--no-python", sys.executable,
         os.path.abspath(__file__), "worker"],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return sorted(tuple(line.split(",")) for line in done.stdout.split())


class Gpus(unittest.TestCase):
    def test_workers_see_the_chosen_devices(self):
        uuids, _ = DEVICES
        self.assertEqual(seen_by_workers("--gpus=0"), [(uuids[0],)])
        self.assertEqual(len(seen_by_workers("--gpus=all")), len(uuids))
        self.assertEqual(seen_by_workers("--gpus=all", "--nproc-per-node=1"), [tuple(uuids)])
        shared = ("--gpus=0", "--share-gpus", "--nproc-per-node=2")
        self.assertEqual(seen_by_workers(*shared), [(uuids[0],)] * 2)


if __name__ == "__main__":
    DEVICES = cuda_devices()
    if sys.argv[1] == "worker":
        os.write(1, (",".join(DEVICES[0]) + "\n").encode())
        sys.exit(0)
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    if DEVICES[1]:
        print(DEVICES[1])
        sys.exit(77)
    unittest.main()
