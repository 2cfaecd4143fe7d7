"""Bad specs are refused with a message; the twelve cases of the data set cover what they should."""

from dataclasses import replace

import pytest

from napari_mamamia.core.errors import CaseError
from napari_mamamia.phantom import (
    Breasts,
    CurveType,
    PhantomSpec,
    Side,
    TumourKind,
    TumourSpec,
    make_phantom,
)
from napari_mamamia.phantom.case_mix import plan_case

SMALL = {"shape": (16, 36, 52), "spacing_mm": (9.0, 6.0, 6.0)}


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"case_id": "a b"}, "case id"),
        ({"case_id": ""}, "case id"),
        ({"seed": -1}, "seed"),
        ({"shape": (0, 10, 10)}, "shape"),
        ({"spacing_mm": (3.0, 0.0, 2.0)}, "spacing_mm"),
        ({"spacing_mm": (3.0, float("nan"), 2.0)}, "spacing_mm"),
        ({"orientation": "LAL"}, "orientation"),
        ({"orientation": "las"}, "orientation"),
        ({"orientation": "LASR"}, "orientation"),
        ({"times_s": (0.0, 120.0)}, "times_s"),
        ({"times_s": (0.0, 120.0, 120.0)}, "times_s"),
        ({"times_s": (5.0, 120.0, 300.0)}, "times_s"),
        ({"bolus_arrival_s": 120.0}, "bolus_arrival_s"),
        ({"motion_mm": ((0.0, 0.0, 0.0),)}, "motion_mm"),
        ({"motion_mm": ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), *((0.0,) * 3,) * 3)}, "phase 1"),
        ({"breasts": Breasts.RIGHT}, "left breast"),
        ({"tumours": (TumourSpec(5.0),) * 6}, "5 tumours"),
        ({"breast_density": "e"}, "breast_density"),
        ({"background_enhancement_percent": 81.0}, "background_enhancement_percent"),
        ({"contrast_to_noise": 0.0}, "contrast_to_noise"),
        ({"bias_percent": 51.0}, "bias_percent"),
        ({"field_strength_t": 7.0}, "field_strength_t"),
        ({"fibroglandular_signal": 5000.0}, "fibroglandular_signal"),
        ({"fat_suppressed": False, "fat_suppression_failure_mm": 20.0}, "fat_suppressed"),
    ],
)
def test_a_bad_spec_is_refused_and_the_message_names_the_knob(bad, named):
    with pytest.raises(CaseError, match=named):
        PhantomSpec(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"longest_mm": 2.9},
        {"longest_mm": 61.0},
        {"early_enhancement_percent": 10.0},
        {"axis_ratios": (1.2, 0.5)},
        {"roughness": -0.1},
        {"spicules": 61},
    ],
)
def test_a_bad_tumour_is_refused(bad):
    with pytest.raises(CaseError, match="tumour"):
        TumourSpec(**bad)


def test_tumours_that_do_not_fit_side_by_side_are_refused():
    crowd = (TumourSpec(60.0),) * 5
    with pytest.raises(CaseError, match="does not fit"):
        make_phantom(PhantomSpec(tumours=crowd, **SMALL))


def test_a_tumour_outside_the_field_of_view_is_refused():
    with pytest.raises(CaseError, match="field of view"):
        make_phantom(PhantomSpec(field_centre_mm=(0.0, 0.0, 900.0), **SMALL))


def test_a_tumour_that_is_darker_than_enhanced_gland_has_no_noise_for_its_cnr():
    faint = TumourSpec(30.0, early_enhancement_percent=20.0, curve=CurveType.PLATEAU)
    spec = PhantomSpec(
        tumours=(faint,), breast_density="d", background_enhancement_percent=80.0, **SMALL
    )
    with pytest.raises(CaseError, match="not brighter"):
        make_phantom(spec)


def test_a_washout_that_the_times_leave_no_room_for_is_refused():
    tumour = TumourSpec(30.0, early_enhancement_percent=40.0)
    with pytest.raises(CaseError, match="washout"):
        make_phantom(PhantomSpec(tumours=(tumour,), times_s=(0.0, 140.0, 200.0), **SMALL))


def test_the_twelve_cases_cover_views_fat_kinds_sizes_sides_and_groups():
    planned = [plan_case(index, seed=0) for index in range(12)]
    specs = [one.spec for one in planned]
    tumours = [tumour for spec in specs for tumour in spec.tumours]
    assert {spec.orientation for spec in specs} == {"LAS", "PSR"}
    assert {spec.fat_suppressed for spec in specs} == {True, False}
    assert {tumour.kind for tumour in tumours} == set(TumourKind)
    assert {tumour.curve for tumour in tumours} == set(CurveType)
    assert {tumour.side for tumour in tumours} == set(Side)
    assert min(t.longest_mm for t in tumours) < 8 < 50 < max(t.longest_mm for t in tumours)
    assert {len(spec.tumours) for spec in specs} == {1, 2, 3}
    assert {spec.n_phases for spec in specs} == {3, 4, 5, 6}
    assert {spec.breasts for spec in specs} == {Breasts.BOTH, Breasts.RIGHT}
    assert min(spec.contrast_to_noise for spec in specs) == 3
    assert max(spec.contrast_to_noise for spec in specs) == 10
    assert max(spec.background_enhancement_percent for spec in specs) > 50
    assert any(spec.motion_mm for spec in specs)
    assert any(spec.fat_suppression_failure_mm for spec in specs)
    assert {spec.breast_density for spec in specs} == set("abcd")
    assert {one.patient.menopausal_status for one in planned} == {"pre", "peri", "post"}
    assert 0 < sum(one.patient.pcr for one in planned) < 6


def test_ages_fit_menopausal_status():
    for index in range(60):
        patient = plan_case(index, seed=3).patient
        assert 25 <= patient.age <= 90
        assert patient.menopausal_status != "pre" or patient.age < 56
        assert patient.menopausal_status != "post" or patient.age > 45


def test_cases_after_the_twelfth_differ_from_their_recipe():
    first, again = plan_case(0, seed=0).spec, plan_case(12, seed=0).spec
    assert again.case_id == "PHANTOM_013"
    assert again.tumours[0].longest_mm != first.tumours[0].longest_mm
    assert again.seed != first.seed


def test_another_attempt_at_a_case_changes_the_patient_only():
    first, second = plan_case(4, seed=0).spec, plan_case(4, seed=0, attempt=1).spec
    assert second.seed != first.seed
    assert replace(second, seed=first.seed) == first
