"""``python -m hudsim.spawn MODULE PARENT``: a module as a program that ends with its parent from its first moment on.

Importing what a process serves may take seconds, and only then would it come to ask the kernel for that. So this
imports nothing else of hudsim.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

__all__ = ["command", "end_with"]

_PR_SET_PDEATHSIG = 1


def command(module: str) -> list[str]:
    """What starts ``module`` as a child of this process."""
    return [sys.executable, "-m", "hudsim.spawn", module, str(os.getpid())]


def end_with(parent: int, death: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel (Linux) send this process ``death`` when the thread of ``parent`` that started it ends."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, death)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def _main() -> None:
    module, parent = sys.argv[1:]
    end_with(int(parent))
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
