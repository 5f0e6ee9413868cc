"""What is installed is what is here, and imports stay in their layers."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

import hudsim

LINKED = ("adapters", "bench", "bridges", "coding_envs", "policies")
DATA = {".json", ".jsonl", ".md", ".obj", ".onnx", ".png", ".stl", ".toml", ".txt", ".xml"}
HEAVY = ("av", "cv2", "gymnasium", "mujoco", "torch")

# One worker builds, once.
pytestmark = pytest.mark.xdist_group("packaging")


def python(code: str) -> str:
    """Run code in a new interpreter, away from the checkout, and return what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sources(root: Path) -> Iterator[Path]:
    """Every file that should be installed: code and data of hudsim/, what it links to included."""
    for folder, folders, names in os.walk(root / "hudsim", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if Path(name).suffix in DATA | {".py", ".typed"}:
                yield Path(folder, name).relative_to(root)


@pytest.fixture(scope="module")
def dist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the sdist of a copy of the checkout, and the wheel that was built from that sdist."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("hudsim", *LINKED):
        shutil.copytree(repository / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "CHANGELOG.md", "constraints.txt"):
        shutil.copy(repository / name, copy)
    assets = copy / "bridges" / "somewhere" / "assets"  # data, in a folder that is no package
    assets.mkdir(parents=True)
    (copy / "bridges" / "somewhere" / "__init__.py").touch()
    for suffix in DATA:
        (assets / f"some{suffix}").write_bytes(b"data")
    out = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return out


@pytest.mark.parametrize("name", LINKED)
def test_each_folder_beside_the_package_is_linked_into_it_relatively(repository: Path, name: str) -> None:
    link = repository / "hudsim" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..", name)
    assert (repository / name / "__init__.py").is_file()


@pytest.mark.timeout(300)
def test_a_wheel_holds_every_file_as_a_file_and_only_hudsim(repository: Path, dist: Path) -> None:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        entries = {entry.filename: entry for entry in wheel.infolist()}
    tops = {name.split("/")[0] for name in entries}
    assert tops == {"hudsim", f"hudsim-{hudsim.__version__}.dist-info"}
    assert {str(source) for source in sources(repository)} <= set(entries)
    for entry in entries.values():
        assert (entry.external_attr >> 16) & 0o170000 in {0, 0o100000}, f"{entry.filename} is no regular file"
    assert {f"hudsim/bridges/somewhere/assets/some{suffix}" for suffix in DATA} <= set(entries)


@pytest.mark.timeout(300)
def test_an_sdist_holds_every_file_as_a_file(repository: Path, dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        members = {member.name.split("/", 1)[-1]: member for member in sdist.getmembers()}
    assert {str(source) for source in sources(repository)} <= set(members)
    assert [name for name, member in members.items() if not (member.isfile() or member.isdir())] == []


@pytest.mark.timeout(300)
def test_a_wheel_runs_where_there_is_no_checkout(dist: Path, tmp_path: Path) -> None:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import hudsim.bridges as b; print(b.__file__)"
    assert python(code).strip() == str(tmp_path / "hudsim" / "bridges" / "__init__.py")


@pytest.mark.timeout(300)
def test_the_wheel_says_what_it_needs(dist: Path) -> None:
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        metadata = Parser().parsestr(wheel.read(f"hudsim-{hudsim.__version__}.dist-info/METADATA").decode())
        points = wheel.read(f"hudsim-{hudsim.__version__}.dist-info/entry_points.txt").decode()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"classic", "dev", "test", "video"} <= set(metadata.get_all("Provides-Extra", []))
    assert "hudsim = hudsim.cli.__main__:main" in points


def test_import_hudsim_brings_no_simulator() -> None:
    code = f"import sys, hudsim, hudsim.errors; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert python(code).strip() == "[]"


def test_import_hudsim_costs_less_than_import_numpy() -> None:
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    best = {name: min(float(python(code.format(name))) for _ in range(3)) for name in ("numpy", "hudsim")}
    assert best["hudsim"] < best["numpy"]


def test_every_name_that_hudsim_exports_is_there() -> None:
    for name in hudsim.__all__:
        assert getattr(hudsim, name) is not None
    assert set(hudsim.__all__) <= set(dir(hudsim))


def test_an_exported_name_is_the_class_at_its_home() -> None:
    from hudsim.bridge import Bridge

    assert hudsim.Bridge is Bridge
    with pytest.raises(AttributeError, match="no attribute 'Brigde'"):
        _ = hudsim.Brigde  # type: ignore[attr-defined]


def test_imports_point_down_the_layers(repository: Path) -> None:
    lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    done = subprocess.run(lint, capture_output=True, text=True, check=False, cwd=repository, timeout=50)
    assert done.returncode == 0, done.stdout


def test_nothing_imports_pickle(repository: Path) -> None:
    banned = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
    found = []
    for source in sources(repository):
        if source.suffix == ".py":
            for node in ast.walk(ast.parse((repository / source).read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                found += [f"{source}:{name}" for name in names if name.split(".")[0] in banned]
    assert found == []
