"""Kinetics for the window: maps (the visible slice first), interactive FTV, curves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import listening, report_progress
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.kinetics import curves, tumour_volume
from napari_mamamia.kinetics.curve_figure import curve_figure
from napari_mamamia.kinetics.map_blocks import MapRecipe
from napari_mamamia.kinetics.map_formulas import where_enhancing
from napari_mamamia.kinetics.map_kinds import MAPS, MapKind, MapNeeds, MapRange, map_recipe
from napari_mamamia.kinetics.time_axis import Timing, TimingRule, rule_of
from napari_mamamia.kinetics.timing import choose_curve_phases, choose_phases
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.kinetics.case_kinetics import (
    KineticSettings,
    case_kinetics,
)
from napari_mamamia.services.kinetics.kinetics import save_drawn
from napari_mamamia.services.kinetics.row import KineticRow
from napari_mamamia.smartpaint.brush.noise import noise_of

_ABOVE_NOISE: Final = 3.0
"""Smallest signal rise of a coloured voxel, in standard deviations of the noise. Our choice."""

_CLASSES: Final = (0.0, 3.0)
_AUTO_PERCENTILES: Final = (1.0, 99.0)
_MOST_VALUES: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ShownMap:
    """A map that is being computed for the screen.

    `array` ``(z, y, x)`` is float32, or uint8 for classes, and is filled in place. `limits` are the
    values at the ends of the colour scale, in `unit`. `text` names the phases.
    """

    kind: str
    array: NDArray[Any]
    limits: tuple[float, float]
    unit: str
    text: str
    recipe: MapRecipe | None = None

    @property
    def is_classes(self) -> bool:
        """Whether the values are classes instead of quantities."""
        return self.array.dtype == np.uint8


@dataclass(frozen=True, slots=True, eq=False)
class FtvAnswer:
    """An FTV and the class of each voxel in its box: uint8, 0 outside, 1 to 6 as in `SER_BINS`."""

    found: tumour_volume.FunctionalTumourVolume
    colours: NDArray[np.uint8]


def begin_map(
    case: Case,
    kind: str,
    floor_percent: float | None = None,
    rule: TimingRule | None = None,
) -> ShownMap:
    """Check the requirements of a map, and return the empty map with its memory allocated.

    `rule` selects the phases; None stands for UCSF's rule. Voxels remain empty if the initial PE is
    below `floor_percent` or the rise is within the noise. If `floor_percent` is None, only
    undefined voxels remain empty.

    Raises
    ------
    CaseError
        If a phase or time that the map needs is undefined.
    """
    case.require_phases(2)
    if kind is MapKind.FTV:
        return ShownMap(kind, np.zeros(case.grid.shape, np.uint8), (0, 6), "", "")
    spec = MAPS[kind]
    choose = choose_curve_phases if spec.of_curve else choose_phases
    rule = rule_of(case, rule)
    needs = MapNeeds(choose(case.times_s, rule), case.times_s, rule)
    recipe = map_recipe(kind, needs)
    if floor_percent is not None:
        initial = choose_curve_phases(case.times_s, rule).early
        noise = noise_of(case.signal[0], None, case.grid.spacing_mm)
        least = _ABOVE_NOISE * math.sqrt(2) * noise.sigma
        formula = where_enhancing(recipe.formula, initial, floor_percent, least)
        recipe = replace(recipe, formula=formula)
    usual = spec.ranges[0].limits if spec.ranges else None
    array = np.zeros(case.grid.shape, recipe.dtype)
    return ShownMap(kind, array, usual or _CLASSES, spec.unit, spec.basis(needs), recipe)


def fill_plane(shown: ShownMap, case: Case, axis: int, index: int) -> None:
    """Compute slice `index` of a map in place, perpendicular to `axis` (0 z, 1 y, 2 x)."""
    if shown.recipe is None or not 0 <= index < shown.array.shape[axis]:
        return
    at: list[slice] = [slice(None)] * 3
    at[axis] = slice(index, index + 1)
    with listening(None):
        shown.recipe.fill(case.signal[:, *at], shown.array[tuple(at)])


def fill_map(shown: ShownMap, case: Case) -> ShownMap:
    """Compute the whole map in place.

    Parameters
    ----------
    shown
        The map on the screen.
    case
        The case with its phases.
    """
    if shown.recipe is None:
        report_progress(1, 1)
        return shown
    shown.recipe.fill(case.signal, shown.array)
    return shown


def ftv_box(case: Case, mask: NDArray[np.uint8] | None) -> Box:
    """Return the FTV region: a mask's bounding box with a margin of 10 mm, or empty without a mask.

    Parameters
    ----------
    case
        The case with its phases.
    mask
        A uint8 array ``(z, y, x)`` that is not 0 in the tumour, or None.
    """
    return Box.empty() if mask is None else tumour_volume.box_around_mask(mask, case.grid)


def prepare_live_ftv(
    case: Case,
    boxes: Sequence[Box],
    omitted: Sequence[Box] = (),
    rule: TimingRule | None = None,
) -> tumour_volume.FtvImages:
    """Prepare the images of a region for an FTV that is updated at once if a threshold changes.

    Parameters
    ----------
    case
        The case with its phases.
    boxes
        The boxes of the region.
    omitted
        The boxes to exclude.
    rule
        The timing rule that selects the phases; None for UCSF_FTV.

    Raises
    ------
    CaseError
        As in `kinetics.tumour_volume.prepare_ftv`.
    """
    report_progress(0, 1, "Preparing FTV")
    case.require_phases(2)
    images = tumour_volume.prepare_ftv(
        case.signal, choose_phases(case.times_s, rule_of(case, rule)), boxes, omitted
    )
    report_progress(1, 1)
    return images


def live_ftv(
    case: Case, images: tumour_volume.FtvImages, settings: tumour_volume.FtvSettings
) -> FtvAnswer:
    """Return the FTV for new thresholds.

    Parameters
    ----------
    case
        The case with its phases.
    images
        The images of the region; see `prepare_ftv`.
    settings
        The thresholds of FTV.
    """
    report_progress(0, 1, "FTV")
    ftv = tumour_volume.functional_tumour_volume(images, case.grid.voxel_volume_mm3, settings)
    ends = np.array([high for _, _, high in tumour_volume.SER_BINS], np.float32)
    colours = np.zeros(images.box.shape, np.uint8)
    ser = images.ser[ftv.mask]
    # A SER bin includes its upper limit, but not its lower limit.
    bins = 1 + np.searchsorted(ends, ser, side="left")
    colours[ftv.mask] = np.where(ser > 0, bins, len(tumour_volume.SER_BINS) + 1)
    report_progress(1, 1)
    return FtvAnswer(ftv, colours)


def paint_ftv(shown: ShownMap, before: Box, answer: FtvAnswer) -> Box:
    """Replace the FTV in the box `before` of its map by a new FTV; return the changed box."""
    shown.array[before.slices] = 0
    shown.array[answer.found.box.slices] = answer.colours
    return before.union(answer.found.box)


def cursor_curve(
    case: Case,
    voxel: tuple[int, int, int],
    size: int,
    slice_axis: int,
    rule: TimingRule | None = None,
) -> curves.ContrastCurve:
    """Return the curve of a patch of `size` x `size` voxels in the visible slice.

    Parameters
    ----------
    case
        The case with its phases.
    voxel
        The central voxel (z, y, x) of the patch.
    size
        The side length of the patch in voxels.
    slice_axis
        The array axis across the slices.
    rule
        The timing rule that selects the phases; None for UCSF_FTV.
    """
    return curves.patch_curve(
        case.signal, voxel, case.times_s, size=size, slice_axis=slice_axis, rule=rule_of(case, rule)
    )


def mask_curve(
    case: Case, mask: NDArray[np.uint8], rule: TimingRule | None = None
) -> curves.ContrastCurve:
    """Return the mean curve in a mask.

    Parameters
    ----------
    case
        The case with its phases.
    mask
        A uint8 array ``(z, y, x)`` that is not 0 inside the mask.
    rule
        The timing rule that selects the phases; None for UCSF_FTV.

    Raises
    ------
    CaseError
        If the mask is empty, or the case has only one phase.
    """
    report_progress(0, 1, "Curve of the mask")
    case.require_phases(2)
    curve = curves.region_contrast_curve(case.signal, mask != 0, case.times_s, rule_of(case, rule))
    if not curve.n_voxels:
        raise CaseError(
            "the curve needs a mask with foreground voxels, but the displayed mask is empty; draw "
            "a mask"
        )
    report_progress(1, 1)
    return curve


def mask_numbers(
    case: Case, mask: NDArray[np.uint8], name: str, rule: TimingRule | None = None
) -> KineticRow:
    """Return the kinetic measures of a displayed mask, except those of the contralateral breast.

    Parameters
    ----------
    case
        The case with its phases.
    mask
        A uint8 array ``(z, y, x)`` that is not 0 inside the mask.
    name
        The name of the mask.
    rule
        The timing rule that selects the phases; None for UCSF_FTV.
    """
    report_progress(0, 1, f"Kinetics of the {name} mask")
    settings = KineticSettings(mask_name=name, rule=rule or TimingRule())
    row = case_kinetics(case, mask != 0, settings, source="window", background=False)
    report_progress(1, 1)
    return row


def save_curve_table(plot: curves.CurvePlot, path: Path) -> Path:
    """Write the curves as ``.csv`` or ``.xlsx``; an existing file is replaced.

    Parameters
    ----------
    plot
        The curves.
    path
        The path of the file.
    """
    rows = curves.curve_rows(plot)
    write_flat_table(curves.CURVE_COLUMNS, rows, len(rows), path, name="curves", overwrite=True)
    return path


def save_curve_figure(plot: curves.CurvePlot, path: Path) -> Path:
    """Write the plot as a ``.png`` and an ``.svg`` file.

    Parameters
    ----------
    plot
        The curves.
    path
        The path of the files; the suffix is replaced.
    """
    with drawing_place() as draw:
        picture = draw(Drawing(curve_figure, (plot,)))
    save_drawn(picture, path.with_suffix(""), overwrite=True)
    return path


def map_ranges(kind: str) -> tuple[MapRange, ...]:
    """Return the fixed colour ranges of a map, default first, or () for a map of classes."""
    return MAPS[kind].ranges if kind in MAPS else ()


def ranged(shown: ShownMap, wanted: MapRange | None) -> ShownMap:
    """Return a map with a fixed colour range; None keeps the map's own range."""
    if wanted is None or wanted.limits is None:
        return shown
    return replace(shown, limits=wanted.limits)


