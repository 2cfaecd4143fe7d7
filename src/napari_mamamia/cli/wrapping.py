"""`mamamia models wrap`."""

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from napari_mamamia.cli.quantities import INDEX, Quantity

_CLASS: Final = Quantity("a value of its output", 0, 65535, "", "name the tumour's", is_whole=True)


def wrap(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a MONAI bundle.")],
    phase: Annotated[
        list[int],
        typer.Option(
            "--phase", parser=INDEX, help="Phase for its next image, 0 before contrast; repeatable."
        ),
    ],
    label: Annotated[
        list[int],
        typer.Option("--label", parser=_CLASS, help="Value that is tumour; repeatable."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New folder to write.")],
) -> None:
    """Make a submission of a bundle that is refused here, to run it in a closed room.

    Nothing of it is run by this command. MONAI has to be in the Python that runs it (--python).
    """
    from napari_mamamia.services.predict.wrap_bundle import wrap_bundle

    submission = wrap_bundle(bundle, out, phase, label)
    print(f"{submission.files} file(s), {submission.n_bytes / 10**6:.1f} MB, saved in {out}")
    place = shlex.quote(str(out))
    print(f"run it:  mamamia run-submission {place} DATASET --task segmentation --out DIR")
