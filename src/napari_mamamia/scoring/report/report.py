"""Write ``report.html``, a self-contained page that needs no network."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from napari_mamamia.core.progress import Progress, changing, forward_progress, report_progress
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.metrics.registry import metric
from napari_mamamia.scoring.case.profiles import Profile, UnusableReason, profile_named
from napari_mamamia.scoring.cohort.groups import GroupRules, rules_of
from napari_mamamia.scoring.cohort.policy import counted_lines, not_for_ranking
from napari_mamamia.scoring.cohort.results import Stratum
from napari_mamamia.scoring.report import tables
from napari_mamamia.scoring.report.cases import case_table_job, script_json
from napari_mamamia.scoring.report.content import ModelReport, ReportContent, is_featured
from napari_mamamia.scoring.report.drawing import Draw, Drawing, draw_here
from napari_mamamia.scoring.report.gallery import MOST_PICTURES, CasePicture
from napari_mamamia.scoring.report.models import (
    comparison_tables,
    composite_tables,
    models_table,
)
from napari_mamamia.scoring.report.page import find_template
from napari_mamamia.scoring.report.rank_figures import draw_stability
from napari_mamamia.scoring.report.report_figures import (
    ReportFigure,
    figures_of_cohort,
    figures_of_model,
)
from napari_mamamia.scoring.report.response import odds_tables, response_table
from napari_mamamia.scoring.report.text import ReportTable, Way

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A case in the gallery is a grey image with outlines of reference and prediction, and a scale
# bar.

REFERENCE_COLOUR: Final = "#56B4E9"
PREDICTION_COLOUR: Final = "#E69F00"
"""Colour of the prediction (orange of Okabe and Ito), which is the same as in the window."""

_INCHES: Final = 1.5
_BAR_MM: Final = 10.0


def case_figure(picture: CasePicture) -> "Figure":
    """Return a figure of a case, 1.5 inches wide, with a scale bar of 10 mm.

    Proportions are true. Without an image, the masks are outlined on dark grey.
    """
    from matplotlib.figure import Figure

    rows, columns = picture.reference.shape
    height_mm, width_mm = rows * picture.spacing_mm[0], columns * picture.spacing_mm[1]
    figure = Figure(figsize=(_INCHES, _INCHES * min(height_mm / width_mm, 2.0)), facecolor="k")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    image = np.full((rows, columns), 0.25) if picture.image is None else picture.image
    axes.imshow(
        image,
        cmap="gray",
        vmin=0,
        vmax=1,
        extent=(0, width_mm, height_mm, 0),
        interpolation="bilinear",
    )
    for mask, colour in (
        (picture.reference, REFERENCE_COLOUR),
        (picture.prediction, PREDICTION_COLOUR),
    ):
        draw_outline(axes, mask, picture.spacing_mm, colour)
    axes.plot(
        (width_mm - 3 - _BAR_MM, width_mm - 3), (height_mm - 3,) * 2, color="w", linewidth=1.5
    )
    axes.set_xlim(0, width_mm)
    axes.set_ylim(height_mm, 0)
    return figure


def draw_outline(
    axes: "Axes", mask: NDArray[np.bool_], spacing_mm: tuple[float, float], colour: str
) -> None:
    """Draw an outline half-way between foreground and background voxels."""
    if not mask.any():
        return
    padded = np.pad(mask, 1).astype(np.float64)
    y = (np.arange(padded.shape[0]) - 0.5) * spacing_mm[0]
    x = (np.arange(padded.shape[1]) - 0.5) * spacing_mm[1]
    axes.contour(x, y, padded, levels=[0.5], colors=[colour], linewidths=1.2)


# The definitions of a profile are described in words for the head of a report.

_WORDS = {
    "chosen_label": "the chosen label, otherwise any value above 0 (soft masks: at least 0.5)",
    "mask": "the value 1 (soft masks: at least 0.5), or 255 if it is the only value",
    "one": "only the stored value 1",
    "uint8": "not 0 as uint8",
    "same_place": "equal shape and position required",
    "same_shape": "equal shape required; different affines cause a warning",
    "scored_as_empty": "scored as an empty prediction",
    "not_scored": "not scored",
}


def profile_points(name: str, *, is_given: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the definitions of a profile as pairs of name and text.

    If the values of the cases were computed elsewhere, only the definitions of the cohort are
    returned.
    """
    profile, rules = profile_named(name), rules_of(name)
    of_cases = () if is_given else _of_cases(profile)
    return (*of_cases, *_of_counting(profile), *_of_groups(rules))


