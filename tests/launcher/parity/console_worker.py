"""A worker that says what its streams are, and writes to both in turn."""

import os
import sys

for stream in (1, 2):
    os.write(stream, b"<<<")
for stream in (0, 1, 2):
    size = os.get_terminal_size(stream) if os.isatty(stream) else None
    print(stream, os.isatty(stream), size)
for number in range(200):
    print("out", number)
    print("err", number, file=sys.stderr)
for stream in (1, 2):
    os.write(stream, b"\x1b[31mred\x1b[0m\r 50 %\r100 %\ttab\xff\x00\x01\r\n\n")
    os.write(stream, b">>>")
