"""The same as an ordinary user, where root would run the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as an ordinary user anyway"),
    pytest.mark.slow,
]

NOBODY = 65534
HERE = Path(__file__).parents[2]


def interpreter() -> str:
    """One of this version that everybody may run. Skips the test where there is none."""
    for path in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        if shutil.which(path) and _may_run(path):
            return path
    pytest.skip("no interpreter of this version is to be run by everybody")


def _may_run(path: str) -> bool:
    try:
        tried = subprocess.run([path, "-c", "import hudsim.coding"], **_as_nobody(Path("/tmp")), check=False)  # type: ignore[call-overload]
    except PermissionError:
        return False
    return bool(tried.returncode == 0)


def _as_nobody(folder: Path) -> dict[str, object]:
    path = os.pathsep.join([str(HERE), *(entry for entry in sys.path if entry.endswith("site-packages"))])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": path, "LANG": "C.UTF-8"}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": env, "cwd": folder, "capture_output": True}


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody reaches: pytest's own are its user's alone."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o777)  # noqa: PTH101
        yield Path(name)


def _tested(folder: Path, *files: str) -> None:
    tests = [str(HERE / "tests" / "coding" / file) for file in files]
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        f"--rootdir={HERE}",
        "-c",
        str(HERE / "pyproject.toml"),
    ]
    done = subprocess.run(
        [interpreter(), "-B", "-m", "pytest", *options, f"--basetemp={folder}/t", *tests],
        **_as_nobody(folder),  # type: ignore[call-overload]
        check=False,
        timeout=55,
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-1000:]


@pytest.mark.parametrize(
    "files",
    [["test_sandbox.py", "test_isolation.py"], ["test_workspace.py"], ["test_tree.py"], ["test_limits.py"]],
    ids=["sandbox", "workspace", "tree", "limits"],
)
def test_an_ordinary_user_has_the_same_sandbox(folder: Path, files: list[str]) -> None:
    _tested(folder, *files)
