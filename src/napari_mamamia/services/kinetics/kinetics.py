"""Kinetics of many cases, on this computer or a cluster: tables, figures, definitions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.tables.flat_tables import write_flat_table
from napari_mamamia.kinetics.curve_figure import curve_figure
from napari_mamamia.kinetics.curves import CurveLine, CurvePlot
from napari_mamamia.kinetics.repeated_pre import with_pre
from napari_mamamia.scoring.report.drawing import Drawing, Drawn
from napari_mamamia.services.batch import work
from napari_mamamia.services.batch.in_subprocess import drawing_place
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.row_table import OK, RowSummary, rows_of_batch, write_definitions
from napari_mamamia.services.case.data_set import OpenDataSet
from napari_mamamia.services.case.open_case import load_case, read_mask
from napari_mamamia.services.kinetics.case_kinetics import (
    KineticSettings,
    case_kinetics,
    times_source,
    with_times,
)
from napari_mamamia.services.kinetics.injection import HEADER, injection_rule
from napari_mamamia.services.kinetics.row import KineticRow, numbers_of

TABLE: Final = "kinetics.csv"
CURVES: Final = "curves.csv"
FIGURES: Final = "figures"
_MEAN: Final = "#0072B2"
_HOTTEST: Final = "#D55E00"
_CURVE_COLUMNS: Final = ("case_id", "region", "phase", "time_s", "mean_signal", "pe_percent")


def kinetics_of_data_set(
    opened: OpenDataSet,
    out: Path,
    settings: KineticSettings | None = None,
    *,
    masks: Path | None = None,
    case_ids: Sequence[str] = (),
    place: work.Place | None = None,
    existing: Existing = Existing.REFUSE,
) -> RowSummary[KineticRow]:
    """Measure every case and write tables, figures and definitions to `out`.

    The files are ``kinetics.csv`` and ``.xlsx`` (with a row for each case), ``curves.csv``,
    ``figures/ID.png`` and ``.svg``, and ``kinetics.json`` (with the meaning of each column, and the
    settings). ``case_results.jsonl`` stores each finished case.

    Parameters
    ----------
    masks
        A folder with masks ``ID.nii.gz``; None for the reference masks of the data set.
    case_ids
        The ids of the cases to measure; if empty, all cases are measured.
    place, existing
        As in `run_batch`.

    Raises
    ------
    CaseError
        If `case_ids` names a case that does not exist.
    FormatError
        If `masks` is missing or has no mask.
    SaveConflictError
        If `out` has other results.
    """
    settings = settings or KineticSettings()
    if masks is not None:
        settings = replace(settings, mask_name=masks.resolve().name)
    injection = "" if settings.injection == HEADER else settings.injection
    inputs = work.masked_inputs(opened, masks, case_ids, (injection, settings.vessels))
    read = opened.data_set.folders | ({masks} if masks is not None else frozenset())
    summary = rows_of_batch(
        inputs,
        work.CaseWork("kinetics", measure_files, settings, KineticRow),
        out / TABLE,
        KineticRow,
        _list_parameters(opened, settings, case_ids),
        read=read,
        failed={"mask": settings.mask_name},
        place=place,
        existing=existing,
    )
    write_definitions(summary, KineticRow, settings, existing)
    _write_curves(summary.rows, out, overwrite=existing is not Existing.REFUSE)
    return summary


def measure_files(inputs: work.CaseInputs, settings: KineticSettings) -> KineticRow:
    """Return the kinetics row of a case from its files.

    Parameters
    ----------
    inputs
        The files of the case.
    settings
        The settings of the measurement.

    Raises
    ------
    CaseError
        If the case cannot be opened, has no mask, has no voxel of `label` or has only one phase, or
        if the number of entered times is wrong or the injection time is unknown.
    FormatError, GridMismatchError
        If a file is damaged, or the mask is on a different grid.
    """
    if not isinstance(inputs, work.MaskedInputs) or inputs.sources is None:
        raise CaseError(f"no files are listed for {inputs.case_id}; list the case again")
    mask_path = inputs.files[-1]
    if mask_path is None:
        raise CaseError(
            inputs.no_mask
            or (
                f"expected {settings.mask_name} to have a mask of {inputs.case_id}, but found "
                "none; choose a folder with masks"
            ),
            remedies=(Remedy("masks", ("DIR",)),),
        )
    case = load_case(inputs.sources, inputs.record)
    source = times_source(case, inputs.sources, inputs.record)
    if settings.times_s is not None:
        case, source = with_times(case, settings.times_s), "typed in"
    case = with_pre(case, settings.repeated_pre)
    if settings.injection:
        settings = replace(settings, rule=injection_rule(case, settings.injection))
    mask = read_mask(mask_path, case, settings.label)
    return case_kinetics(case, mask, settings, source=source)


def plot_of(row: KineticRow) -> CurvePlot:
    """Return the curves in a row: the mean over the mask, and the most enhancing 3 x 3 patch."""
    times = numbers_of(row.times_s) or None
    classes = f"{row.initial_class}, {row.delayed_class}"
    mean = CurveLine("mean of the mask", _MEAN, numbers_of(row.mean_pe_percent), classes)
    hottest = CurveLine("hottest 3 x 3 patch", _HOTTEST, numbers_of(row.hottest_pe_percent))
    lines = tuple(line for line in (mean, hottest) if line.percent)
    worst = f"predominant {row.predominant_curve}, worst {row.worst_curve}"
    title = f"{row.case_id} ({row.mask}): {worst} · {row.timing}"
    return CurvePlot(title, times, lines, "" if times else row.curve_reason)


def _list_parameters(
    opened: OpenDataSet, settings: KineticSettings, case_ids: Sequence[str]
) -> tuple[tuple[str, Any], ...]:
    times = "" if settings.times_s is None else " ".join(f"{t:g}" for t in settings.times_s)
    return (
        ("data_set", opened.data_set.name),
        ("masks", settings.mask_name),
        ("cases", " ".join(case_ids)),
        ("times_s", times),
        ("label", settings.label),
        ("timing", settings.rule.name),
        ("injection", settings.injection),
        ("repeated_pre", str(settings.repeated_pre)),
        ("vessels", settings.vessels),
        ("pe_at_s", settings.pe_at_s),
        ("ftv", settings.ftv.name),
        ("ftv_box", str(settings.ftv_box)),
    )


def _write_curves(rows: tuple[KineticRow, ...], out: Path, *, overwrite: bool) -> None:
    curves = [line for row in rows for line in _curve_rows(row)]
    write_flat_table(_CURVE_COLUMNS, curves, len(curves), out / CURVES, overwrite=overwrite)
    _draw_curves(rows, out / FIGURES, overwrite)


def _curve_rows(row: KineticRow) -> list[tuple[str | float, ...]]:
    times = numbers_of(row.times_s)
    signal = numbers_of(row.mean_signal)
    rows: list[tuple[str | float, ...]] = []
    nothing = float("nan")
    for name, percent in (
        ("mean", numbers_of(row.mean_pe_percent)),
        ("hottest 3x3 patch", numbers_of(row.hottest_pe_percent)),
    ):
        for phase, value in enumerate(percent):
            time_s = times[phase] if times else nothing
            level = signal[phase] if name == "mean" else nothing
            rows.append((row.case_id, name, float(phase), time_s, level, value))
    return rows


def _draw_curves(rows: tuple[KineticRow, ...], folder: Path, overwrite: bool) -> None:
    drawn = [row for row in rows if row.status == OK]
    with drawing_place() as draw:
        for index, row in enumerate(drawn):
            report_progress(index, len(drawn), f"Drawing {row.case_id}")
            picture = draw(Drawing(curve_figure, (plot_of(row),)))
            save_drawn(picture, folder / row.case_id, overwrite=overwrite)
    report_progress(len(drawn), max(len(drawn), 1), "Saved")


def save_drawn(picture: Drawn, stem: Path, *, overwrite: bool = False) -> None:
    """Write a figure as ``stem.png`` and ``stem.svg``; errors are the same as in `saving`.

    Parameters
    ----------
    picture
        The drawn figure.
    stem
        The path of the files without suffix.
    overwrite
        Whether to replace an existing file.
    """
    with saving(stem.with_name(f"{stem.name}.png"), overwrite=overwrite) as temporary:
        temporary.write_bytes(picture.png)
    if picture.svg:
        path = stem.with_name(f"{stem.name}.svg")
        write_text_atomically(path, picture.svg + "\n", overwrite=overwrite)
