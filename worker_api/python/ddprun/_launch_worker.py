"""A rank of launch()."""

import os
import pathlib
import pickle
import sys
import traceback


def _write(path, value):
    path.with_suffix(".new").write_bytes(value)
    os.replace(path.with_suffix(".new"), path)


def _work(folder):
    rank = os.environ["RANK"]
    sys.path[:], main, call = pickle.loads((folder / "call").read_bytes())
    if main is not None:
        from multiprocessing import spawn
        spawn.prepare(main)
    failed = folder / f"failed{rank}"
    failed.unlink(missing_ok=True)  # of a round before
    try:
        fn, args, kwargs = pickle.loads(call)
        result = fn(*args, **kwargs)
        _write(folder / f"done{rank}", pickle.dumps(result))
    except Exception as error:
        text = traceback.format_exc()
        try:
            _write(failed, _checked((error, text)))
        except Exception:
            _write(failed, pickle.dumps((None, text)))
        raise


def _checked(value):
    """An exception that pickles may not be one that can be read again."""
    data = pickle.dumps(value)
    pickle.loads(data)
    return data


if __name__ == "__main__":
    _work(pathlib.Path(sys.argv[1]))
