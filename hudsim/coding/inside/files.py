"""The files of a sandbox: an SFTP server (version 3), with nothing but the standard library.

The host passes an SFTP channel's bytes through to :func:`serve` and looks at none of them. What happens here, happens
as the shell's own user, in its view of the files and under its limits: no path leads out, because there is nothing
outside. Only regular files are read and written, so nothing here waits for a FIFO's other end or a device. Names are
bytes, and stay as they are. The first byte on the socket, the host's, says in which order the client sends the two
paths of SYMLINK: ``o`` as OpenSSH does, ``s`` as the standard says.

https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02; the extensions: OpenSSH's PROTOCOL, section 4.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time

TYPE_CHECKING = False  # typing itself takes 8 ms
if TYPE_CHECKING:
    from typing import Any, ClassVar

_MOST = 1 << 18
"""Bytes of a packet."""
_MOST_DATA = _MOST - 1024
_MOST_HANDLES = 128
_PAGE = 100
"""Names in a reply to READDIR."""

_INIT, _VERSION, _EXTENDED, _EXTENDED_REPLY = 1, 2, 200, 201
_STATUS, _HANDLE, _DATA, _NAME, _ATTRS = 101, 102, 103, 104, 105
_OK, _EOF, _NO_SUCH_FILE, _DENIED, _FAILURE, _BAD_MESSAGE, _UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
_CODES = {
    errno.ENOENT: _NO_SUCH_FILE,
    errno.ENOTDIR: _NO_SUCH_FILE,
    errno.ELOOP: _NO_SUCH_FILE,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
}
_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _EXCLUSIVE = 1, 2, 4, 8, 16, 32
_SIZE, _OWNER, _MODE, _TIMES, _MORE = 1, 2, 4, 8, 1 << 31
_EXTENSIONS = {
    b"posix-rename@openssh.com": b"1",
    b"statvfs@openssh.com": b"2",
    b"fstatvfs@openssh.com": b"2",
    b"hardlink@openssh.com": b"1",
    b"fsync@openssh.com": b"1",
    b"lsetstat@openssh.com": b"1",
    b"limits@openssh.com": b"1",
}


class _Status(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Packet:
    """Takes a packet apart. What is not there raises ``struct.error``."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, code: str = ">I") -> int:
        (value,) = struct.unpack_from(code, self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)

    def string(self) -> bytes:
        size = self.number()
        if self._at + size > len(self._data):
            raise struct.error("a string ends after its packet")
        self._at += size
        return self._data[self._at - size : self._at]

    def path(self) -> bytes:
        return self.string() or b"."

    def attributes(self) -> dict[str, int]:
        flags = self.number()
        names = [("size", _SIZE, ">Q"), ("uid", _OWNER, ">I"), ("gid", _OWNER, ">I"), ("mode", _MODE, ">I")]
        names += [("atime", _TIMES, ">I"), ("mtime", _TIMES, ">I")]
        found = {name: self.number(code) for name, flag, code in names if flags & flag}
        if flags & _MORE:
            for _ in range(self.number()):
                self.string(), self.string()
        return found


