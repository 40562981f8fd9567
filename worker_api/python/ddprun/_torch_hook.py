"""With DDPRUN_TORCH=1 (ddprun.pth): torch.distributed.run of this interpreter is ddprun, for
programs that call it from Python, such as `accelerate launch`, `tune run` and `fabric run`, and for
`python -m torch.distributed.run`. Nothing of torch is imported before the program does so."""

import importlib.abc
import importlib.machinery
import sys

_MODULE = "torch.distributed.run"


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        from ddprun import _torch_run
        _torch_run.take_place(module)

    def get_code(self, name):  # of `python -m`, which runs a module without importing it
        text = "from ddprun._torch_run import command_line\ncommand_line()\n"
        return compile(text, f"<ddprun in the place of {name}>", "exec")

    def __getattr__(self, name):  # what tools ask of the source
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
