"""``BridgeConformance``: a bridge's tests, to be had by naming the bridge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from hudsim.robot.bridge import Array, RobotBridge
from hudsim.testing import checks
from hudsim.testing.finding import Finding
from hudsim.testing.subject import Subject

__all__ = ["BridgeConformance"]


class BridgeConformance:
    """Subclass it in a test file, say how the bridge is made, and pytest runs every test below.

    ::

        class TestMyBridge(BridgeConformance):
            def make_bridge(self, **options):
                return MyBridge(**options)

    A vector bridge's ``make_bridge`` names ``num_envs`` among its parameters; it is then tested with several.

    task_args
        For every reset.
    random
        False: the world starts the same whatever the seed.
    """

    task_args: ClassVar[Mapping[str, Any]] = {}
    random: ClassVar[bool] = True

    def make_bridge(self, *args: Any, **options: Any) -> RobotBridge:
        """A new bridge. To be overridden."""
        raise NotImplementedError(f"{type(self).__name__}.make_bridge")

    def recognise(self, image: Array) -> str:
        """How a test card is turned that the world shows, as ``hudsim.bridges.testcard.recognise`` says it."""
        return "not a test card"

    def setup_method(self) -> None:
        """Called by pytest before each test."""
        self.subject = Subject(self.make_bridge, self.task_args, self.recognise)

    def teardown_method(self) -> None:
        """Called by pytest after each test."""
        self.subject.close()

    def test_observations_are_as_the_contract_says(self) -> None:
        _hold(checks.check_observations(self.subject))

    def test_cameras_show_something_in_the_right_layout(self) -> None:
        _hold(checks.check_cameras(self.subject))
        _hold(checks.check_test_card(self.subject))

    def test_an_episode_is_a_function_of_its_seed(self) -> None:
        found = list(checks.check_determinism(self.subject))
        _hold([finding for finding in found if self.random or finding.what != "seeds"])

    def test_the_last_observation_is_the_episodes_own(self) -> None:
        _hold(checks.check_ending(self.subject))

    def test_a_slot_does_not_depend_on_its_neighbours(self) -> None:
        _hold(checks.check_slots(self.subject))

    def test_closing_twice_does_no_harm(self) -> None:
        _hold(checks.check_close(self.subject))


def _hold(found: Iterable[Finding]) -> None:
    wrong = [str(finding) for finding in found if not finding.ok]
    if wrong:
        raise AssertionError("\n".join(wrong))
