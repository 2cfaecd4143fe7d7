"""One self-contained ``report.html``: reads like a results page, without network or script."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.io.save import write_text_atomically
from napari_mamamia.scoring.case_figure import PREDICTION_COLOUR, REFERENCE_COLOUR, case_figure
from napari_mamamia.scoring.figures import png_of, svg_of
from napari_mamamia.scoring.gallery import MOST_PICTURES, CasePicture
from napari_mamamia.scoring.report_cases import case_table, script_json
from napari_mamamia.scoring.report_content import FEATURED_STRATA, ModelReport, ReportContent
from napari_mamamia.scoring.report_figures import (
    ReportFigure,
    figures_of_cohort,
    figures_of_model,
)
from napari_mamamia.scoring.report_profile import profile_points
from napari_mamamia.scoring.report_response import odds_tables, response_table
from napari_mamamia.scoring.report_tables import (
    comparison_tables,
    excluded_table,
    failure_table,
    group_tables,
    numbers_table,
    slice_table,
    stratum_table,
)
from napari_mamamia.scoring.report_text import ReportTable
from napari_mamamia.scoring.results import Stratum

__all__ = ["render_report", "write_report"]

PAGE_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class _Drawing:
    name: str
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class _Thumbnail:
    case_id: str
    where: str
    caption: str
    uri: str
    kinds: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    """One model as the template shows it."""

    name: str
    facts: str
    notes: tuple[str, ...]
    numbers: tuple[ReportTable, ...]
    groups: tuple[ReportTable, ...]
    strata: tuple[ReportTable, ...]
    further: tuple[ReportTable, ...]
    drawings: tuple[_Drawing, ...]
    subgroups: tuple[ReportTable, ...]
    failures: tuple[ReportTable, ...]
    gallery: tuple[_Thumbnail, ...]
    excluded: tuple[ReportTable, ...]


def render_report(content: ReportContent) -> Job[str]:
    """Return a job that makes the report, the text of one HTML page that loads nothing.

    All text is escaped. Tables hold the first `PAGE_ROWS` cases as HTML and all of them as data,
    which the page's script sorts, filters and pages.
    """
    environment = Environment(
        loader=PackageLoader("napari_mamamia.scoring", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    total = len(content.models) + 1
    drawings = yield from _drawn(figures_of_cohort(content), Progress(0, total, "Drawing"))
    sections = []
    for done, model in enumerate(content.models):
        now = Progress(done, total, f"Drawing {model.scores.name}")
        section = yield from _section(model, now)
        sections.append(section)
    yield Progress(total - 1, total, "Writing the report")
    cases = case_table(content.models)
    page = environment.get_template("report.html.j2").render(
        content=content,
        points=profile_points(content.profile),
        sections=sections,
        comparison=comparison_tables(content.comparison) if content.comparison else (),
        drawings=drawings,
        cases=cases,
        page=cases.page(PAGE_ROWS),
        page_rows=PAGE_ROWS,
        data=Markup(script_json(cases)),
        colours={"reference": REFERENCE_COLOUR, "prediction": PREDICTION_COLOUR},
    )
    yield Progress(total, total, "Report made")
    return page


def write_report(content: ReportContent, path: Path, *, overwrite: bool = False) -> Job[Path]:
    """Return a job that writes the report to `path` and returns it.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is off.
    SaveError
        If the system refuses to write.
    """
    page = yield from render_report(content)
    write_text_atomically(path, page, overwrite=overwrite)
    return path


def _section(model: ModelReport, now: Progress) -> Job[_Section]:
    scores = model.scores
    task1, task2 = scores.segmentation, scores.response
    numbers: list[ReportTable] = []
    groups: list[ReportTable] = []
    strata: list[Stratum] = []
    further: list[Stratum] = []
    if task1 is not None:
        numbers.append(numbers_table(task1))
        groups += group_tables(task1)
        strata += [s for s in task1.strata if s.variable in FEATURED_STRATA]
        further += [s for s in task1.strata if s.variable not in FEATURED_STRATA]
    if task2 is not None:
        numbers.append(response_table(task2))
        groups += odds_tables(task2)
    drawings = yield from _drawn(figures_of_model(model), now)
    gallery = yield from _thumbnails(model, now)
    return _Section(
        scores.name,
        _facts(model),
        scores.notes,
        tuple(numbers),
        tuple(groups),
        tuple(stratum_table(stratum) for stratum in strata),
        tuple(stratum_table(stratum) for stratum in further),
        drawings,
        tuple(slice_table(search) for search in model.slices),
        tuple(table for table in (failure_table(model),) if table),
        gallery,
        tuple(table for table in (excluded_table(model),) if table),
    )


def _facts(model: ModelReport) -> str:
    scores = model.scores
    said = f"{scores.n_cases:,} cases, {scores.n_scored:,} scored"
    excluded = scores.n_cases - scores.n_scored
    said += f", {excluded:,} excluded from the means"
    if scores.clinical is None:
        return f"{said}; no clinical table"
    table = scores.clinical
    return f"{said}; {table.n_matched:,} of them in {table.name} ({table.n_rows:,} rows)"


def _drawn(figures: Iterable[ReportFigure], now: Progress) -> Job[tuple[_Drawing, ...]]:
    drawings = []
    for figure in figures:
        yield now
        svg = Markup(svg_of(figure.figure))
        drawings.append(_Drawing(figure.name, figure.caption, svg))
    return tuple(drawings)


def _thumbnails(model: ModelReport, now: Progress) -> Job[tuple[_Thumbnail, ...]]:
    thumbnails = []
    for picture in model.pictures[:MOST_PICTURES]:
        yield now
        found = model.failures.get(picture.case_id, ())
        thumbnails.append(
            _Thumbnail(
                picture.case_id,
                f"{picture.plane}, {picture.place}",
                picture.caption,
                _png_uri(picture),
                tuple(failure.kind.value for failure in found),
                tuple(failure.reason for failure in found),
            )
        )
    return tuple(thumbnails)


def _png_uri(picture: CasePicture) -> str:
    return "data:image/png;base64," + b64encode(png_of(case_figure(picture))).decode()
