"""Inspect DICOM before an import; headers are read once and checked again after each change."""

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.io.dicom.elements import require_pydicom
from napari_mamamia.io.dicom.files import Study
from napari_mamamia.io.dicom.zip import unpack
from napari_mamamia.io.exam.phases import find_phases
from napari_mamamia.io.files.own_paths import own_folder
from napari_mamamia.io.files.zip_files import is_zip
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.dicom import finding

_NEUTRAL: Final = "CASE"


class InspectedStudies:
    """The studies in a folder or zip with their headers; a zip remains unpacked until `close`.

    Attributes
    ----------
    source
        The path that the user chose.
    folder
        The folder with the files: the source itself, or the unpacked zip archive.
    studies
        The studies in the order of their first files.
    renamed
        The indices of the studies with a neutral id, because the folder name identifies the
        patient.
    """

    def __init__(
        self,
        source: Path,
        folder: Path,
        studies: Sequence[finding.FoundStudy],
        renamed: frozenset[int] = frozenset(),
        held: ExitStack | None = None,
    ) -> None:
        self.source = source
        self.folder = folder
        self.studies = tuple(studies)
        self.renamed = renamed
        self._remove = None if held is None else weakref.finalize(self, held.close)

    def place_of(self, at: int) -> str:
        """Return the folder of a study below the source, or "" for the source itself."""
        folder = self.studies[at].folder
        below = folder.relative_to(self.folder) if folder.is_relative_to(self.folder) else folder
        return "" if below == Path() else str(below)

    def close(self) -> None:
        """Remove the unpacked files, which are otherwise removed with the last reference."""
        if self._remove is not None:
            self._remove()


def look_at_source(source: Path) -> InspectedStudies:
    """Return the studies in a DICOM folder or zip archive without changing it.

    The ids are the folder names, or neutral ids such as ``CASE_001`` if a name would identify the
    patient. Progress counts files. Studies that cannot be imported are included with their
    problems.

    Raises
    ------
    FormatError
        If the source cannot be read, contains no DICOM file, or is an unsafe archive.
    MissingExtraError
        If pydicom is not installed.
    """
    require_pydicom()
    if not is_zip(source):
        finding.require_folder(source)
        return _look_into(source, source)
    with ExitStack() as stack:
        folder = stack.enter_context(own_folder())
        with finding.naming(source, folder):
            unpack(source, folder)
            return _look_into(source, folder, stack)


def judge_again(found: finding.FoundStudy, settings: finding.ImportSettings) -> finding.FoundStudy:
    """Check a study again with different settings, such as a different clock.

    Raises
    ------
    CaseError
        If the study does not come from `look_at_source`.
    """
    if found.study is None:
        raise CaseError(
            f"the headers of {found.case_id} are no longer in memory: open the source again"
        )
    report_progress(0, 1, f"Sorting {found.case_id}")
    return finding.judged(found.case_id, found.study, found.place, settings)


def read_dicom_case(source: Path) -> Case:
    """Read the only exam in a DICOM folder or zip archive with all its phases.

    Raises
    ------
    FormatError, CaseError
        If the source cannot be imported, or contains several studies.
    MissingExtraError
        If pydicom is not installed.
    """
    with finding.unpacked(source) as folder:
        if folder != source:
            unpack(source, folder)
        return load_case(find_phases(folder))


def _look_into(source: Path, folder: Path, held: ExitStack | None = None) -> InspectedStudies:
    usable = finding.usable_studies(folder)
    studies, renamed = [], set()
    for index, (name, study) in enumerate(
        zip(finding.study_ids(usable, folder, source, ""), usable, strict=True)
    ):
        report_progress(index, len(usable), f"Sorting study {index + 1} of {len(usable)}")
        if _may_tell_the_patient(study, name):
            name = f"{_NEUTRAL}_{index + 1:03d}"
            renamed.add(index)
        studies.append(
            finding.judged(
                name, study, finding.place_of(study, folder, source), finding.ImportSettings()
            )
        )
    stack = None if held is None else held.pop_all()  # The unpacked files remain until `close`.
    return InspectedStudies(source, folder, studies, frozenset(renamed), stack)


def _may_tell_the_patient(study: Study, name: str) -> bool:
    """Return whether an id identifies the patient, or may do so."""
    try:
        return finding.tells_the_patient(study, name)
    except FormatError:
        return True
