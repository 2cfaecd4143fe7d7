"""Check whether the phases of an imported exam show enhancement.

All thresholds are our choice and are used only for warnings.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_BODY: Final = 0.1
"""Fraction of the 99th percentile above which a block counts as body and not as air."""
_RISE: Final = 0.3
"""Relative rise that counts as enhancement; vessels, heart and tumours rise by 50 % and more."""
_LEAST_SHARE: Final = 0.002
"""Smallest fraction of the body in which the signal must rise."""
_REVERSED: Final = 3.0
"""Ratio of falling to rising blocks above which the order of the phases is in doubt."""


def enhancement_warnings(phases: Sequence[NDArray[Any]]) -> tuple[str, ...]:
    """Return warnings if the phases do not show the enhancement of a DCE exam.

    Parameters
    ----------
    phases
        Block means at the same positions in each phase, in order of time.
    """
    if len(phases) < 2:
        return ("there is only one phase, so enhancement cannot be checked",)
    brightest = np.maximum.reduce(list(phases))
    level = float(np.percentile(brightest, 99))
    if level <= 0:
        return ("the phases are empty: check the images",)
    body = brightest > _BODY * level
    first = np.maximum(phases[0][body], _BODY * level / 2)
    changes = [phase[body] / first - 1 for phase in phases[1:]]
    rising = max(float(np.mean(change > _RISE)) for change in changes)
    falling = max(float(np.mean(change < -_RISE)) for change in changes)
    if falling >= _LEAST_SHARE and falling > _REVERSED * rising:
        return (
            (
                f"phase 0 looks brighter than the later ones (the signal falls by {_RISE:.0%} in "
                f"{falling:.1%} of the body and rises in {rising:.1%}): check that phase 0 is "
                "pre-contrast, and check the order"
            ),
        )
    if rising < _LEAST_SHARE:
        return (
            (
                f"no enhancement is visible: after phase 0 the signal rises by {_RISE:.0%} in "
                f"{rising:.2%} of the body, but at least {_LEAST_SHARE:.1%} is expected. Check "
                "that these are the DCE phases with contrast"
            ),
        )
    return ()
