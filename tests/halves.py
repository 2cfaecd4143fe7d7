"""Half of a long list of cases by day, so that `make test` keeps its time; the rest at night."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def half_by_day(cases: Sequence[Any]) -> Iterable[Any]:
    """Return the cases as parameters: each second one is marked `night`."""
    for at, case in enumerate(cases):
        yield pytest.param(case, marks=pytest.mark.night) if at % 2 else case
