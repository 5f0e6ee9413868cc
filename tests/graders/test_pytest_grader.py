"""The grader against real sandboxes; what solutions try against it is in ``test_attacks.py``."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hudsim.coding import Workspace
from hudsim.coding.bubblewrap import Bind
from hudsim.errors import SandboxError, UsageError
from hudsim.graders import BashGrader, EvaluationResult, PytestGrader, Verdict, combine
from hudsim.testing import ATTACKS
from tests.asyncrun import on_loop, within
from tests.graders.grading import HIDDEN, IDS, RIGHT, WRONG, about, graded, only, outcomes

both_ways = pytest.mark.parametrize("way", ["separate", "same"])


def grade(*args: Any, **options: Any) -> EvaluationResult:
    out: list[EvaluationResult] = []

    async def main() -> None:
        out.append(await graded(*args, **options))

    within(50.0, main())
    return out[0]


@both_ways
def test_a_right_solution_passes_with_one_leaf_a_test(way: str) -> None:
    result = grade(RIGHT, process=way)
    assert (result.reward, result.outcome) == (1.0, Verdict.passed)
    assert outcomes(result) == dict.fromkeys(IDS, "passed")
    assert about(result)["outcomes"] == {"passed": 8}
    assert ("reads the test that calls it" in str(about(result)["trust"]["not_stopped"])) is (way == "same")
    assert result.problems() == []


@both_ways
def test_a_wrong_solution_fails_and_says_where(way: str) -> None:
    result = grade(WRONG, process=way)
    assert (result.reward, result.outcome) == (0.0, Verdict.failed)
    failed = {"test_add", "test_is_even", "TestDivide::test_by_nothing"}
    assert outcomes(result) == {one: "failed" if one.partition("::")[2] in failed else "passed" for one in IDS}
    leaf = next(leaf for leaf in only(result).children or () if leaf.name == IDS[0])
    assert "assert -1 == 3" in (leaf.info or {})["message"]


@both_ways
def test_a_share_of_the_tests_may_be_the_score(way: str) -> None:
    result = grade(WRONG, process=way, score="share")
    assert (result.reward, result.outcome) == (0.625, Verdict.partial)


@both_ways
def test_each_expected_test_must_pass_and_no_other_counts(way: str) -> None:
    assert grade(RIGHT, process=way, expected=IDS).reward == 1.0
    missing = grade(RIGHT, process=way, expected=[*IDS, "test_calc.py::test_gone"])
    assert (missing.reward, outcomes(missing)["test_calc.py::test_gone"]) == (0.0, "missing")
    assert grade(WRONG, process=way, expected=["test_calc.py::test_count"]).reward == 1.0


@both_ways
def test_a_solution_cannot_say_which_tests_there_are_once_they_are_expected(way: str) -> None:
    hidden = (
        "import calc, pytest\n@pytest.mark.parametrize('n', calc.CASES)\ndef test_n(n):\n    assert calc.f(n) == n\n"
    )
    ids = ["test_calc.py::test_n[1]", "test_calc.py::test_n[2]"]
    few = "CASES = [1]\ndef f(n): return 1\n"
    assert grade(few, hidden=hidden, process=way, expected=ids).reward == 0.0
    assert grade("CASES = []\n", hidden=hidden, process=way).reward == 0.0
    assert grade("CASES = [1, 2]\ndef f(n): return n\n", hidden=hidden, process=way, expected=ids).reward == 1.0


@both_ways
@pytest.mark.parametrize(
    "leaves_out",
    ["if not calc.READY:\n    pytest.skip('not yet', allow_module_level=True)\n", "pytest.importorskip('calc.more')\n"],
)
def test_a_file_of_tests_that_is_left_out_is_no_pass(way: Any, leaves_out: str, tmp_path: Path) -> None:
    (tmp_path / "test_calc.py").write_text("import calc\ndef test_a():\n    assert calc.f() == 1\n")
    hard = f"import calc, pytest\n{leaves_out}\ndef test_b():\n    assert calc.f() == 2\n"
    (tmp_path / "test_hard.py").write_text(hard)
    result = grade("READY = False\ndef f(): return 1\n", process=way, tests=tmp_path)
    assert outcomes(result) == {"test_calc.py::test_a": "passed", "test_hard.py::test_b": "missing"}
    assert result.reward == 0.0


@both_ways
def test_stubs_that_cannot_be_written_over_are_not_what_runs(way: str) -> None:
    def plant(root: Path) -> None:
        (root / "calc.py").write_text(WRONG)
        for folder in (root, root / "tests", root / "hidden"):
            folder.mkdir(exist_ok=True)
            (folder / "test_calc.py").write_text("def test_add(): pass\n")
            (folder / "test_calc.py").chmod(0o444)
        for folder in (root / "tests", root / "hidden"):
            folder.chmod(0o555)

    result = grade(plant, process=way)
    assert result.reward == 0.0
    assert set(outcomes(result)) == set(IDS)


@both_ways
@on_loop
async def test_what_a_solution_did_while_it_was_graded_is_gone_at_the_next_grade(way: Any, tmp_path: Path) -> None:
    (poison,) = (one for one in ATTACKS if one.name == "written-verdict")
    (tmp_path / "test_calc.py").write_text(HIDDEN)
    async with Workspace() as workspace:
        rewards = []
        for source, plants in ((WRONG, True), (RIGHT, False), (WRONG, False)):
            if plants:
                poison.plant(workspace.root, path="calc.py", source=source)
            else:
                (workspace.root / "calc.py").write_text(source)
            workspace.own()
            result = await PytestGrader.evaluate(
                workspace=workspace, tests=tmp_path, modules=("calc",), process=way, timeout=30
            )
            rewards.append(result.reward)
        assert rewards == [0.0, 1.0, 0.0]
        assert (tmp_path / "test_calc.py").read_text() == HIDDEN


@both_ways
def test_skips_and_expected_failures_of_the_tests_own_are_no_passes(way: str) -> None:
    hidden = (
        "import calc, pytest\n@pytest.mark.skip\ndef test_a(): pass\n@pytest.mark.xfail\ndef test_b(): assert 0\n"
        "@pytest.mark.xfail\ndef test_c(): pass\n"
    )
    result = grade(RIGHT, hidden=hidden, process=way)
    assert list(outcomes(result).values()) == ["skipped", "xfailed", "xpassed"]
    assert (result.reward, result.outcome) == (0.0, Verdict.failed)


@both_ways
@pytest.mark.parametrize(
    "solution", ["def broken(:\n", "import nothing_of_that_name\n", "raise ValueError('x')\n", None]
)
def test_a_solution_that_cannot_be_imported_fails(way: str, solution: str | None) -> None:
    def plant(root: Path) -> None:
        (root / "other.py").write_text(RIGHT)

    result = grade(plant if solution is None else solution, process=way)
    assert (result.reward, result.outcome) == (0.0, Verdict.failed)
    assert "passed" not in outcomes(result).values()


@both_ways
def test_tests_that_hold_no_test_are_no_grade(way: str) -> None:
    with pytest.raises(UsageError, match="no test is no grade"):
        grade(RIGHT, hidden="import calc\n", process=way)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"modules": ()}, "modules: got none"),
        ({"expected": []}, "got no test ids, which nothing could fail"),
        ({"score": "most"}, "expected all or share"),
        ({"process": "none"}, "expected separate or same"),
        ({"packages": ("nothing_of_that_name",)}, "package nothing_of_that_name: none of that name"),
        ({"tests": Path("/nowhere")}, "there is none"),
    ],
)
def test_what_cannot_be_a_grade_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        grade(RIGHT, **options)


def test_what_is_no_workspace_is_refused() -> None:
    with pytest.raises(UsageError, match="got a str, expected a Workspace"):
        asyncio.run(PytestGrader.evaluate(workspace="/tmp", tests=Path(), modules=("calc",)))


@both_ways
def test_a_hidden_suite_has_its_own_helpers_fixtures_and_configuration(way: str, tmp_path: Path) -> None:
    files = {
        "pytest.ini": "[pytest]\nmarkers = hard\naddopts = --strict-markers -x\n",
        "conftest.py": "import pytest\n@pytest.fixture\ndef three():\n    return 3\n",
        "helpers.py": "def twice(n):\n    return 2 * n\n",
        "data/n.txt": "5",
        "test_calc.py": "import calc, pytest\nfrom pathlib import Path\nfrom helpers import twice\n"
        "@pytest.mark.hard\ndef test_three(three):\n    assert calc.add(three, three) == twice(three)\n"
        "def test_data(tmp_path):\n    (tmp_path / 'x').write_text('1')\n"
        "    assert calc.add(int((Path(__file__).parent / 'data/n.txt').read_text()), 1) == 6\n",
        "sub/test_deep.py": "from calc import add as plus\ndef test_plus():\n    assert plus(1, 1) == 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = grade(RIGHT, tests=tmp_path, process=way)
    assert set(outcomes(result).items()) == {
        ("test_calc.py::test_three", "passed"),
        ("test_calc.py::test_data", "passed"),
        ("sub/test_deep.py::test_plus", "passed"),
    }
    assert result.reward == 1.0


def test_each_file_is_run_in_its_own_way(tmp_path: Path) -> None:
    where = "import calc, sys\ndef test_where():\n    assert ('calc' in str(getattr(calc, '__file__', None))) is {}\n"
    (tmp_path / "test_apart.py").write_text(where.format(False))
    (tmp_path / "test_here.py").write_text(where.format(True))
    result = grade(RIGHT, tests=tmp_path, process={"test_h*": "same"})
    assert outcomes(result) == {"test_apart.py::test_where": "passed", "test_here.py::test_where": "passed"}


@both_ways
def test_a_package_in_src_with_helpers_and_data_is_a_solution(way: str) -> None:
    def plant(root: Path) -> None:
        for name, text in {
            "src/calc/__init__.py": "from calc.core import add\nfrom .other import *\n",
            "src/calc/core.py": "import helper\ndef add(a, b):\n    return helper.plus(a, b)\n",
            "src/calc/other.py": "from pathlib import Path\nN = int((Path(__file__).parent / 'n.txt').read_text())\n",
            "src/calc/n.txt": "7",
            "src/helper.py": "def plus(a, b):\n    return a + b\n",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

    hidden = "import calc\nfrom calc.core import add\ndef test_a():\n    assert calc.N == add(3, 4)\n"
    assert grade(plant, hidden=hidden, process=way, files=("**/*",)).reward == 1.0
    assert grade(plant, hidden=hidden, process=way).reward == 0.0  # n.txt is no file of the solution's


@both_ways
def test_packages_of_the_host_are_seen_only_if_they_are_named(way: str) -> None:
    solution = "import numpy\ndef total(n):\n    return numpy.arange(n).sum()\n"
    hidden = "import calc\ndef test_a():\n    import numpy\n    assert calc.total(4) == numpy.int64(6)\n"
    assert grade(solution, hidden=hidden, process=way).reward == 0.0
    assert grade(solution, hidden=hidden, process=way, packages=("numpy",)).reward == 1.0


@both_ways
def test_a_class_that_may_answer_for_itself_is_named_by_the_author(way: str) -> None:
    solution = (
        "class Version:\n    def __init__(self, text): self.text = text\n"
        "    def __eq__(self, other): return self.text == (other if isinstance(other, str) else other.text)\n"
        "    def __hash__(self): return hash(self.text)\n    def __bool__(self): return bool(self.text)\n"
    )
    hidden = "import calc\ndef test_a():\n    v = calc.Version('1')\n    assert v == '1'\n    assert v\n"
    assert grade(solution, hidden=hidden, process=way).reward == 0.0
    assert grade(solution, hidden=hidden, process=way, comparable=("calc.Version",)).reward == 1.0


def test_a_test_that_cannot_work_across_says_why() -> None:
    hidden = (
        "import asyncio, calc\ndef test_a():\n    assert asyncio.run(calc.one()) == 1\n"
        "def test_b():\n    assert calc.N == 1\n"
    )
    result = grade("N = 1\nasync def one():\n    return 1\n", hidden=hidden)
    why = {leaf.name: (leaf.info or {}).get("crossing") for leaf in only(result).children or ()}
    assert "async" in str(why["test_calc.py::test_a"])
    assert why["test_calc.py::test_b"] is None


@both_ways
def test_a_unittest_suite_is_one_too(way: str) -> None:
    hidden = (
        "import unittest, calc\nclass TestSums(unittest.TestCase):\n    def test_add(self):\n"
        "        self.assertEqual(calc.add(1, 2), 3)\n        self.assertTrue(calc.is_even(2))\n"
    )
    assert grade(RIGHT, hidden=hidden, process=way).reward == 1.0
    lying = (
        "class Y(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n"
        "add = is_even = lambda *a: Y(1)\n"
    )
    assert grade(lying, hidden=hidden, process=way).reward == 0.0


@both_ways
def test_graded_code_sees_nothing_of_the_host(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "hunter2")
    solution = (
        "import os, socket\n"
        "def environment(): return dict(os.environ)\n"
        "def user(): return os.getuid()\n"
        "def processes(): return sum(name.isdigit() for name in os.listdir('/proc'))\n"
        "def listed(path):\n    try:\n        return sorted(os.listdir(path))\n    except OSError:\n        return []\n"
        "def dial(port):\n    try:\n        socket.create_connection(('127.0.0.1', port), 1)\n"
        "    except OSError as error:\n        return type(error).__name__\n"
        "def write(path):\n    try:\n        open(path, 'w').close()\n"
        "    except OSError as error:\n        return error.errno\n"
    )
    home = str(Path.home())
    hidden = (
        "import calc\ndef test_a():\n"
        "    assert 'SECRET_OF_THE_HOST' not in calc.environment()\n"
        f"    assert (calc.user() == 0) is False\n    assert '.ssh' not in calc.listed({home!r})\n"
        f"    assert calc.listed({str(Path.cwd())!r}) == []\n    assert calc.processes() < 5\n"
        "    assert calc.dial(22) is not None\n    assert calc.write('/usr/x') is not None\n"
        "    assert calc.write('/tests/x') is not None\n    assert calc.write('/workspace/x') is None\n"
    )
    result = grade(solution, hidden=hidden, process=way)
    assert result.reward == 1.0, [leaf.info for leaf in only(result).children or ()]


def test_the_solution_does_not_see_the_tests_from_its_own_sandbox() -> None:
    solution = (
        "import os\ndef seen():\n    return [path for path, _, names in os.walk('/') if 'test_calc.py' in names "
        "and not path.startswith('/proc')]\n"
    )
    hidden = "import calc, os\ndef test_a():\n    assert calc.seen() == []\n    assert os.path.exists(__file__)\n"
    assert grade(solution, hidden=hidden).reward == 1.0


@both_ways
@on_loop
async def test_what_the_agent_left_running_changes_nothing(way: str) -> None:
    async with _workspace(RIGHT) as workspace:
        script = f"while true; do echo '{WRONG}' > calc.py; sleep 0.001; done"
        await workspace.run(f"setsid nohup sh -c {script!r} >/dev/null 2>&1 &", timeout_s=5)
        await asyncio.sleep(0.1)
        frozen = await workspace.freeze()
        first = (frozen.folder / "calc.py").read_text()
        await asyncio.sleep(0.1)
        assert (workspace.root / "calc.py").read_text() == first


def full_disk(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def with_junk(root: Path) -> None:
    (root / "calc.py").write_text(RIGHT)
    with (root / "junk").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 65 << 20)


def test_a_disk_that_the_workspace_has_filled_is_a_valid_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", full_disk)
    result = grade(with_junk)
    assert (result.reward, result.outcome) == (0.0, Verdict.resource_limit)
    assert set(outcomes(result).values()) == {"missing"}
    assert "of the workspace left no room to grade it" in about(result)["why"][0]


def test_a_disk_that_others_have_filled_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", full_disk)
    with pytest.raises(SandboxError, match="no room left on this host's disk to grade on"):
        grade(RIGHT)


@both_ways
def test_a_solution_that_hangs_is_a_valid_0(way: str) -> None:
    result = grade(RIGHT + "\ndef add(a, b):\n    while True: pass\n", process=way, timeout=3)
    assert (result.reward, result.outcome, result.outcome.valid) == (0.0, Verdict.grade_timeout, True)
    assert about(result)["why"] == ["the tests did not come to their end in time"]


class Watched:
    """A workspace whose graders' sandboxes are known."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.boxes: list[Any] = []
        self._another: asyncio.Queue[None] = asyncio.Queue()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workspace, name)

    async def made(self, n: int) -> Any:
        """The n-th."""
        while len(self.boxes) <= n:
            await self._another.get()
        return self.boxes[n]

    def new_sandbox(self, binds: list[Bind], **options: Any) -> Any:
        self.boxes.append(self._workspace.new_sandbox(binds, **options))
        self._another.put_nowait(None)
        return self.boxes[-1]


