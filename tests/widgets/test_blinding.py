"""One table decides what each role, page and service of the window would show: nothing is missing.

A new one fails here until somebody has said whether a blind reader may see it.
"""

import pytest

from napari_mamamia.core.blinding import ALL_HIDDEN, NOT_BLIND, Blinding, Hidden
from napari_mamamia.core.errors import HiddenError
from napari_mamamia.widgets.base.blinding import PAGES, ROLES, SERVICES, guard_services, why_hidden
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.pages import load_tabs
from napari_mamamia.widgets.base.service_record import Services, ServiceSet
from napari_mamamia.widgets.dock import steps

IMAGES_AND_SETTINGS = {
    # Go by the data set and workspace that they get, of which nothing hidden is a part.
    *("find_source", "link_volumes", "demo_data_set", "estimate_seconds"),
    *("recognise", "open_data_set", "case_rows", "case_row", "open_case", "load_remaining"),
    *("read_ahead", "read_rest_ahead", "is_current", "open_masks", "newer_prediction"),
    *("is_begun", "open_editing", "prepare_saving", "record_unblinding", "read_tags", "tag_case"),
    # Of the images, the reader's own mask or strokes alone.
    *("display_range", "centre_of_largest_part", "lesion_places", "uint8_mask", "subtract_phases"),
    *("project_case", "contrast_limits", "choose_image_phases", "measure_features"),
    "prepare_steps",
    *("grow_again", "remove_part", "cut_off", "describe_stroke", "preview_stroke", "settle_stroke"),
    *("grow", "grow_from_click", "grow_from_box", "grow_from_labels", "use_mask_tool"),
    *("kinetics.begin_map", "kinetics.fill_plane", "kinetics.fill_map", "kinetics.ftv_box"),
    *("kinetics.prepare_ftv", "kinetics.paint_ftv", "kinetics.cursor_curve"),
    *("kinetics.mask_curve", "kinetics.save_table", "kinetics.save_figure"),
    *("kinetics.timing_text", "kinetics.typed_rule", "kinetics.require_rule"),
    *("kinetics.with_times", "kinetics.with_pre", "kinetics.times_source"),
    *("kinetics.register", "kinetics.map_ranges", "kinetics.ranged", "kinetics.auto_limits"),
    # Of models, what they are, not what they found.
    *("segmenters", "listed_models", "add_model", "forget_model", "planned", "new_host"),
    *("why_not_here", "facts_of", "phases_of", "predict.model_channels"),
    *("predict.kinetic_channels", "predict.shared_channels", "predict.fused"),
    *("predict.input_pictures", "predict.open_recipe", "predict.keep_recipe"),
    *("predict.write_beside", "predict.other_models", "predict.isolation_reason"),
    *("predict.convert", "predict.uncertainty_kinds"),
    # Settings.
    *(
        "read_case_list",
        "read_protocol",
        "has_cluster",
        "check_name",
        "load_preferences",
        "save_preferences",
    ),
    *("imports.source_of", "imports.default_target", "look_at_labels"),
    # A study decides what its desk shows, and tells the window what is hidden.
    *("review.list_people", "review.open_client", "review.open_dispute"),
    *("review.decide_dispute", "review.set_down", "review.leave_out", "findings.measure_lesions"),
    # Filled into what is handed in, and shown to nobody who reads blind.
    "findings.fill_hidden",
    *("review.plan_study", "review.list_case_ids", "review.freeze_with_keys"),
    "review.load_first_snapshot",
    # Which views a case has and other exams of the patient: images, opened by their own service.
    *("find_breast_box", "plan_hanging", "find_priors", "read_prior", "findings.find_breasts"),
    # The reader's own answers and marks; what is measured is asked of `findings.measure_lesions`.
    *("findings.load_form", "findings.open", "findings.keep", "findings.mark"),
    *("findings.fill_in", "findings.find_point_mm"),
    # What the workspace that it gets may show, and the numbers of what the reader draws.
    *("measures.begin_log", "measures.describe"),
    # Page Export asks it by itself: what lies in the folder that it would write to.
    "look_at_target",
    # These ask `overseeing.why_blind` themselves: of a lead, whose window is as blind as any.
    "review.load_quality_status",
    "review.describe_agreement",
    "review.accept_case",
    "review.reopen_case",
    "review.list_decided",
    "review.load_signing_status",
    "review.make_own_key",
    "review.sign_things",
    "review.countersign_key",
    "review.end_key",
    # Page Prompt: the licence and the settings of a model, not what it marks.
    *("prompt.is_accepted", "prompt.accept_licence"),
    *("prompt.load_settings", "prompt.save_settings"),
}


def names_of(services, prefix=""):
    for name in dir(services):
        service = getattr(services, name)
        if isinstance(service, ServiceSet):
            yield from names_of(service, f"{prefix}{name}.")
        elif not name.startswith("_") and name not in ("replacing", "of_feature"):
            yield prefix + name


def test_every_service_of_the_window_is_known_to_show_something_hidden_or_not():
    guarded = {name for name, parts in SERVICES.items() if parts}
    assert guarded & IMAGES_AND_SETTINGS == set()
    assert set(names_of(Services())) == guarded | IMAGES_AND_SETTINGS


def test_every_role_and_page_is_known_to_show_something_hidden_or_not():
    assert set(ROLES) == set(Role)
    assert set(PAGES) == {*steps.SECTIONS, "Import", *load_tabs()}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_that_would_show_what_is_hidden_refuses(name):
    blinding = NOT_BLIND
    group, _, own = name.rpartition(".")
    called = []
    fake = lambda *given: called.append(given) or "answer"  # noqa: E731
    services = Services()
    part = getattr(services, group) if group else services
    part = part.replacing(**{own: fake})
    services = services.replacing(**{group: part}) if group else part
    guarded = guard_services(services, lambda: blinding)
    ask = getattr(getattr(guarded, group) if group else guarded, own)
    assert ask(7) == "answer"
    for hidden in Hidden:
        blinding = Blinding(frozenset({hidden}))
        if hidden in SERVICES[name]:
            with pytest.raises(HiddenError, match=f"Blind: {hidden}"):
                ask(8)
        else:
            assert ask(9) == "answer"
    assert (8,) not in called


def test_a_reason_names_what_is_hidden_alone():
    both = frozenset({Hidden.REFERENCE, Hidden.MODEL})
    assert why_hidden(ALL_HIDDEN, both) == "Blind: reference and model are hidden in this reading."
    assert why_hidden(Blinding.of(["numbers"]), both) == ""
    assert why_hidden(ALL_HIDDEN, frozenset()) == ""
