"""The report page of a case: lesions, pictures, findings, measurements, kinetics and methods."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.answers import Side
from napari_mamamia.core.case import Case
from napari_mamamia.core.counting import (
    phase_and_time,
    phase_name,
    slice_text,
)
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.core.grid import DisplayFrame, Grid, Plane
from napari_mamamia.core.measurement import MeasureKind, Measurement
from napari_mamamia.core.names import count_of
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.findings.form_values import AnswerRow
from napari_mamamia.kinetics.curve_figure import curve_figure
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.gallery import cut_axis, window_values
from napari_mamamia.scoring.report.key_figure import KeyPicture, Mark, key_figure
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import UNKNOWN, Column, ReportTable, Row
from napari_mamamia.services.findings.case_facts import (
    LEAST_CURVE_MM3,
    LEAST_CURVE_VOXELS,
    has_curve_size,
)
from napari_mamamia.services.kinetics.case_kinetics import KineticSettings, case_kinetics
from napari_mamamia.services.kinetics.kinetics import plot_of
from napari_mamamia.services.kinetics.row import KineticRow, phases_of_row
from napari_mamamia.services.report.described import NOT_ANSWERED, Described
from napari_mamamia.services.report.measures import say_measures
from napari_mamamia.services.report.reading import CaseReading, Drawn, Lesion, list_readers

RESEARCH_USE: Final = (
    "For research use only. Not a medical device: nothing here is a diagnosis, and no decision "
    "about a patient may be based on it."
)
_MAKERS: Final = {
    Maker.REFERENCE: "an expert mask of the data set",
    Maker.MODEL: "made by the model",
    Maker.READER: "drawn by",
    Maker.PHANTOM: "the known truth of a phantom",
}
_MOST_CONTRADICTIONS: Final = 6
_DEFINITIONS: Final = (
    "A lesion is a 26-connected part of the mask; lesion 1 is the largest. Diameters are measured "
    "between voxel centres with the full affine: longest within one acquired slice, the extent "
    "perpendicular to it in that slice, the extent from head to foot, and the longest in 3-D. "
    "Formulas and sources: docs/methods/measuring.md."
)


def make_case_page(reading: CaseReading) -> Page:
    """Return the report page of a case; its figures are drawn later."""
    case = reading.case
    readers = list_readers(reading.drawn)
    sections = [
        _tell_lesions(reading),
        _tell_findings(reading),
        _tell_drawn(reading),
        _tell_kinetics(reading),
        _tell_methods(reading),
    ]
    reader = reading.described.reader
    described = f"Findings entered by {reader}" if reader else "No findings entered"
    measured = f"Measured by {', '.join(readers)}" if readers else "No manual measurements"
    facts = (
        RESEARCH_USE,
        f"Exam: {_describe_exam(reading)}.",
        f"Mask: {describe_mask(reading.mask_name, reading.provenance)}. {described}. {measured}.",
    )
    return Page(
        f"Breast MRI measurements: {case.case_id}",
        facts,
        tuple(section for section in sections if section is not None),
        warnings=(*_list_contradictions(reading), *reading.remarks),
        footer=RESEARCH_USE,
    )


def describe_mask(name: str, provenance: Provenance) -> str:
    """Return a description of the mask and, if known, of how it was made."""
    if provenance.maker not in _MAKERS:
        return name
    parts = [f"{name} ({_MAKERS[provenance.maker]} {provenance.name}".rstrip()]
    if provenance.started_from:
        parts.append(f"started from {provenance.started_from}")
    parts.append(f"{provenance.created[:10]}, {provenance.software}")
    return ", ".join(parts) + ")"


def _describe_exam(reading: CaseReading) -> str:
    grid = reading.case.grid
    z, y, x = grid.spacing_mm
    case = reading.case
    phases = [phase_and_time(k, time, case.n_before) for k, time in enumerate(case.times_s)]
    return (
        f"{count_of(len(phases), 'phase')}: {', '.join(phases)}, with times from the start of the "
        f"first phase; {grid.acquisition_plane}, {' x '.join(map(str, grid.shape[::-1]))} voxels "
        f"of {x:.3g} x {y:.3g} x {z:.3g} mm"
    )


def _tell_lesions(reading: CaseReading) -> PageSection:
    if reading.mask is None:
        says: tuple[str, ...] = (f"No lesion was measured, because {reading.mask_name}.",)
    elif not reading.lesions:
        says = ("The mask is empty, because no lesion was drawn.",)
    else:
        says = ()
    measures = reading.lesions[0].measures if reading.lesions else ()
    columns = (
        Column("Lesion"),
        Column("Side", is_number=False),
        *(Column(f"{measure.name} ({measure.unit})") for measure in measures),
        Column("Initial", is_number=False),
        Column("Delayed", is_number=False),
    )
    rows = tuple(
        Row(
            (
                lesion.facts.name,
                _say_side(lesion.facts.side),
                *(_say_number(number.value, number.decimals) for number in lesion.measures),
                lesion.facts.rise or UNKNOWN,
                lesion.facts.course or UNKNOWN,
            )
        )
        for lesion in reading.lesions
    )
    table = ReportTable("Lesions of the mask", columns, rows)
    return PageSection(
        "Lesions",
        (table,) if rows else (),
        says=says,
        pictures=make_pictures(reading),
        notes=_list_small(reading),
        has_large_pictures=True,
    )


def _list_small(reading: CaseReading) -> tuple[str, ...]:
    """Return a sentence about lesions that are too small for a curve type, or () without such."""
    grid = reading.case.grid
    names = [
        lesion.facts.name
        for lesion in reading.lesions
        if not has_curve_size(grid, int(lesion.voxels.sum()))
    ]
    return (f"Lesions too small for a curve type: {', '.join(names)}.",) if names else ()


def _say_side(side: Side | None) -> str:
    return UNKNOWN if side is None else side.value


def _say_number(value: float, decimals: int) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.{decimals}f}"


def _list_contradictions(reading: CaseReading) -> tuple[str, ...]:
    """Return the contradictions between findings in one sentence that lists only the first few."""
    texts = [
        f"{_say_place(contradiction.place.scope, contradiction.place.name)}: {contradiction.text}"
        for contradiction in reading.described.contradictions
    ]
    if not texts:
        return ()
    rest = len(texts) - _MOST_CONTRADICTIONS
    more = f"; and {rest} more (measures.csv)" if rest > 0 else ""
    return (f"Contradicts itself: {'; '.join(texts[:_MOST_CONTRADICTIONS])}{more}.",)


def _tell_findings(reading: CaseReading) -> PageSection:
    described = reading.described
    notes = described.remarks
    if not described.reader:
        return PageSection("Findings", says=("No findings entered.",), notes=notes)
    when = described.at[:16].replace("T", " ")
    form = described.form
    says = f"Described by {described.reader} (last change {when} UTC) with the form {form.name}."
    codes = sorted({f"{row.text} {row.codes}" for row in described.rows if row.codes})
    if codes:
        notes = (*notes, f"Codes: {'; '.join(codes)}.")
    tables = (_tabulate_exam(described), _tabulate_lesions(described))
    return PageSection(
        "Findings", tuple(table for table in tables if table.rows), notes=notes, says=(says,)
    )


def _tabulate_exam(described: Described) -> ReportTable:
    """Return the answers about the exam and each breast, and the unanswered questions."""
    lines: dict[tuple[str, str, str], list[AnswerRow]] = {}
    rows = [row for row in described.rows if row.scope != FieldScope.LESION]
    open_ones = [
        question for question in described.missing if question.place.scope is not FieldScope.LESION
    ]
    for asked in (*described.asked, *open_ones):
        if asked.place.scope is not FieldScope.LESION and (asked.values or asked in open_ones):
            key = (asked.place.scope.value, asked.place.name, asked.field.id)
            lines.setdefault(key, [])
    for row in rows:
        lines.setdefault((row.scope, row.place, row.field), []).append(row)
    questions = {field.id: field.text for field in described.form.fields}
    return ReportTable(
        "Exam and breasts",
        (Column("Of", False), Column("Question", False), Column("Answer", False)),
        tuple(
            Row((_say_place(scope, place), questions.get(field, field), described.say(answers)))
            for (scope, place, field), answers in lines.items()
        ),
    )


def _tabulate_lesions(described: Described) -> ReportTable:
    """Return one row for each lesion with the reader's and the computed answers."""
    lesions = [
        question.place.name
        for question in described.missing
        if question.place.scope is FieldScope.LESION
    ]
    rows = []
    for name in sorted({*lesions, *described.lesions}, key=lambda name: (len(name), name)):
        answers: dict[str, list[AnswerRow]] = {}
        for row in described.of_place(FieldScope.LESION, name):
            answers.setdefault(row.field, []).append(row)
        said_of = [answer for answer in answers.values() if not answer[0].computed]
        auto = [answer for answer in answers.values() if answer[0].computed]
        texts = [f"{rows[0].question or rows[0].field}: {described.say(rows)}" for rows in said_of]
        texts += [
            f"{one.field.text}: {NOT_ANSWERED}"
            for one in described.missing
            if one.place.scope is FieldScope.LESION and one.place.name == name
        ]
        computed = [f"{rows[0].question or rows[0].field}: {described.say(rows)}" for rows in auto]
        rows.append(Row((name, "; ".join(texts) or UNKNOWN, "; ".join(computed) or UNKNOWN)))
    columns = (
        Column("Lesion"),
        Column(f"Said by {described.reader}", False),
        Column("Auto: computed by the program, not confirmed", False),
    )
    return ReportTable("Lesions in words", columns, tuple(rows))


