"""The launcher: pid 1 of a sandbox. It starts what it is told to, and everything in the sandbox ends with it.

Imported and run by ``python -I -S -c``, with nothing but the standard library, as ``main(FD)``: FD is one end of a
Unix stream socket. A frame is two lengths (big-endian, of the whole rest and of the JSON), a JSON object, and bytes;
descriptors travel with the frame's first byte.

From the host, each with an ``id``
    ``exec``: ``argv, env, cwd, limits`` {name: value}, ``pty`` [rows, columns] or null; three descriptors without one.
    ``files``: ``cwd, limits``; a socket whose other end is served by a process of its own, see ``files.py``.
    ``signal``: ``number``, to the process group of one of these. ``resize``: ``pty`` of it.
    ``end``: kill all that runs here.
To the host
    ``up``: ``pid``, ``status`` (of ``/proc/self/status``: what of the isolation the kernel says of this process).
    ``started`` (with the terminal's descriptor if it has one). ``exited``: ``status`` as of waitpid, ``seconds`` of
    CPU, ``rss`` in KiB. ``refused``: ``message``, there is no such program or folder. ``failed``: ``message``, nothing
    can be started. ``ended``.

It never waits for what it starts, not even until that has become its program, so nothing that runs here can hold it up.
Started without a sandbox it is not pid 1: then it adopts what its commands leave behind, and ends that when it ends.
"""

from __future__ import annotations

# The start of a sandbox waits for these imports: the public modules of json, signal and socket take 15 ms of re and
# enum, these 1 ms.
import _json
import _signal  # type: ignore[import-not-found]  # typeshed knows the public ones only
import _socket
import array
import ctypes
import errno
import fcntl
import os
import resource
import select
import struct
import sys
import termios

import refused  # type: ignore[import-not-found]

TYPE_CHECKING = False  # typing itself takes 8 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    Message = dict[str, Any]

_HEAD = struct.Struct(">II")
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_MOST = 1 << 24
_MOST_SAID = 900
_NOT_THERE = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.ENOEXEC, errno.E2BIG),
}
"""What says of a program or folder that it is not to be had; all else is the host's want."""
_MOST_FDS = 1 << 16


def _prctl(option: int, value: int) -> None:
    call = getattr(ctypes.CDLL(None), "prctl", None)
    if call is not None:  # Linux
        call(option, value)


class _Reading:
    """What the C scanner of json wants to know."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"got a {type(value).__name__}, expected plain JSON")


_scan = _json.make_scanner(_Reading)  # type: ignore[arg-type]
_encode = _json.make_encoder(None, _refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, True)


class Wire:
    """Frames over a blocking socket. Also used by ``files.py``."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self._bytes = bytearray()
        self._fds: list[int] = []

    def send(self, message: Message, payload: bytes = b"", fds: Sequence[int] = ()) -> None:
        """One frame, whole."""
        words = "".join(_encode(message, 0)).encode()
        frame = _HEAD.pack(4 + len(words) + len(payload), len(words)) + words + payload
        ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.sock.sendmsg([frame], ancillary)
        if sent < len(frame):
            self.sock.sendall(memoryview(frame)[sent:])

    def receive(self) -> tuple[Message, bytes, list[int]] | None:
        """(message, payload, descriptors); None once the other end is closed."""
        while True:
            if (frame := self._whole()) is not None:
                return frame
            data, ancillary, _, _ = self.sock.recvmsg(1 << 18, _socket.CMSG_SPACE(64), _socket.MSG_CMSG_CLOEXEC)
            for _, _, words in ancillary:
                self._fds.extend(array.array("i", words[: len(words) - len(words) % 4]))
            if not data:
                return None
            self._bytes += data

    @property
    def has_more(self) -> bool:
        """Whether another frame has come along with the last one: nothing would wake who waits for it."""
        head = _HEAD.size
        return len(self._bytes) >= head and len(self._bytes) >= 4 + _HEAD.unpack_from(self._bytes)[0]

    def _whole(self) -> tuple[Message, bytes, list[int]] | None:
        if len(self._bytes) < _HEAD.size:
            return None
        rest, words = _HEAD.unpack_from(self._bytes)
        if rest > _MOST or words + 4 > rest:
            raise OSError("got a frame that is none")
        end = 4 + rest
        if len(self._bytes) < end:
            return None
        message: Message = _scan(self._bytes[_HEAD.size : _HEAD.size + words].decode(), 0)[0]
        payload = bytes(self._bytes[_HEAD.size + words : end])
        del self._bytes[:end]
        count = message.get("fds", 0)
        fds, self._fds = self._fds[:count], self._fds[count:]
        return message, payload, fds


