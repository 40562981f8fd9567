# What a template imports, and what that must not do to it. Behind modules_of.py and in front of
# sitecustomize.py, in one file.
import os
import sys


# As in agent/warm/core/stock.cpp.
LATE = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "WORLD_SIZE",
        "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
LATE_PREFIXES = ("TORCHELASTIC_", "DDPRUN_")
SAME = ("DDPRUN_WORKER_LIBRARY",)
HARMLESS = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
# Modules that every process has for itself.
NEVER_LEARNED = ("__main__", "__mp_main__", "sitecustomize", "usercustomize")
LEARN_TRIES = 5
DRAWS_MAX = 32  # generations of random's state


class Refused(Exception):
    """Why no worker may be forked from this process, in words."""


class Gone(Exception):
    """The worker that was to be learned from has ended."""


class Spoilt(Exception):
    """A learned module does what keeps this process from being forked: its name, and what."""


def is_late(name):
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    return isinstance(name, str) and name not in SAME and (
        name in LATE or name.startswith(LATE_PREFIXES))


def descriptors():
    """By target, because the listing's own descriptor must not hide another of the same number."""
    targets = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            targets[number] = os.readlink("/proc/self/fd/" + number)
        except OSError:
            pass  # that of the listing
    return targets


class Spy:
    """Notes who reads, while modules are imported, what differs from rank to rank."""

    def __init__(self):
        self.read = None
        self.mapping = type(os.environ)
        self.get_item = self.mapping.__getitem__

    def __enter__(self):
        def get_item(mapping, name):
            if is_late(name):
                self.note("the variable " + os.fsdecode(name))
            return self.get_item(mapping, name)

        self.mapping.__getitem__ = get_item

    def __exit__(self, *_):
        self.mapping.__getitem__ = self.get_item

    def note(self, what):
        frame = sys._getframe(2)
        while frame and frame.f_globals.get("__name__") in ("os", "collections.abc"):
            frame = frame.f_back
        importing = frame
        while importing and importing.f_code.co_name != "<module>":
            importing = importing.f_back
        if importing is None or importing.f_globals is globals():
            return
        if self.read is None:
            self.read = (frame.f_globals.get("__name__", "?"), what)


class Generators:
    """Notes the state of the generators of random numbers as soon as they are imported: each rank
    gets new ones, which would undo what a module of the program has seeded."""

    MODULES = ("random", "numpy.random", "torch")

    def __init__(self):
        self.fresh = {name: self.state_of(name, sys.modules[name])
                      for name in self.MODULES if name in sys.modules}

    @staticmethod
    def state_of(name, module):
        if name == "random":
            return module.getstate()
        if name == "torch":
            return module.initial_seed()  # drawing leaves it
        kind, words, *rest = module.get_state()
        return kind, words.tobytes(), *rest

    def find_spec(self, name, path=None, target=None):
        """On sys.meta_path, in front."""
        if name not in self.MODULES:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None and hasattr(spec.loader, "exec_module"):
                execute = spec.loader.exec_module

                def exec_module(module):
                    del spec.loader.exec_module
                    execute(module)
                    self.fresh[name] = self.state_of(name, module)

                spec.loader.exec_module = exec_module
            if spec is not None:
                return spec
        return None

    def seeded(self):
        """The one that was, or None."""
        for name, fresh in self.fresh.items():
            module = sys.modules.get(name)
            now = fresh if module is None else self.state_of(name, module)
            if now == fresh:
                continue
            if name != "random" or not self.was_drawn(module, fresh):
                return name
            self.fresh[name] = now
        return None

    @staticmethod
    def was_drawn(random, fresh):
        """Whether drawing alone leads from that state of random to what it is now."""
        replay = random.Random()
        replay.setstate(fresh)
        now = random.getstate()[1][:-1]
        for _ in range(DRAWS_MAX):
            if replay.getstate()[1][:-1] == now:
                return True
            for _ in now:
                replay.getrandbits(32)
        return False


