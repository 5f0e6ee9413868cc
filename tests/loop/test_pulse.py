from __future__ import annotations

import os
import subprocess
import sys

from hudsim.loop import Pulse


def test_another_process_reads_the_pulse_through_the_descriptor_alone() -> None:
    fd = Pulse.create_fd()
    pulse = Pulse.shared(fd)
    pulse.busy_since_ns = 123_456_789_012
    code = f"from hudsim.loop import Pulse; p = Pulse.shared({fd}); print(p.busy_since_ns); p.busy_since_ns = 7"
    done = subprocess.run(
        [sys.executable, "-c", code], pass_fds=[fd], capture_output=True, text=True, check=True, timeout=30
    )
    os.close(fd)
    assert done.stdout.strip() == "123456789012"
    assert pulse.busy_since_ns == 7
