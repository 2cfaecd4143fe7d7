"""The command that fits Ktrans, ve, kep and vp to exams with closely spaced phases."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish_rows, print_table, run, shown
from napari_mamamia.cli.quantities import Quantity, numbers_of_text, times_of_text
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.choices import InputName, TissueModel
from napari_mamamia.io.files.csv_text import is_number

if TYPE_CHECKING:
    from napari_mamamia.features.perfusion.services.row import PerfusionRow
    from napari_mamamia.features.perfusion.services.settings import FlipAngles, PerfusionSettings


RELAXIVITY: Final = Quantity("a relaxivity r1", 0.5, 50, "1/(s mM)", "type one such as 4.5")
REPETITION_MS: Final = Quantity("a TR", 1, 100, "ms", "type the time in milliseconds, such as 5")
FLIP_DEGREES: Final = Quantity(
    "a flip angle", 2, 90, "degrees", "type degrees, such as 12 (radians times 57.3)"
)
VFA_DEGREES: Final = Quantity("a flip angle", 1, 90, "degrees", "type degrees (radians times 57.3)")
HAEMATOCRIT: Final = Quantity("a haematocrit", 0, 0.7, "", "type a share, such as 0.42")
DOSE: Final = Quantity("a dose", 0.005, 1, "mmol/kg", "type mmol per kg, such as 0.1")
T1_S: Final = Quantity("a T1", 0.05, 6, "s", "type the time in seconds, such as 1.4")
ARRIVAL_S: Final = Quantity("an arrival", 0, 3600, "s", "type seconds after phase 0 started")

_WHOLE_BLOOD: Final = Where(
    "with --aif parker or georgiou, curves of whole blood",
    lambda given: given["aif"] is not InputName.WEINMANN,
    lambda given: f"with --aif {given['aif'].value}, which is a curve of plasma",
)
_BY_DOSE: Final = Where(
    "with --aif weinmann, whose curve grows with the dose",
    lambda given: given["aif"] is InputName.WEINMANN,
    lambda given: f"with --aif {given['aif'].value}, whose curve belongs to a fixed dose",
)
_FLIPS: Final = Where(
    "with --vfa, the folder of those volumes",
    lambda given: given["vfa"] is not None,
    lambda given: "without it",
)
OPTIONS: Final[dict[str, Where]] = dict.fromkeys(
    (
        *("data_set", "out", "model", "aif", "relaxivity", "t10", "vfa", "tr", "flip_angle"),
        *("arrival", "masks", "case", "times", "label", "workers", "scheduler", "time_limit"),
        *("columns", "layout", "patient", "visit", "resume", "overwrite"),
    ),
    ALWAYS,
) | {"haematocrit": _WHOLE_BLOOD, "dose": _BY_DOSE, "vfa_angles": _FLIPS, "vfa_tr": _FLIPS}
"""The conditions under which each parameter applies; a new parameter needs an entry."""


@reports_result
def perfusion(
    context: typer.Context,
    data_set: options.DataSetArgument,
    out: options.OutOption,
    model: Annotated[TissueModel, typer.Option("--model", help="Tissue model.")],
    aif: Annotated[
        InputName, typer.Option("--aif", help="Population curve for the arterial input.")
    ],
    relaxivity: Annotated[
        float,
        typer.Option(
            "--relaxivity",
            metavar="R1",
            parser=RELAXIVITY,
            help="r1 of the agent, 1/(s mM), such as 4.5.",
        ),
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
            help="In place of --t10: volumes ID_0000.nii.gz, ... with several flip angles.",
        ),
    ] = None,
    vfa_angles: Annotated[
        str,
        typer.Option(
            "--vfa-angles", metavar='"2,5,10"', help="Flip angles of the --vfa volumes, degrees."
        ),
    ] = "",
    vfa_tr: Annotated[
        float | None,
        typer.Option(
            "--vfa-tr",
            metavar="MS",
            parser=REPETITION_MS,
            help="TR of the --vfa volumes (default: that of the dynamic series).",
        ),
    ] = None,
    tr: Annotated[
        float | None,
        typer.Option(
            "--tr",
            metavar="MS",
            parser=REPETITION_MS,
            help="TR of the dynamic series (default: clinical table).",
        ),
    ] = None,
    flip_angle: Annotated[
        float | None,
        typer.Option(
            "--flip-angle",
            metavar="DEGREES",
            parser=FLIP_DEGREES,
            help="Flip angle of the dynamic series (default: clinical table).",
        ),
    ] = None,
    arrival: Annotated[
        str,
        typer.Option(
            "--arrival",
            metavar="SECONDS|DIR",
            help=(
                "Arrival of contrast after the start of phase 0, or masks of the aorta or heart "
                "(default: fitted to the mask's mean curve)."
            ),
        ),
    ] = "",
    haematocrit: Annotated[
        float,
        typer.Option(
            "--haematocrit",
            "--hematocrit",
            parser=HAEMATOCRIT,
            help="Haematocrit: volume fraction of cells in blood (parker, georgiou).",
        ),
    ] = 0.42,
    dose: Annotated[
        float, typer.Option("--dose", parser=DOSE, help="Dose, mmol/kg (weinmann).")
    ] = 0.1,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Folder of masks (default: the references)."),
    ] = None,
    case: options.CaseOption = None,
    times: Annotated[
        str,
        typer.Option(
            "--times",
            metavar='"0,5,10"',
            help="Time of each phase in seconds, in place of the table's.",
        ),
    ] = "",
    label: options.LabelOption = None,
    workers: options.WorkersOption = 0,
    scheduler: options.SchedulerOption = "",
    time_limit: options.TimeLimitOption = None,
    columns: options.ColumnsOption = None,
    layout: options.LayoutOption = "",
    patient: options.PatientOption = None,
    visit: options.VisitOption = None,
    resume: options.ResumeOption = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Fit Ktrans, ve, kep and vp to ultrafast exams with a known T1: maps, OUT/perfusion.csv.

    An exam whose phases are more than 15 s apart, such as any standard exam, is an error.

    Example: mamamia perfusion DATASET --model tofts --aif parker --relaxivity 4.5 --out PERFUSION
    """
    from napari_mamamia.core.errors import CaseError
    from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput
    from napari_mamamia.features.perfusion.services.fit_cases import perfusion_of_data_set
    from napari_mamamia.features.perfusion.services.settings import PerfusionSettings

    refuse_idle(context, OPTIONS)
    t10_s, t10_map = _seconds_or_path(t10, "--t10", T1_S, "a map or a folder of maps")
    arrival_s, vessels = _seconds_or_path(arrival, "--arrival", ARRIVAL_S, "a folder of masks")
    if vessels and not Path(vessels).is_dir():
        raise typer.BadParameter(
            f"expected --arrival to be seconds or a folder of masks, but it is {vessels}: name the "
            "folder that holds ID.nii.gz"
        )
    try:
        settings = PerfusionSettings(
            model,
            ArterialInput(aif, haematocrit, dose),
            relaxivity,
            str(out.resolve()),
            t10_s=t10_s,
            t10_map=t10_map,
            flip_angles=_flip_angles(vfa, vfa_angles, vfa_tr),
            repetition_ms=tr,
            flip_degrees=flip_angle,
            arrival_s=arrival_s,
            vessels=vessels,
            times_s=times_of_text(times),
            label=label,
            mask_name="reference" if masks is None else masks.resolve().name,
        )
    except CaseError as error:
        raise typer.BadParameter(str(error)) from error
    existing = options.existing_policy(resume, overwrite)
    place = options.place_of(workers, scheduler, time_limit)
    opened = open_at(data_set, columns, layout, patient, visit)
    job = partial(
        perfusion_of_data_set,
        opened,
        settings,
        masks=masks,
        case_ids=case or (),
        place=place,
        existing=existing,
    )
    summary = run(job)
    report_result(lambda: summary)
    _print_perfusion(summary.rows, settings)
    finish_rows(summary, [f"Table: {summary.table}"])


