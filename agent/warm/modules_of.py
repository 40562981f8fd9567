# Which modules a process has imported, in the order of their ends, and their files: read from its
# memory, so that the process itself does not notice it. In front of imports.py. The layout is that
# of CPython 3.8 to 3.14 with the GIL, and modules_of() tries it on its own process first.
import os
import sys


class OtherMemory(Exception):
    """These bytes are not what this interpreter keeps there."""


class Memory:
    """Of a process that runs the interpreter that runs this. Takes the descriptors of its mem and
    maps."""

    HEADER = object.__basicsize__
    TEXT_AT = sys.getsizeof("") - 1
    ENTRIES_MAX = 1 << 16
    TEXT_MAX = 4096
    STRUCTURE_MAX = 1 << 19

    def __init__(self, memory, maps):
        import ctypes
        api = ctypes.pythonapi
        self.memory = memory
        with open("/proc/self/maps", "rb") as own:
            own_maps = own.read().splitlines()
        with open(maps, "rb", closefd=False) as others:
            other_maps = others.read().splitlines()
        function = ctypes.cast(api.Py_GetVersion, ctypes.c_void_p).value
        image = next(line.split(None, 5)[5] for line in own_maps
                     if self.start_of(line) <= function < self.end_of(line))
        self.moved = self.base_of(other_maps, image) - self.base_of(own_maps, image)
        runtime = ctypes.addressof(ctypes.c_char.in_dll(api, "_PyRuntime"))
        api.PyInterpreterState_Main.restype = ctypes.c_void_p
        interpreter = api.PyInterpreterState_Main()
        # Where the runtime points to the interpreter, and that to sys.modules, is found out here.
        self.runtime = runtime + self.moved
        self.to_interpreter = self.place(ctypes, runtime, interpreter)
        self.to_modules = self.place(ctypes, interpreter, id(sys.modules))
        self.text_type = id(str) + self.moved

    @staticmethod
    def start_of(line):
        return int(line.split(b"-")[0], 16)

    @staticmethod
    def end_of(line):
        return int(line.split(b"-")[1].split()[0], 16)

    @classmethod
    def base_of(cls, maps, image):
        starts = [cls.start_of(line) for line in maps if line.split(None, 5)[5:] == [image]]
        if not starts:
            raise OtherMemory
        return min(starts)

    @staticmethod
    def place(ctypes, structure, pointer):
        word = ctypes.sizeof(ctypes.c_void_p)
        with open("/proc/self/mem", "rb", 0) as own:
            for offset in range(0, Memory.STRUCTURE_MAX, word):
                if int.from_bytes(os.pread(own.fileno(), word, structure + offset),
                                  sys.byteorder) == pointer:
                    return offset
        raise OtherMemory

    def bytes_at(self, address, size):
        try:
            found = os.pread(self.memory, size, address)
        except (OSError, OverflowError):
            found = b""
        if len(found) != size:
            raise OtherMemory
        return found

    def word(self, address):
        return int.from_bytes(self.bytes_at(address, 8), sys.byteorder)

    def text(self, address):
        if self.word(address + self.HEADER - 8) != self.text_type:
            raise OtherMemory
        length = self.word(address + self.HEADER)
        if length > self.TEXT_MAX:
            raise OtherMemory
        return self.bytes_at(address + self.TEXT_AT, length).decode("latin-1")

    def items(self, address):
        """Of a dictionary whose keys are texts: the keys and the addresses of the values."""
        keys = self.word(address + self.HEADER + 16)
        if sys.version_info >= (3, 11):
            head, indices, kind = 32, 1 << self.bytes_at(keys + 9, 1)[0], \
                self.bytes_at(keys + 10, 1)[0]
            size = 24 if kind == 0 else 16
        else:
            slots = self.word(keys + 8)
            head, size = 40, 24
            indices = slots * (1 if slots <= 0xFF else 2 if slots <= 0xFFFF else 4)
        count = self.word(keys + head - 8)
        if count > self.ENTRIES_MAX or indices > 4 * self.ENTRIES_MAX:
            raise OtherMemory
        entries = self.bytes_at(keys + head + indices, count * size)
        for at in range(size - 16, len(entries), size):
            key, value = (int.from_bytes(entries[i : i + 8], sys.byteorder) for i in (at, at + 8))
            if value:
                yield self.text(key), value

    def modules(self):
        """[(name, address)]"""
        interpreter = self.word(self.runtime + self.to_interpreter)
        return list(self.items(self.word(interpreter + self.to_modules)))

    def file_of(self, module):
        """Its __file__, or None."""
        for key, value in self.items(self.word(module + self.HEADER)):
            if key == "__file__":
                try:
                    return self.text(value)
                except OtherMemory:
                    return None
        return None


def modules_of(memory, maps):
    """[(name, file or None for a built-in or what is no top-level module)] of that process. Raises
    OtherMemory where this interpreter is laid out in another way, or the process changes that."""
    with open("/proc/self/mem", "rb", 0) as own:
        descriptor = os.open("/proc/self/maps", os.O_RDONLY | os.O_CLOEXEC)
        try:
            itself = Memory(own.fileno(), descriptor)
        finally:
            os.close(descriptor)
        found = itself.modules()
        if [name for name, _ in found] != list(sys.modules) or \
                itself.file_of(dict(found)["os"]) != os.__file__:
            raise OtherMemory
    other = Memory(memory, maps)
    return [(name, other.file_of(module) if "." not in name else None)
            for name, module in other.modules()]
