"""Compute voxel maps block by block, which keeps each block in the CPU cache.

Every function takes the phases as ``(phase, ...)``, usually ``(phase, z, y, x)``, in the file's
integer type or in floating point, and returns float32 with the shape of one phase. Blocks need only
a few megabytes in addition to the result. Undefined values are NaN, never 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.kinetics import map_formulas
from napari_mamamia.kinetics.curves import CurveThresholds
from napari_mamamia.kinetics.map_formulas import Formula
from napari_mamamia.kinetics.time_axis import known_times
from napari_mamamia.kinetics.timing import PhaseChoice

_BLOCK_VOXELS: Final = 1 << 16
"""Number of voxels in a block; with 256 kB of float32, the arrays fit into one core's cache.

A quarter of this size and four times this size are slower.
"""

_VOXELS_PER_STEP: Final = 1 << 20
"""Number of voxels between two progress reports, which take about 20 ms."""


@dataclass(frozen=True, slots=True)
class MapRecipe:
    """Definition of a map: its formula, the phases it needs, and its data type."""

    formula: Formula
    needed: tuple[int, ...]
    text: str = ""
    dtype: type[Any] = np.float32

    def compute(self, signal: NDArray[Any]) -> NDArray[Any]:
        """Compute and return the whole map; errors are those of `fill`."""
        with listening(None):
            return self.fill(signal)

    def fill(self, signal: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the map into `out`, or into a new array if `out` is None.

        Progress is reported in positions along the first spatial axis.

        Raises
        ------
        CaseError
            If `signal` lacks a phase that the map needs.
        """
        if signal.ndim < 2 or not all(0 <= phase < signal.shape[0] for phase in self.needed):
            raise CaseError(
                f"this map needs phases {sorted(set(self.needed))}, but the (phase, ...) array "
                f"has shape {signal.shape}; choose phases of this case"
            )
        return self._fill_map(signal, out)

    def _fill_map(self, signal: NDArray[Any], given: NDArray[Any] | None) -> NDArray[Any]:
        out = np.empty(signal.shape[1:], self.dtype) if given is None else given
        total, waiting = signal.shape[1], 0
        report_progress(0, total, self.text)
        for planes, rows, ends in _iterate_blocks(signal.shape[1:]):
            block = signal[:, planes, rows] if signal.ndim > 2 else signal[:, planes]
            target = out[planes, rows] if signal.ndim > 2 else out[planes]
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                self.formula(block, target)
            waiting += target.size
            if ends and (waiting >= _VOXELS_PER_STEP or planes.stop == total):
                waiting = 0
                report_progress(planes.stop, total, self.text)
        return out