class Launcher:
    """Starts and reaps."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._running: dict[int, int] = {}  # pid -> id
        self._pids: dict[int, int] = {}  # id -> pid
        self._terminals: dict[int, int] = {}  # id -> our descriptor of its terminal
        self._starting: dict[int, int] = {}  # where it tells that it is no program yet and cannot be -> pid
        self._poll = select.poll()

    def run(self) -> None:
        """Until the host closes its end."""
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        self._poll.register(self._wire.sock.fileno(), select.POLLIN)
        self._poll.register(woken, select.POLLIN)
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for told in ready & set(self._starting):
                self._begun(told)
            if woken in ready:
                _read(woken)
            if self._wire.sock.fileno() in ready and not self._obey_all():
                return
            self._reap()

    def _obey_all(self) -> bool:
        """The frames that have come; whether there were any."""
        while self._obey():
            if not self._wire.has_more:
                return True
        return False

    def _obey(self) -> bool:
        """One frame; whether there was one."""
        frame = self._wire.receive()
        if frame is None:
            return False
        message, _, fds = frame
        try:
            getattr(self, "_do_" + message["op"])(message, fds)
        except Exception as error:  # noqa: BLE001 - the host is told, whatever it is
            said = f"{getattr(error, 'strerror', None) or type(error).__name__}: {error}"
            self._say(message.get("id"), "failed", message=said)
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _do_exec(self, message: Message, fds: list[int]) -> None:
        if message["pty"] is None:
            self._start(message, fds)
            return
        master, slave = os.openpty()
        try:
            os.set_inheritable(master, False)
            _resize(master, message["pty"])
            self._start(message, [slave] * 3)
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        self._terminals[message["id"]] = master

    def _do_files(self, message: Message, fds: list[int]) -> None:
        self._start(message, fds)

    def _start(self, message: Message, fds: list[int]) -> None:
        """What becomes of it is told when it is known."""
        told, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = os.fork()
            if pid == 0:
                self._wire.sock.close()
                _become(message, fds, tell)
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(tell)
        self._running[pid], self._pids[message["id"]], self._starting[told] = message["id"], pid, pid
        self._poll.register(told, select.POLLIN)

    def _begun(self, told: int) -> None:
        """It has become its program, or never will."""
        pid = self._starting.pop(told)
        self._poll.unregister(told)
        problem = _read(told).decode(errors="replace")
        os.close(told)
        run = self._running[pid]
        master = self._terminals.get(run)
        if problem:
            kind, _, what = problem.partition(" ")
            self._forget(pid)
            self._say(run, kind, message=what)
        elif not self._say(run, "started", fds=[] if master is None else [master], pid=pid):
            _kill(pid)  # the host cannot have its terminal
            self._forget(pid)
            self._say(run, "failed", message="its terminal cannot be handed out")

    def _do_signal(self, message: Message, fds: list[int]) -> None:
        pid = self._pids.get(message["id"])
        if pid is not None:
            left = _descendants(pid) if message["number"] == _signal.SIGKILL else []
            try:
                os.killpg(pid, message["number"])
            except ProcessLookupError:  # it has no group of its own yet
                os.kill(pid, message["number"])
            for child in left:  # also those that have left its group
                _kill(child)

    def _do_resize(self, message: Message, fds: list[int]) -> None:
        master = self._terminals.get(message["id"])
        if master is not None:
            _resize(master, message["pty"])

    def _do_end(self, message: Message, fds: list[int]) -> None:
        self.end()
        self._say(message["id"], "ended")

    def end(self) -> None:
        """Kill all that runs here, and what it starts meanwhile."""
        while True:
            if os.getpid() == 1:
                _kill(-1)  # all but pid 1, which this is
            else:
                for pid in _descendants(os.getpid()):
                    _kill(pid)
            try:
                self._account(*os.wait4(-1, 0))
            except ChildProcessError:
                return

    def _reap(self) -> None:
        try:
            while (reaped := os.wait4(-1, os.WNOHANG))[0]:
                self._account(*reaped)
        except ChildProcessError:
            pass

    def _account(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """Orphans come here too: they are nobody's news."""
        for told in [told for told, child in self._starting.items() if child == pid]:
            self._begun(told)
        run = self._forget(pid)
        if run is not None:
            cpu_s = usage.ru_utime + usage.ru_stime
            self._say(run, "exited", status=status, seconds=cpu_s, rss=usage.ru_maxrss)

    def _forget(self, pid: int) -> int | None:
        """Its id. None: it is nobody's."""
        run = self._running.pop(pid, None)
        if run is not None:
            del self._pids[run]
            master = self._terminals.pop(run, None)
            if master is not None:
                os.close(master)
        return run

    def _say(self, run: int | None, event: str, *, fds: Sequence[int] = (), **more: Any) -> bool:
        """Whether the host could be told. That it is gone is seen when it is listened to."""
        try:
            self._wire.send({"id": run, "event": event, "fds": len(fds), **more}, fds=fds)
        except OSError:
            return False
        return True


