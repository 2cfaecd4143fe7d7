"""Half of a long list of cases by day, so that `make test` keeps its time; the rest at night."""

from collections.abc import Sequence
from typing import Any

import pytest


def half_by_day(cases: Sequence[Any]) -> list[Any]:
    """Return the cases as parameters: each second one is marked `night`."""
    at_night = pytest.mark.night
    return [pytest.param(case, marks=at_night) if at % 2 else case for at, case in enumerate(cases)]
