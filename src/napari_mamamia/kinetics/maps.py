"""Contrast maps of a case: subtraction, PE, SER, peak PE.

Every function takes the phases as ``(phase, ...)``, usually ``(phase, z, y, x)``, in the file's
integer type or in floating point, and returns float32 of one phase's shape. The work is done in
blocks along the first spatial axis, so that extra memory is a few megabytes beside the result.
Where a map is undefined the value is NaN, never 0.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import Job, Progress, run_job
from napari_mamamia.kinetics.timing import PhaseChoice

__all__ = [
    "KineticMap",
    "map_job",
    "peak_enhancement",
    "percent_enhancement",
    "signal_enhancement_ratio",
    "subtraction",
]

_BLOCK_VOXELS: Final = 1 << 19

Block = NDArray[np.float32]
_Formula = Callable[[NDArray[Any]], Block]


class KineticMap(StrEnum):
    """The maps that `map_job` computes over a whole volume, named as users read them."""

    SUBTRACTION = "subtraction"
    PERCENT_ENHANCEMENT = "percent enhancement"
    SIGNAL_ENHANCEMENT_RATIO = "signal enhancement ratio"
    PEAK_ENHANCEMENT = "peak enhancement"


def subtraction(signal: NDArray[Any], later: int, earlier: int = 0) -> NDArray[np.float32]:
    """Return phase `later` minus phase `earlier`, signed, in the signal's own unit.

    Examples
    --------
    >>> subtraction(np.array([[300], [100]], dtype=np.uint16), later=1)
    array([-200.], dtype=float32)
    """
    return run_job(_whole(signal, _subtraction(later, earlier), (later, earlier), ""))


def percent_enhancement(
    signal: NDArray[Any], phase: int, *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return PE = 100 (S - S0) / S0 of `phase` against phase 0, in percent.

    Parameters
    ----------
    signal
        ``(phase, ...)``, any real type.
    phase
        The post-contrast phase.
    eps
        Voxels with S0 <= eps are undefined, in the signal's unit.

    Returns
    -------
    numpy.ndarray
        float32; NaN where S0 <= eps or a value is not finite.

    Raises
    ------
    CaseError
        If a phase does not exist.

    Source: UCSF FTV code (SeQ). The I-SPY 1 dictionary of TCIA prints 100 S / S0; only the form
    with -1 agrees with that code.

    Examples
    --------
    >>> percent_enhancement(np.array([[100, 50, 0], [150, 40, 9]]), phase=1)
    array([ 50., -20.,  nan], dtype=float32)
    """
    return run_job(_whole(signal, _percent(phase, eps), (0, phase), ""))


