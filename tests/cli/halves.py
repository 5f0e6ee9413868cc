"""A coding environment as a user has it: one file, and a folder of hidden tests."""

from __future__ import annotations

from pathlib import Path

__all__ = ["RIGHT", "write_halves"]

RIGHT = "def half(n):\n    return n // 2\n"

ENV = '''
from pathlib import Path
from hudsim import Environment, Taskset
from hudsim.graders import PytestGrader

HERE = Path(__file__).parent
env = Environment("halves")
ws = env.workspace("halves", track_files=True)

@env.template()
async def halve(turn: int = 0):
    """Mend half."""
    await ws.write("sums.py", "def half(n):\\n    return n\\n")
    yield "half(4) is 4"
    yield await PytestGrader.evaluate(workspace=ws, tests=HERE / "hidden", modules=("sums",), timeout=20)

@halve.reference
def mended(turn=0):
    return {"files": {"sums.py": "def half(n):\\n    return n // 2\\n"}}

tasks = Taskset("halves", [halve()])
'''

TESTS = """
import pytest
import sums

def test_half_of_even_numbers():
    assert sums.half(4) == 2

def test_half_of_a_negative_number():
    assert sums.half(-4) == -2

def test_half_of_nothing_is_refused():
    with pytest.raises(TypeError):
        sums.half(None)
"""

AGENT = '''
from hudsim.coding import SSHClient

async def work(run):
    """Half a fix."""
    async with await SSHClient.of(run) as shell:
        await shell.run("echo one; echo two >&2; exit 3")
        await shell.run("sleep 60", timeout_s=0.2)
        await shell.write("sums.py", b"def half(n):\\n    return abs(n) // 2\\n")
'''


def write_halves(folder: Path) -> Path:
    """Put it there as env.py, agents.py and hidden/test_sums.py."""
    (folder / "hidden").mkdir(parents=True)
    (folder / "env.py").write_text(ENV)
    (folder / "agents.py").write_text(AGENT)
    (folder / "hidden" / "test_sums.py").write_text(TESTS)
    return folder
