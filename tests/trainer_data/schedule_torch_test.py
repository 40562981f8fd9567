"""The learning rates of every step equal those of torch.optim.lr_scheduler."""

import subprocess
import sys

try:
    import torch
    from torch.optim import lr_scheduler
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BASE = 0.2


def rates_of(make_scheduler, total):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE)
    scheduler = make_scheduler(optimizer)
    rates = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def warmup_linear(optimizer, total):
    warmup = int(0.2 * total)
    up = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1)
    down = lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total - warmup)
    return lr_scheduler.SequentialLR(optimizer, [up, down], [warmup])


SCHEDULERS = {
    "constant": lambda o, total: lr_scheduler.ConstantLR(o, 1.0, total),
    "multi-step": lambda o, total: lr_scheduler.MultiStepLR(o, [30, 80], 0.1),
    "cosine": lambda o, total: lr_scheduler.CosineAnnealingLR(o, total, 0.01),
    "one-cycle": lambda o, total: lr_scheduler.OneCycleLR(
        o, BASE, total_steps=total, pct_start=0.3, cycle_momentum=False),
    "warmup-linear": warmup_linear,
}

for name, make in SCHEDULERS.items():
    for total in (100, 117, 390):
        # OneCycleLR refuses the step after its last one.
        count = total - 1 if name == "one-cycle" else total
        expected = rates_of(lambda o, m=make, t=total: m(o, t), count)
        shown = subprocess.run([sys.argv[1], "schedule", name, str(total)], capture_output=True,
                               text=True, timeout=60, check=True).stdout.split()
        assert len(shown) == total, (name, total, len(shown))
        for step, (ours, torchs) in enumerate(zip(map(float, shown), expected)):
            close = abs(ours - torchs) <= 1e-9 * BASE + 1e-9 * torchs
            assert close, (name, total, step, ours, torchs)
        print("ok:", name, total)