def signal_enhancement_ratio(
    signal: NDArray[Any], early: int, late: int, *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return SER = (S_early - S0) / (S_late - S0), no unit.

    Above 1 the signal falls after the early phase (washout), near 1 it stays (plateau), below 1 it
    goes on rising.

    Returns
    -------
    numpy.ndarray
        float32; NaN where S0 <= eps, S_late - S0 <= eps, or a value is not finite.

    Raises
    ------
    CaseError
        If a phase does not exist.

    Source: Arasu, Hylton et al. 2011, figure 1; UCSF FTV code.

    Examples
    --------
    >>> signal_enhancement_ratio(np.array([[100, 100], [220, 220], [200, 90]]), early=1, late=2)
    array([1.2, nan], dtype=float32)
    """
    return run_job(_whole(signal, _ratio(early, late, eps), (0, early, late), ""))


def peak_enhancement(signal: NDArray[Any], *, eps: float = 0.0) -> NDArray[np.float32]:
    """Return the largest PE of all post-contrast phases, in percent.

    NaN as in `percent_enhancement`, and where any post-contrast phase is NaN.

    Examples
    --------
    >>> peak_enhancement(np.array([[100], [150], [180], [120]]))
    array([80.], dtype=float32)
    """
    return run_job(_whole(signal, _peak(eps), (0, 1), ""))


def map_job(
    signal: NDArray[Any], kind: KineticMap, choice: PhaseChoice, *, eps: float = 0.0
) -> Job[NDArray[np.float32]]:
    """Return a job that computes one map of a whole volume; progress counts planes.

    Parameters
    ----------
    signal
        ``(phase, z, y, x)``, any real type.
    kind
        Which map. The subtraction is early minus phase 0.
    choice
        The early and late phases, see `choose_phases`.
    eps
        As in `percent_enhancement`.

    Raises
    ------
    CaseError
        If the map needs a phase that `choice` leaves undefined, with its reason.
    """
    if kind is KineticMap.PEAK_ENHANCEMENT:
        return _whole(signal, _peak(eps), (0, 1), f"Computing {kind}")
    early, late = choice.early, choice.late
    if kind is KineticMap.SIGNAL_ENHANCEMENT_RATIO:
        if late is None:
            raise CaseError(f"SER needs a late phase, but {choice.reason}: choose another map")
        return _whole(signal, _ratio(early, late, eps), (0, early, late), f"Computing {kind}")
    formula = _percent(early, eps)
    if kind is KineticMap.SUBTRACTION:
        formula = _subtraction(early, 0)
    return _whole(signal, formula, (0, early), f"Computing {kind}")


def _subtraction(later: int, earlier: int) -> _Formula:
    def formula(block: NDArray[Any]) -> Block:
        return _float(block[later]) - _float(block[earlier])

    return formula


def _percent(phase: int, eps: float) -> _Formula:
    def formula(block: NDArray[Any]) -> Block:
        pre = _float(block[0])
        return _quotient(_float(block[phase]) - pre, pre, pre > eps, np.float32(100.0))

    return formula


def _ratio(early: int, late: int, eps: float) -> _Formula:
    def formula(block: NDArray[Any]) -> Block:
        pre = _float(block[0])
        fall = _float(block[late]) - pre
        defined = (pre > eps) & (fall > eps)
        return _quotient(_float(block[early]) - pre, fall, defined, np.float32(1.0))

    return formula


def _peak(eps: float) -> _Formula:
    def formula(block: NDArray[Any]) -> Block:
        pre = _float(block[0])
        rise = _float(block[1])
        for phase in block[2:]:
            np.maximum(rise, _float(phase), out=rise)
        rise -= pre
        return _quotient(rise, pre, pre > eps, np.float32(100.0))

    return formula


def _float(values: NDArray[Any]) -> Block:
    """Return a float32 copy in which every value that is not finite is NaN."""
    out = values.astype(np.float32)
    if np.issubdtype(values.dtype, np.floating):
        out[~np.isfinite(out)] = np.nan
    return out


def _quotient(over: Block, under: Block, defined: NDArray[np.bool_], factor: np.float32) -> Block:
    out = np.full_like(over, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        np.divide(over, under, out=out, where=defined)
        out *= factor
    out[~np.isfinite(out)] = np.nan
    return out


def _whole(
    signal: NDArray[Any], formula: _Formula, needed: tuple[int, ...], text: str
) -> Job[NDArray[np.float32]]:
    """Check the phases at once, and return the job that fills one map block by block."""
    if signal.ndim < 2 or not all(0 <= phase < signal.shape[0] for phase in needed):
        raise CaseError(
            f"this map needs phases {sorted(set(needed))} of a (phase, ...) array, got shape "
            f"{signal.shape}: choose phases that the case has"
        )
    return _fill(signal, formula, text)


def _fill(signal: NDArray[Any], formula: _Formula, text: str) -> Job[NDArray[np.float32]]:
    out = np.empty(signal.shape[1:], dtype=np.float32)
    total = signal.shape[1]
    yield Progress(0, total, text)
    for start, stop in _blocks(signal.shape[1:]):
        with np.errstate(invalid="ignore", over="ignore"):
            out[start:stop] = formula(signal[:, start:stop])
        yield Progress(stop, total, text)
    return out


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    per_plane = max(int(np.prod(shape[1:])), 1)
    step = max(_BLOCK_VOXELS // per_plane, 1)
    for start in range(0, shape[0], step):
        yield start, min(start + step, shape[0])
