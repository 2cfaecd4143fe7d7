"""Import inspected studies into a data set, each with its own id and settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.io.data_set.imported_case import check_clinical_table
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.slices import Slice
from napari_mamamia.io.files.file_names import case_key
from napari_mamamia.services.batch.batch import for_each_case
from napari_mamamia.services.dicom.dicom import ImportedCase, ImportSummary, import_study
from napari_mamamia.services.dicom.finding import FoundStudy, ImportSettings, require_id


@dataclass(frozen=True, slots=True)
class WantedStudy:
    """A study to import; `found` has the chosen id and was checked with `settings`."""

    found: FoundStudy
    settings: ImportSettings


def import_studies(wanted: Sequence[WantedStudy], out: Path) -> ImportSummary:
    """Write each study as a case of the data set `out`, from the headers already read.

    A refused study is a failure, and the others are written. A case is written completely or not at
    all. Files that changed since the inspection are refused.

    Raises
    ------
    CaseError
        If an id is invalid, or two studies have the same id.
    FormatError
        If the clinical table of `out` cannot take another row.
    """
    by_id = {study.found.case_id: study for study in wanted}
    _require_ids([study.found.case_id for study in wanted])
    check_clinical_table(out)  # uses a column file beside the table
    batch = for_each_case(list(by_id), lambda case_id: _import_study(by_id[case_id], out))
    return ImportSummary(batch.results, (), batch.failures)


def _import_study(study: WantedStudy, out: Path) -> ImportedCase:
    exam = study.found.exam
    for stack in () if exam is None else exam.stacks:
        for plane in (stack[0], stack[-1]):
            _require_unchanged(plane)
    return import_study(study.found, out, study.settings)


def _require_unchanged(piece: Slice) -> None:
    """Refuse a plane whose file has changed since the inspection."""
    now = read_slices(piece.file)
    if not isinstance(now, tuple) or piece not in now:
        raise FormatError(
            f"expected {piece.file} unchanged since it was read, but it has changed: open the "
            "folder again"
        )


def _require_ids(case_ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for case_id in case_ids:
        require_id(case_id)
        if case_key(case_id) in seen:
            raise CaseError(
                f"expected an id for each study, but two have {case_id}: give one of them another "
                "id"
            )
        seen.add(case_key(case_id))
