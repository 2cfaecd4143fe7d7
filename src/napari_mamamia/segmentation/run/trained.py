"""`TrainedSegmenter`: a trained network as a `Segmenter`; torch is imported only when needed."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.kinetic.breast import breast_area
from napari_mamamia.segmentation.model import segmenter
from napari_mamamia.segmentation.model.card import ModelCard
from napari_mamamia.segmentation.model.engine import EngineInput, Runner
from napari_mamamia.segmentation.model.engine_settings import EngineResult, EngineSettings
from napari_mamamia.segmentation.model.network_spec import network_made
from napari_mamamia.segmentation.model.postprocess import BreastArea, Change, apply_steps
from napari_mamamia.segmentation.model.prompts import clicked_voxel
from napari_mamamia.segmentation.model.recipe import Recipe
from napari_mamamia.segmentation.model.recipe_input import ModelInput, labels_on_case, model_input
from napari_mamamia.segmentation.run.engines import load_engine

_MOST_CANDIDATES: Final = 5
_ALL_NEIGHBOURS: Final = np.ones((3, 3, 3), dtype=np.bool_)


@dataclass(slots=True, eq=False)
class TrainedSegmenter:
    """A trained model of any kind, whose network is loaded for the first case and then kept.

    Parameters
    ----------
    card
        The result of `recognise_model`.
    settings
        Settings of the run.
    recipe
        The steps before and after the network; none by default.
    time_limit_s
        Time limit for one case in seconds; None for no limit. The mask is computed from the folds
        that
        are complete by then, and `notes` reports this.
    runner
        The runner of the network; None loads the engine in this process.
    breast
        The breast, if it is already known; None detects the breast if the recipe needs it.
    """

    card: ModelCard
    settings: EngineSettings = field(default_factory=EngineSettings)
    recipe: Recipe = field(default_factory=Recipe)
    time_limit_s: float | None = None
    runner: Runner | None = None
    breast: BreastArea | None = None

    @property
    def name(self) -> str:
        """Short name that is suitable for a folder."""
        return "".join(c if c.isalnum() or c in "-_." else "_" for c in self.card.name)

    @property
    def title(self) -> str:
        """Name that is displayed to users."""
        return self.recipe.title or self.card.name

    @property
    def note(self) -> str:
        """One-line caveat that is shown with every result."""
        licence = "its licence is in the model's folder" if self.card.licence else "licence unknown"
        return (
            f"{self.card.kind} model {self.card.name}, weights {self.card.sha256[:12]}, {licence}"
        )

    def predict(self, case: Case, prompt: segmenter.Prompt | None = None) -> segmenter.Prediction:
        """Segment `case`, and report progress from 0 to 1000.

        With a `BoxPrompt`, only tiles that overlap the box are computed, and the mask is limited to
        the box. With a `Click`, the mask is the region at or nearest to the click.

        Raises
        ------
        CaseError
            If the case has too few phases, or the prompt is outside the image.
        ModelError
            If the model, recipe and case do not fit each other, or no result was complete at the
            time
            limit.
        MissingExtraError
            If torch is not installed.
        """
        started = time.perf_counter()
        deadline = None if self.time_limit_s is None else time.monotonic() + self.time_limit_s
        box = _check_prompt(case, prompt)
        with part(0, 25, 1000):
            breast, notes = self._find_breast(case, box)
        with part(25, 50, 1000):
            inputs = model_input(case, self.recipe, len(self.card.channels), breast, look_in=box)
        with part(50, 100, 1000):
            runner = self._load_runner()
        with part(100, 970, 1000):
            engine_input = EngineInput(inputs.arrays, inputs.grid, inputs.region, deadline)
            result = runner.predict(engine_input)
        labels = labels_on_case(result.labels, inputs, case.grid)
        mask = self._select_tumour(labels)
        report_progress(970, 1000, "Postprocessing")
        mask, changes = apply_steps(mask, case.grid, self.recipe.post, breast)
        if box is not None:
            mask = _cut_to_box(mask, box)
        candidates = tuple(candidates_of(mask, case, prompt))
        if isinstance(prompt, segmenter.Click) and candidates:
            mask = mask_of(candidates[0], mask.shape)
        probability = _as_left(_on_case(result, inputs, case.grid), labels > 0, mask)
        report_progress(1000, 1000, "Done")
        return segmenter.Prediction(
            case_id=case.case_id,
            mask=Mask(case.grid, mask),
            candidates=candidates,
            parameters=tuple(self._list_parameters(result, changes)),
            seconds=time.perf_counter() - started,
            notes=(
                *notes,
                *inputs.notes,
                *_list_notes(result, changes, bool(candidates), self.card),
            ),
            device=_describe_device(result),
            peak_memory_bytes=result.peak_memory_bytes,
            probability=probability,
        )

    def close(self) -> None:
        """Release the network; it is loaded again for the next case."""
        if self.runner is not None:
            self.runner.close()
            self.runner = None

    def _load_runner(self) -> Runner:
        if self.runner is None:
            settings = self.recipe.settings(self.settings)
            self.runner = load_engine(self.card, settings)
        return self.runner

    def _find_breast(
        self, case: Case, box: Box | None
    ) -> tuple[BreastArea | None, tuple[str, ...]]:
        if self.breast is not None:
            return self.breast, ()
        return breast_area(case, self.recipe, box)

    def _select_tumour(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        values = self.recipe.tumour_labels
        mask: NDArray[np.bool_] = np.isin(labels, values) if values else labels > 0
        return mask

    def _list_parameters(
        self, result: EngineResult, changes: Sequence[Change]
    ) -> Iterator[tuple[str, Setting]]:
        yield "model", self.card.name
        yield "weights_sha256", self.card.sha256
        yield "configuration", self.card.configuration
        yield "trainer", self.card.trainer
        yield from result.ran.parameters()
        yield "recipe", self.recipe.title or None
        yield "channels", ",".join(self.recipe.channels) or "phase order"
        if self.card.network is not None:
            yield "network", json.dumps(network_made(self.card.network), sort_keys=True)
        yield "region", self.recipe.region.value
        yield "time_limit_s", self.time_limit_s
        for change in changes:
            yield f"post: {change.kind.value}", change.text


def _describe_device(result: EngineResult) -> str:
    ran = result.ran
    return f"{ran.device} ({ran.threads} threads)" if ran.device == "cpu" else ran.device


def _on_case(result: EngineResult, made: ModelInput, grid: Grid) -> NDArray[np.float16] | None:
    if result.probability is None:
        return None
    probability: NDArray[np.float16] = labels_on_case(result.probability, made, grid)
    return probability


def _as_left(
    probability: NDArray[np.float16] | None, found: NDArray[np.bool_], mask: NDArray[np.bool_]
) -> NDArray[np.float16] | None:
    """Return the probability map, changed to agree with the final mask.

    The network's own probability covers all its labels, and precedes the later steps and the
    prompt.
    """
    if probability is None:
        return None
    left = probability.copy()
    left[found & ~mask] = 0
    left[mask & ~found] = 1
    return left


def _list_notes(
    result: EngineResult, changes: Sequence[Change], found: bool, card: ModelCard
) -> Iterator[str]:
    ran = result.ran
    if ran.cut_short:
        yield f"{ran.cut_short}; the mask is the result of the folds {', '.join(ran.folds_done)}"
    is_network = card.network is not None
    if ran.precision == "bf16" or (ran.backend == "openvino" and not is_network):
        reference = (
            "the network's result in single precision" if is_network else "nnU-Net's own result"
        )
        yield (
            f"computed with {ran.backend} in {ran.precision}: individual voxels at the edge may "
            f"differ from {reference}"
        )
    yield from (change.text for change in changes if change.removed or change.added)
    if not found:
        yield "the model found nothing"


def _check_prompt(case: Case, prompt: segmenter.Prompt | None) -> Box | None:
    """Return the box of a `BoxPrompt`, or None; raise `CaseError` if it is outside the case."""
    if isinstance(prompt, segmenter.Click):
        clicked_voxel(case, case.grid.display_frame("axial"), prompt)
        return None
    if not isinstance(prompt, segmenter.BoxPrompt):
        return None
    box = prompt.box
    if box.is_empty or any(b > n for b, n in zip(box.stop, case.grid.shape, strict=True)):
        raise CaseError(
            f"expected the box {box.start} to {box.stop} (z, y, x) to contain voxels of "
            f"{case.case_id} (shape {case.grid.shape}), but it contains none; draw it inside the "
            "image"
        )
    return box


def candidates_of(
    mask: NDArray[np.bool_], case: Case, prompt: segmenter.Prompt | None
) -> Iterator[segmenter.Candidate]:
    """Yield the largest 26-connected regions; after a click, yield the nearest region first."""
    around = Box.around(mask)
    if around.is_empty:
        return
    labels, count = ndimage.label(mask[around.slices], structure=_ALL_NEIGHBOURS)
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    sizes[0] = 0
    order = [int(n) for n in np.argsort(-sizes, kind="stable") if sizes[n]]
    if isinstance(prompt, segmenter.Click):
        nearest = _find_nearest(labels, prompt.voxel, around, case.grid)
        order = [nearest, *(n for n in order if n != nearest)]
    places = ndimage.find_objects(labels)
    for rank, label in enumerate(order[:_MOST_CANDIDATES], start=1):
        where = places[label - 1]
        start = [s.start + o for s, o in zip(where, around.start, strict=True)]
        stop = [s.stop + o for s, o in zip(where, around.start, strict=True)]
        volume = int(sizes[label]) * case.grid.voxel_volume_mm3
        yield segmenter.Candidate(
            rank=rank,
            box=Box((start[0], start[1], start[2]), (stop[0], stop[1], stop[2])),
            crop=labels[where] == label,
            volume_mm3=volume,
            score=volume,
            reasons=(f"{100 * sizes[label] / sizes.sum():.0f} % of the model's foreground",),
        )


def _find_nearest(labels: NDArray[Any], voxel: Sequence[int], around: Box, grid: Grid) -> int:
    """Return the label of the region that is closest, in mm, to the clicked voxel."""
    spots = np.argwhere(labels)
    away = (spots + np.array(around.start) - np.array(voxel)) @ grid.matrix_mm.T
    closest = spots[int(np.argmin((away**2).sum(axis=1)))]
    return int(labels[tuple(closest)])


def _cut_to_box(mask: NDArray[np.bool_], box: Box) -> NDArray[np.bool_]:
    inside = np.zeros_like(mask)
    inside[box.slices] = mask[box.slices]
    return inside


def mask_of(candidate: segmenter.Candidate, shape: Sequence[int]) -> NDArray[np.bool_]:
    """Return the mask of one candidate."""
    mask = np.zeros(tuple(shape), dtype=np.bool_)
    mask[candidate.box.slices] = candidate.crop
    return mask
