"""A case's report as a page: lesions, pictures, findings, what was drawn, kinetics, methods."""

import math
from collections.abc import Sequence
from typing import Final

from napari_mamamia.core.answers import Side
from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.form import Form
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.kinetics.curve_figure import curve_figure
from napari_mamamia.reviewing.form_values import AnswerRow
from napari_mamamia.scoring.report.drawing import Drawing
from napari_mamamia.scoring.report.page import Page, PageSection
from napari_mamamia.scoring.report.report_figures import ReportFigure
from napari_mamamia.scoring.report.text import UNKNOWN, Column, ReportTable, Row
from napari_mamamia.services.kinetics.case_kinetics import KineticSettings, case_kinetics
from napari_mamamia.services.kinetics.kinetics import plot_of
from napari_mamamia.services.kinetics.phase_text import phases_of_row
from napari_mamamia.services.kinetics.row import KineticRow
from napari_mamamia.services.report.measures import say_measures
from napari_mamamia.services.report.pictures import make_pictures
from napari_mamamia.services.report.reading import CaseReading, list_readers
from napari_mamamia.services.review.export.answer_tables import list_answer_rows

RESEARCH_USE: Final = (
    "For research use only. Not a medical device: nothing here is a diagnosis, and no decision on "
    "a patient may rest on it."
)
_MAKERS: Final = {
    Maker.REFERENCE: "an expert mask of the data set",
    Maker.MODEL: "made by the model",
    Maker.READER: "drawn by",
    Maker.PHANTOM: "the known truth of a phantom",
}
_DEFINITIONS: Final = (
    "A lesion is a 26-connected part of the mask, 1 the largest. Diameters lie between the centres "
    "of voxels and go through the whole affine: longest within one acquired slice, the extent at "
    "right angles to it in that slice, the extent from head to foot, and the longest in 3-D. "
    "Formulas and sources: docs/methods/measuring.md."
)


def make_case_page(reading: CaseReading, form: Form | None = None) -> Page:
    """Return the report of a case, not drawn yet."""
    case = reading.case
    readers = list_readers(reading.drawn)
    sections = [
        _tell_lesions(reading),
        _tell_findings(reading, form),
        _tell_drawn(reading),
        _tell_kinetics(reading),
        _tell_methods(reading),
    ]
    facts = (
        RESEARCH_USE,
        f"Exam: {_describe_exam(reading)}.",
        f"Mask: {describe_mask(reading.mask_name, reading.provenance)}. "
        f"Measured by: {', '.join(readers) or 'nobody by hand'}.",
    )
    return Page(
        f"Breast MRI measurements: {case.case_id}",
        facts,
        tuple(one for one in sections if one is not None),
        warnings=reading.remarks,
        footer=RESEARCH_USE,
    )


def describe_mask(name: str, provenance: Provenance) -> str:
    """Return which mask it is and how it was made, as far as that is known."""
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
    times = [UNKNOWN if time is None else f"{time:.0f}" for time in reading.case.times_s]
    return (
        f"{len(times)} phase(s) at {', '.join(times)} s, {grid.acquisition_plane}, "
        f"{' x '.join(map(str, grid.shape[::-1]))} voxels of {x:.3g} x {y:.3g} x {z:.3g} mm"
    )


def _tell_lesions(reading: CaseReading) -> PageSection:
    if reading.mask is None:
        says: tuple[str, ...] = (f"Nothing was measured of lesions: {reading.mask_name}.",)
    elif not reading.lesions:
        says = ("The mask is empty: no lesion was drawn.",)
    else:
        says = ()
    measures = reading.lesions[0].measures if reading.lesions else ()
    columns = (
        Column("Lesion"),
        Column("Side", is_number=False),
        *(Column(f"{one.name} ({one.unit})") for one in measures),
        Column("Initial", is_number=False),
        Column("Delayed", is_number=False),
    )
    rows = tuple(
        Row(
            (
                one.facts.name,
                _say_side(one.facts.side),
                *(_say_number(number.value, number.decimals) for number in one.measures),
                one.facts.rise or UNKNOWN,
                one.facts.course or UNKNOWN,
            )
        )
        for one in reading.lesions
    )
    table = ReportTable("Lesions of the mask", columns, rows)
    return PageSection(
        "Lesions",
        (table,) if rows else (),
        says=says,
        pictures=make_pictures(reading),
        has_large_pictures=True,
    )


def _say_side(side: Side | None) -> str:
    return UNKNOWN if side is None else side.value


def _say_number(value: float, decimals: int) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.{decimals}f}"


def _tell_findings(reading: CaseReading, form: Form | None) -> PageSection | None:
    rows = list_answer_rows(form, reading.answers)
    if not rows:
        return None
    columns = tuple(Column(name, False) for name in ("Of", "Question", "Answer", "Codes", "By"))
    lines = tuple(
        Row(
            (_say_place(one), one.question or one.field, _say_answer(one), one.codes, _say_who(one))
        )
        for one in rows
    )
    notes = ("What nobody touched is computed; see the section on methods.",)
    return PageSection("Findings", (ReportTable("Answers", columns, lines, notes),))


def _say_place(one: AnswerRow) -> str:
    return one.scope if not one.place else f"{one.scope} {one.place}"


def _say_answer(one: AnswerRow) -> str:
    return f"{one.text} {one.unit}".rstrip()


def _say_who(one: AnswerRow) -> str:
    return "computed" if one.computed else "reader"


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
                UNKNOWN if one.item.phase is None else str(one.item.phase),
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
    figure = ReportFigure("kinetics", plot.title, Drawing(curve_figure, (plot,)))
    notes = [phases_of_row(row), row.early_late_reason, row.timing_remark, row.ftv_reason]
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
    columns = (Column("Of the whole mask", False), Column("Value", False), Column("Unit", False))
    return ReportTable("Kinetics of the mask", columns, tuple(Row(line) for line in lines))


def _tell_methods(reading: CaseReading) -> PageSection:
    says: Sequence[str] = (
        _DEFINITIONS,
        "Side: of the lesion's centre from the middle of the volume; unknown where it lies within "
        "10 mm of the middle or one breast may be in view alone. Initial rise and delayed course "
        "are classes of the mean curve (docs/methods/kinetics.md).",
        "Rulers, angles and ellipses lie between places in the patient in mm; the mean and "
        "standard deviation of an ellipse are of the phase that was shown.",
        RESEARCH_USE,
    )
    return PageSection("Methods", says=tuple(says))
