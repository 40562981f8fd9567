"""ddprun's CPUs of --numa-binding against torch/numa/binding.py: numa_parity_test.py PROBE SEED.

Both read the same generated /sys. What torch refuses ddprun refuses, except for
--numa-binding=socket on a machine with a NUMA node without CPUs, where torch fails.
"""

import builtins
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from torch.numa import binding

MODES = ["node", "socket", "exclusive", "core-complex"]


def write(folder, path, text):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def listed(cpus):
    return ",".join(str(cpu) for cpu in sorted(cpus))


def make_machine(folder, dice):
    """A random topology; returns its devices with their NUMA nodes, and the affinity."""
    sockets, per_socket = dice.randint(1, 2), dice.randint(1, 3)
    threads, cores = dice.randint(1, 2), dice.randint(1, 6)
    complex_size = dice.randint(1, cores)
    nodes = sockets * per_socket
    cpus = nodes * cores * threads
    write(folder, "devices/system/node/possible", f"0-{nodes - 1}" if nodes > 1 else "0")
    for node in range(nodes):
        # The second threads of all cores have the highest numbers, as on most machines.
        own = [
            [thread * nodes * cores + node * cores + core for thread in range(threads)]
            for core in range(cores)
        ]
        write(folder, f"devices/system/node/node{node}/cpulist", listed(sum(own, [])))
        for core, siblings in enumerate(own):
            first = core // complex_size * complex_size
            sharing = sum(own[first : first + complex_size], [])
            for cpu in siblings:
                place = f"devices/system/cpu/cpu{cpu}"
                write(folder, f"{place}/topology/physical_package_id", node // per_socket)
                write(folder, f"{place}/topology/thread_siblings_list", listed(siblings))
                levels = [("Data", 1, siblings), ("Instruction", 9, range(cpus))]
                levels += [("Unified", 2, siblings), ("Unified", 3, sharing)]
                for index, (kind, level, shared) in enumerate(levels):
                    cache = f"{place}/cache/index{index}"
                    write(folder, f"{cache}/type", kind)
                    write(folder, f"{cache}/level", level)
                    write(folder, f"{cache}/shared_cpu_list", listed(shared))
    devices = {f"0000:{bus:02x}:00.0": dice.choice([-1, *range(nodes)]) for bus in range(1, 9)}
    devices = dict(list(devices.items())[: dice.randint(1, 8)])
    for address, node in devices.items():
        write(folder, f"bus/pci/devices/{address}/numa_node", node)
    allowed = set(range(cpus))
    if dice.random() < 0.5:
        allowed = {cpu for cpu in allowed if dice.random() < 0.8} or {0}
    return devices, allowed


def theirs(folder, mode, devices, allowed):
    """torch's answer for each device, or None where it fails."""
    nodes = [max(node, 0) for node in devices.values()]
    real_open, real_listdir = builtins.open, os.listdir

    def moved(path):
        inside = str(path).startswith("/sys/")
        return str(path).replace("/sys/", f"{folder}/", 1) if inside else path

    # Named after the device of the release: gpu in 2.11.
    for name in ("gpu", "device"):
        setattr(
            binding,
            f"_get_numa_node_index_for_{name}_index",
            lambda **index: nodes[list(index.values())[0]],
        )
        setattr(binding, f"_get_{name}_count", lambda: len(nodes))
    binding._get_allowed_cpu_indices_for_current_thread = lambda: allowed
    builtins.open = lambda path, *more, **named: real_open(moved(path), *more, **named)
    os.listdir = lambda path: real_listdir(moved(path))
    name = "gpu_index" if hasattr(binding, "_get_gpu_indices_for_numa_node") else "device_index"
    options = binding.NumaOptions(affinity_mode=binding.AffinityMode(mode))
    try:
        found = [
            binding._get_logical_cpus_to_bind_to(**{name: index}, numa_options=options)
            for index in range(len(nodes))
        ]
        return None if any(not cpus for cpus in found) else found
    except (RuntimeError, ValueError, ZeroDivisionError):
        return None
    finally:
        builtins.open, os.listdir = real_open, real_listdir


def ours(folder, mode, devices, allowed):
    count = str(len(devices))
    words = [sys.argv[1], str(folder), str(MODES.index(mode)), count, listed(allowed), *devices]
    probe = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    if probe.stdout.startswith("error: "):
        return None
    return [{int(cpu) for cpu in line.split()} for line in probe.stdout.splitlines()]


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    same, refused = 0, 0
    for number in range(60):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            devices, allowed = make_machine(folder, dice)
            for mode in MODES:
                left = theirs(folder, mode, devices, allowed)
                right = ours(folder, mode, devices, allowed)
                if left is None and mode == "socket":
                    continue
                assert left == right, (number, mode, devices, sorted(allowed), left, right)
                same += left is not None
                refused += left is None
    print(same, "bound alike,", refused, "refused by both")
    assert same > 100 and refused > 0


main()
