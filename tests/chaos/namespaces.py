"""Hosts on one machine: network namespaces connected by a switch in this process.

Each host has a TAP device; the switch hands every frame to all other hosts, and loses, at random
with a seed, as many as it is told. So a host can be cut off without any of its addresses or links
changing, as by a broken switch, and no kernel module is needed.
"""

import fcntl
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 65536


INSIDE = "DDPRUN_TEST_INSIDE"


def enter() -> None:
    """Makes a user root of namespaces of its own, where the system allows it: starts this program
    again there."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # which Debian gives to root alone
    if os.geteuid() == 0 or INSIDE in os.environ or shutil.which("unshare") is None:
        return
    own = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec",
           'mount -t tmpfs none /run; exec "$@"', "sh"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp(own[0], [*own, sys.executable, *sys.argv])


def missing() -> str:
    """Why namespaces cannot be created, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            return f"no program {program}"
    try:
        with Network(1, 0):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces are not allowed here: {error}"


class Network:
    """Hosts 10.77.0.1 … with one switch between them."""

    def __init__(self, hosts: int, seed: int):
        self.names = [f"ddprun-{os.getpid()}-{number}" for number in range(hosts)]
        self.random = random.Random(seed)
        self.loss = 0.0
        self.cut: set[int] = set()
        self.side: set[int] = set()  # these hosts and the others do not hear each other
        self.taps: list[int] = []
        self.bell, self.ringer = os.pipe()
        self.switch = threading.Thread(target=self.forward, daemon=True)

    def __enter__(self):
        try:
            for number, name in enumerate(self.names):
                self.add_host(number, name)
            self.switch.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.switch.is_alive():
            os.write(self.ringer, b"x")
            self.switch.join()
        for descriptor in (*self.taps, self.bell, self.ringer):
            os.close(descriptor)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"

    def prefix(self, number: int) -> list[str]:
        """The command prefix that runs a command on that host."""
        return ["nsenter", f"--net=/run/netns/{self.names[number]}"]

    def device(self, number: int) -> str:
        return f"d{os.getpid() % 10**8}.{number}"

    def add_address(self, number: int, address: str) -> None:
        """A second one, on the same network."""
        ip("-n", self.names[number], "addr", "add", f"{address}/24", "dev", self.device(number))

    def add_host(self, number: int, name: str) -> None:
        tap = self.device(number)
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        self.taps.append(descriptor)
        request = struct.pack("16sH22x", tap.encode(), IFF_TAP | IFF_NO_PI)
        fcntl.ioctl(descriptor, TUNSETIFF, request)
        ip("netns", "add", name)
        ip("link", "set", tap, "netns", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", tap)
        ip("-n", name, "link", "set", tap, "up")

    def forward(self) -> None:
        poll = select.poll()
        for descriptor in (*self.taps, self.bell):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self.bell:
                    return
                self.forward_one(self.taps.index(descriptor))

    def forward_one(self, source: int) -> None:
        frame = os.read(self.taps[source], FRAME_BYTES)
        for target, descriptor in enumerate(self.taps):
            split = (source in self.side) != (target in self.side)
            apart = target == source or split or {source, target} & self.cut
            if apart or self.random.random() < self.loss:
                continue
            try:
                os.write(descriptor, frame)
            except OSError:
                pass  # that host's device is not up


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
