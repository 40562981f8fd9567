"""Reading what a program writes, for tests in Python."""

import os
import select


def read_until(stream, words, hung):
    """The bytes up to `words` and perhaps more; fails after `hung` seconds of silence."""
    text = b""
    while words not in text:
        readable, _, _ = select.select([stream], [], [], hung)
        assert readable, f"{words} does not come behind {text}"
        text += os.read(stream, 65536)
    return text
