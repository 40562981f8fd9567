"""The names and addresses of address_cases.py under torchrun: where it starts, ddprun does.

    addresses_torchrun_test.py --ddprun PATH --rdzvd PATH

torchrun is the one beside this Python. Prints a row for each set-up. run.py plays the same ones
with ddprun; here it plays those that torchrun starts, so that both saw the same machine.
"""

import argparse
import os
import pathlib
import sys
import types

import address_cases
import namespaces
import notes
from harness import Cluster, Failed

TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
SECONDS = 40  # in which two agents of torchrun have met, or will not
OWN_OPTIONS = "--hosts="  # of ddprun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", required=True)
    parser.add_argument("--rdzvd", required=True)
    options = parser.parse_args()
    namespaces.enter()
    reason = namespaces.missing()
    if not os.access(TORCHRUN, os.X_OK):
        reason = f"no {TORCHRUN}"
    if reason:
        print(f"skipped: {reason}")
        return 77
    worse = 0
    for setup in address_cases.SETUPS:
        if OWN_OPTIONS in setup.words:
            continue
        theirs = starts(setup, str(TORCHRUN), options.rdzvd)
        ours = starts(setup, options.ddprun, options.rdzvd) if theirs else None
        worse += theirs and not ours
        said = {True: "starts", False: "does not start", None: "not tried"}
        print(f"torchrun {said[theirs]:14}  ddprun {said[ours]:14}  {setup.what}", flush=True)
    return 1 if worse else 0


def starts(setup, launcher: str, rdzvd: str) -> bool:
    tools = types.SimpleNamespace(launcher=[launcher], rdzvd=rdzvd, program_words=["--no-python"])
    cluster = Cluster(tools, 1)
    try:
        with address_cases.agents_of(setup, cluster) as agents:
            def is_decided():
                return both_met(cluster) or not all(one.is_running() for one in agents)

            cluster.wait_for(is_decided, "two workers that meet", SECONDS)
            return both_met(cluster)
    except Failed:
        return False
    finally:
        cluster.clean_up()


def both_met(cluster) -> bool:
    return sum(bool(note["met"]) for note in notes.read_all(cluster.folder)) == 2


if __name__ == "__main__":
    sys.exit(main())
