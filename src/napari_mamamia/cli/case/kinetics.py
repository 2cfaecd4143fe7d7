"""The command that measures contrast kinetics."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli import options
from napari_mamamia.cli.given import ALWAYS, Where, is_given, refuse_idle
from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.printing import finish, finish_rows, print_table, run, shown
from napari_mamamia.cli.quantities import INDEX, Quantity, numbers_of_text, times_of_text
from napari_mamamia.cli.scripting import report_result, reports_result

if TYPE_CHECKING:
    from napari_mamamia.kinetics.time_axis import TimingRule
    from napari_mamamia.kinetics.tumour_volume import FtvSettings
    from napari_mamamia.services.batch.output_folder import Existing
    from napari_mamamia.services.case.data_set import OpenDataSet
    from napari_mamamia.services.kinetics.ftv_from import FtvFromRow
    from napari_mamamia.services.kinetics.row import KineticRow


def count_from(
    opened: "OpenDataSet", source: Path, out: Path, case: Sequence[str], existing: "Existing"
) -> None:
    """Compute FTV from each SEG, and print it next to UCSF's FTV; exit code 3 if one fails."""
    from napari_mamamia.services.kinetics.ftv_from import ftv_from_segs

    summary = run(partial(ftv_from_segs, opened, source, out, case_ids=case, existing=existing))
    report_result(lambda: summary)
    _print_volumes(summary.rows)
    print(f"Table: {summary.table}")
    finish(summary.failures)


def _print_volumes(rows: "Sequence[FtvFromRow]") -> None:
    heads = ("case", "SEG", "measure", "ours voxels", "ours cc", "UCSF voxels", "UCSF cc")
    cells = (
        (
            row.case_id,
            row.seg,
            row.measure,
            f"{row.ours_voxels:.0f}",
            f"{row.ours_cc:.3f}",
            f"{row.theirs_voxels:.0f}",
            f"{row.theirs_cc:.3f}",
            shown(row.different_voxels, 0),
        )
        for row in rows
    )
    print_table("FTV: our result and UCSF's", (*heads, "different"), cells, is_folded=True)
    for row in rows:
        if row.measure == "pe":
            print(f"{row.case_id}: {row.phases} · {row.ftv_thresholds}")
            if row.remark:
                print(f"{row.case_id}: {row.remark}")


_PE_AT: Final = Quantity("a time after arrival", 1, 600, "s", "type seconds, such as 20")
_INJECTION: Final = Quantity("a time after phase 0 started", -3600, 86400, "s", "type seconds")


_OWN_REGION: Final = Where(
    "without --ftv-from, because a SEG defines its own region, thresholds and phases",
    lambda given: given["ftv_from"] is None,
    lambda given: f"with --ftv-from {given['ftv_from']}",
)
OPTIONS: Final[dict[str, Where]] = dict.fromkeys(
    ("data_set", "out", "case", "ftv_from", "columns", "layout", "patient", "visit", "overwrite"),
    ALWAYS,
) | dict.fromkeys(
    (
        *("masks", "times", "label", "ftv_box", "timing", "injection", "phases", "vessels"),
        *("pe_at", "ftv_variant", "repeated_pre", "workers", "scheduler", "time_limit", "resume"),
    ),
    _OWN_REGION,
)
"""The conditions under which each parameter applies; a new parameter needs an entry."""


