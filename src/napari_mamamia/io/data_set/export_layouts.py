"""File names and description files for exports in the nnU-Net, BIDS and challenge formats."""

import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, SaveError
from napari_mamamia.core.provenance import Maker
from napari_mamamia.io.files.csv_text import write_csv
from napari_mamamia.io.files.file_names import safe_case_id
from napari_mamamia.io.files.save import saving, write_text_atomically
from napari_mamamia.io.files.sources import CaseFiles
from napari_mamamia.io.tables.tables import write_json

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can store.

All members get this time, so that equal content gives equal bytes.
"""
# A zip stores Unix permissions in the upper half of its external attributes.
_MODE: Final = 0o644 << 16
_UNIX: Final = 3
EXAMS_FILE: Final = "exams.csv"
_EXAM_COLUMNS: Final = ("case_id", "patient", "visit", "visit_number", "side")
_BIDS_VERSION: Final = "1.10.0"
_OWN_GRID: Final = "orig"
_BIDS_README: Final = """\
Masks of {data_set}, as a BIDS derivative, written by {software}.

Each sub-ID/anat/sub-ID_space-orig_desc-SET_dseg.nii.gz is a label image on the voxels of the
case's own phases (space "orig"); SET is the reader or model. Visits are sessions (ses-), sides are
hemi-L and hemi-R. dseg.tsv names the values. The .json
beside an image says who or what made it, and from which files (SHA-256). The images themselves are
not part of it. Not a medical device."""
_NOT_ALPHANUMERIC: Final = re.compile(r"[^0-9A-Za-z]")


def nnunet_folder(number: int, name: str) -> str:
    """Return the folder name of an nnU-Net raw data set, ``DatasetNNN_Name``.

    Source: nnU-Net v2 documentation, dataset_format.md.

    Raises
    ------
    CaseError
        If `number` is not 1 to 999.

    Examples
    --------
    >>> nnunet_folder(501, "my data-set")
    'Dataset501_mydataset'
    """
    if not 1 <= number <= 999:
        raise CaseError(
            f"expected the number of an nnU-Net data set to be from 1 to 999, but it is {number}: "
            "choose another number"
        )
    return f"Dataset{number:03d}_{_keep_alphanumeric(name) or 'Export'}"


def write_nnunet_description(
    folder: Path,
    labels: Sequence[tuple[int, str]],
    n_channels: int,
    n_cases: int,
    *,
    overwrite: bool = False,
) -> Path:
    """Write nnU-Net's ``dataset.json``, in which channel k is phase k, and return its path.

    Source: nnU-Net v2 documentation, dataset_format.md: ``channel_names``, ``labels``,
    ``numTraining``, ``file_ending``.
    """
    names = {str(k): "pre-contrast" if k == 0 else f"post-contrast {k}" for k in range(n_channels)}
    content = {
        "channel_names": names,
        "labels": {"background": 0, **{name: value for value, name in labels}},
        "numTraining": n_cases,
        "file_ending": ".nii.gz",
    }
    path = folder / "dataset.json"
    write_json(content, path, overwrite=overwrite)
    return path


def bids_subject(case_id: str) -> str:
    """Return the BIDS subject label of a case: the letters and digits of the case id.

    Source: BIDS specification 1.10.0, "Entities": labels are alphanumeric.

    Raises
    ------
    CaseError
        If the case id has no letter or digit.

    Examples
    --------
    >>> bids_subject("DUKE_001")
    'DUKE001'
    """
    label = _keep_alphanumeric(case_id)
    if not label:
        raise CaseError(
            f"the case id {case_id!r} contains no letters a-z or digits, which a BIDS subject "
            "label needs: rename the case, or leave out the format bids"
        )
    return label


def bids_stem(files: CaseFiles, masks: str) -> str:
    """Return the path of a case's label image, without suffix, below the derivative's root.

    If the case id consists of patient, visit and side, these become subject, session and
    hemisphere.

    Source: BIDS specification 1.10.0, "Imaging derivatives": ``space-orig`` for the image's own
    grid, suffix ``dseg`` for a discrete segmentation.

    Examples
    --------
    >>> bids_stem(CaseFiles("DUKE_001", ()), "Ana López")
    'sub-DUKE001/anat/sub-DUKE001_space-orig_desc-AnaLpez_dseg'
    >>> from napari_mamamia.io.files.sources import Visit
    >>> bids_stem(CaseFiles("P_1_T0", (), patient="P_1", visit=Visit("T0")), "kinetic")
    'sub-P1/ses-T0/anat/sub-P1_ses-T0_space-orig_desc-kinetic_dseg'
    """
    described = _keep_alphanumeric(masks) or "mask"
    visit = files.visit.name if files.visit else ""
    session, side = _keep_alphanumeric(visit), files.side[:1].upper()
    if not is_named_by_exam(files) or bool(session) != bool(visit):
        subject = f"sub-{bids_subject(files.case_id)}"
        return f"{subject}/anat/{subject}_space-orig_desc-{described}_dseg"
    subject = f"sub-{bids_subject(files.patient)}"
    folder = f"{subject}/ses-{session}" if session else subject
    entities = [subject, f"ses-{session}" if session else "", "space-orig"]
    entities.insert(2, f"hemi-{side}" if side in ("L", "R") else "")
    name = "_".join(filter(None, entities))
    return f"{folder}/anat/{name}_desc-{described}_dseg"


def is_named_by_exam(files: CaseFiles) -> bool:
    """Return whether a case id consists of patient, visit and side, unlike that of a blind case.

    Examples
    --------
    >>> is_named_by_exam(CaseFiles("P_1_left", (), patient="P_1", side="left"))
    True
    """
    visit = files.visit.name if files.visit else ""
    exam = "_".join(filter(None, (files.patient, visit, files.side)))
    return safe_case_id(exam) == files.case_id


def write_exams(cases: Sequence[CaseFiles], path: Path, *, overwrite: bool = False) -> bool:
    """Write a table with patient, visit and side of each case; return False if none has a visit.

    The ids of the MAMA-MIA layout cannot hold them, so this table is read when the data set is
    opened.
    """
    rows = [
        (case.case_id, case.patient, *_describe_visit(case), case.side)
        for case in cases
        if is_named_by_exam(case) and (case.visit or case.side)
    ]
    if rows:
        with (
            saving(path, overwrite=overwrite) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as out,
        ):
            write_csv((_EXAM_COLUMNS, *rows), out)
    return bool(rows)


def _describe_visit(case: CaseFiles) -> tuple[str, str]:
    """Return the name of a visit and its chronological number; "" if unknown."""
    if case.visit is None:
        return "", ""
    return case.visit.name, "" if case.visit.index is None else str(case.visit.index)


def bids_facts(masks: str, maker: Maker) -> tuple[tuple[str, str | bool], ...]:
    """Return the keys that BIDS requires in the JSON file of a label image.

    `SpatialReference` is "orig", which means the voxels of the case's phases. `Manual` is left out
    if a person and a program both edited the mask, or if it is unknown.

    Source: BIDS schema 1.10, ``rules.sidecars.derivatives.common_derivatives``:
    SpatialReferenceNonStandard (required), CommonDerivativeFields and SegmentationCommon.
    """
    facts: list[tuple[str, str | bool]] = [
        ("Description", f"Tumour labels of {masks}, on the voxels of the case's phases"),
        ("SpatialReference", _OWN_GRID),
    ]
    if maker in (Maker.MODEL, Maker.PHANTOM):
        facts.append(("Manual", False))
    return tuple(facts)


def write_bids_description(
    root: Path,
    data_set: str,
    software: str,
    labels: Sequence[tuple[int, str]],
    *,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write the files that describe a whole BIDS derivative, and return their paths.

    They are ``dataset_description.json``, ``README`` and the look-up table ``dseg.tsv``. There is
    no ``dseg.json``: in the root, this file would apply to every label image.
    """
    name, _, version = software.partition(" ")
    description = {
        "Name": f"Masks of {data_set}",
        "BIDSVersion": _BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": name, "Version": version}],
    }
    table = ["index\tname", *(f"{value}\t{_one_line(text)}" for value, text in labels)]
    texts = {
        "dataset_description.json": json.dumps(description, indent=2),
        "README": _BIDS_README.format(data_set=data_set, software=software),
        "dseg.tsv": "\n".join(table),
    }
    for file, text in texts.items():
        write_text_atomically(root / file, text + "\n", overwrite=overwrite)
    return tuple(root / file for file in texts)


