"""`mamamia models convert`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from napari_mamamia.cli.given import ALWAYS, Where, refuse_idle
from napari_mamamia.cli.options import AsRootOption, NameArgument, RegistryOption
from napari_mamamia.cli.printing import run
from napari_mamamia.cli.quantities import GIGABYTES, SECONDS

_GIGABYTE: Final = 10**9


_IN_ROOM: Final = Where(
    "with --isolated, for the closed room",
    lambda given: bool(given["isolated"]),
    lambda given: "without",
)
OPTIONS: Final[dict[str, Where]] = dict.fromkeys(
    ("model", "out", "isolated", "registry"), ALWAYS
) | dict.fromkeys(("time_limit", "memory_limit", "as_root"), _IN_ROOM)
"""Where each parameter of `models convert` means something: a new one must say so."""


def convert(
    context: typer.Context,
    model: NameArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New folder to write.")],
    isolated: Annotated[
        bool,
        typer.Option("--isolated", help="Open checkpoints that run something, in a closed room."),
    ] = False,
    time_limit: Annotated[
        float,
        typer.Option("--time-limit", metavar="SECONDS", parser=SECONDS, help="Time in the room."),
    ] = 120.0,
    memory_limit: Annotated[
        float | None,
        typer.Option(
            "--memory-limit",
            metavar="GB",
            parser=GIGABYTES,
            help="Memory in the room (default: by size).",
        ),
    ] = None,
    as_root: AsRootOption = False,
    registry: RegistryOption = None,
) -> None:
    """Write an nnU-Net model again with safetensors weights, which cannot run anything.

    The masks stay the same. A checkpoint that wants to run something is refused; with --isolated it
    is opened in a closed room (bubblewrap), and only its numbers come out.
    """
    from napari_mamamia.segmentation.nnunet.isolated import RoomLimits
    from napari_mamamia.segmentation.run.registry import default_registry, find_model
    from napari_mamamia.services.predict.convert_model import convert_model

    refuse_idle(context, OPTIONS)
    entry = find_model(model, registry or default_registry())
    limits = RoomLimits(time_limit, int((memory_limit or 0) * _GIGABYTE))
    job = partial(
        convert_model,
        entry.card,
        out,
        isolated,
        recipe=entry.recipe,
        limits=limits,
        as_root=as_root,
    )
    conversion = run(job)
    for file in conversion.files:
        print(f"{file.name}  {file.tensors} tensors  {file.n_bytes / 10**6:.1f} MB")
        print(f"    from sha256 {file.source_sha256}")
    if conversion.isolation:
        print(f"opened      {conversion.isolation}")
    print(f"saved in    {out}")
