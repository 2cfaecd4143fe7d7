"""Apply prompts to a case one after another, for the command line and the library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from napari_mamamia.core.case import Case, LabelMap
from napari_mamamia.core.edits import Edit
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import part
from napari_mamamia.features.prompt.segmentation.engine import EngineInfo, EngineSettings
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.segmentation.prompts import Prompt
from napari_mamamia.features.prompt.services.channels import ChannelImage, choose_channel
from napari_mamamia.features.prompt.services.session import PromptSession, run_prompt
from napari_mamamia.features.prompt.services.settings import require_accepted
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.refine.edit_case import open_editing, save_editing
from napari_mamamia.smartpaint.session.session import EditingSession

OnInfo = Callable[[EngineInfo], None]


@dataclass(frozen=True, slots=True)
class PromptedMask:
    """A mask made from prompts, with the recorded steps, notes, and the saved file, if any."""

    labels: LabelMap
    steps: tuple[Edit, ...]
    notes: tuple[str, ...]
    info: EngineInfo
    saved: SavedMask | None = None


def prompt_case(
    case: Case,
    prompts: Sequence[Prompt],
    engine: str,
    settings: EngineSettings,
    *,
    channel: str = "",
    start: LabelMap | None = None,
    workspace: Workspace | None = None,
    reader: str = "",
    label: int = 1,
    on_info: OnInfo = require_accepted,
) -> PromptedMask:
    """Mark a lesion of a case with a prompt model, and save the mask if a reader is given.

    Parameters
    ----------
    case
        The case with its phases.
    prompts
        The prompts, in the order in which they are applied.
    engine, settings
        The name of an engine in `PROMPT_ENGINES`, and its settings.
    channel
        The image that the model sees, see `list_channels`; "" for the default.
    start
        The mask from which the model starts, or None.
    workspace, reader
        The workspace, and the reader whose mask is edited and saved there with its journal. If
        there is no reader, nothing is saved.
    label
        The label that the prompts mark.
    on_info
        Function that is called with the description of the model before an image is sent.

    Raises
    ------
    CaseError
        If a prompt, the image or a setting cannot be used; nothing is saved.
    ModelError
        If the model cannot be loaded, or fails.
    LicenceError
        If the model's licence was not accepted.
    """
    if engine not in PROMPT_ENGINES:
        names = ", ".join(PROMPT_ENGINES)
        raise CaseError(f"expected one of the prompt engines {names}, but found {engine!r}")
    if not prompts:
        raise CaseError("expected at least one prompt, but found none: name a point or a box")
    image = ChannelImage(case, choose_channel(case, channel))
    _ = image.array  # refused before a model is loaded
    model = PROMPT_ENGINES[engine].make(settings)
    try:
        info = model.connect()
        on_info(info)
        model.set_image(image.array, case.grid.spacing_mm)
        ask = partial(_ask_prompts, image=image, prompts=prompts, model=model, info=info)
        if not reader:
            live = _make_session(case, start)
            live.label = label
            notes = ask(live)
            return PromptedMask(LabelMap.of(live.labels, case.grid), live.steps, notes, info)
        editing = open_editing(
            case, workspace, reader, start, started_from="start mask" * bool(start)
        )
        try:
            editing.session.label = label
            notes = (*editing.notes, *ask(editing.session))
            saved = save_editing(editing)
        finally:
            editing.close()
        labels = LabelMap.of(editing.session.labels, case.grid)
        return PromptedMask(labels, editing.session.steps, notes, info, saved)
    finally:
        model.close()


def _make_session(case: Case, start: LabelMap | None) -> EditingSession:
    import numpy as np

    shape = case.grid.shape
    labels = np.zeros(shape, np.uint8) if start is None else start.dense().astype(np.uint8)
    return EditingSession(case.case_id, case.grid, labels, None)


def _ask_prompts(
    live: EditingSession,
    image: ChannelImage,
    prompts: Sequence[Prompt],
    model: object,
    info: EngineInfo,
) -> tuple[str, ...]:
    session = PromptSession(live, image, model, info)  # type: ignore[arg-type]
    notes: list[str] = []
    for number, prompt in enumerate(prompts):
        with part(number, number + 1, len(prompts), f"Prompt {number + 1}: "):
            work = session.prepare(prompt)
            outcome = session.finish(work, run_prompt(work))
            notes += [f"prompt {number + 1}: {note}" for note in (outcome.notes if outcome else ())]
    return tuple(notes)
