"""Where the program ddprun is."""

import os
import pathlib
import shutil


def program():
    """PREFIX/bin/ddprun, where this is PREFIX/lib/pythonX/site-packages/ddprun or like that; beside
    a module of `pip install --target`; or what PATH has."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in list(package.parents)[3:4] + [package.parent]:
        path = folder / "bin" / "ddprun"
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return shutil.which("ddprun")
