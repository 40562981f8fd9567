"""TensorBoard reads the event files; after a resume every step appears once, as last written."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.backend.event_processing import event_file_loader
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([sys.argv[1], "metrics", name], timeout=60, check=True)

    files = sorted(folder.glob("events.out.tfevents.*"))
    assert len(files) == 2, files
    assert files[0].name == "events.out.tfevents.1700000000.999990.host", files
    for file in files:  # every record, with its checksums
        events = list(event_file_loader.LegacyEventFileLoader(str(file)).Load())
        assert events[0].file_version == "brain.Event:2", events[0]
        assert len(events) in (2 + 22, 2 + 22), len(events)

    accumulator = event_accumulator.EventAccumulator(name)
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    assert sorted(tags) == sorted(
        ["train/loss", "train/top1", "train/top3", "train/top5", "train/lr",
         "train/images_per_second", "test/loss", "test/top1", "test/top3", "test/top5"]), tags
    loss = accumulator.Scalars("train/loss")
    assert [event.step for event in loss] == list(range(1, 31)), [e.step for e in loss]
    for event in loss:  # steps 11 to 20 are those of the resumed session
        expected = event.step + (0.2 if event.step <= 10 else 0.3)
        assert abs(event.value - expected) < 1e-5, event
    assert [event.step for event in accumulator.Scalars("test/top1")] == [10, 20, 30]
    assert accumulator.Scalars("train/lr")[0].wall_time == 1700000000.99999

    with open(folder / "metrics.csv", encoding="ascii") as stream:
        rows = list(csv.DictReader(stream))
    text = (folder / "metrics.jsonl").read_text("ascii")
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == len(lines) == 33, (len(rows), len(lines))
    for row, line in zip(rows, lines):
        assert row.keys() == line.keys()
        assert row["phase"] == line["phase"] and float(row["loss"]) == line["loss"], (row, line)
    train = [(line["step"], line["loss"]) for line in lines if line["phase"] == "train"]
    assert [step for step, _ in train] == list(range(1, 31)), train
    assert train[9][1] == 10.2 and train[10][1] == 11.3, train