class FileServer:
    """One client, one packet at a time: while it does not take its replies, nothing more is read from it."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._requests = open(sock.fileno(), "rb", _MOST, closefd=False)  # noqa: SIM115 - no path, and not ours
        self._openssh = True
        self._handles: dict[bytes, Any] = {}  # a file's descriptor, or a folder's names still to come
        self._count = 0

    def run(self) -> None:
        """Until the client hangs up, or sends what is no packet."""
        self._openssh = self._requests.read(1) == b"o"
        while len(head := self._requests.read(4)) == 4:
            size = int.from_bytes(head, "big")
            if not 1 <= size <= _MOST:
                return
            data = self._requests.read(size)
            if len(data) < size:
                return
            self._answer(data[0], _Packet(data[1:]))

    def _answer(self, kind: int, packet: _Packet) -> None:
        if kind == _INIT:
            extensions = b"".join(_string(name) + _string(version) for name, version in _EXTENSIONS.items())
            self._send(_VERSION, struct.pack(">I", 3) + extensions)
            return
        number = packet.number()
        try:
            do = self.requests.get(packet.string() if kind == _EXTENDED else kind, FileServer.unsupported)
            reply, body = do(self, packet) or _status(_OK, "")
        except _Status as error:
            reply, body = _status(error.code, str(error))
        except (struct.error, ValueError) as error:  # ValueError: a path with a null byte
            reply, body = _status(_BAD_MESSAGE, str(error))
        except OSError as error:
            reply, body = _status(_CODES.get(error.errno or 0, _FAILURE), error.strerror or str(error))
        self._send(reply, struct.pack(">I", number) + body)

    def _send(self, kind: int, body: bytes) -> None:
        self._sock.sendall(struct.pack(">IB", 1 + len(body), kind) + body)

    # Handles ------------------------------------------------------------------------------------------------------

    def _keep(self, what: Any) -> tuple[int, bytes]:
        self._count += 1
        name = self._count.to_bytes(8, "big")
        self._handles[name] = what
        return _HANDLE, _string(name)

    def _room(self) -> None:
        if len(self._handles) >= _MOST_HANDLES:
            raise _Status(_FAILURE, f"{_MOST_HANDLES} files and folders are open already")

    def _file(self, packet: _Packet) -> int:
        fd = self._handles.get(packet.string())
        if not isinstance(fd, int):
            raise _Status(_FAILURE, "no such handle")
        return fd

    def _open(self, packet: _Packet) -> Any:
        path, wanted, attributes = packet.path(), packet.number(), packet.attributes()
        flags = {_READ: os.O_RDONLY, _WRITE: os.O_WRONLY, _READ | _WRITE: os.O_RDWR}.get(wanted & (_READ | _WRITE))
        if flags is None:
            raise _Status(_BAD_MESSAGE, "to be opened neither for reading nor for writing")
        for bit, flag in ((_APPEND, os.O_APPEND), (_CREATE, os.O_CREAT), (_EXCLUSIVE, os.O_EXCL)):
            flags |= flag if wanted & bit else 0
        self._room()
        fd = _open_regular(path, flags, attributes.get("mode", 0o666) & 0o7777)
        try:
            if wanted & _TRUNCATE and flags & (os.O_WRONLY | os.O_RDWR):
                os.ftruncate(fd, 0)
        except OSError:
            os.close(fd)
            raise
        return self._keep(fd)

    def _close(self, packet: _Packet) -> None:
        what = self._handles.pop(packet.string(), None)
        if what is None:
            raise _Status(_FAILURE, "no such handle")
        os.close(what) if isinstance(what, int) else what.close()

    def _read(self, packet: _Packet) -> Any:
        fd, offset, size = self._file(packet), packet.number(">Q"), packet.number()
        data = os.pread(fd, min(size, _MOST_DATA), _offset(offset))
        if not data and size:
            raise _Status(_EOF, "end of file")
        return _DATA, _string(data)

    def _write(self, packet: _Packet) -> None:
        fd, offset, data = self._file(packet), _offset(packet.number(">Q")), memoryview(packet.string())
        while data:
            written = os.pwrite(fd, data, offset)
            data, offset = data[written:], offset + written

    def _fsync(self, packet: _Packet) -> None:
        os.fsync(self._file(packet))

    # What is there ------------------------------------------------------------------------------------------------

    def _stat(self, packet: _Packet) -> Any:
        return _ATTRS, _attributes(os.stat(packet.path()))

    def _lstat(self, packet: _Packet) -> Any:
        return _ATTRS, _attributes(os.lstat(packet.path()))

    def _fstat(self, packet: _Packet) -> Any:
        return _ATTRS, _attributes(os.fstat(self._file(packet)))

    def _statvfs(self, packet: _Packet) -> Any:
        return _EXTENDED_REPLY, _filesystem(os.statvfs(packet.path()))

    def _fstatvfs(self, packet: _Packet) -> Any:
        return _EXTENDED_REPLY, _filesystem(os.fstatvfs(self._file(packet)))

    def _opendir(self, packet: _Packet) -> Any:
        self._room()
        return self._keep(os.scandir(packet.path()))

    def _readdir(self, packet: _Packet) -> Any:
        entries = self._handles.get(packet.string())
        if entries is None or isinstance(entries, int):
            raise _Status(_FAILURE, "no such handle")
        names = []
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # gone meanwhile
                continue
            names.append(_string(entry.name) + _string(_long(entry.name, found)) + _attributes(found))
            if len(names) == _PAGE:
                break
        if not names:
            raise _Status(_EOF, "end of folder")
        return _NAME, struct.pack(">I", len(names)) + b"".join(names)

    def _realpath(self, packet: _Packet) -> Any:
        return _name(os.path.realpath(packet.path()))

    def _readlink(self, packet: _Packet) -> Any:
        return _name(os.readlink(packet.path()))

    # Changes ------------------------------------------------------------------------------------------------------

    def _setstat(self, packet: _Packet) -> None:
        _change(packet.path(), packet.attributes())

    def _lsetstat(self, packet: _Packet) -> None:
        _change(packet.path(), packet.attributes(), follow=False)

    def _fsetstat(self, packet: _Packet) -> None:
        _change(self._file(packet), packet.attributes())

    def _remove(self, packet: _Packet) -> None:
        os.unlink(packet.path())

    def _mkdir(self, packet: _Packet) -> None:
        os.mkdir(packet.path(), packet.attributes().get("mode", 0o777) & 0o7777)

    def _rmdir(self, packet: _Packet) -> None:
        os.rmdir(packet.path())

    def _rename(self, packet: _Packet) -> None:
        """Never over what is there, as the standard has it."""
        old, new = packet.path(), packet.path()
        if stat.S_ISDIR(os.lstat(old).st_mode):
            if os.path.lexists(new):
                raise _Status(_FAILURE, "the new name is taken")
            os.rename(old, new)
        else:
            os.link(old, new, follow_symlinks=False)
            os.unlink(old)

    def _posix_rename(self, packet: _Packet) -> None:
        os.rename(packet.path(), packet.path())

    def _symlink(self, packet: _Packet) -> None:
        one, other = packet.string(), packet.string()
        target, link = (one, other) if self._openssh else (other, one)
        os.symlink(target, link)

    def _hardlink(self, packet: _Packet) -> None:
        os.link(packet.path(), packet.path(), follow_symlinks=False)

    def _limits(self, packet: _Packet) -> Any:
        return _EXTENDED_REPLY, struct.pack(">QQQQ", _MOST, _MOST_DATA, _MOST_DATA, _MOST_HANDLES)

    def unsupported(self, packet: _Packet) -> Any:
        return _status(_UNSUPPORTED, "unsupported")

    requests: ClassVar[dict[int | bytes, Any]] = {
        3: _open, 4: _close, 5: _read, 6: _write, 7: _lstat, 8: _fstat, 9: _setstat, 10: _fsetstat, 11: _opendir,
        12: _readdir, 13: _remove, 14: _mkdir, 15: _rmdir, 16: _realpath, 17: _stat, 18: _rename, 19: _readlink,
        20: _symlink,
        b"posix-rename@openssh.com": _posix_rename,
        b"statvfs@openssh.com": _statvfs,
        b"fstatvfs@openssh.com": _fstatvfs,
        b"hardlink@openssh.com": _hardlink,
        b"fsync@openssh.com": _fsync,
        b"lsetstat@openssh.com": _lsetstat,
        b"limits@openssh.com": _limits,
    }  # fmt: skip


def _open_regular(path: bytes, flags: int, mode: int = 0) -> int:
    """A descriptor, never waited for: a FIFO, a device, a folder or a leased file is refused."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _Status(_FAILURE, "not a regular file")
    return fd


