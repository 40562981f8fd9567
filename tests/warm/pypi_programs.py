"""Programs with accelerate, Lightning and transformers, in the form of programs.py. Needs them:

    python3 -m pip install accelerate lightning transformers
"""

NEEDS = ("accelerate", "lightning", "transformers")
PRELOAD = "torch,torch.distributed,torch._dynamo,torch.optim"
QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore",
         "TOKENIZERS_PARALLELISM": "false", "ACCELERATE_USE_CPU": "true"}

ACCELERATE = """import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
set_seed(1)
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randn(32, 1))
loader = torch.utils.data.DataLoader(data, 4, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print(f"{accelerator.process_index} {accelerator.gather(loss.detach().reshape(1)).tolist()}")
print(sum(p.double().sum().item() for p in model.parameters()), accelerator.num_processes)
accelerator.end_training()
"""
LIGHTNING = """import lightning as L, torch
class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        print(f"{self.global_step} {loss.item():.9f}")
        return loss
    def configure_optimizers(self): return torch.optim.AdamW(self.parameters(), 1e-2)
if __name__ == "__main__":
    L.seed_everything(1)
    data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randn(32, 1))
    model = Model()
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(model, torch.utils.data.DataLoader(data, 4))
    print(f"{sum(p.double().sum().item() for p in model.parameters()):.12f}", trainer.world_size)
"""
TRANSFORMERS = """import torch, transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Data(torch.utils.data.Dataset):
    def __len__(self): return 16
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"input_ids": torch.randint(0, 50, (6,), generator=g), "labels": i % 2}
class Told(transformers.TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs: print(state.global_step, logs["loss"], logs["grad_norm"])
if __name__ == "__main__":
    transformers.set_seed(1)
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16)
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments("out", use_cpu=True, num_train_epochs=1, logging_steps=1,
                                  per_device_train_batch_size=2, save_strategy="no",
                                  report_to=[], disable_tqdm=True)
    Trainer(model, arguments, train_dataset=Data(), callbacks=[Told()]).train()
    print(f"{sum(p.double().sum().item() for p in model.parameters()):.9f}")
    torch.distributed.destroy_process_group()
"""
COMPILE = """import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
compiled = torch.compile(model)
x = torch.randn(4, 8)
y = compiled(x)
y.sum().backward()
print(torch.allclose(y, model(x)), f"{model[0].weight.grad.sum().item():.6f}")
"""


def program(text, preload, **more):
    return ({"program.py": text}, ["program.py"],
            {"preload": preload, "environment": QUIET, **more})


PROGRAMS = {
    "accelerate": program(ACCELERATE, PRELOAD + ",accelerate"),
    "Lightning": program(LIGHTNING, PRELOAD),  # its torchmetrics reads LOCAL_RANK when imported
    "transformers": program(TRANSFORMERS, PRELOAD + ",transformers.trainer"),
    "compiled model": program(COMPILE, PRELOAD, ranks=1),
}
