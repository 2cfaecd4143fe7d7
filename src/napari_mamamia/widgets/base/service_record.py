"""`Services`: all functions that the window calls, by page; tests replace single functions."""

from typing import Any, Self, TypeVar, cast

from napari_mamamia.core.features import list_features, load_part
from napari_mamamia.io.data_set.case_list import read_case_list
from napari_mamamia.io.dicom.probe import dicom_source
from napari_mamamia.io.layouts.find import recognise
from napari_mamamia.io.workspace.preferences import load_preferences, save_preferences
from napari_mamamia.io.workspace.protocol import read_protocol
from napari_mamamia.io.workspace.workspace import file_name
from napari_mamamia.kinetics.repeated_pre import with_pre
from napari_mamamia.kinetics.timing import choose_image_phases
from napari_mamamia.services.batch.extra import cluster_installed
from napari_mamamia.services.case.breast_place import find_breast_box
from napari_mamamia.services.case.data_set import (
    case_row,
    case_rows,
    open_data_set,
)
from napari_mamamia.services.case.hanging import find_priors, plan_hanging
from napari_mamamia.services.case.open_case import load_remaining, open_case
from napari_mamamia.services.case.prior import read_prior
from napari_mamamia.services.case.read_ahead import is_current, read_ahead, read_rest_ahead
from napari_mamamia.services.case.show_case import (
    centre_of_largest_part,
    choose_candidate,
    display_range,
    lesion_places,
    newer_prediction,
    open_masks,
    score_shown,
    subtract_phases,
    uint8_mask,
)
from napari_mamamia.services.case.show_contrast import contrast_limits, project_case
from napari_mamamia.services.case.sources import find_source, link_volumes
from napari_mamamia.services.demo import demo_data_set
from napari_mamamia.services.dicom.check import check_import, default_target
from napari_mamamia.services.dicom.dicom import import_studies
from napari_mamamia.services.dicom.inspection import judge_again, look_at_source
from napari_mamamia.services.dicom.preview import (
    part_picture,
    preview_study,
)
from napari_mamamia.services.export.export import export_bundle, look_at_target
from napari_mamamia.services.export.plan import look_at_labels
from napari_mamamia.services.findings.case_facts import fill_hidden, find_breasts, measure_lesions
from napari_mamamia.services.findings.case_findings import (
    fill_in,
    find_point_mm,
    keep_findings,
    load_findings_form,
    mark_landmark,
    open_findings,
)
from napari_mamamia.services.kinetics.case_kinetics import times_source, with_times
from napari_mamamia.services.kinetics.ftv_from import ftv_under_seg
from napari_mamamia.services.kinetics.row import timing_text
from napari_mamamia.services.kinetics.show_kinetics import (
    auto_limits,
    begin_map,
    cursor_curve,
    fill_map,
    fill_plane,
    ftv_box,
    live_ftv,
    map_ranges,
    mask_curve,
    mask_numbers,
    paint_ftv,
    prepare_live_ftv,
    ranged,
    require_rule,
    save_curve_figure,
    save_curve_table,
    typed_rule,
)
from napari_mamamia.services.measure.drawings import begin_log, describe_drawn
from napari_mamamia.services.predict.added_models import (
    add_to_list,
    convert_in_isolation,
    estimate_case,
    facts_of,
    listed_models,
    new_host,
    other_models,
    phases_of,
    remove_from_list,
    why_not_here,
)
from napari_mamamia.services.predict.cases import predict_data_set
from napari_mamamia.services.predict.convert_model import isolation_reason
from napari_mamamia.services.predict.durations import estimate_seconds
from napari_mamamia.services.predict.input_pictures import (
    input_pictures,
    kinetic_channels,
    model_channels,
    shared_channels,
)
from napari_mamamia.services.predict.keep_prediction import (
    keep_prediction,
    kept_prediction,
)
from napari_mamamia.services.predict.model_choice import fused, planned
from napari_mamamia.services.predict.model_recipes import (
    keep_recipe,
    open_recipe,
    write_beside,
)
from napari_mamamia.services.predict.predict import predict_case, segmenters
from napari_mamamia.services.predict.uncertainty import uncertainty_kinds, uncertainty_of
from napari_mamamia.services.refine.edit_case import is_begun, open_editing, prepare_saving
from napari_mamamia.services.refine.grow_mask import grow_from_labels
from napari_mamamia.services.refine.leaks import cut_off, remove_part
from napari_mamamia.services.refine.mask_work import use_mask_tool
from napari_mamamia.services.refine.numbers import measure_mask
from napari_mamamia.services.refine.strokes import describe_stroke, settle_kept
from napari_mamamia.services.refine.unblind import record_unblinding
from napari_mamamia.services.register.case import register_case
from napari_mamamia.services.report.report import report_anew
from napari_mamamia.services.score.case_table import (
    case_table,
    with_failures,
    with_tags,
)
from napari_mamamia.services.score.case_tags import read_tags, tag_case
from napari_mamamia.services.score.clinical_table import look_at_clinical
from napari_mamamia.services.score.cohort_page import saved_figures
from napari_mamamia.services.score.inspections import look_for_contrast
from napari_mamamia.services.score.models import score_models
from napari_mamamia.services.score.review import compare_masks, review_masks
from napari_mamamia.services.score.score import find_pairs, score_folders
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.outlined import grow_outlines
from napari_mamamia.smartpaint.evidence.regrow import grow_again
from napari_mamamia.smartpaint.evidence.stroke import preview_stroke
from napari_mamamia.smartpaint.grow.click import grow_from_click
from napari_mamamia.smartpaint.grow.compiled import prepare_steps
from napari_mamamia.smartpaint.grow.prompts import grow_from_box


