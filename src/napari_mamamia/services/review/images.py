"""The images of a study's case: where they are on this computer, and that they are the same."""

from functools import partial
from pathlib import Path

from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.review import Study, StudyCase
from napari_mamamia.io.files.checksums import sha256_of_large
from napari_mamamia.io.review.desk_files import DeskFiles
from napari_mamamia.io.review.share import Share


def find_images(study: Study, files: DeskFiles) -> Path:
    """Return where the images should lie here: where it was said, else where the study was made."""
    return files.read_images() or Path(study.data_set)


def require_images(case: StudyCase, data_set: Path, known: set[tuple[Path, int, int]]) -> None:
    """Refuse a case whose images are not those that the study was made of.

    Parameters
    ----------
    known
        Files that were held against their SHA-256 already, with size and time of writing; those
        that fit are added.

    Raises
    ------
    CaseError
        If a file is missing, or its bytes differ.
    SilentShareError
        If they lie on a share that does not answer.
    """
    known.update(Share(data_set).run(partial(_hold_images, case, frozenset(known))))


def _hold_images(
    case: StudyCase, known: frozenset[tuple[Path, int, int]], data_set: Path
) -> set[tuple[Path, int, int]]:
    stamps = set()
    for number, one in enumerate(case.images):
        report_progress(number, len(case.images), f"Checking the images of {case.case_id}")
        path = data_set / one.name
        try:
            status = path.stat()
            stamp = (path, status.st_size, status.st_mtime_ns)
            is_same = stamp in known or sha256_of_large(path) == one.sha256
        except (OSError, MamamiaError) as error:
            raise CaseError(
                f"expected the images of {case.case_id} at {data_set}, but {one.name} cannot be "
                "read there: if they lie elsewhere on this computer, say where (Images… on page "
                "Review)"
            ) from error
        if not is_same:
            raise CaseError(
                f"expected the images of {case.case_id} as they were when the study began, but "
                f"{path} was changed since: nothing was opened; tell the lead, or say where the "
                "right ones lie (Images… on page Review)"
            )
        stamps.add(stamp)
    return stamps
