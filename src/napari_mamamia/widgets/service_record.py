"""`Services`: every call that the pages make beyond themselves, so that tests can pass fakes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from napari_mamamia.core.case import Case
from napari_mamamia.core.progress import Job
from napari_mamamia.io.layout import recognise
from napari_mamamia.io.preferences import Preferences, load_preferences, save_preferences
from napari_mamamia.io.workspace import file_name
from napari_mamamia.kinetics.timing import choose_phases
from napari_mamamia.segmentation.segmenter import Prediction, Segmenter
from napari_mamamia.services.data_set import (
    CaseRow,
    OpenDataSet,
    case_row,
    case_rows,
    open_data_set,
)
from napari_mamamia.services.export import ExportSummary, export_masks
from napari_mamamia.services.open_case import load_remaining, open_case
from napari_mamamia.services.predict import (
    SavedPrediction,
    predict_case,
    save_prediction,
    segmenters,
)
from napari_mamamia.services.refine import SavedMask, save_refined
from napari_mamamia.services.review import Agreement, compare_masks, review_masks
from napari_mamamia.services.score import ScoreSummary, find_pairs, score_folders
from napari_mamamia.services.show_case import (
    CaseMasks,
    Difference,
    ShownScores,
    centre_of_largest_part,
    choose_candidate,
    display_range,
    open_masks,
    score_shown,
    subtract_phases,
    uint8_mask,
)

__all__ = ["Services"]


@dataclass(frozen=True, slots=True)
class Services:
    """The services as the window calls them; a field left out is the real one."""

    recognise: Callable[[Path], Any] = recognise
    open_data_set: Callable[..., Job[OpenDataSet]] = open_data_set
    case_rows: Callable[..., tuple[CaseRow, ...]] = case_rows
    case_row: Callable[..., CaseRow] = case_row
    open_case: Callable[..., Job[Case]] = open_case
    load_remaining: Callable[..., Job[Case]] = load_remaining
    open_masks: Callable[..., Job[CaseMasks]] = open_masks
    display_range: Callable[..., tuple[float, float]] = display_range
    centre_of_largest_part: Callable[..., tuple[int, int, int] | None] = centre_of_largest_part
    uint8_mask: Callable[..., Any] = uint8_mask
    subtract_phases: Callable[..., Job[Difference]] = subtract_phases
    choose_phases: Callable[..., Any] = choose_phases
    segmenters: Callable[[], tuple[Segmenter, ...]] = segmenters
    predict_case: Callable[..., Job[Prediction]] = predict_case
    save_prediction: Callable[..., Job[SavedPrediction]] = save_prediction
    save_refined: Callable[..., Job[SavedMask]] = save_refined
    choose_candidate: Callable[..., Prediction] = choose_candidate
    score_shown: Callable[..., Job[ShownScores]] = score_shown
    compare_masks: Callable[..., Job[Agreement]] = compare_masks
    find_pairs: Callable[..., Any] = find_pairs
    score_folders: Callable[..., Job[ScoreSummary]] = score_folders
    review_masks: Callable[..., Job[CaseMasks]] = review_masks
    export_masks: Callable[..., Job[ExportSummary]] = export_masks
    check_name: Callable[[str, str], str] = file_name
    load_preferences: Callable[[], Preferences] = load_preferences
    save_preferences: Callable[[Preferences], None] = field(default=save_preferences)
