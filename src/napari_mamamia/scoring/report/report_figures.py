"""The figures of a report, with names and captions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.scoring.cohort.groups import Grouping, rules_of
from napari_mamamia.scoring.cohort.ranking import ModelScore, Sweep, sweep_weights
from napari_mamamia.scoring.report.content import ModelReport, ReportContent, is_featured
from napari_mamamia.scoring.report.drawing import Draw, Drawing, Drawn, draw_here
from napari_mamamia.scoring.report.figures import (
    MODEL_COLOURS,
    BoxGroup,
    ModelPoint,
    box_plot,
    fairness_performance,
    reliability_diagram,
    volume_histogram,
    weight_sweep,
)
from napari_mamamia.scoring.report.text import SIZES, variable_label
from napari_mamamia.scoring.statistics.bootstrap import interval_named


@dataclass(frozen=True, slots=True, eq=False)
class ReportFigure:
    """A figure to draw, with a file name without suffix and a caption."""

    name: str
    caption: str
    drawing: Drawing


def figures_of_cohort(content: ReportContent) -> Iterator[ReportFigure]:
    """Yield the figures of all models together: fairness against performance, and weight sweep."""
    if not content.is_ranked:
        return
    points = [point for model in content.models if (point := _make_point(model))]
    n_named = len(MODEL_COLOURS)
    is_long = len(points) > n_named
    named = f" The best {n_named} models are named, and the others are grey." if is_long else ""
    if any(not np.isnan([p.performance, p.fairness]).any() for p in points):
        label = "performance (1 is best)"
        if content.models[0].scores.segmentation is None:
            label = "balanced accuracy (0.5 is chance)"
        shaded = (
            " The shaded region is better than the baseline in both numbers."
            if content.baseline
            else ""
        )
        yield ReportFigure(
            "fairness_performance",
            (
                f"Fairness against performance (profile {content.profile}). Crosses: 95 % "
                "intervals that contain the value (for fairness, small groups are left out). "
                "Dotted: equal ranking scores for a fairness weight of 0.5."
            )
            + shaded
            + named,
            Drawing(fairness_performance, (points, label, content.baseline)),
        )
    sweep = _make_sweep(content, points)
    if sweep is not None:
        what = "Rank of each model" if len(sweep.names) > 1 else "Ranking score"
        yield ReportFigure(
            "weight_sweep",
            f"{what} for fairness weights from 0 (performance only) to 1 (fairness only); "
            f"{sweep.composite}, profile {content.profile}.{named}",
            Drawing(weight_sweep, (sweep,)),
        )


def figures_of_model(model: ModelReport) -> Iterator[ReportFigure]:
    """Yield the figures of one model: box plots of Dice, volumes, and reliability."""
    yield from _segmentation_figures(model)
    yield from _response_figures(model)


def write_figures(
    content: ReportContent, folder: Path, *, overwrite: bool = False, draw: Draw = draw_here
) -> tuple[Path, ...]:
    """Write every figure as PNG (200 dots per inch) and SVG, and return the paths.

    With several models, the figures of each model are in a folder with the model's name.

    Raises
    ------
    SaveConflictError
        If a file exists and `overwrite` is off.
    SaveError
        If the system cannot write a file.
    """
    paths: list[Path] = []
    total = len(content.models) + 1
    several = len(content.models) > 1
    parts = [(folder, figures_of_cohort(content))]
    for model in content.models:
        model_folder = folder / model.scores.name if several else folder
        parts.append((model_folder, figures_of_model(model)))
    for index, (place, figures) in enumerate(parts):
        for figure in figures:
            report_progress(index, total, f"Writing {figure.name}")
            drawn = draw(figure.drawing)
            paths += write_figure(figure.name, drawn, place, overwrite=overwrite)
    report_progress(total, total, "Figures written")
    return tuple(paths)


def write_figure(name: str, drawn: Drawn, folder: Path, *, overwrite: bool) -> tuple[Path, Path]:
    """Write a drawn figure as PNG and SVG, and return the paths."""
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    with saving(png, overwrite=overwrite) as temporary:
        temporary.write_bytes(drawn.png)
    write_text_atomically(svg, drawn.svg, overwrite=overwrite)
    return png, svg


def _segmentation_figures(model: ModelReport) -> Iterator[ReportFigure]:
    result = model.scores.segmentation
    if result is None or not len(result.scores.case_ids):
        return
    least = rules_of(model.scores.profile).min_group_size
    strata = [grouping for grouping in model.strata if is_featured(grouping.variable)]
    for grouping in (*result.groupings, *strata):
        groups = _make_box_groups(grouping, result.scores.dsc, least)
        if not groups:
            continue
        label = SIZES.get(grouping.variable) or variable_label(grouping.variable)
        yield ReportFigure(
            f"dice_by_{_file_stem(grouping.variable)}",
            f"Dice by {label[:1].lower()}{label[1:]} (profile {model.scores.profile}): median, "
            "quartiles, whiskers up to 1.5 times the box, and mean as a diamond. Grey: small "
            "group.",
            Drawing(box_plot, (groups, "Dice", label)),
        )
    volumes = np.array([row.volume_reference_mm3 for row in model.scores.rows], dtype=np.float64)
    if (volumes > 0).any():
        yield ReportFigure(
            "reference_volumes",
            "Volumes of the reference masks (mm³, log axis) with the 20th and 80th percentile, "
            "between which tumours count as moderate.",
            Drawing(volume_histogram, (volumes,)),
        )


def _response_figures(model: ModelReport) -> Iterator[ReportFigure]:
    result = model.scores.response
    if result is None or not result.cohort.discrimination.calibration.bins:
        return
    curve = result.cohort.discrimination.calibration
    yield ReportFigure(
        "reliability",
        f"Reliability of the predicted probabilities, in {len(curve.bins)} quantile bins with n "
        f"next to each point; ECE {curve.ece:.3f}, Brier score {curve.brier:.3f}, {curve.n} cases.",
        Drawing(reliability_diagram, (curve,)),
    )


def _make_box_groups(grouping: Grouping, values: np.ndarray, least: int) -> list[BoxGroup]:
    sizes = grouping.sizes
    return [
        BoxGroup(label, values[grouping.codes == code], bool(sizes[code] < least))
        for code, label in enumerate(grouping.labels)
        if sizes[code]
    ]


def _make_point(model: ModelReport) -> ModelPoint | None:
    scores = model.scores
    if scores.segmentation is not None:
        task1 = scores.segmentation
        return ModelPoint(
            scores.name,
            task1.cohort.performance.value,
            task1.cohort.fairness.value,
            interval_named(task1.intervals, "performance"),
            task1.uncertainty.fairness,
        )
    if scores.response is not None:
        task2 = scores.response
        return ModelPoint(
            scores.name,
            task2.cohort.balanced_accuracy,
            task2.cohort.fairness,
            interval_named(task2.intervals, "balanced_accuracy"),
            task2.uncertainty.fairness,
        )
    return None


def _make_sweep(content: ReportContent, points: list[ModelPoint]) -> Sweep | None:
    if content.comparison is not None:
        return content.comparison.sweep
    defined = [p for p in points if not np.isnan([p.performance, p.fairness]).any()]
    if not defined:
        return None
    lowest = {
        model.scores.name: model.scores.segmentation.lowest
        for model in content.models
        if model.scores.segmentation is not None
    }
    parts = [
        ModelScore(p.name, p.performance, p.fairness, lowest=lowest.get(p.name)) for p in defined
    ]
    return sweep_weights(parts)


def _file_stem(variable: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in variable)