def _say_place(scope: str, name: str) -> str:
    if scope == FieldScope.CASE:
        return "Exam"
    return f"{name.capitalize()} breast" if scope == FieldScope.BREAST else f"Lesion {name}"


def _tell_drawn(reading: CaseReading) -> PageSection | None:
    if not reading.drawn:
        return None
    names = ("What", "Measured", "Plane", "Phase", "Lesion", "Reader", "At (UTC)", "Words")
    rows = tuple(
        Row(
            (
                one.item.kind.value.replace("-", " "),
                say_measures(one.measures) or UNKNOWN,
                one.item.plane,
                UNKNOWN
                if one.item.phase is None
                else phase_name(one.item.phase, reading.case.n_before),
                one.item.lesion or UNKNOWN,
                one.item.reader,
                one.item.created[:16].replace("T", " "),
                one.item.text,
            )
        )
        for one in reading.drawn
    )
    columns = tuple(Column(name, is_number=False) for name in names)
    table = ReportTable("Drawn by hand", columns, rows)
    return PageSection("Measured by hand", (table,))


def _tell_kinetics(reading: CaseReading) -> PageSection | None:
    if reading.mask is None or not reading.mask.any() or len(reading.case.phases) < 2:
        return None
    try:
        settings = KineticSettings(mask_name=reading.mask_name)
        row = case_kinetics(reading.case, reading.mask, settings, background=False)
    except MamamiaError as error:
        return PageSection("Kinetics", notes=(f"Not measured: {error}",))
    plot = plot_of(row)
    figure = ReportFigure("kinetics", plot.title, Drawing(curve_figure, (plot,), has_png=False))
    zero = Timing(row.timing).origin if row.timing else ""
    phases = phases_of_row(row)
    clock = f"; seconds {zero}" if phases and zero else ""
    notes = [f"{phases}{clock}", row.early_late_reason, row.timing_remark, row.ftv_reason]
    return PageSection(
        "Kinetics", (_tabulate_kinetics(row),), (figure,), tuple(filter(None, notes))
    )


