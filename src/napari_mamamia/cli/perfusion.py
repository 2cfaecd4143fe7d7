"""The command that fits Ktrans, ve, vp and kep where a case's phases carry them."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.kinetics import place_of, times_of
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import (
    CaseOption,
    ColumnsOption,
    DataSetArgument,
    LabelOption,
    OutOption,
    OverwriteOption,
    ResumeOption,
    SchedulerOption,
    TimeLimitOption,
    WorkersOption,
    existing_policy,
)
from napari_mamamia.cli.printing import finish, run

if TYPE_CHECKING:
    from napari_mamamia.services.perfusion.row import PerfusionRow
    from napari_mamamia.services.perfusion.settings import FlipAngles, PerfusionSettings

__all__ = ["perfusion"]


class ModelName(StrEnum):
    """Names of `kinetics.perfusion.tissue_model.TissueModel`."""

    TOFTS = "tofts"
    EXTENDED = "extended-tofts"


class InputCurve(StrEnum):
    """Names of `kinetics.perfusion.arterial_input.InputName`."""

    PARKER = "parker"
    GEORGIOU = "georgiou"
    WEINMANN = "weinmann"


def perfusion(
    data_set: DataSetArgument,
    out: OutOption,
    model: Annotated[ModelName, typer.Option("--model", help="Tissue model.")],
    aif: Annotated[
        InputCurve, typer.Option("--aif", help="Whose curve stands for the patient's artery.")
    ],
    relaxivity: Annotated[
        float,
        typer.Option("--relaxivity", metavar="R1", help="r1 of the agent, 1/(s mM), such as 4.5."),
    ],
    t10: Annotated[
        str,
        typer.Option(
            "--t10",
            metavar="SECONDS|MAP",
            help="T1 before contrast, s: one value, a map, or a folder of maps ID.nii.gz.",
        ),
    ] = "",
    vfa: Annotated[
        Path | None,
        typer.Option(
            "--vfa",
            metavar="DIR",
            help="In place of --t10: volumes ID_0000.nii.gz, ... of several flip angles.",
        ),
    ] = None,
    vfa_angles: Annotated[
        str, typer.Option("--vfa-angles", metavar='"2,5,10"', help="Their angles, degrees.")
    ] = "",
    vfa_tr: Annotated[
        float | None,
        typer.Option("--vfa-tr", metavar="MS", help="Their TR (default: the dynamic series')."),
    ] = None,
    tr: Annotated[
        float | None,
        typer.Option(
            "--tr", metavar="MS", help="TR of the dynamic series (default: clinical table)."
        ),
    ] = None,
    flip_angle: Annotated[
        float | None,
        typer.Option(
            "--flip-angle", metavar="DEGREES", help="Its flip angle (default: clinical table)."
        ),
    ] = None,
    arrival: Annotated[
        str,
        typer.Option(
            "--arrival",
            metavar="SECONDS|DIR",
            help="When contrast arrives after phase 0 starts, or masks of the aorta or heart "
            "(default: fitted to the mask's mean curve).",
        ),
    ] = "",
    haematocrit: Annotated[
        float,
        typer.Option("--haematocrit", "--hematocrit", help="Share of cells (parker, georgiou)."),
    ] = 0.42,
    dose: Annotated[float, typer.Option("--dose", help="Dose, mmol/kg (weinmann).")] = 0.1,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Folder of masks (default: the references)."),
    ] = None,
    case: CaseOption = None,
    times: Annotated[
        str,
        typer.Option("--times", metavar='"0,5,10"', help="Seconds of each phase, not the table's."),
    ] = "",
    label: LabelOption = None,
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = "",
    time_limit: TimeLimitOption = None,
    columns: ColumnsOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Fit Ktrans, ve, vp, kep of ultrafast exams with a known T1: maps and OUT/perfusion.csv.

    Refuses exams whose phases lie more than 15 s apart, all standard ones, and says why.
    """
    from napari_mamamia.core.errors import CaseError
    from napari_mamamia.kinetics.perfusion.arterial_input import ArterialInput, InputName
    from napari_mamamia.kinetics.perfusion.spoiled_echo import SpoiledEcho
    from napari_mamamia.kinetics.perfusion.tissue_model import TissueModel
    from napari_mamamia.services.perfusion.fit_cases import perfusion_of_data_set
    from napari_mamamia.services.perfusion.settings import PerfusionSettings

    t10_s, t10_map = _seconds_or_path(t10, "--t10", "T1 in seconds, a map or a folder of maps")
    arrival_s, vessels = _seconds_or_path(arrival, "--arrival", "seconds, or a folder of masks")
    if vessels and not Path(vessels).is_dir():
        raise typer.BadParameter(f"expected seconds, or a folder of masks in --arrival: {vessels}")
    try:
        SpoiledEcho(
            5e-3 if tr is None else tr / 1e3, 10.0 if flip_angle is None else flip_angle, relaxivity
        )
        settings = PerfusionSettings(
            TissueModel(model.value),
            ArterialInput(InputName(aif.value), haematocrit, dose),
            relaxivity,
            str(out.resolve()),
            t10_s=t10_s,
            t10_map=t10_map,
            flip_angles=_flip_angles(vfa, vfa_angles, vfa_tr),
            repetition_ms=tr,
            flip_degrees=flip_angle,
            arrival_s=arrival_s,
            vessels=vessels,
            times_s=times_of(times),
            label=label,
            mask_name="reference" if masks is None else masks.resolve().name,
        )
    except CaseError as error:
        raise typer.BadParameter(str(error)) from error
    existing = existing_policy(resume, overwrite)
    place = place_of(workers, scheduler, time_limit)
    opened = open_at(data_set, columns)
    job = perfusion_of_data_set(
        opened, settings, masks=masks, case_ids=case or (), place=place, existing=existing
    )
    summary = run(job)
    _print(summary.rows, settings)
    if summary.n_reused:
        print(f"{summary.n_reused} case(s) were there already")
    print(f"Table: {summary.table}")
    finish(summary.failures)


