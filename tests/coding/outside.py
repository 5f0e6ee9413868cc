"""A network to try ``network=True`` in: ``unshare --net --mount python -m tests.coding.outside``, as root.

This process stands for a host with a default route, a second process in a network of its own for all that is outside.
What a sandbox of this host reaches is printed as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from hudsim.coding import Box, Limits, Workspace
from hudsim.errors import SandboxError
from tests.coding.test_left_behind import processes_of

PORT = 4000
HOST = ["198.51.100.2", "198.51.100.3", "2001:db8:1::2", "10.99.0.1", "127.0.0.1", "127.9.9.9", "::1"]
LATER = "10.99.0.2"
OUTSIDE = ["198.51.100.1", "2001:db8:1::1"]
METADATA = ["169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fe80::a9fe:a9fe%cable"]
NAMED = "198.51.100.1"

# What is outside: it answers each connection and datagram, and each question for a name.
_WORLD = f"""
import socket, threading
def answer(server):
    while True:
        server.accept()[0].sendall(b"outside")
def echo(sock, reply):
    while True:
        data, sender = sock.recvfrom(2000)
        sock.sendto(reply(data), sender)
def named(question):
    end = question.index(b"\\0", 12) + 5
    is_v4 = question[end - 4:end - 2] == b"\\0\\1"
    head = question[:2] + b"\\x81\\x80\\0\\1\\0" + bytes([is_v4]) + b"\\0\\0\\0\\0" + question[12:end]
    return head + is_v4 * b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + is_v4 * socket.inet_aton("{NAMED}")
def start(work, *words):
    threading.Thread(target=work, args=words).start()
start(answer, socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True))
for family, any in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
    for port, reply in (({PORT}, lambda data: b"outside"), (53, named)):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((any, port))
        start(echo, sock, reply)
print("ready", flush=True)
"""

# In the sandbox: which of the addresses answer, also to a socket that is bound to the interface.
_TRY = f"""
import concurrent.futures, itertools, json, socket, sys
def answers(address, kind, face):
    try:
        family, _, _, _, where = socket.getaddrinfo(address, {PORT}, type=kind)[0]
        with socket.socket(family, kind) as sock:
            sock.settimeout(4)
            if face:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, face.encode())
            sock.connect(where)
            if kind == socket.SOCK_DGRAM:
                sock.send(b"?")
            return sock.recv(10) == b"outside"
    except OSError:
        return False
faces = ["", *(name for _, name in socket.if_nameindex() if name != "lo")]
tries = list(itertools.product(sys.argv[1:], (socket.SOCK_STREAM, socket.SOCK_DGRAM), faces))
with concurrent.futures.ThreadPoolExecutor(len(tries)) as pool:
    found = pool.map(lambda each: answers(*each), tries)
    print(json.dumps(sorted({{(address, kind.name) for (address, kind, _), came in zip(tries, found) if came}})))
