"""Functions that read a review study for `mamamia score --study` and `mamamia view --study`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from napari_mamamia.cli.printing import NOT_EVERY_CASE
from napari_mamamia.core.names import count_of


@contextmanager
def study_reference(study: Path) -> Iterator[Path]:
    """Yield a folder with the accepted masks of a study; exit with code 3 if a mask is damaged."""
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.accepted import accepted_reference
    from napari_mamamia.io.files.user_folders import review_folder

    with accepted_reference(FolderStore(study, review_folder())) as accepted:
        print(f"Reference: {count_of(accepted.n_cases, 'accepted mask')} of {study}")
        if accepted.unsigned:
            ids = ", ".join(accepted.unsigned[:10])
            more = ", ..." if len(accepted.unsigned) > 10 else ""
            print(f"{len(accepted.unsigned)} of them not signed: {ids}{more}", file=sys.stderr)
        for line in accepted.lines:
            print(f"not scored: {line}", file=sys.stderr)
        yield accepted.folder
    if accepted.broken:
        raise typer.Exit(NOT_EVERY_CASE)


def view_study(study: Path, reader: str | None) -> dict[str, str]:
    """Check the reader, and return the environment variables that make napari open the study."""
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.look import find_person, load_state
    from napari_mamamia.io.files.user_folders import review_folder

    store = FolderStore(study, review_folder())
    asked = {"MAMAMIA_STUDY": str(study.absolute())}
    if reader is not None:
        asked["MAMAMIA_READER"] = find_person(load_state(store), reader).name
    return asked