def _seconds_or_path(text: str, option: str, expected: str) -> tuple[float | None, str]:
    """Return a number, or an existing file or folder, made absolute; neither for nothing."""
    if not text:
        return None, ""
    try:
        return float(text), ""
    except ValueError:
        if Path(text).exists():
            return None, str(Path(text).resolve())
    raise typer.BadParameter(f"expected {expected} in {option}, got {text!r}: give one of them")


def _flip_angles(folder: Path | None, angles: str, tr: float | None) -> "FlipAngles | None":
    from napari_mamamia.kinetics.perfusion.t1_map import require_flip_angles
    from napari_mamamia.services.perfusion.settings import FlipAngles

    degrees = times_of(angles)
    if folder is None and degrees is None and tr is None:
        return None
    if folder is None or not folder.is_dir() or degrees is None:
        raise typer.BadParameter(
            f"expected a folder in --vfa and its angles in --vfa-angles, got {folder or 'none'} "
            f"and {angles or 'none'}: give both"
        )
    require_flip_angles(degrees, len(degrees), 5e-3 if tr is None else tr / 1e3)
    return FlipAngles(str(folder.resolve()), degrees, tr)


def _print(rows: "tuple[PerfusionRow, ...]", settings: "PerfusionSettings") -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Perfusion: {settings.model}, {settings.source.text}")
    for head in ("case", "arrival s", "fitted", "Ktrans 1/min", "ve", "vp", "kep 1/min"):
        table.add_column(head)
    for row in rows:
        table.add_row(
            row.case_id,
            _number(row.arrival_s, 1),
            "–" if row.n_voxels != row.n_voxels else f"{row.n_fitted:.0f} of {row.n_voxels:.0f}",
            _number(row.ktrans_median_per_min, 3),
            _number(row.ve_median, 2),
            _number(row.vp_median, 3),
            _number(row.kep_median_per_min, 2),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for row in rows:
        if row.warning:
            print(f"{row.case_id}: {row.warning}")


def _number(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}"
