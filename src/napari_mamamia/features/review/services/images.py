"""Locate the images of a study's cases on this computer, and verify them."""

from functools import partial
from pathlib import Path

from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.progress import report_progress, saying
from napari_mamamia.features.review.core.review import Study, StudyCase
from napari_mamamia.features.review.io.client_files import ClientFiles
from napari_mamamia.features.review.io.share import Share
from napari_mamamia.features.review.services.pseudonymizer import NO_PSEUDONYMS, Pseudonymizer
from napari_mamamia.io.files.checksums import sha256_of_large


def find_images(study: Study, files: ClientFiles) -> Path:
    """Return the image folder set on this computer, otherwise the folder in the study."""
    return files.read_images() or Path(study.data_set)


def require_images(
    case: StudyCase,
    data_set: Path,
    known: set[tuple[Path, int, int]],
    pseudonymizer: Pseudonymizer = NO_PSEUDONYMS,
) -> None:
    """Refuse a case whose images differ from those of the study.

    Parameters
    ----------
    case
        The case.
    data_set
        The data set with the images.
    known
        Verified files with size and modification time; newly verified files are added.
    pseudonymizer
        Applied to messages about the case.

    Raises
    ------
    CaseError
        If a file is missing, or its content differs.
    SilentShareError
        If the images are on a share that does not answer.
    """
    name = pseudonymizer.cover(case.case_id)
    try:
        known.update(Share(data_set).run(partial(_hold_images, case, name, frozenset(known))))
    except CaseError as error:
        raise CaseError(pseudonymizer.cover(str(error))) from error


def _hold_images(
    case: StudyCase, name: str, known: frozenset[tuple[Path, int, int]], data_set: Path
) -> set[tuple[Path, int, int]]:
    stamps = set()
    for number, image in enumerate(case.images):
        text = f"Checking images: {name}"
        report_progress(number, len(case.images), text)
        path = data_set / image.name
        try:
            status = path.stat()
            stamp = (path, status.st_size, status.st_mtime_ns)
            with saying(text):  # the file name may reveal the site
                is_same = stamp in known or sha256_of_large(path) == image.sha256
        except (OSError, MamamiaError) as error:
            raise CaseError(
                f"expected the images of {name} at {data_set}, but {image.name} cannot be "
                "read there: if they lie elsewhere on this computer, say where (Images… on page "
                "Review)"
            ) from error
        if not is_same:
            raise CaseError(
                f"expected the images of {name} as they were when the study began, but "
                f"{path} was changed since: nothing was opened; tell the lead, or say where the "
                "right ones lie (Images… on page Review)"
            )
        stamps.add(stamp)
    return stamps