class Importer:
    """Imports modules and watches what they do to this process."""

    def __init__(self, started_with):
        for name in [name for name in os.environ if is_late(name)]:
            del os.environ[name]
        self.started_with = started_with
        self.open_before = descriptors()
        self.generators = Generators()
        self.spy = Spy()
        self.path = None

    def __enter__(self):
        sys.meta_path.insert(0, self.generators)
        self.spy.__enter__()
        return self

    def __exit__(self, *_):
        self.spy.__exit__()
        sys.meta_path.remove(self.generators)

    def begin(self):
        """From here on not even a sitecustomize.py changes sys.path: then the program's folder
        comes in front."""
        self.path = list(sys.path)

    def given(self, names):
        for name in names:
            try:
                __import__(name)
            except BaseException as error:
                self.check_reads()
                raise Refused("cannot import %s: %s: %s" % (name, type(error).__name__, error))
        self.check()

    def learned(self, names):
        """What cannot be imported is left out; what has effects is named, so that another template
        can leave it out."""
        self.check()
        for name in names:
            if name in sys.modules:
                continue
            try:
                self.given([name])
            except Refused as why:
                if not isinstance(why.__context__, ImportError):
                    raise Spoilt(name, str(why))

    def check_reads(self):
        if self.spy.read is not None:
            raise Refused("%s reads %s while it is imported" % self.spy.read)

    def check(self):
        self.check_reads()
        seeded = self.generators.seeded()
        if seeded is not None:
            raise Refused("an imported module seeds the generator of " + seeded)
        if self.path is not None and sys.path[: len(self.path)] != self.path:
            raise Refused("an imported module changes sys.path in front of its end")
        check_process(self.open_before)

    def change(self):
        """What became of the environment, also before the hook: by the interpreter (LC_CTYPE) and
        by lines of .pth files."""
        before, after = self.started_with, dict(os.environ)
        return {name: after.get(name) for name in before.keys() | after.keys()
                if before.get(name) != after.get(name)}


def check_process(before):
    """That a fork of this process is as good as a new one."""
    if len(os.listdir("/proc/self/task")) > 1:
        trial = os.fork()  # ends the threads of libraries that are ready for it, as OpenBLAS is
        if trial == 0:
            os._exit(0)
        os.waitpid(trial, 0)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise Refused("an imported module started %d thread%s" % (threads - 1, "s" * (threads > 2)))
    for number, target in descriptors().items():
        if before.get(number) != target and target not in HARMLESS:
            raise Refused("an imported module opened " + target)
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        raise Refused("an imported module started a process")
    except ChildProcessError:
        pass
    import _signal
    if _signal.getitimer(_signal.ITIMER_REAL)[0] > 0:
        raise Refused("an imported module started a timer")
    with open("/proc/self/maps") as maps:
        for line in maps:
            _, rights, _, _, _, *path = line.split(None, 5)
            if path and path[0].startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri")):
                raise Refused("an imported module uses a GPU")
            if rights.endswith("s") and "w" in rights:
                raise Refused("an imported module shares memory: " + "".join(path).strip())
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_initialized():
        raise Refused("an imported module initialized CUDA")


def learn(memory, maps, cuts, folder):
    """The names of what the process with this memory has imported, as far as a new one finds the
    same, and up to the first of `cuts`."""
    import time
    for left in reversed(range(LEARN_TRIES)):
        try:
            found = modules_of(memory, maps)
            break
        except Exception:
            if is_gone(maps):
                raise Gone("the worker ended while its modules were read")
            if left == 0:
                raise Refused("the modules that a worker has imported cannot be read from its "
                              "memory; name them: --preload")
            time.sleep(0.02)  # it imports at this moment
    os.close(memory)
    os.close(maps)
    files = dict(found)
    names = []
    for name, _ in found:
        if name in cuts:
            break
        if name not in NEVER_LEARNED and all(part.isidentifier() for part in name.split(".")):
            names.append(name)
    tops = {name.partition(".")[0] for name in names}
    wanted = {top for top in tops if is_same(top, files.get(top), folder)}
    return [name for name in names if name.partition(".")[0] in wanted]


def is_gone(maps):
    try:
        return not os.pread(maps, 1, 0)
    except OSError:
        return True


def is_same(name, file, folder):
    """Whether this process would import a module from that file, which is not of the program."""
    if name in sys.modules:
        return True
    import importlib.util
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        return False
    if spec is None:
        return False
    if file is None:
        return spec.origin in (None, "built-in", "frozen")
    if spec.origin != file:
        return False
    installed = any(part in ("site-packages", "dist-packages") for part in file.split("/"))
    own = [place.rstrip("/") + "/" for place in (folder, os.getcwd()) if place is not None]
    return installed or not file.startswith(tuple(own))
