from __future__ import annotations

import json

from hudsim.contract import Contract
from tests.cli.command import document, hudsim, serving

SMALL = ("--set", "width=32", "--set", "height=16")


def test_the_schema_is_the_contracts() -> None:
    done = hudsim("contract", "schema")
    assert done.returncode == 0
    assert json.loads(done.stdout) == Contract.json_schema()


def test_show_prints_what_a_world_would_publish() -> None:
    said = document("contract", "show", "test-card", *SMALL, "--rate", "20")
    contract = Contract.load(said)
    assert contract.control_rate == 20
    assert contract.features["observation/camera0"].shape == (16, 32, 3)


def test_show_in_words_names_every_feature_on_a_line() -> None:
    done = hudsim("contract", "show", "pendulum", "--no-cameras", "--privileged")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "50 Hz" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["observation/state", "observation/physics", "action"]
    assert "privileged" in lines[2]


def test_show_asks_a_server_that_runs() -> None:
    with serving("test-card", *SMALL, "--mode", "paced") as (_, said):
        contract = Contract.load(document("contract", "show", said["url"]))
    assert contract.timing.mode == "paced"
