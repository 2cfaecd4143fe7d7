"""The default segmenter without weights: a kinetic threshold, not a trained model."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from napari_mamamia.core.case import Case, Mask
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.grid import DisplayFrame
from napari_mamamia.core.progress import part, report_progress
from napari_mamamia.core.provenance import MODEL_SHA256, Setting, hash_model
from napari_mamamia.kinetics.time_axis import Timing
from napari_mamamia.kinetics.timing import PhaseChoice, choose_image_phases
from napari_mamamia.segmentation.kinetic.candidates import Scored
from napari_mamamia.segmentation.kinetic.enhancement import Scan, moved
from napari_mamamia.segmentation.kinetic.kinetic_settings import KineticSettings, values_of
from napari_mamamia.segmentation.kinetic.ranking import (
    best_apart,
    outlined,
    reasons,
    seeds_anywhere,
    seeds_at,
    seeds_in_box,
    strongest_in_box,
    unsure,
)
from napari_mamamia.segmentation.kinetic.search import Search, search_around, search_breast
from napari_mamamia.segmentation.model.prompts import (
    box_from_frame,
    clicked_voxel,
    described,
    prompt_box,
)
from napari_mamamia.segmentation.model.segmenter import (
    BoxPrompt,
    Candidate,
    Click,
    Prediction,
    Prompt,
)


@dataclass(frozen=True, slots=True)
class KineticSegmenter:
    """Segmenter of regions that enhance fast and have the shape of a lesion.

    The steps, formulas and limits are in docs/methods/kinetic_segmenter.md. All sizes are in mm and
    all directions come from the affine, so the result does not depend on the order of axes in the
    file.
    """

    settings: KineticSettings = field(default_factory=KineticSettings)

    @property
    def name(self) -> str:
        """Short name that is suitable for a folder."""
        return "kinetic"

    @property
    def title(self) -> str:
        """Name that is shown to users."""
        return "Kinetic threshold"

    @property
    def note(self) -> str:
        """Caveat that is shown with every result."""
        return "kinetic threshold, not a trained model"

    def predict(self, case: Case, prompt: Prompt | None = None) -> Prediction:
        """Segment `case`, and report progress from 0 to 100.

        Without a prompt, the breast is searched. With a `Click`, the result is the clicked region,
        or the nearest region within `click_reach_mm`. With a `BoxPrompt`, only the box is searched,
        with an adapted threshold, and the best region is returned if anything in the box enhances.

        Returns
        -------
        Prediction
            Up to `candidates` regions, best first; `mask` is the mask of the first. If nothing
            enhances, the mask is empty, there are no candidates, and `notes` states this.

        Raises
        ------
        CaseError
            If the case has fewer than two phases or is still opening, phase 0 is constant, or the
            prompt is outside the image.
        """
        started = time.perf_counter()
        case.require_phases(2)
        choice = choose_image_phases(case)
        frame = case.grid.display_frame("axial")
        search, ranked = self._rank_candidates(case, frame, choice, prompt)
        candidates = tuple(_list_candidates(case, frame, choice, search, ranked, self.settings))
        why = "; ".join(unsure(ranked, self.settings)) if prompt is None else ""
        report_progress(100, 100, "Done")
        return Prediction(
            case_id=case.case_id,
            mask=_make_mask(case, candidates),
            candidates=candidates,
            parameters=(
                *_list_parameters(choice, search, prompt, self.settings),
                ("unsure", why or "no"),
            ),
            seconds=time.perf_counter() - started,
            notes=tuple(_list_notes(case, choice, search, prompt, candidates)),
            unsure=why,
        )

    def _rank_candidates(
        self, case: Case, frame: DisplayFrame, choice: PhaseChoice, prompt: Prompt | None
    ) -> tuple[Search, list[Scored]]:
        settings = self.settings
        scan = _make_scan(case, frame, choice)
        index = clicked_voxel(case, frame, prompt)
        if prompt is None:
            with part(0, 60, 100):
                search = search_breast(scan, settings)
            with part(60, 80, 100):
                seeds = seeds_anywhere(search, settings)
        else:
            target = prompt_box(case, frame, prompt, settings.click_region_mm)
            with part(0, 60, 100):
                search = search_around(scan, target, settings, index)
            with part(60, 80, 100):
                if index is None:
                    seeds = seeds_in_box(search, settings)
                else:
                    seeds = seeds_at(search, settings, index)
        with part(80, 95, 100):
            regions = outlined(search, seeds, settings)
        if not regions and isinstance(prompt, BoxPrompt):
            with part(95, 97, 100):
                seeds = strongest_in_box(search, settings)
            with part(97, 99, 100):
                regions = outlined(search, seeds, settings)
        # After a click, the order of the seeds is kept, because it includes their distance, which
        # the score does not.
        return search, best_apart(regions, search, settings, by_score=index is None)


def _make_scan(case: Case, frame: DisplayFrame, choice: PhaseChoice) -> Scan:
    shown = frame.to_display(case.signal)
    late = None if choice.late is None else shown[choice.late]
    return Scan(shown[0], shown[choice.early], late, frame.per_axis(case.grid.spacing_mm))


def _list_candidates(
    case: Case,
    frame: DisplayFrame,
    choice: PhaseChoice,
    search: Search,
    ranked: list[Scored],
    settings: KineticSettings,
) -> Iterator[Candidate]:
    for n, item in enumerate(ranked):
        box = moved(item.region.box, search.origin)
        yield Candidate(
            rank=n + 1,
            box=box_from_frame(box, frame, case.grid.shape),
            crop=np.ascontiguousarray(frame.from_display(item.region.crop)),
            volume_mm3=int(np.count_nonzero(item.region.crop)) * case.grid.voxel_volume_mm3,
            score=item.value,
            reasons=reasons(item.features, _describe_time(case, choice), settings),
        )


def _make_mask(case: Case, candidates: tuple[Candidate, ...]) -> Mask:
    array = np.zeros(case.grid.shape, dtype=np.bool_)
    if candidates:
        array[candidates[0].box.slices] = candidates[0].crop
    return Mask(case.grid, array)


def _describe_time(case: Case, choice: PhaseChoice) -> str:
    if choice.early_s is None:
        return f"in {phase_name(choice.early, case.n_before)}"
    return f"at {choice.early_s:.0f} s"


def _list_parameters(
    choice: PhaseChoice, search: Search, prompt: Prompt | None, settings: KineticSettings
) -> Iterator[tuple[str, Setting]]:
    yield from values_of(settings)
    yield MODEL_SHA256, hash_model("kinetic", dict(values_of(settings)))
    yield "early_phase", choice.early
    yield "late_phase", choice.late
    yield "phases_chosen", choice.timing.value
    yield "early_s", choice.early_s
    yield "late_s", choice.late_s
    yield "early_gap_s", choice.early_gap_s
    yield "late_gap_s", choice.late_gap_s
    yield "used_enhancement_percent", round(search.percent, 2)
    yield "used_rise", round(search.rise, 2)
    yield "prompt", described(prompt)


def _list_notes(
    case: Case,
    choice: PhaseChoice,
    search: Search,
    prompt: Prompt | None,
    candidates: tuple[Candidate, ...],
) -> Iterator[str]:
    early = phase_name(choice.early, case.n_before)
    if choice.timing is Timing.PHASE_ORDER:
        late = (
            "" if choice.late is None else f" and {phase_name(choice.late, case.n_before)} as late"
        )
        yield (
            f"phases chosen {choice.timing.value} ({choice.reason}): {early} was used as "
            f"early{late}"
        )
    if choice.late is None:
        yield f"there is no late phase, so SER was not used ({choice.reason})"
    yield from search.notes
    if not search.brightens:
        before = phase_name(0, case.n_before)
        yield f"{early} is not brighter than {before}: phases may be in the wrong order"
    if not candidates:
        yield _nothing_found(case, choice, search, prompt)


def _nothing_found(case: Case, choice: PhaseChoice, search: Search, prompt: Prompt | None) -> str:
    level = f"by {search.percent:.0f} % or more {_describe_time(case, choice)}"
    if isinstance(prompt, Click):
        return f"nothing near the click enhances {level}; click nearer to the lesion, or draw a box"
    if isinstance(prompt, BoxPrompt):
        return "nothing in the box enhances; draw a different box"
    return f"nothing in the breast enhances {level}; draw a box, or lower the threshold"