def _tabulate_kinetics(row: KineticRow) -> ReportTable:
    lines = (
        ("Peak enhancement of the mean curve", _say_number(row.peak_pe_of_mean_percent, 0), "%"),
        ("Initial rise, delayed course", f"{row.initial_class}, {row.delayed_class}", ""),
        ("Predominant, worst curve", f"{row.predominant_curve}, {row.worst_curve}", ""),
        ("Functional tumour volume", _say_number(row.ftv_cc, 2), "cc"),
    )
    columns = (Column("Whole mask", False), Column("Value", False), Column("Unit", False))
    return ReportTable("Kinetics of the mask", columns, tuple(Row(line) for line in lines))


def _tell_methods(reading: CaseReading) -> PageSection:
    says: Sequence[str] = (
        _DEFINITIONS,
        (
            "The side is the position of the lesion's centre relative to the middle of the "
            "volume; it is unknown if the centre is within 10 mm of the middle or if only one "
            "breast may be in the image. Initial rise and delayed course are classes of the mean "
            f"curve of a lesion of at least {LEAST_CURVE_MM3:.0f} mm³ (a sphere of 5 mm) and "
            f"{LEAST_CURVE_VOXELS} voxels (docs/methods/kinetics.md)."
        ),
        (
            "Rulers, angles and ellipses connect points in the patient, in mm; the mean and "
            "standard deviation in an ellipse are computed in the phase that was shown."
        ),
        RESEARCH_USE,
    )
    return PageSection("Methods", says=tuple(says))


