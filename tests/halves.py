"""A half, a third or a sixth of a long list of cases by day, so that `make test` keeps its time."""

from collections.abc import Sequence
from typing import Any

import pytest


def half_by_day(cases: Sequence[Any]) -> list[Any]:
    """Return the cases as parameters: each second one is marked `night`."""
    return _each_by_day(cases, 2)


def third_by_day(cases: Sequence[Any]) -> list[Any]:
    """Return the cases as parameters: two of three are marked `night`."""
    return _each_by_day(cases, 3)


def sixth_by_day(cases: Sequence[Any]) -> list[Any]:
    """Return the cases as parameters: five of six are marked `night`."""
    return _each_by_day(cases, 6)


def _each_by_day(cases: Sequence[Any], n: int) -> list[Any]:
    at_night = pytest.mark.night
    return [pytest.param(case, marks=at_night) if at % n else case for at, case in enumerate(cases)]
