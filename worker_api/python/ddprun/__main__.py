"""`python -m ddprun`: the program ddprun, with this interpreter for workers that are Python."""

import os
import sys

from ddprun._where import program


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