@reports_result
def kinetics(
    context: typer.Context,
    data_set: options.DataSetArgument,
    out: options.OutOption,
    masks: Annotated[
        Path | None,
        typer.Option("--masks", metavar="DIR", help="Folder of masks (default: the references)."),
    ] = None,
    case: options.CaseOption = None,
    times: Annotated[
        str,
        typer.Option(
            "--times",
            metavar='"0,82,148"',
            help="Time of each phase in seconds, replacing the times in the table.",
        ),
    ] = "",
    label: options.LabelOption = None,
    ftv_box: Annotated[
        str,
        typer.Option(
            "--ftv-box",
            metavar="mask|breast",
            help="Region for the FTV: mask + 10 mm, or breast box.",
        ),
    ] = "mask",
    timing: Annotated[
        str,
        typer.Option(
            "--timing",
            metavar="UCSF-FTV|phase0-start|injection|manual",
            help=(
                "Reference time for choosing the early and late phase (150 and 450 s) (default: "
                "UCSF-FTV); injection needs --injection, manual --phases."
            ),
        ),
    ] = "",
    injection: Annotated[
        str,
        typer.Option(
            "--injection",
            metavar="SECONDS|header|DIR",
            help=(
                "Time of the injection: seconds after phase 0, header for the time in the "
                "headers, or a "
                "folder with masks of a vessel or the heart."
            ),
        ),
    ] = "",
    phases: Annotated[
        str,
        typer.Option(
            "--phases", metavar='"2,4"', help="Early and late phase, instead of a choice by time."
        ),
    ] = "",
    vessels: Annotated[
        Path | None,
        typer.Option(
            "--vessels",
            metavar="DIR",
            help=(
                "Folder with masks of the aorta or heart, from whose enhancement the time to "
                "enhancement of "
                "ultrafast phases is measured (default: those of --injection DIR)."
            ),
        ),
    ] = None,
    pe_at: Annotated[
        float,
        typer.Option(
            "--pe-at",
            metavar="SECONDS",
            parser=_PE_AT,
            help=(
                "Report PE of ultrafast phases this long after arrival in the vessel, or, "
                "without a vessel, in "
                "the lesion."
            ),
        ),
    ] = 20.0,
    ftv_variant: Annotated[
        str,
        typer.Option(
            "--ftv-variant",
            metavar="ucsf-extension|ucsf-ispy1",
            help=(
                "Filter for the FTV mask: at least 4 of 26 neighbours, or 9 as in UCSF's results "
                "of I-SPY 1."
            ),
        ),
    ] = "ucsf-extension",
    repeated_pre: Annotated[
        str,
        typer.Option(
            "--repeated-pre",
            metavar="leave-out|average|keep",
            help=(
                "Treatment of a repeated pre-contrast scan (detected by its pixels): leave out, "
                "so that S0 is "
                "the last scan before contrast, as in an import; average; or keep as a phase."
            ),
        ),
    ] = "leave-out",
    ftv_from: Annotated[
        Path | None,
        typer.Option(
            "--ftv-from",
            metavar="SEG_OR_FOLDER",
            help=(
                "Compute only FTV, with the VOI, thresholds and phases of UCSF's own DICOM SEG; "
                "our "
                "result and UCSF's are written to OUT/ftv_from.csv."
            ),
        ),
    ] = None,
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
    """Measure contrast curves, curve types, FTV and sizes: OUT/kinetics.csv (.xlsx).

    Example: mamamia kinetics DATASET --masks MASKS --out KINETICS
    """
    from napari_mamamia.kinetics.repeated_pre import RepeatedPre
    from napari_mamamia.services.kinetics.case_kinetics import FtvBox, KineticSettings
    from napari_mamamia.services.kinetics.kinetics import kinetics_of_data_set

    refuse_idle(context, OPTIONS)
    if ftv_box not in set(FtvBox):
        raise typer.BadParameter(f"expected --ftv-box to be mask or breast, but it is {ftv_box}")
    if repeated_pre not in set(RepeatedPre):
        raise typer.BadParameter(
            f"expected --repeated-pre to be {', '.join(RepeatedPre)}, but it is {repeated_pre}"
        )
    source = injection_source(injection)
    settings = KineticSettings(
        times_of_text(times),
        label,
        rule=rule_of(timing, "" if source else injection, phases, is_other=bool(source)),
        injection=source,
        ftv=ftv_of(ftv_variant),
        ftv_box=FtvBox(ftv_box),
        repeated_pre=RepeatedPre(repeated_pre),
        vessels=_folder_of_vessels(vessels, source),
        pe_at_s=pe_at,
    )
    existing = options.existing_policy(resume, overwrite)
    place = options.place_of(workers, scheduler, time_limit)
    opened = open_at(data_set, columns, layout, patient, visit)
    if ftv_from is not None:
        count_from(opened, ftv_from, out, case or (), existing)
        return
    job = partial(
        kinetics_of_data_set,
        opened,
        out,
        settings,
        masks=masks,
        case_ids=case or (),
        place=place,
        existing=existing,
    )
    summary = run(job)
    report_result(lambda: summary)
    _print_kinetics(
        summary.rows, is_ultrafast=is_given(context, "vessels") or is_given(context, "pe_at")
    )
    finish_rows(summary, [f"Table:   {summary.table}", f"Figures: {out / 'figures'}"])


def _folder_of_vessels(vessels: Path | None, injection: str) -> str:
    """Return the absolute path of the folder of vessel masks, or else of the injection folder."""
    if vessels is None:
        return "" if injection == "header" else injection
    if not vessels.is_dir():
        raise typer.BadParameter(
            f"expected --vessels to be a folder of masks, but it is {vessels}: name the folder "
            "that "
            "holds ID.nii.gz"
        )
    return str(vessels.resolve())


def injection_source(text: str) -> str:
    """Return "header", the absolute path of the injection folder, or "" if `text` is a number."""
    if text == "header":
        return text
    return str(Path(text).resolve()) if text and Path(text).is_dir() else ""


def rule_of(timing: str, injection: str, phases: str, *, is_other: bool = False) -> "TimingRule":
    """Return the rule by which phases are chosen; raise an error if options conflict.

    `is_other` says whether each case has its own injection time.
    """
    from napari_mamamia.core.errors import CaseError
    from napari_mamamia.kinetics.time_axis import Timing, TimingRule

    named = numbers_of_text(phases, INDEX)
    if named is not None and len(named) != 2:
        raise typer.BadParameter(
            f'expected --phases to be two phases such as "2,4", but it is {phases!r}: '
            "name the early and the late phase"
        )
    has_injection = bool(injection) or is_other
    implied = {(True, False): Timing.MANUAL, (False, True): Timing.INJECTION}.get(
        (named is not None, has_injection)
    )
    if (named is not None and has_injection) or (implied and timing not in ("", implied)):
        choices = {"--timing": timing, "--injection": has_injection, "--phases": phases}
        names = " and ".join(name for name, value in choices.items() if value)
        raise typer.BadParameter(
            f"expected only one of --timing, --injection and --phases, but got {names}: keep one "
            "of them"
        )
    if implied is None and timing not in ("", Timing.UCSF_FTV, Timing.PHASE0_START):
        raise typer.BadParameter(
            f"expected --timing to be {Timing.UCSF_FTV} or {Timing.PHASE0_START}, but it is "
            f"{timing}: for "
            "other reference times use --injection SECONDS or --phases"
        )
    try:
        if named is not None:
            return TimingRule(Timing.MANUAL, phases=(int(named[0]), int(named[1])))
        if injection:
            return TimingRule(Timing.INJECTION, _parse_seconds(injection))
        return TimingRule(Timing(timing or Timing.UCSF_FTV) if implied is None else Timing.UCSF_FTV)
    except CaseError as error:
        raise typer.BadParameter(str(error)) from error


def _parse_seconds(text: str) -> float:
    try:
        return _INJECTION(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(
            f'{error.message}, "header", or a folder of masks for --injection'
        ) from error


def ftv_of(variant: str) -> "FtvSettings":
    """Return the thresholds of a variant of FTV."""
    from napari_mamamia.kinetics.tumour_volume import FtvSettings, FtvVariant

    if variant not in (FtvVariant.EXTENSION, FtvVariant.ISPY1):
        raise typer.BadParameter(
            f"expected --ftv-variant to be {FtvVariant.EXTENSION} or {FtvVariant.ISPY1}, but it is "
            f"{variant}"
        )
    return FtvSettings.of(FtvVariant(variant))


def _print_kinetics(rows: "tuple[KineticRow, ...]", *, is_ultrafast: bool) -> None:
    from napari_mamamia.services.kinetics.row import phases_of_row, ultrafast_text

    curve = ("volume ml", "diameter mm", "peak PE %", "initial", "delayed", "worst")
    cells = (
        (
            row.case_id,
            shown(row.volume_mm3 / 1000, 2),
            shown(row.longest_diameter_mm, 1),
            shown(row.peak_pe_of_mean_percent, 0),
            row.initial_class or "–",
            row.delayed_class or "–",
            row.worst_curve or "–",
            shown(row.ftv_cc, 2),
        )
        for row in rows
    )
    print_table("Kinetics", ("case", *curve, "FTV cc"), cells)
    for row in rows:
        if phases := phases_of_row(row):
            print(f"{row.case_id}: {phases}" + (f" · {row.ftv_variant}" if row.ftv_variant else ""))
        ultrafast = ultrafast_text(row, is_asked=is_ultrafast)
        no_ftv = "" if row.ftv_reason == row.early_late_reason else row.ftv_reason
        for remark in (row.early_late_reason, row.timing_remark, no_ftv, ultrafast, row.warning):
            if remark:
                print(f"{row.case_id}: {remark}")
