"""The safetensors package reads our files, and we read the files it writes."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import safetensors
    import safetensors.torch
    import torch
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

TYPES = {"F64": torch.float64, "I64": torch.int64, "U64": torch.uint64, "F32": torch.float32,
         "I32": torch.int32, "U32": torch.uint32, "F16": torch.float16, "BF16": torch.bfloat16,
         "I16": torch.int16, "U16": torch.uint16, "I8": torch.int8, "U8": torch.uint8,
         "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
probe = sys.argv[1]


def first_bytes(tensor):
    return bytes(tensor.reshape(-1).view(torch.uint8).tolist())


def lines_of(file):
    result = subprocess.run([probe, "read", str(file)], capture_output=True, text=True, timeout=60,
                            check=True)
    return result.stdout.splitlines()


with tempfile.TemporaryDirectory() as name:
    ours, theirs = pathlib.Path(name, "ours.safetensors"), pathlib.Path(name, "theirs.safetensors")
    subprocess.run([probe, "write", str(ours)], timeout=60, check=True)
    loaded = safetensors.torch.load_file(ours)
    assert set(loaded) == set(TYPES) | {"scalar", "empty"}, set(loaded)
    for key, dtype in TYPES.items():
        assert loaded[key].dtype == dtype and loaded[key].shape == (3, 2), (key, loaded[key])
        data = first_bytes(loaded[key])
        assert data == b"\x01" + bytes(len(data) - 1), (key, data)
    assert loaded["scalar"].shape == () and loaded["scalar"].item() == 1
    assert loaded["empty"].shape == (0, 3)
    with safetensors.safe_open(ours, "pt") as file:
        assert file.metadata() == {"who": 'ddprun "ü"'}, file.metadata()

    # Conversely, we read the same tensors from a file written by the package.
    safetensors.torch.save_file(loaded, theirs, {"who": 'ddprun "ü"'})
    assert lines_of(theirs) == lines_of(ours), (lines_of(theirs), lines_of(ours))
    weights = {f"layer{i}.weight": torch.randn(17, i + 1) for i in range(50)}
    safetensors.torch.save_file(weights, theirs)
    assert len(lines_of(theirs)) == 50
    shape = next(line for line in lines_of(theirs) if line.startswith("layer7.weight "))
    assert shape.split()[1:3] == ["F32", "17,8,"], shape