def _of_cases(profile: Profile) -> tuple[tuple[str, str], ...]:
    spec = metric(profile.distance)
    limit = "not cut" if profile.norm_hd_limit is None else f"cut to {profile.norm_hd_limit:g}"
    return (
        ("Source", f"{profile.source} (version {profile.version})"),
        ("Grids", _WORDS[profile.grid_rule]),
        ("Foreground of Dice", _WORDS[profile.overlap_foreground]),
        ("Foreground of distances", _WORDS[profile.distance_foreground]),
        ("NormHD", f"{spec.label} in {spec.unit} / {profile.divisor:g} {spec.unit}, {limit}"),
        (
            "Both masks empty",
            f"Dice {_or_undefined(profile.overlap_both_empty)}, NormHD "
            f"{_or_undefined(profile.norm_hd_both_empty)}",
        ),
        ("One mask empty", f"Dice 0, NormHD {profile.norm_hd_one_empty:g}"),
        ("Prediction missing", _WORDS[profile.missing_prediction]),
        *(
            (("Differs from the published scripts", profile.departures),)
            if profile.departures
            else ()
        ),
    )


def _of_counting(profile: Profile) -> tuple[tuple[str, str], ...]:
    kinds = "Prediction missing, unreadable, on another grid, not finite, with too many labels"
    empty = profile.unusable.of(UnusableReason.EMPTY) or "its Dice and NormHD count"
    return (
        (kinds, f"for ranking: {profile.unusable.rule}"),
        ("Prediction empty", f"for ranking: {empty}"),
    )


def _of_groups(rules: GroupRules) -> tuple[tuple[str, str], ...]:
    peri = rules.peri_is or "unassigned"
    missing = rules.missing_menopause_is or "unassigned"
    least = f"under {rules.min_group_size} cases" if rules.min_group_size else "not flagged"
    return (
        ("Age groups (years)", ", ".join(group.label for group in rules.age_groups)),
        (
            "Menopausal status",
            f"{', '.join(rules.menopause_groups)}; peri: {peri}; missing: {missing}",
        ),
        ("Breast density", f"{', '.join(rules.density_groups)}; missing: unassigned"),
        ("Small groups", f"{least}; included in the numbers"),
        ("Fairness weight", f"{rules.weight_of_fairness:g}"),
    )


def _or_undefined(value: float | None) -> str:
    return "undefined" if value is None else f"{value:g}"


PAGE_ROWS: Final = 50
MOST_JOINED: Final = 5000
"""Largest number of rows in a joint case table; beyond it, each model's page has a table."""
NO_LINKS: Final[Mapping[str, str]] = MappingProxyType({})

T = TypeVar("T")


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
    """The data of one model's section in the template."""

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


