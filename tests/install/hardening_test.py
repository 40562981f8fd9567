"""Programs and the library of a Release build are hardened, as the built files say.

    hardening_test.py READELF FILE...
"""

import re
import subprocess
import sys
import unittest

READELF, FILES = sys.argv[1], sys.argv[2:]


def shown(file, *what):
    return subprocess.run([READELF, "--wide", *what, file], check=True, text=True,
                          capture_output=True).stdout


def code_of(file, name):
    """The first bytes of a function."""
    symbol = re.search(rf"\d+: ([0-9a-f]+) .* FUNC .* {name}$", shown(file, "--symbols"), re.M)
    start = int(symbol[1], 16)
    for section in re.finditer(r"\] (\.\S+) +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)",
                               shown(file, "--sections")):
        address, offset, size = (int(one, 16) for one in section.groups()[1:])
        if address <= start < address + size:
            with open(file, "rb") as opened:
                opened.seek(offset + start - address)
                return opened.read(4)
    raise AssertionError(f"{name} is in no section of {file}")


class Hardening(unittest.TestCase):
    def test_addresses_are_random_and_tables_of_them_cannot_be_written(self):
        for file in FILES:
            with self.subTest(file):
                self.assertIn("DYN", shown(file, "--file-header"))
                headers = shown(file, "--program-headers")
                self.assertIn("GNU_RELRO", headers)
                self.assertRegex(headers, r"GNU_STACK .* RW +0x")
                self.assertRegex(shown(file, "--dynamic"), r"FLAGS.*NOW")

    def test_stacks_and_buffers_are_checked(self):
        for file in FILES:
            with self.subTest(file):
                needed = shown(file, "--dyn-syms")
                self.assertIn("__stack_chk_fail", needed)
                if not file.endswith(".so"):
                    self.assertRegex(needed, r"UND __\w+_chk")

    def test_indirect_calls_end_at_functions_alone(self):
        for file in FILES:
            if "X86-64" not in shown(file, "--file-header") or file.endswith(".so"):
                continue
            with self.subTest(file):
                self.assertEqual(code_of(file, "main"), b"\xf3\x0f\x1e\xfa")  # endbr64


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
