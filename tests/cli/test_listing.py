from __future__ import annotations

from tests.cli.command import document, hudsim

WORLDS = {"arm-reach", "arm-lift", "arm-push", "pendulum", "test-card"}
POLICIES = {"hold", "random", "scripted", "mpc"}


def test_list_names_each_world_and_policy_with_a_line_about_it() -> None:
    done = hudsim("list")
    assert done.returncode == 0
    about = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert about.keys() >= WORLDS | POLICIES | {"gym:ID", "mjcf:FILE.xml", "module:attr", "ws://…"}
    assert all(about.values())
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_list_as_json() -> None:
    said = document("list")
    assert {world["name"] for world in said["worlds"]} >= WORLDS
    assert {policy["name"] for policy in said["policies"]} >= POLICIES
    for entry in [*said["worlds"], *said["policies"]]:
        assert entry.keys() == {"name", "about", "target"}
