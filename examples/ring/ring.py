"""Message passing in Python: a token goes around the ranks, then all ranks sum a vector.

    ddprun --standalone --nproc-per-node 4 examples/ring/ring.py
"""

import torch
from torch import distributed as dist

dist.init_process_group("gloo")  # env://: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
rank, world = dist.get_rank(), dist.get_world_size()

token = torch.zeros(1, dtype=torch.int64)
if rank > 0:
    dist.recv(token, src=rank - 1)
token += rank
if world > 1:
    dist.send(token, dst=(rank + 1) % world)
if rank == 0 and world > 1:
    dist.recv(token, src=world - 1)
if rank == 0:
    print(f"token: {token.item()}", flush=True)

vector = torch.tensor([rank * 10.0 + i for i in range(4)])
dist.all_reduce(vector)  # the sum, on every rank
print(f"rank {rank} of {world}: sum {' '.join(f'{value:g}' for value in vector)}", flush=True)
dist.destroy_process_group()