def write_zip(files: Sequence[tuple[str, Path]], target: Path, *, overwrite: bool = False) -> None:
    """Write files under new names into a zip; equal files always give equal bytes.

    Members are sorted by name, and all have the same time, owner and compression, except that gzip
    files are stored without further compression.

    Raises
    ------
    SaveConflictError
        If `target` exists and `overwrite` is False.
    SaveError
        If the file cannot be written.
    """
    with saving(target, overwrite=overwrite) as temporary:
        with zipfile.ZipFile(temporary, "w") as out:
            for name, path in sorted(files):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.external_attr = _MODE
                # Otherwise the zip would record the operating system, and its bytes would differ.
                entry.create_system = _UNIX
                entry.compress_type = zipfile.ZIP_STORED
                out.writestr(entry, path.read_bytes())
        _require_written(temporary, files, target)


def _require_written(written: Path, files: Sequence[tuple[str, Path]], target: Path) -> None:
    with zipfile.ZipFile(written) as seen:
        same = seen.namelist() == [name for name, _ in sorted(files)] and all(
            seen.read(name) == path.read_bytes() for name, path in files
        )
    if not same:
        raise SaveError(
            f"expected {target} to contain the {len(files)} files that were written to it, but "
            "its content differs: check the disk, and export again"
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _keep_alphanumeric(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text)
