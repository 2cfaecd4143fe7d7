"""Automatic checks of a case and its mask, rated red, amber or green with a reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.filters import threshold_otsu

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.names import count_of
from napari_mamamia.core.progress import report_progress


class Light(StrEnum):
    """Severity of a finding: green is usable, amber needs a check, red is unusable as it is."""

    GREEN = "green"
    AMBER = "amber"
    RED = "red"


class Check(StrEnum):
    """What a check examines."""

    GEOMETRY = "geometry"
    VALUES = "values"
    DUPLICATES = "duplicate phases"
    EMPTY = "empty"
    OUTSIDE_BODY = "outside the body"
    BORDER = "touches the border"
    ISLANDS = "islands"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a check: its severity, and a sentence with the measured numbers."""

    light: Light
    check: Check
    text: str


_ORDER: Final = (Light.GREEN, Light.AMBER, Light.RED)
_SMALL_MM3: Final = 10.0  # our choice: about 10 voxels of 1 mm
_OUTSIDE_SHARE: Final = 0.10  # our choice: a thin rim of skin is usual
_BODY_GRID_MM: Final = 4.0
_ROUNDING_MM: Final = 1e-4  # float32 holds 500 mm to 3e-5 mm
_TOUCHING: Final = ndimage.generate_binary_structure(3, 3)


def worst_light(findings: tuple[Finding, ...]) -> Light:
    """Return the most severe light among the findings, or green if there are none.

    Examples
    --------
    >>> worst_light((Finding(Light.AMBER, Check.ISLANDS, ""),)).value
    'amber'
    """
    return max((f.light for f in findings), key=_ORDER.index, default=Light.GREEN)


def check_grids(grids: Sequence[Grid]) -> tuple[Finding, ...]:
    """Return findings on how the grids of a case's phases differ from the grid of phase 0.

    Red: a different shape, or corners farther apart than `SAME_PLACE_VOXELS` of the smallest
    spacing. Amber: affines that differ by less than that, but by more than float32 rounding (1e-4
    mm at a corner), which other software may report; sheared axes of phase 0, which programs built
    on ITK do not read.
    """
    findings = []
    if grids and grids[0].is_sheared:
        text = (
            "the axes are sheared, and programs built on ITK cannot read the file: mamamia "
            "straighten makes a copy with perpendicular axes"
        )
        findings.append(Finding(Light.AMBER, Check.GEOMETRY, text))
    for k, grid in enumerate(grids[1:], start=1):
        if grid.shape != grids[0].shape:
            text = f"phase {k} has shape {grid.shape} (z, y, x), but phase 0 has {grids[0].shape}"
            findings.append(Finding(Light.RED, Check.GEOMETRY, text))
            continue
        apart_mm = grids[0].farthest_corner_mm(grid)
        if apart_mm > _ROUNDING_MM:
            light = Light.AMBER if grid.is_same_place(grids[0]) else Light.RED
            text = f"phase {k} is up to {apart_mm:.3g} mm away from phase 0 (different affine)"
            findings.append(Finding(light, Check.GEOMETRY, text))
    return tuple(findings)


def check_phases(case: Case) -> tuple[Finding, ...]:
    """Return findings on the values of each phase.

    Red: all values of a phase are equal, or the phase is identical to another phase. Amber: some
    values are negative or not finite; the finding states how many. The phases are read plane by
    plane.
    """
    findings: list[Finding] = []
    prints: list[tuple[float, ...]] = []
    total = len(case.phases)
    for k, volume in enumerate(case.signal):
        sums, negative, unknown, low, high = [], 0, 0, np.inf, -np.inf
        for plane in volume:
            finite = np.isfinite(plane)
            unknown += int(plane.size - np.count_nonzero(finite))
            negative += int(np.count_nonzero(plane < 0))
            finite_values = plane[finite]
            if finite_values.size:
                low, high = (
                    min(low, float(finite_values.min())),
                    max(high, float(finite_values.max())),
                )
            sums.append(float(finite_values.sum(dtype=np.float64)))
            report_progress(k, total, f"Checking phase {k}")
        prints.append(tuple(sums))
        findings += _of_values(k, volume.size, negative, unknown, low >= high)
    findings += _find_duplicates(case, prints)
    report_progress(total, total, "Checked")
    return tuple(findings)


