"""Complete runs of the trainer: repeatable, exported, evaluated exactly, refused if invalid.

run_test.py CASE, one of the functions below.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import harness


def alone(*command, **environment):
    """The program without a launcher."""
    return subprocess.run(
        [str(word) for word in command],
        env=dict(os.environ, **environment),
        capture_output=True,
        text=True,
        timeout=harness.LIMIT_S,
    )


def same_seed_same_weights():
    hashes = []
    for seed in (5, 5, 6):
        command = harness.generated(harness.folder(), "--epochs", 2, "--seed", seed)
        hashes.append(harness.weights_of(harness.run_ranks(2, command)))
    print(hashes)
    assert hashes[0] == hashes[1] != hashes[2]


def test_set_is_counted_exactly():
    """101 test images on 1, 2 and 3 ranks: without padding all compute the same accuracy."""
    folder = harness.folder()
    harness.run_ranks(2, harness.generated(folder, "--epochs", 1))
    outputs = [
        harness.run_ranks(world, harness.generated(folder, "--epochs", 1, "--amp", "off"))
        for world in (1, 2, 3)
    ]
    results = {re.search(r"^final: .*$", output, re.MULTILINE).group(0) for output in outputs}
    print(results)
    assert len(results) == 1
    percent = harness.accuracy_of(outputs[0])
    assert abs(percent * 101 / 100 - round(percent * 101 / 100)) < 0.01  # a multiple of 1/101


def works_without_a_launcher():
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        os.environ.pop(name, None)
    folder = harness.folder()
    done = alone(*harness.generated(folder, "--epochs", 1), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert "1 rank on cpu" in done.stdout and "synthetic" in done.stdout
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    assert rows[-1]["phase"] == "test" and rows[-1]["step"] == 10


def ranks_without_an_agent_meet_in_rank_zero():
    """As with mpirun or a shell loop: the launcher serves no store, so rank 0 does."""
    port = harness.free_port()
    ranks = harness.Ranks(2, {"TORCHELASTIC_USE_AGENT_STORE": "False", "MASTER_PORT": str(port)})
    output = ranks.start(harness.generated(harness.folder(), "--epochs", 1)).finish()
    assert "2 ranks on cpu (gloo" in output


def full_width_has_the_known_parameters():
    flags = ["--steps", 1, "--batch-size", 4, "--limit-test", 2]
    command = harness.generated(harness.folder(), *flags, width=64)
    done = alone(*command, OMP_NUM_THREADS="2")
    assert "11,173,962 parameters" in done.stdout, done.stdout + done.stderr


def export_opens_with_plain_torch_load():
    import torch

    from resnet18 import ResNet18

    folder = harness.folder()
    exported = folder / "deep" / "model.pt"
    harness.run_ranks(2, harness.generated(folder, "--epochs", 2, "--export", exported))
    state = torch.load(exported)
    model = ResNet18(8)
    model.load_state_dict(state, strict=True)
    names = [name for name, _ in model.named_parameters()]
    assert names == [name for name in state if name in names]
    best = harness.read_safetensors(folder / "resnet18.best.safetensors")
    assert all(torch.equal(best[name], tensor) for name, tensor in state.items())
    momentum = {name for name in best if name.startswith("momentum.")}
    assert momentum == {f"momentum.{name}" for name in names}


def another_torch_is_refused():
    pythons = [os.environ["PYTHON_TORCH"], os.environ["PYTHON_TORCH_NEXT"]]
    pattern = "lib/python3*/site-packages/torch/lib"
    folders = [next(pathlib.Path(p).parent.parent.glob(pattern), None) for p in pythons]
    if None in folders or pythons[0] == pythons[1]:
        harness.skip("no second torch (scripts/setup --torch-next makes .venv-2.15)")
    library = folders[1]
    command = harness.generated(harness.folder(), "--steps", 1)
    done = alone(*command, LD_LIBRARY_PATH=str(library))
    print(done.stderr)
    assert done.returncode == 2, done.returncode
    assert len(done.stderr.splitlines()) == 1
    assert "built for torch" in done.stderr and str(library) in done.stderr


def cuda_that_is_not_there_is_refused():
    command = harness.generated(harness.folder(), "--steps", 1, "--device", "cuda")
    done = alone(*command, CUDA_VISIBLE_DEVICES="")
    print(done.stderr)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "no CUDA device" in done.stderr


def loss_that_is_not_a_number_ends_every_rank():
    flags = ["--lr", 1000000, "--schedule", "constant", "--epochs", 5, "--log-every", 1]
    command = harness.generated(harness.folder(), *flags)
    ranks = harness.Ranks(2).start(command)
    results = [process.communicate(timeout=harness.LIMIT_S) for process in ranks.processes]
    sentences = [error.splitlines()[-1].split(": ", 2)[2] for _, error in results]
    print(sentences)
    assert [process.returncode for process in ranks.processes] == [1, 1]
    assert sentences[0] == sentences[1] and "not finite" in sentences[0]
    assert "--lr" in sentences[0]


def odd_batches_on_several_threads_are_survived():
    """Torch's convolution corrupts the heap there: few channels, threads with unequal shares."""
    flags = ["--batch-size", 13, "--limit-train", 78, "--epochs", 2, "--threads", 2, "--amp"]
    for amp in ("off", "on"):
        command = harness.generated(harness.folder(), *flags, amp)
        done = alone(*command, OMP_WAIT_POLICY="passive")
        assert done.returncode == 0, (amp, done.returncode, done.stderr)
        assert "2 threads each" in done.stdout and "final: step 12," in done.stdout


def closed_stdout_costs_no_metrics():
    """The first opened file must not get its descriptor."""
    folder = harness.folder()
    command = [str(word) for word in harness.generated(folder, "--epochs", 1, "--log-every", 0)]
    done = alone("sh", "-c", 'exec "$@" >&-', "sh", *command, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    lines = (folder / "metrics.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["phase", "train", "test"], lines


def unknown_master_addr_is_one_sentence():
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "no-such-host.invalid"}
    command = harness.generated(harness.folder(), "--steps", 1)
    done = alone(*command, MASTER_PORT="29500", **variables)
    print(done.stderr)
    assert done.returncode == 1, done.returncode
    assert len(done.stderr.splitlines()) == 1  # and no torch that asks for two minutes
    assert "rank 0: MASTER_ADDR=no-such-host.invalid does not resolve" in done.stderr


def lost_peer_is_one_sentence():
    ranks = harness.Ranks(2).start(harness.generated(harness.folder(), "--epochs", 500))
    try:
        for line in ranks.processes[0].stdout:
            if line.startswith("train step 20/"):
                break
        ranks.processes[1].kill()
        _, error = ranks.processes[0].communicate(timeout=60)
    finally:
        for process in ranks.processes:
            process.kill()
            process.wait()
    print(error)
    assert ranks.processes[0].returncode == 1, ranks.processes[0].returncode
    assert error.count("rank 0: lost the connection to another rank at step ") == 1, error


if __name__ == "__main__":
    globals()[sys.argv[1]]()
