"""Two workers rendezvous at their store and add up."""

import os
import sys

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
value = torch.tensor([float(os.environ["RANK"]) + 1])
torch.distributed.all_reduce(value)
sys.stdout.write(f"sum {value.item()}\n")  # one write under -u, which print() is not
torch.distributed.destroy_process_group()
