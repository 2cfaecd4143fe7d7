"""Names of phases and slices as shown to users, who count slices from 1.

Files and the library count from 0, but radiologists dictate "post 1, slice 87". The window and the
reports use these names.
"""

from typing import Final

NUMBERS_NOTE: Final = (
    "Slices are counted from 1, and phases are named pre, post 1, post 2; file names, tables "
    "and the Python library count both from 0 (pre is phase 0, post 1 is phase 1)."
)
"""Note for reports that explains how phases and slices are counted."""


def phase_name(phase: int, n_before: int | None = 1) -> str:
    """Return the display name of a phase.

    Parameters
    ----------
    phase
        Index of the phase, from 0.
    n_before
        Number of phases before the injection of contrast agent, or None if it is not known yet.

    Examples
    --------
    >>> phase_name(0), phase_name(2), phase_name(0, n_before=2), phase_name(2, n_before=2)
    ('pre', 'post 2', 'pre 1', 'post 1')
    >>> phase_name(0, n_before=None), phase_name(2, n_before=None)
    ('phase 1', 'phase 3')
    """
    if n_before is None:
        return f"phase {phase + 1}"
    if phase >= n_before:
        return f"post {phase - n_before + 1}"
    return "pre" if n_before == 1 else f"pre {phase + 1}"


def phase_and_time(phase: int, time_s: float | None, n_before: int = 1) -> str:
    """Return the display name of a phase, followed by its time if the time is known.

    Examples
    --------
    >>> phase_and_time(2, 147.2), phase_and_time(2, None)
    ('post 2 (147 s)', 'post 2')
    """
    name = phase_name(phase, n_before)
    return name if time_s is None else f"{name} ({time_s:.0f} s)"


def slice_number(index: int) -> int:
    """Return the slice number (from 1) for a slice index (from 0)."""
    return index + 1


def slice_text(index: int, count: int) -> str:
    """Return the slice number for a slice index, together with the total number of slices.

    Examples
    --------
    >>> slice_text(86, 160)
    'slice 87 of 160'
    """
    return f"slice {slice_number(index)} of {count}"
