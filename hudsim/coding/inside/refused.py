"""System calls that nothing in a sandbox is answered: ``refuse()``, with nothing but the standard library.

``add_key``, ``request_key``, ``keyctl``
    The kernel's keys know no namespace: a process has the session keyring of whoever started it, and an ordinary user's
    sandbox is to the kernel that user, who may use all of the user's keys.
``io_uring_…``
    A file can be held there without a descriptor, where nobody sees it.

They fail as on a kernel that has not got them, which programs know how to go on from.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_ABIS = {
    "x86_64": ((0xC000003E, 248), (0x40000003, 286)),
    "aarch64": ((0xC00000B7, 217), (0x40000028, 309)),
    "riscv64": ((0xC00000F3, 217),),
    "loongarch64": ((0xC0000102, 217),),
    "ppc64le": ((0xC0000015, 269),),
    "s390x": ((0x80000016, 278),),
}
"""By the machine: how its kernel names each of the sets of calls that it knows (``AUDIT_ARCH_…``), and the number of
``add_key`` there, which the two others follow."""
_IO_URING = 425
"""The first of three, everywhere."""
_X32 = 0x40000000
_PR_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.ENOSYS
_NUMBER_AT, _ABI_AT = 0, 4


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def calls() -> dict[str, int]:
    """The numbers of the calls that are refused, as this interpreter makes them; {}: this machine's are unknown."""
    if struct.calcsize("P") != 8 or os.uname().machine not in _ABIS:
        return {}
    first = _ABIS[os.uname().machine][0][1]
    return {"add_key": first, "request_key": first + 1, "keyctl": first + 2, "io_uring_setup": _IO_URING}


def refuse() -> None:
    """From now on, to this process and all that it starts. Nothing happens where their numbers are unknown.

    Raises :class:`OSError` where the kernel has no filters.
    """
    abis = _ABIS.get(os.uname().machine)
    if abis is None:
        return
    code = _code(abis)
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "seccomp")


def _code(abis: tuple[tuple[int, int], ...]) -> bytes:
    """For the kernel's own little machine (bpf): jumps say how many steps are left out if so, and if not.

    What is not allowed goes on to the end, as no number of a call is the name of a set of them.
    """
    steps = [(_LOAD, 0, 0, _ABI_AT)]
    for abi, first in abis:
        steps += [
            (_EQUAL, 0, 7, abi),
            (_LOAD, 0, 0, _NUMBER_AT),
            (_AND, 0, 0, 0xFFFFFFFF & ~_X32),
            (_AT_LEAST, 0, 1, _IO_URING),
            (_AT_LEAST, 2, 3, _IO_URING + 3),
            (_AT_LEAST, 0, 1, first),
            (_AT_LEAST, 0, 1, first + 3),
            (_RETURN, 0, 0, _ALLOWED),
        ]
    steps.append((_RETURN, 0, 0, _REFUSED))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
