"""`mamamia prompt`: mark a lesion with a prompt model."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from napari_mamamia.cli.opening import open_at
from napari_mamamia.cli.options import DataSetArgument, LayoutOption
from napari_mamamia.cli.printing import run
from napari_mamamia.cli.scripting import report_result, reports_result

if TYPE_CHECKING:
    from napari_mamamia.features.prompt.segmentation.engine import EngineInfo
    from napari_mamamia.features.prompt.segmentation.prompts import Prompt

_PROMPTS = "Prompts, in the order of these options"
_LOCAL = "A model on this computer"
_REMOTE = "A model on a server"


@reports_result
def prompt(
    data_set: DataSetArgument,
    case: Annotated[str, typer.Option("--case", metavar="ID", help="The case.")],
    reader: Annotated[
        str, typer.Option("--reader", metavar="NAME", help="The reader whose mask is edited.")
    ],
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--point", metavar="Z,Y,X", help="A voxel in the lesion.", rich_help_panel=_PROMPTS
        ),
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(
            "--box",
            metavar="Z,Y,X,Z,Y,X",
            help="A box around the lesion: its first voxel, and the voxel after its last.",
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--not-point",
            metavar="Z,Y,X",
            help="A voxel outside the lesion.",
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help='JSON list of prompts: [{"kind": "point|box|scribble|outline", "points": '
            '[[z, y, x], ...], "include": true}, ...].',
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="MASK", help="Mask file to begin with.")
    ] = None,
    channel: Annotated[
        str,
        typer.Option(
            "--channel",
            metavar="NAME",
            help="Image that the model sees: subtraction (the default), post, or a phase number.",
        ),
    ] = "",
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="DIR", help="Folder of the model.", rich_help_panel=_LOCAL),
    ] = None,
    fold: Annotated[
        str,
        typer.Option(
            "--fold", metavar="N", help="Its fold, if it has several.", rich_help_panel=_LOCAL
        ),
    ] = "",
    environment: Annotated[
        Path | None,
        typer.Option(
            "--environment",
            metavar="DIR",
            help="Python environment with nninteractive (default: $MAMAMIA_PROMPT_ENVIRONMENT).",
            rich_help_panel=_LOCAL,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option("--device", metavar="auto|cpu|cuda", help="Device.", rich_help_panel=_LOCAL),
    ] = "auto",
    server: Annotated[
        str,
        typer.Option(
            "--server",
            metavar="URL",
            help="Address of a server that runs nninteractive-server.",
            rich_help_panel=_REMOTE,
        ),
    ] = "",
    api_key: Annotated[
        str,
        typer.Option(
            "--api-key", metavar="KEY", help="Key of the server.", rich_help_panel=_REMOTE
        ),
    ] = "",
    allow_plain_http: Annotated[
        bool,
        typer.Option(
            "--allow-plain-http",
            help="Send images without encryption, although the server is on another computer.",
            rich_help_panel=_REMOTE,
        ),
    ] = False,
    accept_licence: Annotated[
        bool,
        typer.Option(
            "--accept-licence", help="Accept the licence of the model, and remember that."
        ),
    ] = False,
    layout: LayoutOption = "",
) -> None:
    """Mark a lesion with a prompt model, using points, boxes, scribbles and outlines.

    The mask of READER in the workspace is edited and saved, with a journal of the prompts and the
    model's licence. With --server, one image of the case is sent to the server.

    Example: mamamia prompt DATASET --case P001 --reader Ana --point 40,120,80 --model MODEL
    """
    from napari_mamamia.features.prompt.segmentation.engine import EngineSettings
    from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
    from napari_mamamia.features.prompt.services.prompt_case import prompt_case
    from napari_mamamia.services.case.open_case import load_case, load_mask

    if bool(model) == bool(server):
        raise typer.BadParameter("expected either --model or --server: name one of them")
    asked = _read_prompts(include or (), box or (), exclude or (), prompts)
    engine = "remote" if server else "local"
    settings = EngineSettings(model, fold, environment, device, server, api_key, allow_plain_http)
    if leaving := PROMPT_ENGINES[engine].leaves(settings):
        print(leaving, file=sys.stderr)
    opened = open_at(data_set, None, layout)
    files = opened.data_set.case(case)
    images = run(partial(load_case, files, opened.record(case)))
    first_mask = None if start is None else run(partial(load_mask, start, images))
    outcome = run(
        partial(
            prompt_case,
            images,
            asked,
            engine,
            settings,
            channel=channel,
            start=first_mask,
            workspace=opened.workspace,
            reader=reader,
            on_info=partial(_show_licence, accepts=accept_licence),
        )
    )
    report_result(
        lambda: {
            "model": outcome.info.name,
            "licence": outcome.info.licence,
            "steps": [(edit.name, edit.changed_voxels) for edit in outcome.steps],
            "mask": None if outcome.saved is None else outcome.saved.path,
        }
    )
    for note in outcome.notes:
        print(f"note      {note}")
    info = outcome.info
    print(f"model     {info.name}, {info.model}\nlicence   {info.licence}")
    for edit in outcome.steps:
        print(f"step      {edit.name}: {edit.changed_voxels} voxels changed")
    if outcome.saved is not None:
        n_voxels = int((outcome.labels.crop != 0).sum())
        print(f"mask      {outcome.saved.path}, {n_voxels} voxels")


def _show_licence(info: "EngineInfo", *, accepts: bool) -> None:
    from napari_mamamia.features.prompt.services.settings import accept_licence, require_accepted

    if accepts:
        accept_licence(info)
    require_accepted(info)


def _read_prompts(
    include: "list[str] | tuple[()]",
    boxes: "list[str] | tuple[()]",
    exclude: "list[str] | tuple[()]",
    file: Path | None,
) -> "list[Prompt]":
    from napari_mamamia.features.prompt.segmentation.prompts import (
        Prompt,
        PromptKind,
        read_prompts,
    )

    asked = [Prompt(PromptKind.POINT, _voxels(text, "--point", 1)) for text in include]
    asked += [Prompt(PromptKind.BOX, _voxels(text, "--box", 2)) for text in boxes]
    asked += [Prompt(PromptKind.POINT, _voxels(text, "--not-point", 1), False) for text in exclude]
    if file is not None:
        asked += read_prompts(file)
    return asked


def _voxels(text: str, option: str, count: int) -> tuple[tuple[float, float, float], ...]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 * count:
        raise typer.BadParameter(
            f"expected {3 * count} numbers with commas in {option}, but found {text!r}"
        )
    return tuple((numbers[n], numbers[n + 1], numbers[n + 2]) for n in range(0, len(numbers), 3))
