"""Accelerate without `accelerate launch`.

    python3 -m pip install accelerate
    ddprun --standalone --nproc-per-node 2 examples/accelerate/classify.py
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(cpu=not torch.cuda.is_available())  # else it takes one rank for all
inputs = torch.randn(512, 16)
labels = inputs[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(5):
    for batch, wanted in loader:
        loss = nn.functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(f"epoch {epoch}: loss {loss.item():.4f} on {accelerator.num_processes} ranks")
accelerator.end_training()
