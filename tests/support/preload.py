"""LD_PRELOAD with a library of any path."""

import atexit
import os
import pathlib
import shutil
import tempfile


def preloadable(library: str) -> str:
    """A path of `library` that ld.so takes for one: a space or a colon separates two."""
    if not set(library) & {" ", ":"}:
        return library
    folder = tempfile.mkdtemp(prefix="ddprun_preload_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = pathlib.Path(folder) / pathlib.Path(library).name
    os.symlink(os.path.abspath(library), link)
    return str(link)