"""


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


@contextlib.contextmanager
def world() -> Iterator[None]:
    """This process's network, with a second one behind its only cable."""
    command = ["unshare", "--net", sys.executable, "-c", f"print('apart', flush=True)\ninput()\n{_WORLD}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as outside:
        assert outside.stdin is not None
        assert outside.stdout is not None
        try:
            ip("link set lo up")
            ip("link add cable type veth peer name far")
            assert outside.stdout.readline() == "apart\n"
            ip(f"link set far netns {outside.pid}")
            there = f"nsenter --net=/proc/{outside.pid}/ns/net ip"
            for words in ("link set lo up", "link set far up"):
                subprocess.run([*there.split(), *words.split()], check=True)
            for address in (f"{OUTSIDE[0]}/24", f"{OUTSIDE[1]}/64", *METADATA):
                words = f"addr add {address.partition('%')[0]} dev far" + " nodad" * (":" in address)
                subprocess.run([*there.split(), *words.split()], check=True)
            ip("addr add 198.51.100.2/24 dev cable")
            ip("addr add 198.51.100.3/24 dev cable")
            ip("addr add 2001:db8:1::2/64 dev cable nodad")
            ip("addr add 10.99.0.1/32 dev lo")
            ip("link set cable up")
            ip("route add default via 198.51.100.1")
            ip("-6 route add default via 2001:db8:1::1")
            outside.stdin.write("\n")
            outside.stdin.flush()
            assert outside.stdout.readline() == "ready\n"
            yield
        finally:
            outside.kill()


class Services:
    """Of this host: at all its addresses, one port; ``asked``: who came."""

    def __init__(self) -> None:
        self._tcp = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
        self._udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._udp.bind(("::", PORT))
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract.bind(f"\0hudsim-outside-{os.getpid()}")
        self._abstract.listen()
        for sock in (self._tcp, self._udp, self._abstract):
            sock.setblocking(False)

    def asked(self) -> list[str]:
        found = []
        for what, ask in (
            ("TCP", self._tcp.accept),
            ("UDP", lambda: self._udp.recvfrom(9)),
            ("-", self._abstract.accept),
        ):
            with contextlib.suppress(BlockingIOError):
                while True:
                    found.append(f"{what} {ask()[1]}")
        return found


def link_address() -> str:
    """Of the cable, on this side."""
    lines = Path("/proc/net/if_inet6").read_text().splitlines()
    (address,) = [line.split()[0] for line in lines if line.startswith("fe80")]
    return str(IPv6Address(int(address, 16)))


async def without_a_route() -> str:
    async with Box(limits=Limits(), network=True) as box:
        try:
            await box.run("true")
        except SandboxError as error:
            return str(error)
    return ""


async def reached() -> dict[str, Any]:
    found: dict[str, Any] = {}
    services = Services()
    socket.create_connection(("127.0.0.1", PORT)).close()
    found["control"] = services.asked()
    found["metadata from the host"] = []
    for address in METADATA:
        with socket.create_connection((address, PORT), timeout=5) as sock:
            found["metadata from the host"].append(sock.recv(10).decode())
    async with Workspace(network=True) as ws:
        (found["card"],) = [
            row for row in ws.capability("shell").params["isolation"]["rows"] if row["what"] == "network"
        ]
        await ws.run("true")
        ip(f"addr add {LATER}/32 dev lo")
        for name, addresses in (
            ("outside", [*OUTSIDE, "somewhere.example"]),
            ("metadata", METADATA),
            ("host", [*HOST, LATER, f"{link_address()}%cable", "224.0.0.1", "ff02::1%cable"]),
        ):
            done = await ws.run(["python", "-c", _TRY, *addresses], timeout_s=40)
            found[name] = json.loads(done.stdout or json.dumps(done.stderr.decode()))
        found["asked"] = services.asked()
        found["running"] = [line for line in processes_of(os.getpid()) if "/pasta " in line]
        pid = int(found["running"][0].split()[0])
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - its network goes before it
        found["again"] = (await ws.run(["python", "-c", _TRY, OUTSIDE[0]])).text
        await ws.run(["python", "-c", _TRY, *HOST])
        found["asked again"] = services.asked()
    found["left"] = [line for line in processes_of(os.getpid()) if "/pasta " in line]
    return found


async def own() -> None:
    """Have a workspace with a network until killed."""
    async with Workspace(network=True) as ws:
        await ws.run("true")
        print("ready", flush=True)  # noqa: T201
        await asyncio.sleep(60)


def killed() -> dict[str, Any]:
    """What ran when an owner was killed, and its process id."""
    command = [sys.executable, "-m", "tests.coding.outside", "own"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        running = [line for line in processes_of(owner.pid) if "/pasta " in line]
        owner.send_signal(signal.SIGKILL)
    return {"pid": owner.pid, "running": running}


def main() -> None:
    with tempfile.NamedTemporaryFile("w") as names:
        names.write(f"nameserver {OUTSIDE[0]}\n")
        names.flush()
        Path(names.name).chmod(0o644)
        subprocess.run(["mount", "--bind", names.name, "/etc/resolv.conf"], check=True)
        alone = asyncio.run(without_a_route())
        with world():
            found = asyncio.run(reached())
            print(json.dumps({**found, "alone": alone, "killed": killed()}))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(own()) if sys.argv[1:] == ["own"] else main()
