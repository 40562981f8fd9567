"""The system call filters of a systemd unit as a BPF program, for a child process to install.

What systemd 252 does for SystemCallFilter, SystemCallArchitectures, RestrictAddressFamilies,
RestrictNamespaces and MemoryDenyWriteExecute (its src/shared/seccomp-util.c), in one program.
"""

import ctypes
import errno
import os
import pathlib
import platform
import shutil
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
LOAD, EQUAL, ANY_BIT, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP, FILTER_MODE = 38, 22, 24, 2
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET, -TIME
X32_BIT = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def reason_to_skip():
    if platform.machine() not in ARCHITECTURES:
        return f"no number of the architecture {platform.machine()} here"
    with open("/proc/self/status") as status:
        if "Seccomp:" not in status.read():
            return "this kernel has no seccomp"
    return None


def call_numbers(compiler):
    """The numbers of the system calls that the headers of this machine know."""
    text = subprocess.run(
        [compiler, "-E", "-dM", "-x", "c", "-"],
        input="#include <sys/syscall.h>\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = (line.split() for line in text.splitlines())
    return {w[1][5:]: int(w[2]) for w in words if w[1].startswith("__NR_") and w[2].isdigit()}


def expand(name):
    """The system calls of a set such as @system-service; a name stands for itself."""
    if not name.startswith("@"):
        return {name}
    if not shutil.which("systemd-analyze"):
        return stored_set(name)
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    ).stdout
    members = [line.strip() for line in text.splitlines()[1:]]
    return {call for member in members if member[:1] not in ("", "#") for call in expand(member)}


def stored_set(name):
    calls, inside = set(), False
    for line in (HERE / "system_calls.txt").read_text().splitlines():
        if line.startswith("@"):
            inside = line == name
        elif inside:
            calls.update(line.split())
    assert calls, f"system_calls.txt has no {name}"
    return calls


class Unit:
    """The [Service] section: repeated directives are kept in their order."""

    def __init__(self, path):
        lines = pathlib.Path(path).read_text().split("\n[Service]\n")[1].split("\n[Install]")[0]
        kept = (line for line in lines.splitlines() if line[:1] not in ("", "#"))
        self.lines = [line.split("=", 1) for line in kept]

    def all(self, name):
        return [value for key, value in self.lines if key == name]

    def only(self, name):
        (value,) = self.all(name)
        return value

    def allowed_calls(self):
        allowed = set()
        for words in self.all("SystemCallFilter"):
            names = set().union(*(expand(name) for name in words.lstrip("~").split()))
            allowed = allowed - names if words.startswith("~") else allowed | names
        return allowed


class Program:
    """Instructions of classic BPF. A rule either decides or falls through to the next one."""

    def __init__(self):
        self.code = []

    def add(self, operation, value, then=0, otherwise=0):
        self.code.append(struct.pack("HBBI", operation, then, otherwise, value))

    def when_number(self, number, rules):
        """`rules` are added by a function, and hold for this system call alone."""
        before = len(self.code)
        self.add(EQUAL, number)
        rules()
        self.add(LOAD, NUMBER_AT)
        length = len(self.code) - before - 1
        self.code[before] = struct.pack("HBBI", EQUAL, 0, length, number)

    def decide(self, verdict):
        self.add(RETURN, verdict)

    def load_argument(self, index):
        self.add(LOAD, ARGUMENTS_AT + 8 * index)


def build(unit, numbers, without=()):
    """The program for `unit`, in which the calls `without` are taken out of the list."""
    program = Program()
    program.add(LOAD, ARCHITECTURE_AT)
    program.add(EQUAL, ARCHITECTURES[platform.machine()], 1, 0)
    program.decide(KILL)
    program.add(LOAD, NUMBER_AT)
    program.add(AT_LEAST, X32_BIT, 0, 1)
    program.decide(KILL)
    families = [FAMILIES[name] for name in unit.only("RestrictAddressFamilies").split()]
    program.when_number(numbers["socket"], lambda: refuse_families(program, families))
    if unit.only("MemoryDenyWriteExecute") == "yes":
        for name, index, bits in (
            ("mmap", 2, PROT_WRITE | PROT_EXEC),
            ("mprotect", 2, PROT_EXEC),
            ("pkey_mprotect", 2, PROT_EXEC),
            ("shmat", 2, SHM_EXEC),
        ):
            program.when_number(numbers[name], lambda i=index, b=bits: refuse_bits(program, i, b))
    if unit.only("RestrictNamespaces") == "yes":
        # The flags of clone3() are in memory, where no filter sees them: libc uses clone() then.
        program.when_number(numbers["clone3"], lambda: program.decide(ERRNO | errno.ENOSYS))
        program.when_number(numbers["setns"], lambda: program.decide(ERRNO | errno.EPERM))
        for name in ("clone", "unshare"):
            program.when_number(numbers[name], lambda: refuse_namespaces(program))
    for name in sorted(unit.allowed_calls() - set(without)):
        if name in numbers:
            program.add(EQUAL, numbers[name], 0, 1)
            program.decide(ALLOW)
    program.decide(KILL)  # as systemd does without SystemCallErrorNumber
    return b"".join(program.code)


def refuse_families(program, families):
    program.load_argument(0)
    for at, family in enumerate(families):
        program.add(EQUAL, family, len(families) - at, 0)
    program.decide(ERRNO | errno.EAFNOSUPPORT)


def refuse_bits(program, index, bits):
    program.load_argument(index)
    program.add(AND, bits)
    program.add(EQUAL, bits, 0, 1)
    program.decide(ERRNO | errno.EPERM)


def refuse_namespaces(program):
    program.load_argument(0)
    program.add(ANY_BIT, NEW_NAMESPACES, 0, 1)
    program.decide(ERRNO | errno.EPERM)


class FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def installer(code, user):
    """What Popen's preexec_fn does: as DynamicUser, without capabilities, under the filter."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = FilterProgram(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))

    def install():
        if os.geteuid() == 0:
            capability = 0
            while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
                capability += 1
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        os.umask(0o077)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
        if libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")
        assert buffer is not None  # the kernel has copied it

    return install
