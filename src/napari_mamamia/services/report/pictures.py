"""Which pictures a case's report shows: its key images, else the largest slice of each lesion."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.grid import DisplayFrame, Grid, Plane
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.gallery import cut_axis, window_values
from napari_mamamia.scoring.report.key_figure import KeyPicture, Mark, key_figure
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.services.report.measures import say_measures
from napari_mamamia.services.report.reading import CaseReading, Drawn, Lesion

MOST: Final = 6
"""Pictures of a page; our choice: a page to print holds them."""
_ELLIPSE_CORNERS: Final = 64
_CONTRAST: Final = "first post-contrast minus pre-contrast"


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of a case as it is shown: which plane, the how manieth, of which image."""

    plane: Plane
    place: int
    phase: int | None
    title: str


def make_pictures(reading: CaseReading) -> tuple[ReportFigure, ...]:
    """Return the pictures: key images first; where nobody marked one, the largest lesions.

    Each has the mask's contour, what was drawn on that slice, and a bar of 10 mm.
    """
    return tuple(
        ReportFigure(f"{number}. {one.title}", caption, Drawing(key_figure, (picture,), False))
        for number, (one, picture, caption) in enumerate(_list_pictures(reading), start=1)
    )


def _list_pictures(reading: CaseReading) -> Iterator[tuple[_Slice, KeyPicture, str]]:
    keys = reading.key_images
    grid = reading.case.grid
    if keys:
        for item in keys[:MOST]:
            place = place_of(grid, item.plane, item.points_mm[0])
            title = " · ".join(filter(None, ["key image", item.text]))
            one = _Slice(item.plane, place, item.phase, title)
            yield one, *_show_slice(reading, one, None)
        return
    plane = grid.acquisition_plane
    for lesion in reading.lesions[:MOST]:
        ends = np.array(lesion.size.ends, dtype=np.float64)
        place = place_of(grid, plane, grid.to_world_mm(ends.mean(axis=0)))
        one = _Slice(plane, place, None, f"lesion {lesion.facts.name}")
        yield one, *_show_slice(reading, one, lesion)
    if not reading.lesions:
        middle = grid.shape[grid.display_frame(plane).order[0]] // 2
        one = _Slice(plane, middle, None, "middle slice")
        yield one, *_show_slice(reading, one, None)


def place_of(grid: Grid, plane: Plane, point_mm: Any) -> int:
    """Return the number of the shown slice nearest to a point, within the volume."""
    frame = grid.display_frame(plane)
    shown = _to_shown(grid, frame, np.asarray(point_mm, np.float64)[None])[0]
    n_slices = grid.shape[frame.order[0]]
    return int(np.clip(math.floor(shown[0] + 0.5), 0, n_slices - 1))


def _to_shown(
    grid: Grid, frame: DisplayFrame, points_mm: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return points (n, 3) as places in the shown (slice, row, column)."""
    voxels = grid.to_voxel(points_mm)[:, list(frame.order)]
    last = np.array([grid.shape[axis] - 1 for axis in frame.order])
    shown: NDArray[np.float64] = np.where(frame.flips, last - voxels, voxels)
    return shown


def _show_slice(reading: CaseReading, one: _Slice, lesion: Lesion | None) -> tuple[KeyPicture, str]:
    case = reading.case
    frame = case.grid.display_frame(one.plane)
    volume, words = _choose_volume(case, one.phase)
    image = frame.to_display(volume)[one.place]
    contour = np.zeros(image.shape, np.bool_)
    if reading.mask is not None:
        contour = frame.to_display(reading.mask)[one.place]
    _, row_mm, column_mm = frame.per_axis(case.grid.spacing_mm)
    rows, columns = slice(None), slice(None)
    if lesion is not None:
        around = frame.to_display(lesion.voxels)[one.place]
        rows, columns = (
            cut_axis(around.any(axis=1 - axis), mm) for axis, mm in enumerate((row_mm, column_mm))
        )
    corner = np.array([rows.start or 0, columns.start or 0], dtype=np.float64)
    marks = [
        _make_mark(case.grid, frame, drawn, corner, (row_mm, column_mm))
        for drawn in reading.drawn
        if drawn.item.kind is not MeasureKind.KEY_IMAGE and _is_on(case.grid, drawn.item, one)
    ]
    if lesion is not None and len(lesion.size.ends) == 2:
        ends = case.grid.to_world_mm(lesion.size.ends)
        line = _to_picture(case.grid, frame, ends, corner, (row_mm, column_mm))
        marks.append(Mark((line,), f"{lesion.size.in_plane_mm:.1f} mm"))
    picture = KeyPicture(
        window_values(image[rows, columns]),
        np.ascontiguousarray(contour[rows, columns]),
        (row_mm, column_mm),
        tuple(marks),
    )
    n_slices = case.grid.shape[frame.order[0]]
    return picture, f"{one.plane}, slice {one.place + 1} of {n_slices}, {words}; the bar is 10 mm"


def _choose_volume(case: Case, phase: int | None) -> tuple[NDArray[Any], str]:
    """Return what is shown and its name: a phase, else the first subtraction."""
    if phase is not None and phase < len(case.phases):
        return case.signal[phase], f"phase {phase}"
    after = case.n_before
    if after < len(case.phases):
        difference = case.signal[after].astype(np.float32) - case.signal[after - 1]
        return difference, _CONTRAST
    return case.signal[0], "phase 0"


def _is_on(grid: Grid, item: Measurement, one: _Slice) -> bool:
    """Whether something was drawn on a slice: in its plane, all its points nearest to it."""
    return item.plane == one.plane and all(
        place_of(grid, one.plane, point) == one.place for point in item.points_mm
    )


def _make_mark(
    grid: Grid,
    frame: DisplayFrame,
    drawn: Drawn,
    corner: NDArray[np.float64],
    spacing_mm: tuple[float, float],
) -> Mark:
    points = np.array(drawn.item.points_mm)
    if drawn.item.kind is MeasureKind.ELLIPSE:
        angles = np.linspace(0, 2 * np.pi, _ELLIPSE_CORNERS)[:, None]
        half_axes = points[1:] - points[0]
        lines = [points[0] + np.cos(angles) * half_axes[0] + np.sin(angles) * half_axes[1]]
    elif drawn.item.kind is MeasureKind.CROSS:
        lines = [points[:2], points[2:]]
    else:
        lines = [points]
    shown = tuple(_to_picture(grid, frame, line, corner, spacing_mm) for line in lines)
    is_arrow = drawn.item.kind is MeasureKind.ARROW
    text = say_measures(drawn.measures) or drawn.item.text
    return Mark(shown, text, is_arrow)


def _to_picture(
    grid: Grid,
    frame: DisplayFrame,
    points_mm: NDArray[np.float64],
    corner: NDArray[np.float64],
    spacing_mm: tuple[float, float],
) -> tuple[tuple[float, float], ...]:
    """Return points as mm to the right of and below the picture's upper left corner."""
    shown = _to_shown(grid, frame, np.asarray(points_mm, np.float64))[:, 1:]
    places = (shown - corner + 0.5) * np.asarray(spacing_mm)
    return tuple((float(column), float(row)) for row, column in places)