def auto_limits(shown: ShownMap) -> tuple[float, float]:
    """Return the 1st and 99th percentile of a complete map, without NaN.

    With more than a million values, only every n-th value is used. If the two percentiles are
    equal, the map's own limits are returned.
    """
    report_progress(0, 1, "Range of the map")
    step = max(1, shown.array.size // _MOST_VALUES)
    values = shown.array.ravel()[::step]
    values = values[np.isfinite(values)]
    report_progress(1, 1)
    if not values.size:
        return shown.limits
    low, high = (float(end) for end in np.percentile(values, _AUTO_PERCENTILES))
    return (low, high) if low < high else shown.limits


def typed_rule(timing: Timing, text: str = "") -> TimingRule:
    """Return the timing rule for text that a user typed.

    The text is the injection time in s, or two phases such as "2, 4".

    Raises
    ------
    CaseError
        If the text is not valid for the timing.
    """
    words = text.replace(",", " ").split()
    try:
        if timing is Timing.INJECTION:
            (seconds,) = (float(word) for word in words)
            return TimingRule(timing, injection_s=seconds)
        if timing is Timing.MANUAL:
            early, late = (int(word) for word in words)
            return TimingRule(timing, phases=(early, late))
    except ValueError as error:
        hint = (
            "the time of the injection in seconds from phase 0, such as 130"
            if timing is Timing.INJECTION
            else "the early and the late phase, such as 2, 4"
        )
        raise CaseError(
            f"expected {hint}, but got {text!r}; enter the value and press Enter"
        ) from error
    return TimingRule(timing)


def require_rule(case: Case, rule: TimingRule) -> None:
    """Raise `CaseError` if a rule does not suit a case, such as an injection after the last phase.

    Parameters
    ----------
    case
        The case with its phases.
    rule
        The timing rule that selects the phases.
    """
    case_rule = rule_of(case, rule)
    choose_phases(case.times_s, case_rule)
    choose_curve_phases(case.times_s, case_rule)
