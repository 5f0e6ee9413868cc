"""A workspace in an environment: every run has its own, and its agent the key to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hudsim.agents import Noop
from hudsim.coding import SSHClient, Workspace
from hudsim.environment import ControlClient, Environment, EnvironmentServer
from hudsim.errors import EnvironmentFailed, HudsimError, UsageError
from hudsim.eval import Run, Taskset
from tests.asyncrun import on_loop


@contextlib.asynccontextmanager
async def served(environment: Environment) -> AsyncIterator[str]:
    server = EnvironmentServer(environment, bearer="t")
    address = await server.start()
    try:
        yield address.url
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def shell_of(control: ControlClient, started: dict[str, object], name: str = "shell") -> AsyncIterator[SSHClient]:
    bindings = started["bindings"]
    assert isinstance(bindings, dict)
    capability = await control.reach(control.capabilities[name])
    async with await SSHClient.connect(capability, bindings[name]) as client:
        yield client


def adding() -> tuple[Environment, Workspace, list[Path]]:
    environment = Environment("adding")
    ws = environment.workspace("workspace", network=False)
    roots: list[Path] = []

    @environment.template()
    async def add(n: int = 0):  # type: ignore[no-untyped-def]
        (ws.root / "n").write_text(str(n))
        roots.append(ws.root)
        yield "write n + 1 to m"
        yield float((await ws.run("cat m")).text == f"{n + 1}\n")

    @environment.template()
    async def untouched():  # type: ignore[no-untyped-def]
        yield "leave a file"
        yield float((await ws.run("test -f file")).code == 0)

    @environment.template()
    async def broken():  # type: ignore[no-untyped-def]
        roots.append(ws.root)
        await ws.run("sleep 72 & exit 0")
        if not roots[0].exists():
            yield ""
        raise RuntimeError("no")

    return environment, ws, roots


@on_loop
async def test_runs_at_once_have_directories_and_keys_of_their_own() -> None:
    environment, _, roots = adding()

    async def one(url: str, n: int) -> float:
        async with await ControlClient.connect(url) as control:
            started = await control.start("add", {"n": n})
            async with shell_of(control, started) as shell:
                assert (await shell.run("cat n")).text == str(n)
                await shell.run(f"echo {n + 1} > m")
            return float((await control.grade())["score"])

    async with served(environment) as url:
        assert await asyncio.gather(*(one(url, n) for n in range(5))) == [1.0] * 5
    assert len(set(roots)) == 5
    assert not any(root.exists() for root in roots)


@on_loop
async def test_one_runs_key_opens_no_others_workspace() -> None:
    environment, _, _ = adding()
    async with (
        served(environment) as url,
        await ControlClient.connect(url) as one,
        await ControlClient.connect(url) as two,
    ):
        first = await one.start("add", {"n": 1})
        await two.start("add", {"n": 2})
        async with shell_of(one, first) as shell:
            assert (await shell.run("cat n; ls /")).text.startswith("1")
        await one.grade()
        with pytest.raises(HudsimError):
            async with shell_of(two, first) as shell:  # its run is over
                await shell.run("true")


@on_loop
async def test_the_agent_finds_the_shell_though_the_template_never_touched_it() -> None:
    environment, _, _ = adding()
    async with served(environment) as url, await ControlClient.connect(url) as control:
        started = await control.start("untouched")
        async with shell_of(control, started) as shell:
            await shell.run("touch file; setsid sleep 73 & exit 0")
        assert (await control.grade())["score"] == 1.0


@on_loop
async def test_a_template_that_raises_leaves_no_room() -> None:
    environment, _, roots = adding()
    async with served(environment) as url, await ControlClient.connect(url) as control:
        with pytest.raises(HudsimError, match="no"):
            await control.start("broken")
        assert not roots[0].exists()


@on_loop
async def test_a_peer_that_leaves_takes_its_room_along() -> None:
    environment, _, roots = adding()
    async with served(environment) as url:
        control = await ControlClient.connect(url)
        await control.start("add", {"n": 1})
        assert roots[0].exists()
        await control.close()
        for _ in range(500):
            if not roots[0].exists():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the room is still there")


@on_loop
async def test_the_capability_says_where_the_agent_is_and_what_isolates_it() -> None:
    environment, _, _ = adding()
    async with served(environment):
        capability = environment.capability("shell")
        assert capability.protocol == "ssh/2"
        assert capability.params["cwd"] == "/workspace"
        assert capability.params["isolation"]["isolation"] == "bubblewrap"
        assert json.dumps(capability.to_manifest())
        assert environment.slots is None


@on_loop
async def test_outside_of_a_run_there_is_no_directory() -> None:
    environment, ws, _ = adding()
    async with served(environment):
        with pytest.raises(UsageError, match="outside of a template"):
            _ = ws.root


@on_loop
async def test_an_absolute_root_has_one_run_at_a_time(tmp_path: Path) -> None:
    environment = Environment("fixed")
    ws = environment.workspace(tmp_path / "repo")

    @environment.template()
    async def look():  # type: ignore[no-untyped-def]
        yield (await ws.run("ls")).text or "empty"
        yield 1.0

    async with served(environment) as url:
        assert environment.slots == 1
        async with await ControlClient.connect(url) as one, await ControlClient.connect(url) as two:
            started = await one.start("look")
            with pytest.raises(HudsimError, match="another run is in"):
                await two.start("look")
            async with shell_of(one, started) as shell:
                await shell.run("touch left")
            await one.grade()
            assert (await two.start("look"))["prompt"] == "empty"


@on_loop
async def test_changes_are_told_over_the_tunnel() -> None:
    environment = Environment("tracked")
    ws = environment.workspace("workspace", track_files=True)

    @environment.template()
    async def change():  # type: ignore[no-untyped-def]
        (ws.root / "a.py").write_text("a = 1\n")
        (ws.root / "gone").write_text("x")
        yield "change"
        yield 1.0

    async with served(environment) as url, await ControlClient.connect(url) as control:
        started = await control.start("change")
        async with shell_of(control, started) as shell:
            await shell.run("echo 'b = 2' >> a.py; rm gone; head -c 1000 /dev/urandom > bin; echo k > .env")
        tracking = await control.reach(control.capabilities["filetracking"])
        reader, writer = await asyncio.open_connection(*tracking.endpoint)
        token = started["bindings"]["filetracking"]["token"]
        writer.write(json.dumps({"token": token}).encode() + b'\n{"method": "changes"}\n{"method": "x"}\n')
        told = json.loads(await reader.readline())
        changes = {change["path"]: change for change in told["changes"]}
        assert {path: change["change"] for path, change in changes.items()} == {
            "a.py": "modified",
            "gone": "removed",
            "bin": "added",
            ".env": "added",
        }
        assert changes["a.py"]["diff"] == "--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n a = 1\n+b = 2\n"
        assert changes["bin"]["diff"] is None
        assert changes[".env"]["diff"] is None
        assert "error" in json.loads(await reader.readline())
        writer.close()
        reader, writer = await asyncio.open_connection(*tracking.endpoint)
        writer.write(b'{"token": "wrong"}\n')
        assert json.loads(await reader.readline()) == {"error": "no such token"}
        writer.close()


@on_loop
async def test_a_machine_without_isolation_starts_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from hudsim.coding import workspace
    from hudsim.errors import SandboxError

    async def leaks(**_: object) -> None:
        raise SandboxError("this machine does not isolate: network: reached")

    environment, _, _ = adding()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace, "probe", leaks)
        with pytest.raises((SandboxError, EnvironmentFailed), match="does not isolate"):
            await environment.start()


@on_loop
async def test_what_an_agent_did_to_its_files_is_in_its_runs_record() -> None:
    environment, _, _ = adding()

    async def agent(run: Run) -> None:
        async with await SSHClient.of(run) as shell:
            await shell.run("echo 8 > m; echo 9 >> n; touch \"$(printf 'odd\\377')\"; mkdir .git; touch .git/HEAD")

    job = await Taskset("adding", [environment.templates["add"](n=7)]).run(agent, runs=None)
    (run,) = job.runs
    assert run.reward == 1.0, run.error
    (step,) = (step for step in run.trace.steps if step.data.get("phase") == "files")
    assert (step.source, step.data["workspace"], step.data["left_out"]) == ("task", "shell", 0)
    told = {change["path"]: (change["change"], change["diff"]) for change in step.data["changes"]}
    assert told == {
        "m": ("added", "--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+8\n"),
        "n": ("modified", "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-7\n\\ No newline at end of file\n+79\n"),
        "odd\N{REPLACEMENT CHARACTER}": ("added", ""),
    }


@on_loop
async def test_a_run_whose_files_are_as_they_were_has_no_record_of_them() -> None:
    environment, _, _ = adding()
    job = await Taskset("adding", [environment.templates["add"]()]).run(Noop(), runs=None)
    assert not [step for step in job.runs[0].trace.steps if "changes" in step.data]