def render_report(
    content: ReportContent,
    draw: Draw = draw_here,
    links: Mapping[str, str] = NO_LINKS,
    ways: Sequence[Way] = (),
) -> str:
    """Return the report as the text of one HTML page that loads nothing.

    With `links` to a page for each model, the report contains only information about all models;
    `ways` link to further pages. All text is escaped. Tables contain the first `PAGE_ROWS` cases as
    HTML and all cases as data, which the page's script sorts, filters and divides into pages.
    """
    total = len(content.models) + 1
    figures = _list_figures(content) if content.ranks else figures_of_cohort(content)
    drawings = _draw_figures(figures, Progress(0, total, "Drawing"), draw)
    sections = []
    for index, model in enumerate(() if links else content.models):
        now = Progress(index, total, f"Drawing {model.scores.name}")
        section = _make_section(model, now, draw)
        sections.append(section)
    report_progress(total - 1, total, "Writing the report")
    now = Progress(total - 1, total, "Writing the case table")
    with _standing_at(now):
        n_rows = sum(model.scores.n_cases for model in content.models)
        cases = case_table_job(content.models if not links or n_rows <= MOST_JOINED else ())
        data = script_json(cases)
    report_progress(total - 1, total, "Writing the report")
    page = find_template("report.html.j2").render(
        content=content,
        points=profile_points(content.profile, is_given=content.is_given),
        sections=sections,
        comparison=_compare_models(content, links) if total > 2 else (),
        facts=[(model.scores.name, _describe_model(model)) for model in content.models],
        links=links,
        ways=ways,
        drawings=drawings,
        cases=cases,
        page=cases.page(PAGE_ROWS),
        page_rows=PAGE_ROWS,
        data=Markup(data),  # noqa: S704 - JSON whose "<" are escaped
        colours={"reference": REFERENCE_COLOUR, "prediction": PREDICTION_COLOUR},
    )
    report_progress(total, total, "Report made")
    return page


def _list_figures(content: ReportContent) -> Iterator[ReportFigure]:
    for figure in figures_of_cohort(content):
        yield figure
    if content.ranks is not None:
        ranks = content.ranks
        for figure in draw_stability("models", ranks.names, (ranks.method,), ranks.n_draws):
            yield figure


def _compare_models(content: ReportContent, links: Mapping[str, str]) -> tuple[ReportTable, ...]:
    if content.comparison is not None:
        return comparison_tables(content.comparison, links)
    return (models_table(content.models, links),) if links else ()


def write_report(
    content: ReportContent,
    path: Path,
    *,
    overwrite: bool = False,
    draw: Draw = draw_here,
    links: Mapping[str, str] = NO_LINKS,
    ways: Sequence[Way] = (),
) -> Path:
    """Write the report to `path` and return the path.

    `links` and `ways` are as in `render_report`.

    Raises
    ------
    SaveConflictError
        If the file exists and `overwrite` is off.
    SaveError
        If the system cannot write the file.
    """
    page = render_report(content, draw, links, ways)
    write_text_atomically(path, page, overwrite=overwrite)
    return path


def write_reports(
    content: ReportContent, path: Path, *, overwrite: bool = False, draw: Draw = draw_here
) -> Path:
    """Write the joint report of several models to `path`, and one page per model next to it.

    A model's page is ``NAME/report.html`` if `path` is ``report.html``. The errors are those of
    `write_report`.
    """
    names = _order_names(content)
    links = {name: f"{quote(name)}/{path.name}" for name in names}
    write_report(content, path, overwrite=overwrite, draw=draw, links=links)
    by_name = {model.scores.name: model for model in content.models}
    for index, name in enumerate(names):
        ways = [Way("← All models", f"../{path.name}")]
        near = (("Before", names[index - 1 : index]), ("After", names[index + 1 : index + 2]))
        ways += [Way(f"{word}: {other}", f"../{links[other]}") for word, others in near
                 for other in others]  # fmt: skip
        one_model = replace(content, models=(by_name[name],), title=f"{name}: {content.title}",
                      comparison=None, summary=(), ranks=None)  # fmt: skip
        target = path.parent / name / path.name
        write_report(one_model, target, overwrite=overwrite, draw=draw, ways=ways)
    return path


def _order_names(content: ReportContent) -> list[str]:
    names = [model.scores.name for model in content.models]
    places: dict[str, float] = {}
    if content.comparison is not None:
        places = {model.name: model.rank for model in content.comparison.ranking}
    elif content.ranks is not None:
        ranks = content.ranks
        places = dict(zip(ranks.names, ranks.method.ranks.tolist(), strict=True))
    last = len(names) + 1.0
    placed = {name: places.get(name, last) for name in names}
    return sorted(names, key=lambda name: last if isnan(placed[name]) else placed[name])