class ServiceSet:
    """A set of services; each subclass lists its functions as static methods.

    Type checkers see the signature of each function, so wrong arguments are errors.
    ``Set(name=other)`` replaces the function `name` with `other`.

    Raises
    ------
    TypeError
        If there is no service with that name.
    """

    def __init__(self, **others: Any) -> None:
        unknown = [name for name in others if not hasattr(type(self), name)]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no service {', '.join(unknown)}")
        # Attributes of the instance take precedence over static methods of the class.
        self.__dict__.update(others)

    def replacing(self, **others: Any) -> Self:
        """Return a copy of the set with some functions replaced, by name."""
        return type(self)(**{**self.__dict__, **others})


class PredictServices(ServiceSet):
    """The services of the Predict page; by default, the real functions."""

    model_channels = staticmethod(model_channels)
    kinetic_channels = staticmethod(kinetic_channels)
    shared_channels = staticmethod(shared_channels)
    fused = staticmethod(fused)
    input_pictures = staticmethod(input_pictures)
    open_recipe = staticmethod(open_recipe)
    keep_recipe = staticmethod(keep_recipe)
    write_beside = staticmethod(write_beside)
    other_models = staticmethod(other_models)
    isolation_reason = staticmethod(isolation_reason)
    convert = staticmethod(convert_in_isolation)
    kept = staticmethod(kept_prediction)
    keep = staticmethod(keep_prediction)
    uncertainty_kinds = staticmethod(uncertainty_kinds)
    uncertainty_of = staticmethod(uncertainty_of)


class KineticServices(ServiceSet):
    """The services of the Kinetics page; by default, the real functions."""

    begin_map = staticmethod(begin_map)
    fill_plane = staticmethod(fill_plane)
    fill_map = staticmethod(fill_map)
    ftv_box = staticmethod(ftv_box)
    prepare_ftv = staticmethod(prepare_live_ftv)
    live_ftv = staticmethod(live_ftv)
    paint_ftv = staticmethod(paint_ftv)
    ftv_under_seg = staticmethod(ftv_under_seg)
    cursor_curve = staticmethod(cursor_curve)
    mask_curve = staticmethod(mask_curve)
    mask_numbers = staticmethod(mask_numbers)
    save_table = staticmethod(save_curve_table)
    save_figure = staticmethod(save_curve_figure)
    timing_text = staticmethod(timing_text)
    typed_rule = staticmethod(typed_rule)
    require_rule = staticmethod(require_rule)
    with_times = staticmethod(with_times)
    with_pre = staticmethod(with_pre)
    times_source = staticmethod(times_source)
    register = staticmethod(register_case)
    map_ranges = staticmethod(map_ranges)
    ranged = staticmethod(ranged)
    auto_limits = staticmethod(auto_limits)


# `ImportServices` lists the calls of the Import page, so that tests can pass fakes.


