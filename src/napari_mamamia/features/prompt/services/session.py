"""`PromptSession`: a prompt model and an editing session that share one mask.

Each prompt is recorded as one step with its changed voxels. Undo, journal and replay therefore work
as for brush strokes and never run a model.

Before each prompt, the session's mask is compared with the engine's mask. They differ if the reader
edited the mask or used undo. After undo, the mask may be one that earlier prompts produced. The
engine then undoes its last prompt or runs those earlier prompts again, so that it answers as if the
later prompts had never been made. In all other cases the engine starts from the mask and forgets
its earlier prompts.
"""

import zlib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.box import Box
from napari_mamamia.core.edits import MODEL, Step
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.progress import part
from napari_mamamia.core.provenance import Setting
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineInfo,
    EngineLostError,
    PromptEngine,
    Region,
)
from napari_mamamia.features.prompt.segmentation.prompts import (
    PlacedPrompt,
    Prompt,
    place_prompt,
    points_text,
)
from napari_mamamia.features.prompt.services.channels import ChannelImage
from napari_mamamia.smartpaint.evidence.marks import unpack_marks
from napari_mamamia.smartpaint.session.session import EditingSession
from napari_mamamia.smartpaint.session.state import moved

PROMPT_STEP: Final = "prompt"
"""Name of the steps that prompts record, up to the bracket."""


class History(StrEnum):
    """Which earlier prompts the engine took into account for an answer."""

    CONTINUED = "continued"
    UNDONE = "last prompt taken back"
    REPEATED = "earlier prompts repeated"
    MASK = "started from the mask"


MaskKey = tuple[Box, bytes]
"""The bounding box of a mask, and a digest of the voxels in it."""


@dataclass(frozen=True, slots=True, eq=False)
class EngineState:
    """The mask from which an engine started, the prompts since then, and the resulting mask."""

    start: Region
    prompts: tuple[PlacedPrompt, ...]
    key: MaskKey
    parent: "EngineState | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class PromptWork:
    """A prompt to be sent to the engine: the input of `run_prompt`.

    `history` says what the engine does first. `mask` is the mask that the engine then has (bool,
    with the shape of the image), or None if it already has this mask. `state` is the state in which
    the engine reaches this mask without starting anew, or None if there is no such state.
    """

    engine: PromptEngine
    image: ChannelImage
    placed: PlacedPrompt
    mask: NDArray[np.bool_] | None
    history: History
    state: EngineState | None
    label: int
    revision: int


@dataclass(frozen=True, slots=True, eq=False)
class PromptAnswer:
    """The engine's answer: a region, and the prompts that it takes into account."""

    region: Region
    history: History
    image_sha256: str


@dataclass(frozen=True, slots=True)
class PromptOutcome:
    """The recorded step (None if no voxel changed), and notes to show."""

    step: Step | None
    notes: tuple[str, ...] = ()


