"""Hosts that are network namespaces: cables that can be pulled, and cables with a delay.

A net has a head and other hosts, each joined to the head by a cable of its own. A plain cable is a
pair of virtual devices. A cable with a delay is a process that reads every packet at one end and
writes it at the other end so much later. Needs root on Linux and the command ``ip``.
"""

from __future__ import annotations

import collections
import ctypes
import fcntl
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NAMESPACES = Path("/var/run/netns")
_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_MTU = 60_000  # packets are large, so that the process between delays but does not throttle
_READY = b"ready\n"


def not_possible() -> str | None:
    """A sentence that says why namespaces cannot be made here; None if they can."""
    if shutil.which("ip") is None:
        return "the command ip is not installed"
    name = f"cutplane-{uuid.uuid4().hex[:6]}"
    answer = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if answer.returncode:
        return "network namespaces are not permitted"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return None


@dataclass(frozen=True)
class Host:
    """A network namespace with its address and device."""

    namespace: str
    address: str
    device: str

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command line that runs ``arguments`` on this host."""
        return ["ip", "netns", "exec", self.namespace, *arguments]


class Net:
    """Hosts around a head. Use it in a ``with`` statement.

    Parameters
    ----------
    count : int
        Hosts besides the head.
    delay : float or None
        Seconds that a packet takes; None for plain cables.
    """

    def __init__(self, count: int, delay: float | None = None) -> None:
        self._mark = uuid.uuid4().hex[:6]
        self._delay = delay
        self._wires: list[subprocess.Popen[bytes]] = []
        self._made: list[str] = []
        self.head = Host(f"cutplane-{self._mark}-head", "10.77.0.1", "lo")
        self.hosts = [
            Host(f"cutplane-{self._mark}-{k}", f"10.77.{k}.2", "eth0") for k in range(1, count + 1)
        ]

    def __enter__(self) -> Net:
        try:
            for host in (self.head, *self.hosts):
                _ip("netns", "add", host.namespace)
                self._made.append(host.namespace)
                _ip("-n", host.namespace, "link", "set", "lo", "up")
            _ip("-n", self.head.namespace, "address", "add", f"{self.head.address}/32", "dev", "lo")
            for k, host in enumerate(self.hosts, 1):
                self._join(k, host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for wire in self._wires:
            wire.kill()
            wire.wait()
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        self._made = []

    def _join(self, k: int, host: Host) -> None:
        near, head = f"to{k}", self.head.namespace
        if self._delay is None:
            _ip("-n", head, "link", "add", near, "type", "veth")  # the peer is named by the system
            peer = _peer(head, near)
            _ip("-n", head, "link", "set", peer, "netns", host.namespace, "name", host.device)
        else:
            self._wires.append(_wire(head, near, host.namespace, host.device, self._delay))
        for namespace, device, address in (
            (head, near, f"10.77.{k}.1/24"),
            (host.namespace, host.device, f"{host.address}/24"),
        ):
            _ip("-n", namespace, "address", "add", address, "dev", device)
            if self._delay is not None:
                _ip("-n", namespace, "link", "set", device, "mtu", str(_MTU))
            _ip("-n", namespace, "link", "set", device, "up")
        _ip("-n", host.namespace, "route", "add", "default", "via", f"10.77.{k}.1")

    def pull_cable(self, host: Host) -> None:
        """Cut a host off: no packet comes or goes, and no process gets an error."""
        _ip("-n", host.namespace, "link", "set", host.device, "down")


def _ip(*arguments: str) -> None:
    answer = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if answer.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {answer.stderr.strip()}")


def _peer(namespace: str, device: str) -> str:
    answer = subprocess.run(
        ["ip", "-n", namespace, "-o", "link", "show", device],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split(f"{device}@")[1].split(":")[0]


# -- a cable with a delay -------------------------------------------------------------


def _wire(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.cluster.net", *map(str, arguments)]
    root = Path(__file__).resolve().parents[2]
    wire = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)
    assert wire.stdout is not None
    if wire.stdout.readline() != _READY:
        raise OSError("there is no device /dev/net/tun, or it is not permitted")
    return wire


def _open_tun(namespace: str, device: str) -> int:
    """Open a device in a namespace that passes its packets to this process."""
    with open(NAMESPACES / namespace) as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TUN | _IFF_NO_PI))
    return tun


def _carry(one: int, other: int, delay: float) -> None:
    """Carry packets both ways, each ``delay`` seconds after it came."""
    to = {one: other, other: one}
    waiting: collections.deque[tuple[float, int, bytes]] = collections.deque()
    poll = select.epoll()
    for tun in to:
        poll.register(tun, select.EPOLLIN)
    while True:
        wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else -1.0
        for tun, _ in poll.poll(wait):
            try:
                while True:
                    packet = os.read(tun, _MTU + 100)
                    waiting.append((time.monotonic() + delay, to[tun], packet))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            _, tun, packet = waiting.popleft()
            try:
                os.write(tun, packet)
            except OSError:  # the device is down, or has no room: the packet is lost
                continue


def main() -> None:
    """Run as a cable."""
    head, near, namespace, device, delay = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    one = _open_tun(head, near)
    other = _open_tun(namespace, device)
    os.write(1, _READY)
    _carry(one, other, float(delay))


if __name__ == "__main__":
    main()