def _iterate_blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, bool]]:
    """Yield the plane range and row range of each block, and whether it includes the last row."""
    n_rows = shape[1] if len(shape) > 1 else 1
    per_row = max(int(np.prod(shape[2:])), 1)
    rows = max(min(_BLOCK_VOXELS // per_row, n_rows), 1)
    planes = max(_BLOCK_VOXELS // (per_row * rows), 1) if rows >= n_rows else 1
    for plane in range(0, shape[0], planes):
        index = slice(plane, min(plane + planes, shape[0]))
        for row in range(0, max(n_rows, 1), rows):
            yield index, slice(row, row + rows), row + rows >= n_rows


def subtraction(signal: NDArray[Any], later: int, earlier: int = 0) -> NDArray[np.float32]:
    """Return the signed difference: phase `later` minus phase `earlier`.

    The result is in the signal's unit. Progress is reported in planes.

    Parameters
    ----------
    signal
        The signal ``(phase, ...)`` in any real data type.
    later, earlier
        The indices of the two phases.

    Examples
    --------
    >>> subtraction(np.array([[[[300]]], [[[100]]]], dtype=np.uint16), later=1)
    array([[[-200.]]], dtype=float32)
    """
    return MapRecipe(map_formulas.difference(later, earlier), (later, earlier)).fill(signal)


def percent_enhancement(
    signal: NDArray[Any], phase: int, *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return the percent enhancement PE = 100 (S - S0) / S0 of `phase` relative to phase 0.

    Parameters
    ----------
    signal
        The signal ``(phase, ...)`` in any real data type.
    phase
        The post-contrast phase.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.

    Returns
    -------
    numpy.ndarray
        A float32 array that is NaN where S0 <= eps or a value is not finite.

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
    return MapRecipe(map_formulas.percent(phase, eps), (0, phase)).compute(signal)


def signal_enhancement_ratio(
    signal: NDArray[Any], early: int, late: int, *, eps: float = 0.0
) -> NDArray[np.float32]:
    """Return the signal enhancement ratio SER = (S_early - S0) / (S_late - S0), which has no unit.

    If SER is above 1, the signal falls after the early phase (washout); near 1, it remains constant
    (plateau); below 1, it continues to rise.

    Parameters
    ----------
    signal
        The signal ``(phase, ...)`` in any real data type.
    early, late
        The indices of the two phases.
    eps
        The result is undefined if S0 or S_late - S0 is at most this value.

    Returns
    -------
    numpy.ndarray
        A float32 array that is NaN where S0 <= eps, S_late - S0 <= eps, or a value is not finite.

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
    formula = map_formulas.ratio(early, late, eps)
    return MapRecipe(formula, (0, early, late)).compute(signal)


def peak_enhancement(signal: NDArray[Any], *, eps: float = 0.0) -> NDArray[np.float32]:
    """Return the largest percent enhancement (PE) of all post-contrast phases.

    The result is NaN as in `percent_enhancement`, and if any post-contrast phase is NaN.

    Parameters
    ----------
    signal
        The signal ``(phase, ...)`` in any real data type.
    eps
        The result is undefined if S0 is at most this value, in the signal's unit.

    Examples
    --------
    >>> peak_enhancement(np.array([[100], [150], [180], [120]]))
    array([80.], dtype=float32)
    """
    return MapRecipe(map_formulas.peak(eps), (0, 1)).compute(signal)


def ratio_recipe(choice: PhaseChoice) -> MapRecipe:
    """Return the recipe for an SER map from the chosen phases.

    Raises
    ------
    CaseError
        If there is no late phase; the message gives the reason.
    """
    early, late = choice.early, _require_late(choice, "SER")
    return MapRecipe(map_formulas.ratio(early, late, 0.0), (0, early, late), "Computing SER")


def type_recipe(choice: PhaseChoice, thresholds: CurveThresholds | None = None) -> MapRecipe:
    """Return the recipe for a curve-type map (uint8) from the phases of `choose_curve_phases`.

    Parameters
    ----------
    choice
        The initial and the delayed phase.
    thresholds
        The thresholds of the classes; None for the defaults.

    Raises
    ------
    CaseError
        If there is no delayed phase; the message gives the reason.
    """
    early, late = choice.early, _require_late(choice, "The curve type")
    formula = map_formulas.curve_type(early, late, thresholds or CurveThresholds(), 0.0)
    return MapRecipe(formula, (0, early, late), dtype=np.uint8)


def _require_late(choice: PhaseChoice, name: str) -> int:
    if choice.late is None:
        raise CaseError(
            f"expected a late phase for {name}, but {choice.reason}; choose a different map"
        )
    return choice.late


def required_times(times_s: Sequence[float | None], name: str) -> tuple[float, ...]:
    """Return the times of the phases in s; raise `CaseError` if they are unknown.

    Parameters
    ----------
    times_s
        The time of each phase in s after the start of phase 0; None if unknown.
    name
        The name of the map in messages.
    """
    times, why = known_times(times_s)
    if times is None or len(times) < 2:
        why = why or "there is no post-contrast phase"
        raise CaseError(f"expected acquisition times for {name}, but {why}; enter the times")
    return times
