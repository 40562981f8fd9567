"""A DDP training over Gloo that restarts where it is killed: a line per phase in the file $PHASES,
`seconds restarts rank pid phase`, until the file $PHASES.end is there."""

import os
import time

PHASES = os.environ["PHASES"]
RANK, RESTARTS = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]


def tell(phase):
    with open(PHASES, "a") as file:
        file.write(f"{time.monotonic()} {RESTARTS} {RANK} {os.getpid()} {phase}\n")


tell("first")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

tell("imported")
dist.init_process_group("gloo")
tell("group")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
tell("model")
step = 0
end = torch.zeros(1)
while end.item() == 0:
    loss = model(torch.ones(8, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 3:
        tell(f"step {step} loss {loss.item():.6f}")
    step += 1
    end = torch.ones(1) if os.path.exists(PHASES + ".end") else torch.zeros(1)
    dist.all_reduce(end)
dist.destroy_process_group()
