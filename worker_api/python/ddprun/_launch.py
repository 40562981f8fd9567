"""launch(): a function on several ranks."""

import pathlib
import pickle
import shutil
import sys
import tempfile

from ddprun import _program


class RankFailed(RuntimeError):
    """A rank ended without an exception: `rank`, and `exit_code`, negative for a signal."""

    def __init__(self, text, rank, exit_code):
        super().__init__(text)
        self.rank = rank
        self.exit_code = exit_code


class _Elsewhere(Exception):
    """The traceback in the process of a rank, as the cause of its exception here."""

    def __str__(self):
        return self.args[0]


def launch(fn, nproc=None, args=(), kwargs=None, **options):
    """Calls fn(*args, **kwargs) in `nproc` ranks, and returns what they return, by rank: those of
    this node. The first exception of a rank is raised here; a rank that ends without one is a
    RankFailed. `options` are ddprun's, as max_restarts=3; without one about several nodes the run
    is of this node alone. With cloudpickle any function will do, such as one of a notebook;
    else one that pickle can name, and a script needs `if __name__ == "__main__":`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_launch_"))
    try:
        with open(folder / "call", "wb") as file:
            file.write(_pickled((fn, tuple(args), dict(kwargs or {}))))
        words = _words(nproc, options) + ["--module", "ddprun._launch_worker", str(folder)]
        return _program.run(words, options.get("log_dir"), lambda ended: _results(ended, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _words(nproc, options):
    words = [] if nproc is None else [f"--nproc-per-node={nproc}"]
    if not {"nnodes", "rdzv_endpoint", "rdzv_backend", "master_addr", "hosts"} & set(options):
        words.append("--standalone")
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    return words


def _pickled(call):
    try:
        import cloudpickle
        return pickle.dumps((list(sys.path), None, cloudpickle.dumps(call)))
    except ImportError:
        pass
    from multiprocessing import spawn
    main = spawn.get_preparation_data("ddprun")
    main.pop("authkey", None)  # of this process; it refuses to be pickled
    known = {"init_main_from_path", "init_main_from_name"} & set(main)
    if not known and call[0].__module__ == "__main__":
        raise TypeError(f"{call[0].__name__} is of no file: install cloudpickle")
    return pickle.dumps((list(sys.path), main, pickle.dumps(call)))


def _results(ended, folder):
    if ended.code == 0:
        files = sorted((int(file.name[4:]), file) for file in folder.glob("done*"))
        return {rank: pickle.loads(file.read_bytes()) for rank, file in files}
    first = ended.failure
    if first is None:
        if ended.signal == 2:
            raise KeyboardInterrupt
        raise RuntimeError(ended.text or f"ddprun ended with code {ended.code}")
    code = -first["signal"] if first["signal"] else first["exit_code"]
    try:
        error, text = pickle.loads((folder / f"failed{first['rank']}").read_bytes())
    except (OSError, pickle.UnpicklingError):
        raise RankFailed(ended.text, first["rank"], code) from None
    if error is None:
        raise RankFailed(text, first["rank"], code)
    raise error from _Elsewhere(f"\n\"\"\"\nrank {first['rank']}:\n{text}\"\"\"")
