"""What several commands of `mamamia review` share: options, the study, a passphrase."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from napari_mamamia.features.review.io.store import FolderStore

T = TypeVar("T")

# Not as a path, which typer would ask the system about: the share may not answer.
StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", parser=Path, help="Folder of the study.")
]
DataSetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATASET", parser=Path, help="Data-set folder, case folder or 4-D file."
    ),
]
AskerOption = Annotated[
    str,
    typer.Option(
        "--reader", metavar="NAME", help="Who asks; needed where readers do not see each other."
    ),
]
UnblindOption = Annotated[
    str,
    typer.Option("--unblind", metavar="REASON", help="Why one who is blind may see all; noted."),
]
PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="Read the passphrase there, do not ask."
    ),
]


def make_out_option(text: str) -> Any:
    """Return the option of a folder for results; not as a path either, see `StudyArgument`."""
    return typer.Option("--out", metavar="DIR", parser=Path, help=text)


def make_images_option(text: str) -> Any:
    """Return the option of a data set with a study's images; not as a path either."""
    return typer.Option("--images", metavar="DATASET", parser=Path, help=text)


def open_study(study: Path, out: Path | None = None) -> "FolderStore":
    """Return the study in a folder; this computer's own folder holds what waits to be sent.

    Raises
    ------
    SaveConflictError
        If the folder `out` for results lies in the study.
    """
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.look import require_outside
    from napari_mamamia.io.files.user_folders import review_folder

    store = FolderStore(study, review_folder())
    if out is not None:
        require_outside(store, out)
    return store


def save_there(out: Path, save: Callable[[Path], T]) -> T:
    """Return what `save` returns for the folder `out`, which may lie on a share.

    Raises
    ------
    SilentShareError
        If the share stops answering.
    """
    from napari_mamamia.features.review.io.share import Share

    return Share(out).run(save)


def read_passphrase(path: Path | None, *, is_new: bool = True) -> str:
    """Return the passphrase of a file, else ask for it; twice where it `is_new`."""
    if path is not None:
        from napari_mamamia.features.review.io import keys

        return keys.read_passphrase(path)
    try:
        answer: str = typer.prompt(
            "Passphrase", hide_input=True, confirmation_prompt=is_new, err=True
        )
    except typer.Abort as error:
        from napari_mamamia.core.errors import CaseError

        raise CaseError(
            "expected the passphrase of a key, but nobody typed it: write it alone into a file and "
            "add --passphrase-file FILE"
        ) from error
    return answer
