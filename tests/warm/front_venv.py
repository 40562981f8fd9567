"""Makes FOLDER/venv, whose Python finds a sitecustomize.py of FOLDER before any other.

    tests/warm/front_venv.py FOLDER
"""

import pathlib
import sys
import venv

folder = pathlib.Path(sys.argv[1])
venv.create(folder / "venv", symlinks=True, with_pip=False)
packages, = folder.glob("venv/lib/python*/site-packages")
(packages / "front.pth").write_text(f"import sys; sys.path.insert(0, {str(folder)!r})\n")
(folder / "sitecustomize.py").write_text("")