@pytest.mark.parametrize(("way", "which"), [("separate", 0), ("separate", 1), ("same", 0)])
@on_loop
async def test_a_grader_that_is_killed_from_outside_is_an_error_and_no_0(way: Any, which: int, tmp_path: Path) -> None:
    (tmp_path / "test_calc.py").write_text("import calc\ndef test_a():\n    assert calc.slow() == 1\n")
    async with _workspace("import time\ndef slow():\n    time.sleep(20)\n    return 1\n") as workspace:
        watched = Watched(workspace)
        task = asyncio.ensure_future(
            PytestGrader.evaluate(workspace=watched, tests=tmp_path, modules=("calc",), process=way, timeout=15)
        )
        pid = (await (await watched.made(which)).sandbox()).pid
        await asyncio.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxError):
            await task


@pytest.mark.parametrize(("way", "which"), [("separate", 0), ("separate", 1), ("same", 0)])
@on_loop
async def test_a_grader_that_breaks_where_a_limit_was_met_is_a_valid_0(way: Any, which: int, tmp_path: Path) -> None:
    (tmp_path / "test_calc.py").write_text("import calc\ndef test_a():\n    assert calc.slow() == 1\n")
    async with _workspace("import time\ndef slow():\n    time.sleep(20)\n    return 1\n") as workspace:
        watched = Watched(workspace)
        task = asyncio.ensure_future(
            PytestGrader.evaluate(workspace=watched, tests=tmp_path, modules=("calc",), process=way, timeout=15)
        )
        box = await watched.made(which)
        pid = (await box.sandbox()).pid
        await asyncio.sleep(0.5)
        box.evidence = lambda: ["memory: 1 process was killed"]
        os.kill(pid, signal.SIGKILL)
        result = await task
        assert (result.reward, result.outcome) == (0.0, Verdict.resource_limit)
        assert about(result)["why"] == ["memory: 1 process was killed"]