def _change(what: bytes | int, attributes: dict[str, int], *, follow: bool = True) -> None:
    if "size" in attributes:
        fd = _open_regular(what, os.O_WRONLY) if isinstance(what, bytes) else what
        try:
            os.ftruncate(fd, _offset(attributes["size"]))
        finally:
            if isinstance(what, bytes):
                os.close(fd)
    # The mode last: it may take away the right to do the rest.
    if "uid" in attributes:
        os.chown(what, attributes["uid"], attributes["gid"], follow_symlinks=follow)
    if "mtime" in attributes:
        os.utime(what, (attributes["atime"], attributes["mtime"]), follow_symlinks=follow)
    if "mode" in attributes:
        if not follow and isinstance(what, bytes) and stat.S_ISLNK(os.lstat(what).st_mode):
            raise _Status(_UNSUPPORTED, "a link has no mode of its own")
        os.chmod(what, attributes["mode"] & 0o7777)


def _offset(number: int) -> int:
    if number >= 1 << 63:
        raise _Status(_FAILURE, "beyond any file's end")
    return number


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _status(code: int, message: str) -> tuple[int, bytes]:
    return _STATUS, struct.pack(">I", code) + _string(message.encode(errors="replace")) + _string(b"")


def _name(path: bytes) -> tuple[int, bytes]:
    return _NAME, struct.pack(">I", 1) + _string(path) * 2 + struct.pack(">I", 0)


def _attributes(found: os.stat_result) -> bytes:
    times = [min(max(int(when), 0), 0xFFFFFFFF) for when in (found.st_atime, found.st_mtime)]
    flags = _SIZE | _OWNER | _MODE | _TIMES
    return struct.pack(">IQIIIII", flags, found.st_size, found.st_uid, found.st_gid, found.st_mode, *times)


def _long(name: bytes, found: os.stat_result) -> bytes:
    """As ``ls -l`` has it."""
    when = time.strftime("%b %d %Y", time.gmtime(max(found.st_mtime, 0)))
    words = f"{stat.filemode(found.st_mode)} {found.st_nlink:4} {found.st_uid:<8} {found.st_gid:<8} {found.st_size:8}"
    return f"{words} {when} ".encode() + name


def _filesystem(found: os.statvfs_result) -> bytes:
    numbers = [found.f_bsize, found.f_frsize, found.f_blocks, found.f_bfree, found.f_bavail, found.f_files]
    numbers += [found.f_ffree, found.f_favail, found.f_fsid & (2**64 - 1), found.f_flag, found.f_namemax]
    return struct.pack(">11Q", *numbers)


def serve(wire: Any) -> None:
    """Serve the client at the other end of ``wire.sock`` until it hangs up."""
    FileServer(wire.sock).run()
