"""Runs chaos cases with real launchers.

    run.py --ddprun PATH --rdzvd PATH [SENTENCE...]   all cases, or those that contain the words
    run.py --list                                     their sentences

DDPRUN_TEST_REPEATS plays each case that often (1), with a seed of its own each time;
DDPRUN_TEST_SEED is the first. Exit code 77: skipped, the last line says why.
"""

import argparse
import os
import shutil
import sys
import time
import traceback
import types

import disks
import etcd_servers
import namespaces
from cases import ALL
from harness import Cluster, Failed, certificates
from preload import preloadable

for room in ("loss_cases", "joining_cases", "coordinator_cases", "ending_cases", "network_cases",
             "gloo_cases", "stall_cases", "etcd_cases", "etcd_outage_cases", "etcd_verdict_cases",
             "failover_cases", "partition_cases", "address_cases"):
    __import__(room)


def main() -> int:
    options = parse_options()
    if options.list:
        for one in ALL:
            print(";".join(["torch" if "torch" in one.needs else "chaos", one.sentence]))
        return 0
    chosen = [one for one in ALL if any(words in one.sentence for words in options.sentences)]
    if not chosen:
        print(f"no case contains {options.sentences}")
        return 2
    if all("namespaces" in one.needs for one in chosen):
        namespaces.enter()
    results = [play(one, options) for one in chosen]
    return 1 if 1 in results else max(results) if set(results) == {77} else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun")
    parser.add_argument("--rdzvd")
    parser.add_argument("--secret", action="store_true", help="every run has a secret")
    parser.add_argument("--certificates", action="store_true", help="in place of a secret")
    parser.add_argument("--slow-disk", default="", help="libslow_disk.so of this folder")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("sentences", nargs="*", default=[""])
    return parser.parse_args()


def play(one, options) -> int:
    if reason := missing(one, options):
        print(f"skipped: {one.sentence}: {reason}")
        return 77
    repeats = int(os.environ.get("DDPRUN_TEST_REPEATS", "1"))
    seed = int(os.environ.get("DDPRUN_TEST_SEED", "1"))
    tools = types.SimpleNamespace(launcher=[options.ddprun], rdzvd=options.rdzvd,
                                  slow_disk=preloadable(options.slow_disk), secret=options.secret,
                                  certificates=options.certificates, program_words=["--no-python"])
    began, failed = time.monotonic(), 0
    for number in range(seed, seed + repeats):
        try:
            with Cluster(tools, number) as cluster:
                one.play(cluster)
        except Failed as found:
            failed += 1
            print(f"FAILED with seed {number}: {one.sentence}\n{found}", flush=True)
        except Exception:  # an exception in a case is a failure; the other cases still run
            failed += 1
            print(f"BROKEN with seed {number}: {one.sentence}")
            traceback.print_exc(file=sys.stdout)
    print(f"{repeats - failed} of {repeats}: {one.sentence} ({time.monotonic() - began:.1f} s)",
          flush=True)
    return 1 if failed else 0


def missing(one, options) -> str:
    if options.certificates and certificates.missing():
        return certificates.missing()
    if "freeze" in one.needs:
        return disks.missing()
    if "etcd" in one.needs:
        return etcd_servers.missing()
    if "iptables" in one.needs and shutil.which("iptables") is None:
        return "no program iptables"
    if "slow disk" in one.needs and not options.slow_disk:
        return "no --slow-disk"
    if "torch" in one.needs:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            return f"this Python has no torch ({error})"
    return namespaces.missing() if "namespaces" in one.needs else ""


if __name__ == "__main__":
    sys.exit(main())