@both_ways
@on_loop
async def test_whoever_stops_waiting_leaves_nothing(way: Any, tmp_path: Path) -> None:
    (tmp_path / "test_calc.py").write_text("import calc\ndef test_a():\n    assert calc.slow() == 1\n")
    async with _workspace("import time\ndef slow():\n    time.sleep(20)\n    return 1\n") as workspace:
        watched = Watched(workspace)
        task = asyncio.ensure_future(
            PytestGrader.evaluate(workspace=watched, tests=tmp_path, modules=("calc",), process=way, timeout=15)
        )
        await watched.made(0)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [box.folder.exists() for box in watched.boxes] == [False] * len(watched.boxes)


@on_loop
async def test_graders_of_one_episode_do_not_kill_each_other(tmp_path: Path) -> None:
    (tmp_path / "test_calc.py").write_text(HIDDEN)
    async with _workspace(RIGHT) as workspace:
        result = await combine(
            BashGrader.grade(workspace=workspace, command="sleep 0.3; test -s calc.py"),
            PytestGrader.grade(workspace=workspace, tests=tmp_path, modules=("calc",), timeout=20),
            PytestGrader.grade(workspace=workspace, tests=tmp_path, modules=("calc",), process="same", timeout=20),
            BashGrader.grade(workspace=workspace, command="sleep 0.3; grep -q 'a + b' calc.py"),
        )
        assert result.reward == 1.0
        assert [one.name for one in result.subscores or ()] == [
            "BashGrader-1", "PytestGrader-1", "PytestGrader-2", "BashGrader-2",
        ]  # fmt: skip


@contextlib.asynccontextmanager
async def _workspace(source: str) -> AsyncIterator[Workspace]:
    async with Workspace() as workspace:
        (workspace.root / "calc.py").write_text(source)
        workspace.own()
        yield workspace
