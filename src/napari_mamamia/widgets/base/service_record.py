"""`Services`: every call that the pages make beyond themselves, so that tests can pass fakes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case
from napari_mamamia.core.records import CaseTag
from napari_mamamia.io.data_set.layout import recognise
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.io.workspace.preferences import Preferences, load_preferences, save_preferences
from napari_mamamia.io.workspace.protocol import Protocol, read_protocol
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.kinetics.timing import choose_image_phases
from napari_mamamia.segmentation.model.segmenter import Prediction, Segmenter
from napari_mamamia.segmentation.run.engine_host import Host
from napari_mamamia.segmentation.run.planned import Estimate
from napari_mamamia.segmentation.run.registry import ModelEntry
from napari_mamamia.services.batch.extra import cluster_installed
from napari_mamamia.services.case.data_set import (
    CaseRow,
    OpenDataSet,
    case_row,
    case_rows,
    open_data_set,
)
from napari_mamamia.services.case.open_case import load_remaining, open_case
from napari_mamamia.services.case.refine import SavedMask
from napari_mamamia.services.case.show_case import (
    CaseMasks,
    Difference,
    OpenMask,
    ShownScores,
    centre_of_largest_part,
    choose_candidate,
    display_range,
    newer_prediction,
    open_masks,
    score_shown,
    subtract_phases,
    uint8_mask,
)
from napari_mamamia.services.case.show_contrast import Projection, contrast_limits, project_case
from napari_mamamia.services.dicom.check import ImportCheck, check_import, default_target
from napari_mamamia.services.dicom.dicom import ImportSummary
from napari_mamamia.services.dicom.finding import FoundStudy
from napari_mamamia.services.dicom.look import LookedInto, judge_again, look_at_source
from napari_mamamia.services.dicom.preview import (
    SlicePicture,
    StudyPreview,
    part_picture,
    preview_study,
)
from napari_mamamia.services.dicom.studies import import_studies
from napari_mamamia.services.export.export import ExportSummary, export_bundle
from napari_mamamia.services.export.labels import LabelFile, look_at_labels
from napari_mamamia.services.export.target import ExportTarget, look_at_target
from napari_mamamia.services.predict.added_models import (
    ModelFacts,
    add_to_list,
    estimate_case,
    facts_of,
    listed_models,
    new_host,
    phases_of,
    remove_from_list,
    why_not_here,
)
from napari_mamamia.services.predict.cases import PredictSummary, predict_data_set
from napari_mamamia.services.predict.model_choice import planned
from napari_mamamia.services.predict.predict import predict_case, segmenters
from napari_mamamia.services.refine.edit_case import is_begun, open_editing, prepare_saving
from napari_mamamia.services.refine.editing import OpenEditing
from napari_mamamia.services.refine.grow_mask import grow_from_labels
from napari_mamamia.services.refine.mask_work import use_mask_tool
from napari_mamamia.services.refine.numbers import MaskNumbers, measure_mask
from napari_mamamia.services.score.case_facets import (
    case_table,
)
from napari_mamamia.services.score.case_findings import with_failures, with_tags
from napari_mamamia.services.score.case_table import CaseTable
from napari_mamamia.services.score.case_tags import read_tags, tag_case
from napari_mamamia.services.score.clinical_look import ClinicalLook, look_at_clinical
from napari_mamamia.services.score.cohort_page import saved_figures
from napari_mamamia.services.score.looks import look_for_contrast
from napari_mamamia.services.score.models import ModelsSummary, score_models
from napari_mamamia.services.score.review import Agreement, compare_masks, review_masks
from napari_mamamia.services.score.score import ScoreSummary, find_pairs, score_folders
from napari_mamamia.smartpaint.brush.features import FeatureImages, measure_features
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.grow import Grown, grow
from napari_mamamia.smartpaint.grow.prompts import grow_from_box
from napari_mamamia.widgets.base.kinetic_services import KineticServices
from napari_mamamia.widgets.base.predict_services import PredictServices

# `ImportServices`: the calls that the page Import makes, so that tests can pass fakes.


@dataclass(frozen=True, slots=True)
class ImportServices:
    """The services of the page Import; a field left out is the real one."""

    source_of: Callable[..., Path | None] = dicom_source
    look: Callable[[Path], LookedInto] = look_at_source
    judge: Callable[..., FoundStudy] = judge_again
    preview: Callable[[FoundStudy], StudyPreview] = preview_study
    part_picture: Callable[..., SlicePicture] = part_picture
    check: Callable[..., ImportCheck] = check_import
    run: Callable[..., ImportSummary] = import_studies
    default_target: Callable[..., Path] = default_target


@dataclass(frozen=True, slots=True)
class Services:
    """The services as the window calls them; a field left out is the real one."""

    recognise: Callable[[Path], Any] = recognise
    open_data_set: Callable[..., OpenDataSet] = open_data_set
    case_rows: Callable[..., tuple[CaseRow, ...]] = case_rows
    case_row: Callable[..., CaseRow] = case_row
    open_case: Callable[..., Case] = open_case
    load_remaining: Callable[..., Case] = load_remaining
    open_masks: Callable[..., CaseMasks] = open_masks
    display_range: Callable[..., tuple[float, float]] = display_range
    centre_of_largest_part: Callable[..., tuple[int, int, int] | None] = centre_of_largest_part
    newer_prediction: Callable[..., OpenMask | None] = newer_prediction
    uint8_mask: Callable[..., Any] = uint8_mask
    subtract_phases: Callable[..., Difference] = subtract_phases
    project_case: Callable[..., Projection] = project_case
    contrast_limits: Callable[..., tuple[float, float]] = contrast_limits
    choose_image_phases: Callable[..., Any] = choose_image_phases
    segmenters: Callable[[], tuple[Segmenter, ...]] = segmenters
    predict_case: Callable[..., Prediction] = predict_case
    predict_data_set: Callable[..., PredictSummary] = predict_data_set
    listed_models: Callable[[], tuple[ModelEntry, ...]] = listed_models
    add_model: Callable[..., ModelEntry] = add_to_list
    forget_model: Callable[[str], None] = remove_from_list
    planned: Callable[..., Segmenter] = planned
    new_host: Callable[[], Host] = new_host
    why_not_here: Callable[[], str] = why_not_here
    facts_of: Callable[..., ModelFacts] = facts_of
    phases_of: Callable[..., int] = phases_of
    estimate_case: Callable[..., Estimate] = estimate_case
    is_begun: Callable[..., bool] = is_begun
    open_editing: Callable[..., OpenEditing] = open_editing
    prepare_saving: Callable[[OpenEditing], Callable[[], SavedMask]] = prepare_saving
    measure_features: Callable[..., FeatureImages] = measure_features
    measure_mask: Callable[..., MaskNumbers] = measure_mask
    grow: Callable[..., Grown] = grow
    grow_from_click: Callable[..., Grown] = grow_from_click
    grow_from_box: Callable[..., Grown] = grow_from_box
    grow_from_labels: Callable[..., Grown] = grow_from_labels
    use_mask_tool: Callable[..., tuple[Box, Any]] = use_mask_tool
    read_protocol: Callable[[Path], Protocol] = read_protocol
    choose_candidate: Callable[..., Prediction] = choose_candidate
    score_shown: Callable[..., ShownScores] = score_shown
    compare_masks: Callable[..., Agreement] = compare_masks
    find_pairs: Callable[..., Any] = find_pairs
    score_folders: Callable[..., ScoreSummary] = score_folders
    score_models: Callable[..., ModelsSummary] = score_models
    has_cluster: Callable[[], bool] = cluster_installed
    case_table: Callable[..., CaseTable] = case_table
    look_for_contrast: Callable[..., Any] = look_for_contrast
    with_failures: Callable[..., CaseTable] = with_failures
    with_tags: Callable[..., CaseTable] = with_tags
    saved_figures: Callable[..., Any] = saved_figures
    read_tags: Callable[..., tuple[CaseTag, ...]] = read_tags
    tag_case: Callable[..., CaseTag] = tag_case
    review_masks: Callable[..., CaseMasks] = review_masks
    export_bundle: Callable[..., ExportSummary] = export_bundle
    look_at_clinical: Callable[..., ClinicalLook] = look_at_clinical
    look_at_target: Callable[[Path], ExportTarget] = look_at_target
    look_at_labels: Callable[[Path], LabelFile] = look_at_labels
    check_name: Callable[[str, str], str] = file_name
    load_preferences: Callable[[], Preferences] = load_preferences
    save_preferences: Callable[[Preferences], None] = field(default=save_preferences)
    kinetics: KineticServices = field(default_factory=KineticServices)
    imports: ImportServices = field(default_factory=ImportServices)
    predict: PredictServices = field(default_factory=PredictServices)