def _make_section(model: ModelReport, now: Progress, draw: Draw) -> _Section:
    scores = model.scores
    task1, task2 = scores.segmentation, scores.response
    numbers: list[ReportTable] = []
    groups: list[ReportTable] = []
    strata: list[Stratum] = []
    further: list[Stratum] = []
    result = task1 or task2
    gaps = () if result is None else (tables.disparity_table(result), tables.range_table(result))
    if task1 is not None:
        numbers.append(tables.numbers_table(task1, scores.defined_by))
        numbers += composite_tables(scores.composites)
        numbers.append(tables.cost_table(scores.rows))
        groups += tables.group_tables(task1)
        strata += [s for s in task1.strata if is_featured(s.variable)]
        further += [s for s in task1.strata if not is_featured(s.variable)]
    if task2 is not None:
        numbers.append(response_table(task2))
        numbers += composite_tables(scores.composites)
        groups += odds_tables(task2)
    numbers += [table for table in gaps if table is not None]
    drawings = _draw_figures(figures_of_model(model), now, draw)
    gallery = _make_thumbnails(model, now, draw)
    return _Section(
        scores.name,
        _describe_model(model),
        scores.notes,
        tuple(numbers),
        tuple(groups),
        tuple(tables.stratum_table(stratum) for stratum in strata),
        tuple(tables.stratum_table(stratum) for stratum in further),
        drawings,
        tuple(tables.slice_table(search) for search in model.slices),
        tuple(table for table in (tables.failure_table(model),) if table),
        gallery,
        tuple(table for table in (tables.excluded_table(model),) if table),
    )


def _describe_model(model: ModelReport) -> str:
    scores = model.scores
    counted = scores.segmentation.counted if scores.segmentation else None
    first = f"{not_for_ranking(counted)}. " if counted and counted.left_out else ""
    text = f"{first}{scores.defined_by}; {scores.n_cases:,} cases, {scores.n_scored:,} scored"
    excluded = scores.n_cases - scores.n_scored
    text += f", {excluded:,} excluded from the means"
    text = "; ".join([text, *(counted_lines(counted) if counted else ())])
    if scores.outside:
        text += f"; {len(scores.outside):,} outside the list of cases are not counted"
    if scores.clinical is None:
        return f"{text}; no clinical table"
    table = scores.clinical
    text += f"; {table.n_matched:,} of them in {table.name} ({table.n_rows:,} rows)"
    return "; ".join([text, table.coverage_text, *table.notes])


def _draw_figures(
    figures: Iterable[ReportFigure], now: Progress, draw: Draw
) -> tuple[_Drawing, ...]:
    drawings = []
    for figure in figures:
        forward_progress(now)
        with _standing_at(now):
            drawn = draw(figure.drawing)
        svg = Markup(drawn.svg)  # noqa: S704 - drawn by matplotlib, which escapes texts
        drawings.append(_Drawing(figure.name, figure.caption, svg))
    return tuple(drawings)


def _make_thumbnails(model: ModelReport, now: Progress, draw: Draw) -> tuple[_Thumbnail, ...]:
    thumbnails = []
    for picture in model.pictures[:MOST_PICTURES]:
        forward_progress(now)
        failures = model.failures.get(picture.case_id, ())
        drawing = Drawing(case_figure, (picture,), has_svg=False)
        with _standing_at(now):
            drawn = draw(drawing)
        thumbnails.append(
            _Thumbnail(
                picture.case_id,
                f"{picture.plane}, {picture.place}",
                picture.caption,
                "data:image/png;base64," + b64encode(drawn.png).decode(),
                tuple(failure.kind.value for failure in failures),
                tuple(failure.reason for failure in failures),
            )
        )
    return tuple(thumbnails)


@contextmanager
def _standing_at(now: Progress) -> Iterator[None]:
    with changing(lambda _: now):
        yield
