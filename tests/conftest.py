"""What every test has: hypothesis without a clock, and no setting of the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# Two cores, shared by the workers: an example that took long says nothing. CI draws the same examples each time.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True)
def _no_setting_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HUDSIM_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root."""
    return Path(__file__).resolve().parent.parent
