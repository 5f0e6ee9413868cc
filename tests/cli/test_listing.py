from __future__ import annotations

from tests.cli.command import document, hudsim

WORLDS = {"arm-reach", "arm-lift", "arm-push", "pendulum", "test-card"}
POLICIES = {"hold", "random", "scripted", "mpc"}
ENVIRONMENTS = {"arm-reach", "arm-lift", "arm-push", "letters"}
AGENTS = {"noop", "oracle"}


def test_list_names_everything_with_a_line_about_it() -> None:
    done = hudsim("list")
    assert done.returncode == 0
    about = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert about.keys() >= WORLDS | POLICIES | ENVIRONMENTS | AGENTS
    assert about.keys() >= {"gym:ID", "mjcf:FILE.xml", "module:attr", "ws://…", "FILE.jsonl", "answer:TEXT"}
    assert "openpi:ws://…" in about
    assert all(about.values())
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_list_as_json() -> None:
    said = document("list")
    assert {world["name"] for world in said["worlds"]} >= WORLDS
    assert {policy["name"] for policy in said["policies"]} >= POLICIES
    assert {environment["name"] for environment in said["environments"]} >= ENVIRONMENTS
    assert {agent["name"] for agent in said["agents"]} >= AGENTS
    for entry in (entry for entries in said.values() for entry in entries):
        assert entry.keys() == {"name", "about", "target"}
