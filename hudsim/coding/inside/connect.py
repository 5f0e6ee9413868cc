"""How a sandbox gets a network of its own: ``main()`` of ``python -I -S -c`` turns into pasta, this host's side of it.

With nothing but the standard library. Its arguments: the sandbox's first process, as the host counts; the user id of
its commands, -1 for this process's own; the process that must not be outlived; the number of addresses that are not to
be reached from inside, and them (``169.254.0.0/16``); pasta's file; the command, beginning with the name that it gets.
It prints ``inside`` and the id of a child, and ``up`` once there is a way out, or what was wrong.

bubblewrap went on from the user namespace that the network belongs to into one below it, and nobody is left where pasta
could find it. So a child goes in, and while pasta sets up the network, waits in there to block what must be.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed knows the public ones only
import _socket
import errno
import fcntl
import os
import stat
import struct
import sys
import time

from enter import MS_NOSUID, become, checked, hide_mounts, libc, mount  # type: ignore[import-not-found]

_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_WITHIN_S, _EVERY_S = 10.0, 0.002
_RTM_NEWROUTE, _RTA_DST, _RTA_OIF = 24, 1, 4
_REQUEST_ACK_CREATE_APPEND = 0x1 | 0x4 | 0x400 | 0x800
_NETLINK_XFRM, _XFRM_MSG_NEWPOLICY, _OUT, _BLOCK = 6, 0x13, 1, 1
_LOCAL_TABLE, _STATIC, _HOST_SCOPE, _LOCAL = 255, 4, 254, 2


def main() -> None:
    """Replaces this process."""
    try:
        _become_pasta()
    except OSError as error:
        sys.exit(str(error))


def _become_pasta() -> None:
    words = iter(sys.argv[1:])
    first, uid, owner = int(next(words)), int(next(words)), int(next(words))
    blocked = [next(words) for _ in range(int(next(words)))]
    program, *command = words
    network = os.open(f"/proc/{first}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    user = fcntl.ioctl(network, _NS_GET_USERNS)
    if uid >= 0:
        hide_mounts()
        _devices()
        become(uid)
        libc.prctl(_PR_SET_DUMPABLE, 1)  # else what the child is in could not be opened by its own user
    inside = _sent_in(user, network, blocked)
    os.close(user)
    libc.prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # pasta of 2023 takes it for an error that it was ignored
    if os.getppid() == owner:
        os.execv(program, [*command, "--userns", f"/proc/{inside}/ns/user", "--netns", f"/proc/{inside}/ns/net"])


def _devices() -> None:
    """A /dev with what pasta opens, whoever may open that on this host."""
    mount("tmpfs", "/dev", MS_NOSUID, "tmpfs", "mode=0755,size=64k")
    os.mkdir("/dev/net", 0o755)
    for path, number in (("/dev/null", (1, 3)), ("/dev/net/tun", (10, 200))):
        os.mknod(path, stat.S_IFCHR, os.makedev(*number))
        os.chmod(path, 0o666)  # noqa: S103 - as everywhere, and seen by this process alone


def _sent_in(user: int, network: int, blocked: list[str]) -> int:
    """A process that has entered these namespaces, and stays until all is set up in them; its id."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    pasta = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            if os.fork() == 0:  # an orphan, as pasta reaps no child that it does not know; its owner may have to
                _enter(user, network, tell)
                _await_way_out(pasta)
                for where in blocked:
                    _keep_in(where)
                _block_multicast()
                os.write(1, b"up\n")
        except OSError as error:
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    inside = os.read(told, 32)
    os.close(told)
    if not inside:
        sys.exit(1)
    os.write(1, b"inside %d\n" % int(inside))
    return int(inside)


def _enter(user: int, network: int, tell: int) -> None:
    checked(libc.setns(user, _CLONE_NEWUSER), "user namespace")
    checked(libc.setns(network, _CLONE_NEWNET), "network namespace")
    os.write(tell, str(os.getpid()).encode())
    os.close(tell)


def _await_way_out(pasta: int) -> None:
    until_s = time.monotonic() + _WITHIN_S
    while not _has_way_out():
        if not os.path.exists(f"/proc/{pasta}"):
            raise OSError("pasta has ended")
        if time.monotonic() > until_s:
            raise OSError(f"pasta made no default route within {_WITHIN_S:.0f} s")
        time.sleep(_EVERY_S)


def _has_way_out() -> bool:
    with open("/proc/self/net/route") as file:
        if any(line.split()[1] == "0" * 8 for line in file.readlines()[1:]):
            return True
    try:
        with open("/proc/self/net/ipv6_route") as file:
            words = [line.split() for line in file]
    except FileNotFoundError:  # a kernel without IPv6
        return False
    return any(line[:2] == ["0" * 32, "00"] and line[-1] != "lo" for line in words)


def _keep_in(where: str) -> None:
    """Have what is sent to ``where`` arrive in the sandbox itself.

    On each interface: a socket that is bound to one looks no further, neither to loopback nor to an unreachable route.
    """
    address, _, bits = where.partition("/")
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    packed = _socket.inet_pton(family, address)
    length = int(bits or 8 * len(packed))
    head = struct.pack("=BBBBBBBBI", family, length, 0, 0, _LOCAL_TABLE, _STATIC, _HOST_SCOPE, _LOCAL, 0)
    to = struct.pack("=HH", 4 + len(packed), _RTA_DST) + packed
    for number, name in _socket.if_nameindex():
        if name != "lo":
            _ask_kernel(_RTM_NEWROUTE, head + to + struct.pack("=HHI", 8, _RTA_OIF, number), where)


def _block_multicast() -> None:
    """Let no datagram out to a group: pasta of 2023 sends it from this host, to which its own services belong.

    No route keeps in what a socket sends to a group by an interface; what IPsec refuses, it refuses on each way. Only
    datagrams, as neighbours are asked for by groups too.
    """
    for family, group, length in ((_socket.AF_INET, "224.0.0.0", 4), (_socket.AF_INET6, "ff00::", 8)):
        to = _socket.inet_pton(family, group)
        selector = struct.pack("=16s16s8xHBBB3xiI", to, b"", family, length, 0, _socket.IPPROTO_UDP, 0, 0)
        for_ever = struct.pack("=4Q4Q", *[(1 << 64) - 1] * 4, *[0] * 4)
        policy = struct.pack("=32xIIBBBB4x", 0, 0, _OUT, _BLOCK, 0, 0)
        _ask_kernel(_XFRM_MSG_NEWPOLICY, selector + for_ever + policy, group, protocol=_NETLINK_XFRM)


def _ask_kernel(kind: int, body: bytes, what: str, *, protocol: int = 0) -> None:
    """netlink(7). Raises :class:`OSError`, but not for what is there, or a family or protocol the kernel has not."""
    try:
        sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, protocol)
    except OSError as error:
        if error.errno == errno.EPROTONOSUPPORT:
            return
        raise
    try:
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK_CREATE_APPEND, 1, 0) + body)
        number = -int(struct.unpack_from("=i", sock.recv(4096), 16)[0])
    finally:
        sock.close()
    if number not in (0, errno.EEXIST, errno.EAFNOSUPPORT, errno.EOPNOTSUPP):
        raise OSError(number, os.strerror(number), what)