def check_mask(
    mask: NDArray[np.bool_], grid: Grid, before_contrast: NDArray[Any]
) -> tuple[Finding, ...]:
    """Return findings on unusual properties of a mask.

    Red: the mask is empty, or more than a tenth of it lies outside the body. Amber: it touches the
    volume's border (along an axis of more than one voxel), or has islands of less than 10 mm3
    besides its largest component. The body is the region above Otsu's threshold of phase 0 on a
    grid of about 4 mm: its largest component, closed, grown by one step (to include the skin) and
    filled.

    Parameters
    ----------
    mask, before_contrast
        ``(z, y, x)`` on `grid`: bool, and phase 0.
    """
    box = Box.around(mask)
    if box.is_empty:
        return (Finding(Light.RED, Check.EMPTY, "the mask is empty"),)
    inside = mask[box.slices]
    findings = [*_check_border(box, grid), *_check_islands(inside, grid)]
    count = int(np.count_nonzero(inside))
    outside = count - int(np.count_nonzero(inside & _find_body(before_contrast, grid, box)))
    if outside > _OUTSIDE_SHARE * count:
        text = f"{100 * outside / count:.0f} % of the mask is outside the body"
        findings.append(Finding(Light.RED, Check.OUTSIDE_BODY, text))
    return tuple(findings)


def _of_values(k: int, size: int, negative: int, unknown: int, flat: bool) -> Iterator[Finding]:
    if flat:
        yield Finding(Light.RED, Check.VALUES, f"phase {k} has the same value everywhere")
    if unknown:
        text = f"phase {k} has {unknown} of {size} values that are not finite"
        yield Finding(Light.AMBER, Check.VALUES, text)
    if negative:
        text = f"phase {k} has {negative} of {size} values below 0"
        yield Finding(Light.AMBER, Check.VALUES, text)


def _find_duplicates(case: Case, prints: list[tuple[float, ...]]) -> Iterator[Finding]:
    for a, b in combinations(range(len(prints)), 2):
        # Sums of planes differ unless phases are copies: volumes are compared only if these
        # agree.
        same = prints[a] == prints[b]
        if same and np.array_equal(case.signal[a], case.signal[b], equal_nan=True):
            text = f"phases {a} and {b} are identical"
            yield Finding(Light.RED, Check.DUPLICATES, text)


def _check_border(box: Box, grid: Grid) -> Iterator[Finding]:
    sides = zip(box.start, box.stop, grid.shape, strict=True)
    if any(n > 1 and (start == 0 or stop == n) for start, stop, n in sides):
        yield Finding(Light.AMBER, Check.BORDER, "the mask touches the border of the volume")


def _check_islands(inside: NDArray[np.bool_], grid: Grid) -> Iterator[Finding]:
    parts, count = ndimage.label(inside, _TOUCHING)
    if count < 2:
        return
    volumes = np.bincount(parts.ravel())[1:] * grid.voxel_volume_mm3
    small = int(np.count_nonzero(np.sort(volumes)[:-1] < _SMALL_MM3))
    if small:
        text = (
            f"{count_of(small, 'island')} of less than {_SMALL_MM3:g} mm3 besides the largest "
            "component"
        )
        yield Finding(Light.AMBER, Check.ISLANDS, text)


def _find_body(volume: NDArray[Any], grid: Grid, box: Box) -> NDArray[np.bool_]:
    steps = [max(1, round(_BODY_GRID_MM / mm)) for mm in grid.spacing_mm]
    coarse = volume[:: steps[0], :: steps[1], :: steps[2]].astype(np.float32)
    coarse = np.nan_to_num(coarse, posinf=0.0, neginf=0.0)
    if coarse.min() == coarse.max():
        return np.ones(box.shape, np.bool_)
    otsu: Any = threshold_otsu
    bright: NDArray[np.bool_] = coarse > otsu(
        coarse.ravel()
    )  # flat: an array 4 wide would be read as a colour image
    # Closing removes what touches the border unless there is a margin.
    bright |= ndimage.binary_closing(np.pad(bright, 1), _TOUCHING)[1:-1, 1:-1, 1:-1]
    parts, count = ndimage.label(bright)
    if count:
        bright = parts == int(np.bincount(parts.ravel())[1:].argmax()) + 1
    body = ndimage.binary_fill_holes(ndimage.binary_dilation(bright, _TOUCHING))
    places = zip(box.start, box.stop, steps, strict=True)
    inside: NDArray[np.bool_] = body[np.ix_(*(np.arange(a, b) // n for a, b, n in places))]
    return inside