class ImportServices(ServiceSet):
    """The services of the Import page; by default, the real functions."""

    source_of = staticmethod(dicom_source)
    look = staticmethod(look_at_source)
    judge = staticmethod(judge_again)
    preview = staticmethod(preview_study)
    part_picture = staticmethod(part_picture)
    check = staticmethod(check_import)
    run = staticmethod(import_studies)
    default_target = staticmethod(default_target)


class FindingServices(ServiceSet):
    """The services of the Findings page; by default, the real functions."""

    load_form = staticmethod(load_findings_form)
    open = staticmethod(open_findings)
    keep = staticmethod(keep_findings)
    mark = staticmethod(mark_landmark)
    fill_in = staticmethod(fill_in)
    find_point_mm = staticmethod(find_point_mm)
    find_breasts = staticmethod(find_breasts)
    measure_lesions = staticmethod(measure_lesions)
    fill_hidden = staticmethod(fill_hidden)


class MeasureServices(ServiceSet):
    """The services for measuring on the image; by default, the real functions."""

    begin_log = staticmethod(begin_log)
    describe = staticmethod(describe_drawn)


S = TypeVar("S", bound=ServiceSet)


class Services(ServiceSet):
    """All services that the window calls; by default, the real functions.

    Each installed feature adds its service sets under their names.
    """

    def __init__(self, **others: Any) -> None:
        sets = {
            name: kind
            for feature in list_features()
            for name, attribute in feature.services.items()
            if (kind := load_part(feature, attribute)) is not None
        }
        super().__init__(**{name: other for name, other in others.items() if name not in sets})
        for name, kind in sets.items():
            self.__dict__[name] = others[name] if name in others else kind()

    def of_feature(self, name: str, kind: type[S]) -> S:
        """Return the service set of a feature, or its replacement in this set."""
        return cast("S", self.__dict__[name])

    recognise = staticmethod(recognise)
    find_source = staticmethod(find_source)
    link_volumes = staticmethod(link_volumes)
    demo_data_set = staticmethod(demo_data_set)
    open_data_set = staticmethod(open_data_set)
    case_rows = staticmethod(case_rows)
    case_row = staticmethod(case_row)
    open_case = staticmethod(open_case)
    load_remaining = staticmethod(load_remaining)
    plan_hanging = staticmethod(plan_hanging)
    find_priors = staticmethod(find_priors)
    read_prior = staticmethod(read_prior)
    find_breast_box = staticmethod(find_breast_box)
    read_ahead = staticmethod(read_ahead)
    read_rest_ahead = staticmethod(read_rest_ahead)
    is_current = staticmethod(is_current)
    open_masks = staticmethod(open_masks)
    display_range = staticmethod(display_range)
    centre_of_largest_part = staticmethod(centre_of_largest_part)
    lesion_places = staticmethod(lesion_places)
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
    estimate_seconds = staticmethod(estimate_seconds)
    is_begun = staticmethod(is_begun)
    open_editing = staticmethod(open_editing)
    prepare_saving = staticmethod(prepare_saving)
    record_unblinding = staticmethod(record_unblinding)
    measure_features = staticmethod(measure_features)
    prepare_steps = staticmethod(prepare_steps)
    measure_mask = staticmethod(measure_mask)
    grow = staticmethod(grow_outlines)
    grow_again = staticmethod(grow_again)
    grow_from_click = staticmethod(grow_from_click)
    grow_from_box = staticmethod(grow_from_box)
    grow_from_labels = staticmethod(grow_from_labels)
    remove_part = staticmethod(remove_part)
    cut_off = staticmethod(cut_off)
    use_mask_tool = staticmethod(use_mask_tool)
    settle_stroke = staticmethod(settle_kept)
    preview_stroke = staticmethod(preview_stroke)
    describe_stroke = staticmethod(describe_stroke)
    read_protocol = staticmethod(read_protocol)
    choose_candidate = staticmethod(choose_candidate)
    score_shown = staticmethod(score_shown)
    compare_masks = staticmethod(compare_masks)
    read_case_list = staticmethod(read_case_list)
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
    report_anew = staticmethod(report_anew)
    look_at_clinical = staticmethod(look_at_clinical)
    look_at_target = staticmethod(look_at_target)
    look_at_labels = staticmethod(look_at_labels)
    check_name = staticmethod(file_name)
    load_preferences = staticmethod(load_preferences)
    save_preferences = staticmethod(save_preferences)
    kinetics = KineticServices()
    imports = ImportServices()
    predict = PredictServices()
    findings = FindingServices()
    measures = MeasureServices()