def _seconds_or_path(
    text: str, option: str, quantity: Quantity, other: str
) -> tuple[float | None, str]:
    """Return a number and a path, one of which is empty.

    If `text` is a number, the path is "". If it names an existing file or folder, the number is
    None and the path is absolute. If it is empty, the result is (None, "").
    """
    if not text:
        return None, ""
    try:
        return quantity(text), ""
    except typer.BadParameter as error:
        if not is_number(text) and Path(text).exists():
            return None, str(Path(text).resolve())
        raise typer.BadParameter(f"{error.message}, or {other} that exists, in {option}") from error


def _flip_angles(folder: Path | None, angles: str, tr: float | None) -> "FlipAngles | None":
    from napari_mamamia.features.perfusion.kinetics.t1_map import require_flip_angles
    from napari_mamamia.features.perfusion.services.settings import FlipAngles

    if folder is None:
        return None
    degrees = numbers_of_text(angles, VFA_DEGREES, "2,5,10")
    if not folder.is_dir() or degrees is None:
        raise typer.BadParameter(
            "expected --vfa to name a folder and --vfa-angles to list the flip angles, but got "
            f"{folder} and {angles or 'none'}: pass both options"
        )
    require_flip_angles(degrees, len(degrees), 5e-3 if tr is None else tr / 1e3)
    return FlipAngles(str(folder.resolve()), degrees, tr)


def _print_perfusion(rows: "tuple[PerfusionRow, ...]", settings: "PerfusionSettings") -> None:
    heads = ("case", "arrival s", "fitted", "Ktrans 1/min", "ve", "vp", "kep 1/min")
    cells = (
        (
            row.case_id,
            shown(row.arrival_s, 1),
            "–" if not row.n_voxels > 0 else f"{row.n_fitted:.0f} of {row.n_voxels:.0f}",
            shown(row.ktrans_median_per_min, 3),
            shown(row.ve_median, 2),
            shown(row.vp_median, 3),
            shown(row.kep_median_per_min, 2),
        )
        for row in rows
    )
    print_table(f"Perfusion: {settings.model}, {settings.source.text}", heads, cells)
    for row in rows:
        if row.warning:
            print(f"{row.case_id}: {row.warning}")
