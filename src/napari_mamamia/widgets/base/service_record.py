"""`Services`: every call that the pages make beyond themselves, so that tests can pass fakes."""

from napari_mamamia.io.data_set.layout import recognise
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.io.workspace.preferences import load_preferences, save_preferences
from napari_mamamia.io.workspace.protocol import read_protocol
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.kinetics.timing import choose_image_phases
from napari_mamamia.services.batch.extra import cluster_installed
from napari_mamamia.services.case.data_set import (
    case_row,
    case_rows,
    open_data_set,
)
from napari_mamamia.services.case.open_case import load_remaining, open_case
from napari_mamamia.services.case.show_case import (
    centre_of_largest_part,
    choose_candidate,
    display_range,
    newer_prediction,
    open_masks,
    score_shown,
    subtract_phases,
    uint8_mask,
)
from napari_mamamia.services.case.show_contrast import contrast_limits, project_case
from napari_mamamia.services.dicom.check import check_import, default_target
from napari_mamamia.services.dicom.look import judge_again, look_at_source
from napari_mamamia.services.dicom.preview import (
    part_picture,
    preview_study,
)
from napari_mamamia.services.dicom.studies import import_studies
from napari_mamamia.services.export.export import export_bundle
from napari_mamamia.services.export.labels import look_at_labels
from napari_mamamia.services.export.target import look_at_target
from napari_mamamia.services.predict.added_models import (
    add_to_list,
    estimate_case,
    facts_of,
    listed_models,
    new_host,
    phases_of,
    remove_from_list,
    why_not_here,
)
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.model_choice import planned
from napari_mamamia.services.predict.predict import predict_case, segmenters
from napari_mamamia.services.refine.edit_case import is_begun, open_editing, prepare_saving
from napari_mamamia.services.refine.grow_mask import grow_from_labels
from napari_mamamia.services.refine.mask_work import use_mask_tool
from napari_mamamia.services.refine.numbers import measure_mask
from napari_mamamia.services.score.case_facets import (
    case_table,
)
from napari_mamamia.services.score.case_findings import with_failures, with_tags
from napari_mamamia.services.score.case_tags import read_tags, tag_case
from napari_mamamia.services.score.clinical_look import look_at_clinical
from napari_mamamia.services.score.cohort_page import saved_figures
from napari_mamamia.services.score.looks import look_for_contrast
from napari_mamamia.services.score.models import score_models
from napari_mamamia.services.score.review import compare_masks, review_masks
from napari_mamamia.services.score.score import find_pairs, score_folders
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.grow import grow
from napari_mamamia.smartpaint.grow.prompts import grow_from_box
from napari_mamamia.widgets.base.kinetic_services import KineticServices
from napari_mamamia.widgets.base.predict_services import PredictServices
from napari_mamamia.widgets.base.service_set import ServiceSet

# `ImportServices`: the calls that the page Import makes, so that tests can pass fakes.


class ImportServices(ServiceSet):
    """The services of the page Import; a field left out is the real one."""

    source_of = staticmethod(dicom_source)
    look = staticmethod(look_at_source)
    judge = staticmethod(judge_again)
    preview = staticmethod(preview_study)
    part_picture = staticmethod(part_picture)
    check = staticmethod(check_import)
    run = staticmethod(import_studies)
    default_target = staticmethod(default_target)


class Services(ServiceSet):
    """The services as the window calls them; a field left out is the real one."""

    recognise = staticmethod(recognise)
    open_data_set = staticmethod(open_data_set)
    case_rows = staticmethod(case_rows)
    case_row = staticmethod(case_row)
    open_case = staticmethod(open_case)
    load_remaining = staticmethod(load_remaining)
    open_masks = staticmethod(open_masks)
    display_range = staticmethod(display_range)
    centre_of_largest_part = staticmethod(centre_of_largest_part)
    newer_prediction = staticmethod(newer_prediction)
    uint8_mask = staticmethod(uint8_mask)
    subtract_phases = staticmethod(subtract_phases)
    project_case = staticmethod(project_case)
    contrast_limits = staticmethod(contrast_limits)
    choose_image_phases = staticmethod(choose_image_phases)
    segmenters = staticmethod(segmenters)
    predict_case = staticmethod(predict_case)
    predict_data_set = staticmethod(predict_data_set)
    listed_models = staticmethod(listed_models)
    add_model = staticmethod(add_to_list)
    forget_model = staticmethod(remove_from_list)
    planned = staticmethod(planned)
    new_host = staticmethod(new_host)
    why_not_here = staticmethod(why_not_here)
    facts_of = staticmethod(facts_of)
    phases_of = staticmethod(phases_of)
    estimate_case = staticmethod(estimate_case)
    is_begun = staticmethod(is_begun)
    open_editing = staticmethod(open_editing)
    prepare_saving = staticmethod(prepare_saving)
    measure_features = staticmethod(measure_features)
    measure_mask = staticmethod(measure_mask)
    grow = staticmethod(grow)
    grow_from_click = staticmethod(grow_from_click)
    grow_from_box = staticmethod(grow_from_box)
    grow_from_labels = staticmethod(grow_from_labels)
    use_mask_tool = staticmethod(use_mask_tool)
    read_protocol = staticmethod(read_protocol)
    choose_candidate = staticmethod(choose_candidate)
    score_shown = staticmethod(score_shown)
    compare_masks = staticmethod(compare_masks)
    find_pairs = staticmethod(find_pairs)
    score_folders = staticmethod(score_folders)
    score_models = staticmethod(score_models)
    has_cluster = staticmethod(cluster_installed)
    case_table = staticmethod(case_table)
    look_for_contrast = staticmethod(look_for_contrast)
    with_failures = staticmethod(with_failures)
    with_tags = staticmethod(with_tags)
    saved_figures = staticmethod(saved_figures)
    read_tags = staticmethod(read_tags)
    tag_case = staticmethod(tag_case)
    review_masks = staticmethod(review_masks)
    export_bundle = staticmethod(export_bundle)
    look_at_clinical = staticmethod(look_at_clinical)
    look_at_target = staticmethod(look_at_target)
    look_at_labels = staticmethod(look_at_labels)
    check_name = staticmethod(file_name)
    load_preferences = staticmethod(load_preferences)
    save_preferences = staticmethod(save_preferences)
    kinetics = KineticServices()
    imports = ImportServices()
    predict = PredictServices()