# Choice of pictures: the readers' key images, followed by the largest slice of each lesion.

MOST: Final = 6
"""Largest number of pictures of each kind, so that the page can be printed. Our choice."""
_ELLIPSE_CORNERS: Final = 64
_CONTRAST: Final = "first post-contrast minus pre-contrast"


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of a case to show in a picture: its plane, its index and the image."""

    plane: Plane
    place: int
    phase: int | None
    title: str


def make_pictures(reading: CaseReading) -> tuple[ReportFigure, ...]:
    """Return the pictures, key images first, followed by the largest lesions.

    Each picture shows the mask's contour, the measurements on that slice, and a scale bar of 10 mm.
    """
    return tuple(
        ReportFigure(f"{number}. {one.title}", caption, Drawing(key_figure, (picture,), False))
        for number, (one, picture, caption) in enumerate(_list_pictures(reading), start=1)
    )


def _list_pictures(reading: CaseReading) -> Iterator[tuple[_Slice, KeyPicture, str]]:
    keys = reading.key_images
    grid = reading.case.grid
    for item in keys[:MOST]:
        place = place_of(grid, item.plane, item.points_mm[0])
        title = " · ".join(filter(None, ["key image", item.text]))
        one = _Slice(item.plane, place, item.phase, title)
        yield one, *_show_slice(reading, one, None)
    plane = grid.acquisition_plane
    for lesion in reading.lesions[:MOST]:
        ends = np.array(lesion.size.ends, dtype=np.float64)
        place = place_of(grid, plane, grid.to_world_mm(ends.mean(axis=0)))
        one = _Slice(plane, place, None, f"lesion {lesion.facts.name}")
        yield one, *_show_slice(reading, one, lesion)
    if not reading.lesions and not keys:
        middle = grid.shape[grid.display_frame(plane).order[0]] // 2
        one = _Slice(plane, middle, None, "middle slice")
        yield one, *_show_slice(reading, one, None)


def place_of(grid: Grid, plane: Plane, point_mm: Any) -> int:
    """Return the index of the displayed slice in the volume that is nearest to a point."""
    frame = grid.display_frame(plane)
    position = _to_shown(grid, frame, np.asarray(point_mm, np.float64)[None])[0]
    n_slices = grid.shape[frame.order[0]]
    return int(np.clip(math.floor(position[0] + 0.5), 0, n_slices - 1))


def _to_shown(
    grid: Grid, frame: DisplayFrame, points_mm: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return points (n, 3) in RAS mm as positions on the displayed (slice, row, column) axes."""
    voxels = grid.to_voxel(points_mm)[:, list(frame.order)]
    last = np.array([grid.shape[axis] - 1 for axis in frame.order])
    positions: NDArray[np.float64] = np.where(frame.flips, last - voxels, voxels)
    return positions


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
    place = slice_text(one.place, n_slices)
    return picture, f"{one.plane}, {place}, {words}; scale bar 10 mm"


def _choose_volume(case: Case, phase: int | None) -> tuple[NDArray[Any], str]:
    """Return the volume to show and its name; the volume is a phase or the first subtraction."""
    if phase is not None and phase < len(case.phases):
        return case.signal[phase], phase_and_time(phase, case.times_s[phase], case.n_before)
    after = case.n_before
    if after < len(case.phases):
        difference = case.signal[after].astype(np.float32) - case.signal[after - 1]
        return difference, _CONTRAST
    return case.signal[0], phase_name(0, case.n_before)


def _is_on(grid: Grid, item: Measurement, one: _Slice) -> bool:
    """Return whether a measurement lies in the plane of `one`, with all points nearest to it."""
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
    """Return points in mm to the right of and below the picture's upper left corner."""
    shown = _to_shown(grid, frame, np.asarray(points_mm, np.float64))[:, 1:]
    places = (shown - corner + 0.5) * np.asarray(spacing_mm)
    return tuple((float(column), float(row)) for row, column in places)