class PromptSession:
    """Applies prompts to the mask of an editing session.

    `prepare` and `finish` must run in the thread that edits the mask; `run_prompt` may run in any
    thread.

    Parameters
    ----------
    live
        The editing session.
    image
        The image that the model sees.
    engine, info
        A connected engine, and information on it.
    """

    def __init__(
        self, live: EditingSession, image: ChannelImage, engine: PromptEngine, info: EngineInfo
    ) -> None:
        self.live = live
        self.image = image
        self.engine = engine
        self.info = info
        self._engine_mask: NDArray[np.bool_] | None = None
        self._states: list[EngineState] = []
        self._in_step: tuple[int, int] | None = None
        self._current: PromptWork | None = None
        self._is_closed = False

    @property
    def is_waiting(self) -> bool:
        """Return whether a prompt has not been answered yet."""
        return self._current is not None

    def prepare(self, prompt: Prompt) -> PromptWork:
        """Prepare a prompt for the session's current label, as input of `run_prompt`.

        Raises
        ------
        CaseError
            If the prompt does not fit the image, another prompt has not been answered yet, or the
            label is locked.
        """
        if self._is_closed or self._current is not None:
            raise CaseError("the prompt model is busy or closed: wait for its answer, or cancel it")
        self.live.record_pending()
        placed = place_prompt(prompt, self.live.grid.shape, self.info.abilities)
        label = self.live.label
        if label in self.live.locked:
            raise CaseError(
                f"expected a label that may be painted, but label {label} is locked: "
                "unlock it, or choose a different label"
            )
        revision = self.live.history.revision
        mask, history = None, History.CONTINUED
        state = self._states[-1] if self._states else None
        if self._in_step != (label, revision) or not self.engine.is_open:
            mask = self.live.labels == label
            history, state = self._choose_history(mask)
        work = PromptWork(self.engine, self.image, placed, mask, history, state, label, revision)
        self._current = work
        return work

    def _choose_history(self, mask: NDArray[np.bool_]) -> tuple[History, EngineState | None]:
        """Return how the engine gets the session's mask, and the engine state with that mask."""
        if not self._states or not self.engine.is_open:
            return History.MASK, None
        key, last = _key_of(mask), self._states[-1]
        if last.key == key:
            return History.CONTINUED, last
        if last.parent is not None and last.parent.key == key and self.info.has_undo:
            return History.UNDONE, last.parent
        for state in reversed(self._states):
            if state.key == key and state.prompts:
                return History.REPEATED, state
        return History.MASK, None

    def finish(self, work: PromptWork, answer: PromptAnswer) -> PromptOutcome | None:
        """Record an answer as a step; return None if the answer came too late and was dropped.

        Voxels that the reader changed while the model was running are not overwritten, unless the
        model changed them too. Voxels that brush strokes or outlines protect are never overwritten.
        """
        if self._is_closed or self._current is not work:
            return None
        self._current = None
        region, box = answer.region, answer.region.box
        notes = []
        before = self._follow_engine(work, answer)
        if box.is_empty:
            return PromptOutcome(None, ("The model marked nothing.",))
        self.live.record_pending()
        is_edited = self.live.history.revision != work.revision
        now = self.live.labels[box.slices] == work.label
        new = np.where(region.mask != before, region.mask, now)
        n_held = self._keep_held(new, now, box, work.label)
        if n_held:
            notes.append(f"{n_held} voxels stay as your strokes and outlines set them.")
        parameters = self._parameters(work, answer, n_held)
        name = f"{PROMPT_STEP} ({work.placed.prompt.text})"
        step = self.live.apply(name, box, new, parameters, label=work.label)
        if not is_edited and not n_held and not self.live.locked:
            self._in_step = (work.label, self.live.history.revision)
        if step is None and not n_held:
            notes.append("The prompt changed nothing.")
        return PromptOutcome(step, tuple(notes))

    def _follow_engine(self, work: PromptWork, answer: PromptAnswer) -> NDArray[np.bool_]:
        """Update the copy of the engine's mask; return the region's voxels before the change."""
        own = self._engine_mask if work.mask is None else work.mask
        if own is None:
            raise CaseError("expected an answer to the current prompt, but found an older one")
        state = work.state
        if answer.history is History.MASK or state is None:
            state = EngineState(_start_of(own), (), _key_of(own))
        where = answer.region.box.slices
        before: NDArray[np.bool_] = own[where].copy()
        own[where] = answer.region.mask
        self._engine_mask = own
        prompts = (*state.prompts, work.placed)
        # Searching the whole mask would take 8 ms for 448 x 448 x 160 voxels.
        around = state.key[0].union(answer.region.box)
        key = _key_of(own[around.slices], around.start)
        self._states.append(EngineState(state.start, prompts, key, state))
        return before

    def _keep_held(
        self, new: NDArray[np.bool_], now: NDArray[np.bool_], box: Box, label: int
    ) -> int:
        """Restore voxels that strokes protect, inside or outside the mask; return their number."""
        if self.live.state.marked_box(label).is_empty:
            return 0
        hold = unpack_marks(self.live.state.words(label)[box.slices]).hold
        kept = (new != now) & (((hold > 0) & now) | ((hold < 0) & ~now))
        new[kept] = now[kept]
        return int(np.count_nonzero(kept))

    def drop(self, work: PromptWork) -> None:
        """Forget a prompt that failed or was cancelled; the mask is not changed.

        The engine may already be processing the prompt, or may still end. The next prompt therefore
        starts from the mask.
        """
        if self._current is work:
            self._current = None
            self._engine_mask, self._states, self._in_step = None, [], None

    def close(self) -> None:
        """Stop the engine; an answer that is still pending is dropped."""
        self._is_closed, self._current = True, None
        self.engine.close()

    def _parameters(
        self, work: PromptWork, answer: PromptAnswer, n_held: int
    ) -> tuple[tuple[str, Setting], ...]:
        prompt, info = work.placed.prompt, self.info
        voxels = np.array(prompt.points)
        places = self.live.grid.to_world_mm(voxels[:, ::-1])
        box = answer.region.box
        return (
            ("prompt", prompt.kind.value),
            ("include", prompt.include),
            ("voxels_zyx", points_text(prompt.points, 2)),
            ("ras_mm", points_text(places, 2)),
            ("crop_zyx", points_text((work.placed.box.start, work.placed.box.stop), 0)),
            ("result_zyx", points_text((box.start, box.stop), 0)),
            ("engine", info.name),
            (MODEL, f"{info.name}, {info.model}, licence {info.licence}"),
            ("history", answer.history.value),
            ("image", f"{work.image.channel.name} ({work.image.channel.text})"),
            ("image_sha256", answer.image_sha256),
            ("held_voxels", n_held),
        )


