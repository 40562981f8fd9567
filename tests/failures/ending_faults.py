"""The faults of workers that print something beside why they end: hooks, loggers, libraries.

`faults.py NAME` runs them.
"""

import atexit
import logging
import os
import sys
import traceback

RANK = os.environ.get("RANK", "0")
LOST = ("[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer "
        "[127.0.0.1]:16291")


class Writer:
    """Python ignores what its end raises, and prints it."""
    def __del__(self):
        raise OSError(28, "No space left on device")


def ignored_after():
    writer = Writer()  # noqa: F841: its end follows the traceback
    raise KeyError("layer.11.weight")


def lost_and_ignored():
    writer = Writer()  # noqa: F841
    raise RuntimeError(LOST)


def lost_and_saved():
    """A training loop that logs the exception, saves as it did before, and exits."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.info("saving checkpoint at step %d", 4)
    try:
        raise RuntimeError(LOST)
    except RuntimeError:
        logging.exception("exception in training loop")
        logging.info("saving checkpoint at step %d", 5)
        sys.exit(1)


def memory_and_saved():
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.info("saved checkpoint step_%d.pt", 20)
    try:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    except RuntimeError:
        logging.exception("exception in training")
        logging.info("saved checkpoint step_%d.pt", 30)
        sys.exit(1)


def lost_on_stdout():
    """Its log, with the traceback, is on stdout; a library warns on stderr."""
    print("[W1130 02:31:11.1 socket.cpp:209] [c10d] no IPv6", file=sys.stderr)
    logging.basicConfig(stream=sys.stdout)
    try:
        raise RuntimeError(LOST)
    except RuntimeError:
        logging.exception("training failed")
        sys.exit(1)


def alike_but_for_the_last():
    atexit.register(lambda: print("wandb: View run", "abc"[int(RANK)] * 4,
                                  file=sys.stderr))
    raise ValueError("labels missing in split 'train'")


def hydra_once_each():
    """Another exception in each of two rounds, with the last line of hydra; then it trains."""
    round_number = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if round_number == 2:
        return
    try:
        raise (ConnectionError("shard 17 timed out"), KeyError("label"))[round_number]
    except Exception:
        traceback.print_exc()
        print("\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
              file=sys.stderr)
        sys.exit(1)


def without_a_module():
    """An optional module is missing; the program fails later, for a reason of its own."""
    def main():
        return {"lr": 1}["learning_rate"]
    try:
        import apex_not_there  # noqa: F401
    except ImportError:
        main()


def disagrees():
    """As torch says it with TORCH_DISTRIBUTED_DEBUG=DETAIL: rank 1 differs from the others."""
    other = 0 if RANK == "1" else 1
    raise RuntimeError(f"Detected {'mismatch'} between collectives on ranks. Rank {RANK} is "
                       "running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=SUM, "
                       f"TensorShape=[4], device=cpu, (nullopt))), but Rank {other} is running "
                       "collective: CollectiveFingerPrint(SequenceNumber=0, OpType=SUM, "
                       "TensorShape=[9], device=cpu, (nullopt))).Collectives differ in the "
                       "following aspects: \tTensor Tensor shapes: 4vs 9")


def gpu_pool_memory():
    raise MemoryError("std::bad_alloc: out_of_memory: CUDA error at: cuda_memory_resource.hpp:62: "
                      "cudaErrorMemoryAllocation out of memory")
