"""Programs with PyTorch, in the form of programs.py."""

PRELOAD = "torch,numpy.random"
TRAINING = "torch,torch.distributed,torch._dynamo,torch.optim"  # an optimizer imports the rest

DDP = """import os, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler
class Data(Dataset):
    def __len__(self): return 32
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(16, generator=g), torch.tensor(i % 4)
def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    data = Data()
    loader = DataLoader(data, 8, sampler=DistributedSampler(data), num_workers=2,
                        multiprocessing_context="METHOD")
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9f}")
    print(f"{sum(p.double().sum().item() for p in model.parameters()):.12f}")
    dist.destroy_process_group()
if __name__ == "__main__": main()
"""
FSDP = """import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
for layer in model[::2]: fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for step in range(3):
    torch.manual_seed(step * 10 + dist.get_rank())
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.7f}", type(model[0].weight).__name__)
dist.destroy_process_group()
"""
SPAWN = """import os, tempfile, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(i, n, f):
    dist.init_process_group("gloo", init_method="file://" + f, rank=i, world_size=n)
    t = torch.ones(3) * (i + 1)
    dist.all_reduce(t)
    if i == 0: print(t.tolist(), __name__)
    dist.destroy_process_group()
def bad(i): raise ValueError("inner fails")
if __name__ == "__main__":
    mp.spawn(work, (2, tempfile.mktemp()), nprocs=2)
    try: mp.spawn(bad, nprocs=1)
    except mp.ProcessRaisedException as e: print("ValueError: inner fails" in str(e))
"""
THREADS = """import numpy, os, torch
a = torch.ones(500, 500, requires_grad=True)
(a @ a).sum().backward()
print(a.grad.sum().item(), numpy.ones((300, 300)).dot(numpy.ones((300, 300))).sum())
print(torch.get_num_threads(), torch.get_num_interop_threads())
torch.set_num_threads(2)
print((torch.ones(900, 900) @ torch.ones(900, 900)).sum().item())
"""
PICKLE = """import io, pickle, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2)
torch.manual_seed(3)
b = io.BytesIO()
torch.save(Net(), b)
b.seek(0)
print(torch.load(b, weights_only=False).l.weight.tolist(), pickle.loads(pickle.dumps(Net)))
"""
STATE = """import numpy.random, torch
print(torch.is_grad_enabled())
print(torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled())
print(torch.cuda.is_available(), torch.cuda.is_initialized(), torch.cuda._is_in_bad_fork())
print(torch.backends.mkldnn.is_available(), torch.__config__.parallel_info().split("Host")[0])
"""


def program(text, **more):
    return ({"program.py": text}, ["program.py"], more)


PROGRAMS = {
    "DDP with forked data loaders": program(DDP.replace("METHOD", "fork"), preload=TRAINING),
    "DDP with spawned data loaders": program(DDP.replace("METHOD", "spawn"), preload=TRAINING),
    "FSDP": program(FSDP, preload=TRAINING),
    "spawned processes": program(SPAWN, ranks=1, preload="torch"),
    "state, one thread, pickled classes of the program":
        program(STATE + THREADS + PICKLE, ranks=1),
    "two threads": program(THREADS, ranks=1, environment={"OMP_NUM_THREADS": "2"}),
    "crash after the import": program("import torch, numpy.random, ctypes\nctypes.string_at(0)",
                                      code=139),
}

# Each run imports torch. What is refused starts cold, which takes longest; from a template all
# programs start, and on demand, a process later than ahead, these.
REFUSED = ("two threads",)
ON_DEMAND = ("DDP with forked data loaders", "state, one thread, pickled classes of the program",
             "crash after the import")

DRAWS = """import numpy, random, torch
print(torch.initial_seed(), torch.randn(4).tolist(), torch.Generator().initial_seed() != 0)
print(numpy.random.rand(4).tolist(), numpy.random.default_rng().random(4).tolist())
print(random.random(), torch.rand(4).tolist(), torch.randperm(100).tolist())
"""
DRAWN = 3
