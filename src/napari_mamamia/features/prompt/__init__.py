"""Prompt models: neural networks that mark a lesion from points, boxes, scribbles and outlines.

Types::

    Prompt        kind, points in voxels (z, y, x), include or exclude
    PlacedPrompt  a prompt on an image: a box, and the voxels of a scribble or an outline
    PromptEngine  connect > set_image > start_from a mask, prompt > Region, undo; close
    EngineSpec    an engine's name and a function that makes it (in `PROMPT_ENGINES`)
    PromptSession an engine and an `EditingSession` that share one mask

Modules::

    segmentation/prompts   prompts, and how they are placed on an image
    segmentation/engine    the interface of an engine, and its errors
    segmentation/worker    the program of an engine's process; may run in another Python
    segmentation/process   the client of that process
    segmentation/engines   the engines: a model on this computer, nnInteractive on a server
    segmentation/recipe    inputs and outputs of a single-file model (TorchScript, ONNX)
    segmentation/network   a session of such a model
    services/channels      the image that the model sees
    services/session       prompts as recorded steps of an editing session
    services/settings      stored settings and accepted licences
    services/prompt_case   prompts on a case, for the command line and the library
    cli, library, widgets  the command, `prompt`, and the page of the window

A prompt is handled in three steps. `PromptSession.prepare` places the prompt and compares the
session's mask with the engine's mask. `run_prompt`, in a thread, opens the engine if necessary,
restarts it from the mask if the masks differ, and sends the prompt. `PromptSession.finish` records
the changed voxels as one step. Undo, journal and replay are those of the editing session and never
run a model.
"""

from typing import Final

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.features import Command, Feature, Page
from napari_mamamia.core.texts import tr

_HERE: Final = "napari_mamamia.features.prompt"
_MODEL: Final = frozenset({Hidden.MODEL})

FEATURE: Final = Feature(
    name="prompt",
    summary="prompt models: points, boxes, scribbles and outlines to a mask, local or on a server",
    commands=(
        Command(
            "prompt",
            f"{_HERE}.cli:prompt",
            "Mark a lesion with a prompt model, using points, boxes, scribbles and outlines.",
            "Masks and measurements",
        ),
    ),
    pages=(
        Page(
            "Prompt",
            "Mask",
            f"{_HERE}.widgets.page:PromptPage",
            f"{_HERE}.widgets.flow:make_prompt",
            tip=tr("Marks a lesion from a point, a box, a scribble or an outline."),
            reveals=_MODEL,
        ),
    ),
    services={"prompt": f"{_HERE}.widgets.services:PromptServices"},
    reveals=dict.fromkeys(("prompt.make_engine", "prompt.run_prompt"), _MODEL),
    hooks={"check_computer": f"{_HERE}.services.check:check_prompt_models"},
    library={
        "Prompt": f"{_HERE}.segmentation.prompts:Prompt",
        "Prompted": f"{_HERE}.library:Prompted",
        "prompt": f"{_HERE}.library:prompt",
    },
    extras=("prompt",),
    docs=("howto/prompt_models.md",),
)
