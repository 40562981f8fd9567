"""The manual pages render without a warning and have every option: manual_test.py PAGE PROGRAM...

Each page is followed by its program, whose --help lists the options.
"""

import re
import shutil
import subprocess
import sys

LIMIT = 60


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, (words, done)
    return done.stdout, done.stderr


def rendered(page):
    """The text as a terminal shows it, without escapes."""
    if shutil.which("man"):
        return run(["env", "MANWIDTH=80", "man", "--warnings=w", "-l", page])
    if shutil.which("groff"):
        return run(["groff", "-man", "-Tascii", "-P-c", "-ww", page])
    return run(["mandoc", "-T", "ascii", "-W", "warning", page])


def options_of(program):
    text, _ = run([program, "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*[a-z]", text))


def check(page, program):
    shown, warnings = rendered(page)
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", shown)
    assert not warnings, (page, warnings)
    options = options_of(program)
    assert len(options) > 10, options
    missing = [option for option in options if option not in shown]
    assert not missing, (page, missing)
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
        assert f"\n{section}\n" in shown, (page, section, shown[:500])
    print(page, len(options), "options")


if not any(shutil.which(name) for name in ("man", "groff", "mandoc")):
    print("no man, groff or mandoc")
    sys.exit(77)
for place in range(1, len(sys.argv), 2):
    check(sys.argv[place], sys.argv[place + 1])
