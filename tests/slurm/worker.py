"""The chaos tests' worker, which meets the others in the store; it also tells its node's name."""

import os
import pathlib
import sys

os.environ["CHAOS_AGENT"] = os.environ.get("SLURMD_NODENAME",
                                           os.environ.get("OMPI_COMM_WORLD_RANK", ""))
os.environ["CHAOS_OWN_ADDRESSES"] = "1"  # the coordinator's node reaches it by loopback
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chaos"))
import worker  # noqa: E402

if __name__ == "__main__":
    sys.exit(worker.main())
