"""`mamamia pacs`: list, fetch and store over DICOMweb."""

from pathlib import Path
from typing import Annotated

import typer

from napari_mamamia.cli.given import Program
from napari_mamamia.cli.printing import run

__all__ = ["app"]

app = Program(help="A PACS over DICOMweb.", no_args_is_help=True)

UrlArgument = Annotated[
    str, typer.Argument(metavar="URL", help="DICOMweb root, like http://pacs:8042/dicom-web.")
]


@app.command("list")
def list_(
    url: UrlArgument,
    patient: Annotated[str, typer.Option("--patient", help="PatientID.")] = "",
    date: Annotated[
        str, typer.Option("--date", metavar="YYYYMMDD[-YYYYMMDD]", help="Date, or a range.")
    ] = "",
) -> None:
    """List the MR studies of a PACS: study UID, date, number of images, description."""
    from napari_mamamia.io.dicom_web import find_studies_on

    found = find_studies_on(url, patient_id=patient, date=date)
    for study in found.studies:
        n_images = "?" if study.n_images is None else study.n_images
        print(f"{study.study_uid}  {study.date or '?':8}  {n_images} image(s)  {study.description}")
    print(f"{len(found.studies)} study(ies)")
    if found.has_more:
        print("note: the PACS may have more; narrow the list with --date or --patient")


@app.command()
def fetch(
    url: UrlArgument,
    study: Annotated[str, typer.Argument(metavar="STUDY_UID", help="StudyInstanceUID.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the DICOM files.")],
) -> None:
    """Fetch a study to a folder; run it again to go on after a transfer that broke off."""
    from napari_mamamia.io.dicom_web import fetch_study

    done = run(fetch_study(url, study, out))
    kept = f", {done.n_kept} of them were there already" if done.n_kept else ""
    print(f"{done.n_images} image(s) in {done.folder}{kept}")
    print("They are the originals, with the patient's name: mamamia import makes a case of them.")


@app.command()
def send(
    url: UrlArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="DICOM files.")],
) -> None:
    """Store DICOM files, such as a DICOM SEG, in the PACS."""
    from napari_mamamia.io.dicom_persons import names_nobody
    from napari_mamamia.io.dicom_web import store_files

    if n_nameless := sum(map(names_nobody, files)):
        print(
            f"note: {n_nameless} file(s) carry a case id in place of the patient, whom the PACS "
            "will not know: mamamia export --identified-seg writes the patient's own"
        )
    print(f"{run(store_files(url, files))} file(s) stored")
