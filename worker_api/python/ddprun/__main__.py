"""`python -m ddprun`: the program ddprun, with this interpreter for workers that are Python."""

import os
import pathlib
import shutil
import sys


def program():
    """PREFIX/bin/ddprun, where this is PREFIX/lib/pythonX/site-packages/ddprun or like that; beside
    a module of `pip install --target`; or what PATH has."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in list(package.parents)[3:4] + [package.parent]:
        path = folder / "bin" / "ddprun"
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return shutil.which("ddprun")


def main():
    path = program()
    if path is None:
        sys.exit("ddprun: error [EXEC] the program ddprun is not installed with this module, and "
                 "not on PATH; install it again")
    os.environ.setdefault("PYTHON_EXEC", sys.executable)
    called = os.path.basename(sys.argv[0])  # ddprun-launch of a wheel, which holds no links
    os.execv(path, ["ddprun" if called == "__main__.py" else called] + sys.argv[1:])


if __name__ == "__main__":
    main()
