"""Shared options and functions of the commands of `mamamia review`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from napari_mamamia.features.review.io.store import FolderStore

T = TypeVar("T")

# A string instead of a path, because typer would check a path and the share may not answer.
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
    typer.Option("--reader", metavar="NAME", help="Your name; needed if readers are hidden."),
]
UnblindOption = Annotated[
    str,
    typer.Option("--unblind", metavar="REASON", help="Reason to see all readings; recorded."),
]
PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="File with the passphrase, instead of a prompt."
    ),
]


def make_out_option(text: str) -> Any:
    """Return the option for an output folder, as a string; see `StudyArgument`."""
    return typer.Option("--out", metavar="DIR", parser=Path, help=text)


def make_images_option(text: str) -> Any:
    """Return the option for the data set of a study's images, as a string; see `StudyArgument`."""
    return typer.Option("--images", metavar="DATASET", parser=Path, help=text)


def open_study(study: Path, out: Path | None = None) -> "FolderStore":
    """Return the store of the study in a folder.

    Raises
    ------
    SaveConflictError
        If the output folder `out` is inside the study.
    """
    from napari_mamamia.features.review.io.store import FolderStore
    from napari_mamamia.features.review.services.look import require_outside
    from napari_mamamia.io.files.user_folders import review_folder

    store = FolderStore(study, review_folder())
    if out is not None:
        require_outside(store, out)
    return store


def save_there(out: Path, save: Callable[[Path], T]) -> T:
    """Call `save` for the output folder `out`, which may be on a share; return its result.

    Raises
    ------
    SilentShareError
        If the share stops answering.
    """
    from napari_mamamia.features.review.io.share import Share

    return Share(out).run(save)


def read_passphrase(path: Path | None, *, is_new: bool = True) -> str:
    """Read the passphrase from a file, otherwise prompt for it; twice if `is_new`."""
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
            "expected the passphrase of a key, but found no input: write it into a file and add "
            "--passphrase-file FILE"
        ) from error
    return answer
