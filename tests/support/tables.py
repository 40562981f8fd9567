"""Tables of the documents, for tests that compare them with what a program prints."""

import pathlib
import re

DOCUMENTS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def members(document, heading, column="member"):
    """Of the first table below a heading the names in its first column, with the row of each."""
    below = (DOCUMENTS / document).read_text().split(heading, 1)[1]
    table = below[below.index(f"| {column} |"):].split("\n\n")[0].splitlines()[2:]
    return {name: row for row in table for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