def _become(message: Message, fds: list[int], tell: int) -> NoReturn:
    """In the child: the program, or who serves the files."""
    try:
        os.setsid()
        if message.get("pty") is not None:
            fcntl.ioctl(fds[0], termios.TIOCSCTTY, 0)
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in fds]
        for number, fd in enumerate(moved):
            os.dup2(fd, number)
        _signal.set_wakeup_fd(-1)
        os.umask(0o022)
        _first_to_go()
        os.chdir(message["cwd"])
        _limit(message["limits"])
        if message["op"] == "files":
            _serve_files(tell)
        for number in (_signal.SIGPIPE, _signal.SIGCHLD, _signal.SIGINT, _signal.SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.execvpe(message["argv"][0], message["argv"], message["env"])
    except BaseException as error:  # noqa: BLE001 - there is nobody else to catch it
        is_folder = getattr(error, "filename", None) == message["cwd"]
        where = message["cwd"] if is_folder or message["op"] == "files" else message["argv"][0]
        kind = "refused" if getattr(error, "errno", None) in _NOT_THERE else "failed"
        said = f"{kind} {where}: {getattr(error, 'strerror', None) or error}"
        os.write(tell, said[:_MOST_SAID].encode(errors="replace"))
    finally:
        os._exit(127)


def _serve_files(tell: int) -> NoReturn:
    """To the client at descriptor 0."""
    _prctl(_PR_SET_DUMPABLE, 0)  # nobody looks into it
    import files  # type: ignore[import-not-found]

    os.closerange(3, max(tell + 1, _MOST_FDS))  # that they are closed says that it has begun
    try:
        files.serve(Wire(_socket.socket(fileno=0)))
    finally:
        os._exit(0)


def _first_to_go() -> None:
    """Where memory ends, commands are killed before the launcher, unless they undo this, which leaves its trace.

    (Our socket is closed: nobody gains by looking.)
    """
    _prctl(_PR_SET_DUMPABLE, 1)  # else this process's own files in /proc are root's
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(number)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (least, least))


def _resize(fd: int, size: Sequence[int]) -> None:
    rows, columns = size
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _read(fd: int) -> bytes:
    """What is there now, if it is anything."""
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
    except ProcessLookupError:
        pass


def _descendants(pid: int) -> list[int]:
    """Of a process, the nearest first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    here = [pid]
    while here:
        here = [child for parent in here for child in children.get(parent, [])]
        found += here
    return found


def _status() -> dict[str, str]:
    """What the kernel says of this process: its capabilities and its like."""
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {key: lines.get(key, "") for key in ("CapEff", "CapBnd", "CapPrm", "CapAmb", "NoNewPrivs", "Uid")}


def main(fd: int) -> None:
    """Serve the host's end of the socket ``fd``."""
    _prctl(_PR_SET_DUMPABLE, 0)  # no process of the same uid may look into this one, or stop it
    is_first = os.getpid() == 1
    if is_first:
        refused.refuse()
    else:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    sock = _socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    wire = Wire(sock)
    launcher = Launcher(wire)
    try:
        wire.send({"event": "up", "pid": os.getpid(), "status": _status()})
        launcher.run()
    except OSError:
        pass  # the host is gone
    finally:
        if not is_first:
            sock.close()
            launcher.end()
        sys.stdout = sys.stderr = None