def run_prompt(work: PromptWork) -> PromptAnswer:
    """Send a prompt to the engine, after opening or restarting the engine if necessary.

    Raises
    ------
    EngineLostError
        If the engine ended; the next prompt opens it again.
    ModelError, CaseError
        If the model cannot answer, or the image cannot be used.
    """
    engine, history = work.engine, work.history
    image, digest = work.image.array, work.image.sha256
    if not engine.is_open:
        if work.mask is None:
            raise EngineLostError("the prompt model ended; prompt again to start it from the mask")
        engine.connect()
        history = History.MASK
        engine.set_image(image, work.image.case.grid.spacing_mm)
    mask = work.mask
    if mask is not None:
        if history is History.UNDONE and not engine.undo(zlib.crc32(mask.data)):
            history = History.REPEATED
        if history is History.REPEATED and not _repeat_prompts(work, mask):
            history = History.MASK
        if history is History.MASK:
            engine.start_from(_start_of(mask))
    return PromptAnswer(engine.prompt(work.placed), history, digest)


def _repeat_prompts(work: PromptWork, mask: NDArray[np.bool_]) -> bool:
    """Restart the engine and run its prompts again; return whether they produce `mask`."""
    state, engine = work.state, work.engine
    if state is None or not state.prompts:
        return False
    engine.start_from(state.start)
    repeated = np.zeros(mask.shape, np.bool_)
    repeated[state.start.box.slices] = state.start.mask
    n_prompts = len(state.prompts)
    for number, placed in enumerate(state.prompts):
        with part(number, number + 1, n_prompts + 1, f"Repeating prompt {number + 1}: "):
            region = engine.prompt(placed)
        repeated[region.box.slices] = region.mask
    return np.array_equal(repeated, mask)


def _start_of(mask: NDArray[np.bool_]) -> Region:
    """Return the region from which an engine starts; one voxel if the mask is empty."""
    box = Box.around(mask)
    if box.is_empty:
        box = Box((0, 0, 0), (1, 1, 1))
    return Region(box, mask[box.slices].copy())


def _key_of(mask: NDArray[np.bool_], offset: tuple[int, int, int] = (0, 0, 0)) -> MaskKey:
    """Return the key of a mask, or of a crop at `offset` that contains all of its voxels."""
    box = Box.around(mask)
    digest = blake2b(mask[box.slices].tobytes(), digest_size=16).digest()
    return box if box.is_empty else moved(box, offset), digest
