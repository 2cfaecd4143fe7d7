"""`mamamia pacs`: list, fetch and send DICOM studies over DICOMweb."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from napari_mamamia.cli.given import Program
from napari_mamamia.cli.printing import run
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.cli.scripting import report_result, reports_result
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.names import count_of

if TYPE_CHECKING:
    from napari_mamamia.io.pacs.limits import TransferLimits


_MIB: Final = 1 << 20

app = Program(help="Query and retrieve from a PACS over DICOMweb.", no_args_is_help=True)

UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="DICOMweb root, like http://pacs:8042/dicom-web.")
]


_SILENCE = Quantity("a silence", 1, 3600, "s", "give seconds, such as 20")
_TIME = Quantity("a time", 1, 604800, "s", "give seconds, such as 3600")
_PACE = Quantity("a pace", 0, 1e9, "bytes/s", "enter bytes per second, or 0 for no minimum")
_SIZE = Quantity("a size", 1, 1 << 24, "MiB", "give MiB, such as 65536")
SilenceOption = Annotated[
    float,
    typer.Option("--silence", metavar="SECONDS", parser=_SILENCE, help="Longest silence."),
]
PaceOption = Annotated[
    float,
    typer.Option(
        "--least-pace",
        metavar="BYTES",
        parser=_PACE,
        help="Minimum average speed of a transfer after its first minute, in bytes per second.",
    ),
]


def _make_limits(silence: float, pace: float, **others: float) -> "TransferLimits":
    """Return the limits for a transfer; if `pace` is 0, there is no minimum speed."""
    try:
        from napari_mamamia.io.pacs.limits import TransferLimits
    except ImportError as error:
        raise MissingExtraError("dicomweb-client", "dicom") from error

    # The pace is a divisor in `TransferLimits`.
    return TransferLimits(idle_s=silence, bytes_per_s=pace or 1e-9, **others)  # type: ignore[arg-type]


@app.command("list")
@reports_result
def list_(
    url: UrlArgument,
    patient: Annotated[str, typer.Option("--patient", help="PatientID.")] = "",
    date: Annotated[
        str,
        typer.Option("--date", metavar="YYYYMMDD[-YYYYMMDD]", help="Study date or range of dates."),
    ] = "",
    silence: SilenceOption = 20.0,
    least_pace: PaceOption = 1024.0,
    time: Annotated[
        float,
        typer.Option(
            "--time", metavar="SECONDS", parser=_TIME, help="Maximum time for the whole list."
        ),
    ] = 300.0,
    size: Annotated[
        float,
        typer.Option("--size", metavar="MIB", parser=_SIZE, help="Maximum size of the whole list."),
    ] = 256.0,
) -> None:
    """List the MR studies of a PACS: study UID, date, number of images, description.

    Example: mamamia pacs list https://pacs.example/dicom-web --patient 123
    """
    from napari_mamamia.io.pacs.web import find_studies_on

    limits = _make_limits(silence, least_pace, list_s=time, list_bytes=int(size * _MIB))
    answer = find_studies_on(url, patient_id=patient, date=date, limits=limits)
    report_result(lambda: answer)
    for study in answer.studies:
        images = "? images" if study.n_images is None else count_of(study.n_images, "image")
        print(f"{study.study_uid}  {study.date or '?':8}  {images}  {study.description}")
    print(count_of(len(answer.studies), "study", "studies"))
    if answer.has_more:
        print("note: the PACS may have more studies; narrow the list with --date or --patient")


@app.command()
@reports_result
def fetch(
    url: UrlArgument,
    study: Annotated[str, typer.Argument(metavar="STUDY_UID", help="StudyInstanceUID.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the DICOM files.")],
    silence: SilenceOption = 20.0,
    least_pace: PaceOption = 1024.0,
    time: Annotated[
        float,
        typer.Option("--time", metavar="SECONDS", parser=_TIME, help="Maximum time for one image."),
    ] = 3600.0,
    image_size: Annotated[
        float,
        typer.Option(
            "--image-size", metavar="MIB", parser=_SIZE, help="Maximum size of one image."
        ),
    ] = 2048.0,
    size: Annotated[
        float,
        typer.Option(
            "--size", metavar="MIB", parser=_SIZE, help="Maximum size of the whole study."
        ),
    ] = 65536.0,
) -> None:
    """Download a study to a folder; run the command again to resume an interrupted transfer.

    Example: mamamia pacs fetch https://pacs.example/dicom-web 1.2.3.4 --out DICOM
    """
    from napari_mamamia.io.pacs.web import fetch_study

    limits = _make_limits(
        silence,
        least_pace,
        image_s=time,
        image_bytes=int(image_size * _MIB),
        study_bytes=int(size * _MIB),
    )
    transfer = run(partial(fetch_study, url, study, out, limits=limits))
    report_result(lambda: transfer)
    note = f", {transfer.n_kept} of them already existed" if transfer.n_kept else ""
    print(f"{count_of(transfer.n_images, 'image')} in {transfer.folder}{note}")
    print(
        "These files are the originals, with the patient's name: mamamia import converts them "
        "to a case."
    )


@app.command()
@reports_result
def send(
    url: UrlArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="DICOM files.")],
    silence: SilenceOption = 20.0,
    least_pace: PaceOption = 1024.0,
    time: Annotated[
        float,
        typer.Option("--time", metavar="SECONDS", parser=_TIME, help="Maximum time for one file."),
    ] = 3600.0,
) -> None:
    """Store DICOM files, such as a DICOM SEG, in the PACS.

    Example: mamamia pacs send https://pacs.example/dicom-web BUNDLE/dicom_seg/P001.dcm
    """
    from napari_mamamia.io.dicom.persons import names_nobody
    from napari_mamamia.io.pacs.web import store_files

    limits = _make_limits(silence, least_pace, image_s=time)
    if n_nameless := sum(map(names_nobody, files)):
        print(
            f"note: {count_of(n_nameless, 'file')} with a case id in place of the patient's name, "
            "which "
            "the PACS does not know: mamamia export --identified-seg writes the patient's name"
        )
    n_stored = run(partial(store_files, url, files, limits=limits))
    report_result(lambda: {"n_stored": n_stored})
    print(f"{count_of(n_stored, 'file')} stored")
