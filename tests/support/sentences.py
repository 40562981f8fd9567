"""The sentences of sentences.hpp for tests in Python: `from sentences import kPortInUse`."""

import pathlib
import re

HEADER = pathlib.Path(__file__).with_suffix(".hpp").read_text()
globals().update(re.findall(r'std::string (k\w+) =\s+"(.*)";', HEADER))
