"""``Plugin``: pytest's, where the tests run: a test that had trouble across has failed, whatever it caught."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from hudsim.graders.crossing.errors import SolutionGone, explain
from hudsim.graders.crossing.tests_side import Crossing

__all__ = ["Plugin"]


class Plugin:
    """For ``pytest.main(plugins=[…])``. Gives the fixture ``solution``: ``solution.run([...])``."""

    def __init__(self, crossing: Crossing) -> None:
        self._crossing = crossing
        self.reasons: dict[str, str] = {}
        """By the id of a test or a file: why it cannot work across."""

    @pytest.fixture(name="solution", scope="session")
    def _solution(self) -> Crossing:
        return self._crossing

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        self._crossing.troubles()
        report = yield
        troubles = self._crossing.troubles()
        if troubles:
            self._explain(collector.nodeid, troubles)
            report.outcome, report.longrepr = "failed", str(troubles[0])
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: Any) -> Generator[None, Any, Any]:
        return (yield from self._around(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, Any, Any]:
        return (yield from self._around(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: Any) -> Generator[None, Any, Any]:
        return (yield from self._around(item))

    def _around(self, item: Any) -> Generator[None, Any, Any]:
        self._crossing.troubles()
        try:
            result = yield
        except BaseException as error:
            self._explain(item.nodeid, [*self._crossing.troubles(), error])
            raise
        troubles = self._crossing.troubles()
        if troubles:
            self._explain(item.nodeid, troubles)
            raise troubles[0]
        return result

    def _explain(self, test: str, errors: Sequence[BaseException]) -> None:
        for error in errors:
            reason = str(error) if isinstance(error, SolutionGone) else explain(error)
            if reason is not None:
                self.reasons.setdefault(test, reason)
                return
