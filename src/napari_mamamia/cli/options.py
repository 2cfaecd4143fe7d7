"""Arguments and options that several commands share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from napari_mamamia.cli.quantities import LABEL, LABEL_OR_NAME, SECONDS, Quantity
from napari_mamamia.core.choices import (
    CompositeName,
    IsolationChoice,
    IsolationKind,
    UnusableRule,
)
from napari_mamamia.core.open_choices import PROFILES, OpenChoice

if TYPE_CHECKING:
    from napari_mamamia.io.clinical.columns import ColumnChoice
    from napari_mamamia.io.data_set.case_list import CaseList
    from napari_mamamia.services.batch.output_folder import Existing
    from napari_mamamia.services.batch.work import Place

_PROCESSES: Final = Quantity(
    "a number of processes on this computer",
    0,
    max(16, 4 * (os.cpu_count() or 1)),
    "",
    "type about the number of cores, or 0 to use only this process",
    is_whole=True,
)
_RESAMPLES: Final = Quantity(
    "a number of resamples", 0, 100_000, "", "type 1000, or 0 for no intervals", is_whole=True
)
_MINIMUM_GROUP: Final = Quantity(
    "a number of cases", 2, 10_000, "", "type 5, or 10 for shorter intervals", is_whole=True
)
_SEED: Final = Quantity(
    "a seed", 0, 2**53 - 1, "", "type any such number, or leave the option out", True
)
_GATE: Final = Quantity("a performance", 0, 0.999, "", "type a fraction below 1, such as 0.7")

DataSetArgument = Annotated[
    Path, typer.Argument(metavar="DATASET", help="Data-set folder, case folder or 4-D file.")
]
LayoutOption = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME|FILE",
        help=(
            "How the files are arranged: the name of a known layout, or a .toml file that "
            "describes a layout."
        ),
    ),
]
PatientOption = Annotated[
    list[str] | None,
    typer.Option("--patient", metavar="NAME", help="Only exams of this patient; repeatable."),
]
VisitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--visit",
        metavar="NAME",
        help="Only exams of this visit, under its name in the data set; repeatable.",
    ),
]


def open_option(choice: OpenChoice, flag: str, text: str) -> Any:
    """Make an option that accepts the names of a choice, including those from plug-ins.

    Parameters
    ----------
    choice
        The choice, whose names can be extended by plug-ins.
    flag
        The option string, such as ``--format``.
    text
        The help text of the option.
    """

    def parse_name(name: str) -> str:
        try:
            return choice.find(name)
        except ValueError:
            names = ", ".join(map(repr, choice.names))
            raise typer.BadParameter(f"{name!r} is not one of {names}.") from None

    metavar = f"[{'|'.join(choice.names)}]"
    return typer.Option(flag, metavar=metavar, parser=parse_name, help=text)


OutOption = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
CaseOption = Annotated[
    list[str] | None, typer.Option("--case", metavar="ID", help="Only this case; repeatable.")
]
LabelOption = Annotated[
    float | None,
    typer.Option("--label", parser=LABEL, help="Label value of the tumour (default: any above 0)."),
]
SegmentOption = Annotated[
    Any,
    typer.Option(
        "--label",
        metavar="VALUE|NAME",
        parser=LABEL_OR_NAME,
        help="Label value or segment name of the tumour (default: any value above 0).",
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue the run that created the output folder.")
]
OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files with the same names in the output folder."),
]
ClinicalOption = Annotated[
    Path | None,
    typer.Option("--clinical", help="Clinical table (.xlsx, .ods, .csv)."),
]
ColumnsOption = Annotated[
    Path | None,
    typer.Option(
        "--columns",
        metavar="FILE",
        help="JSON file that names the clinical table's columns (see `mamamia clinical`); default: "
        "clinical_columns.json next to the table.",
    ),
]
ReportOption = Annotated[
    bool, typer.Option("--no-report", help="Do not write report.html and the figures.")
]
BootstrapOption = Annotated[
    int,
    typer.Option(
        "--bootstrap",
        parser=_RESAMPLES,
        help="Number of resamples for the bootstrap intervals (0: none).",
    ),
]
ResamplesOption = Annotated[
    int | None,
    typer.Option(
        "--bootstrap",
        parser=_RESAMPLES,
        help=(
            "Number of resamples for the intervals (default: 10,000, above 20,000 cases 1,000; "
            "0: none)."
        ),
    ),
]
WorkersOption = Annotated[
    int,
    typer.Option(
        "--workers",
        parser=_PROCESSES,
        help="Number of parallel processes, at most one per case (0: only this process).",
    ),
]
SchedulerOption = Annotated[
    str,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="Address of a dask scheduler, tcp://host:port."
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        parser=SECONDS,
        help="Stop a case after this time (without the start of its process).",
    ),
]
AsRootOption = Annotated[
    bool, typer.Option("--as-root", help="Run a third-party program even if you are root.")
]
IsolationOption = Annotated[
    IsolationChoice, typer.Option("--isolation", help="Method that isolates a program.")
]
ConsentOption = Annotated[
    bool,
    typer.Option(
        "--consent-no-isolation",
        help="Run a program without any isolation: it can then do anything that you can do.",
    ),
]
PythonOption = Annotated[
    Path | None,
    typer.Option("--python", help=("Python interpreter with the packages that a program needs.")),
]
CudaOnProcessorOption = Annotated[
    bool,
    typer.Option(
        "--cuda-on-processor", help="Run a program on the CPU even if it requests CUDA by name."
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", parser=_SEED, help="Seed of all random numbers.")
]


MinimumGroupOption = Annotated[
    int | None,
    typer.Option(
        "--minimum-group",
        parser=_MINIMUM_GROUP,
        metavar="N",
        help="Groups with fewer cases are left out of intervals, tests and sentences, and listed; "
        "the score is unchanged (default 5).",
    ),
]
ImagesOption = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="DATASET",
        help=("Data set with the images of the masks, to find low contrast and tags."),
    ),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="Folder of your tags (default: the workspace of a data set given with --images).",
    ),
]
GateOption = Annotated[
    float | None,
    typer.Option(
        "--gate", parser=_GATE, help="Performance above which fairness counts (gated, adaptive)."
    ),
]
BaselineOption = Annotated[
    str,
    typer.Option(
        "--baseline", metavar="NAME", help="Model with which the other models are compared."
    ),
]


RegistryOption = Annotated[
    Path | None,
    typer.Option("--registry", metavar="DIR", help="Folder of added models (default: your own)."),
]


CompositeOption = Annotated[
    list[CompositeName] | None,
    typer.Option("--composite", help="Variant of the ranking score to include; repeatable."),
]


ProfileOption = Annotated[
    str, open_option(PROFILES, "--profile", "Profile that defines how the scores are computed.")
]

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name under which the model was added, or its path.")
]


UnusableOption = Annotated[
    UnusableRule | None,
    typer.Option(
        "--unusable",
        help="Rule for a case without a usable prediction (default: that of the profile).",
    ),
]
CasesOption = Annotated[
    Path | None,
    typer.Option(
        "--case-list",
        metavar="FILE",
        help="File with the cases to score: one id per line, or a table with case_id (and sha256).",
    ),
]


def case_list(path: Path | None) -> "CaseList | None":
    """Read the list of cases from a file; return None if `path` is None."""
    from napari_mamamia.io.data_set.case_list import read_case_list

    return None if path is None else read_case_list(path)


def column_choice(path: Path | None) -> "ColumnChoice":
    """Read the choice of clinical columns from a file; if `path` is None, the choice is empty."""
    from napari_mamamia.io.clinical.columns import BY_NAME, read_columns

    return BY_NAME if path is None else read_columns(path)


def place_of(workers: int, scheduler: str, time_limit: float | None) -> "Place":
    """Return where a batch runs; conflicting options raise a usage error."""
    from napari_mamamia.services.batch.work import Place

    try:
        return Place(workers, scheduler, time_limit)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def isolation_kind(isolation: IsolationChoice) -> IsolationKind | None:
    """Return the kind of isolation; None means the strongest kind that is available."""
    return None if isolation is IsolationChoice.AUTO else IsolationKind(isolation.value)


def existing_policy(resume: bool, overwrite: bool) -> "Existing":
    """Return what to do if the output folder is not empty."""
    from napari_mamamia.services.batch.output_folder import Existing

    if resume and overwrite:
        raise typer.BadParameter(
            "expected only one of --resume and --overwrite, but got both: continue the run, or "
            "replace it"
        )
    if overwrite:
        return Existing.OVERWRITE
    return Existing.RESUME if resume else Existing.REFUSE
