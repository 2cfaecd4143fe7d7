"""Numbers of a form for people: volumes are read and typed in ml, and kept in mm3."""

import pytest

from napari_mamamia.core.form import Field, FieldKind, FieldScope, Measure
from napari_mamamia.findings.shown_numbers import name_unit, read_number, show_number

NUMBER, LESION = FieldKind.NUMBER, FieldScope.LESION
VOLUME = Field("v", "Volume", NUMBER, LESION, unit="mm3", measure=Measure.VOLUME_MM3)
LONGEST = Field("l", "L", NUMBER, LESION, unit="mm", measure=Measure.LONGEST_IN_PLANE_MM)
OTHER = Field("o", "Volume of the breast in mm3", NUMBER, LESION, unit="mm3")


@pytest.mark.parametrize(
    ("kept", "measured", "typed"),
    [
        ("4642.81", "4.64", "4.64281"),
        ("600", "0.60", "0.6"),
        ("0", "0.00", "0"),
        ("1", "0.00", "0.001"),
        ("12000000", "12000.00", "12000"),
        ("", "", ""),
        ("halo", "halo", "halo"),
    ],
)
def test_a_volume_is_shown_in_ml(kept, measured, typed):
    assert name_unit(VOLUME) == "ml"
    assert show_number(VOLUME, kept, is_measured=True) == measured
    assert show_number(VOLUME, kept) == typed


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("4.64281", "4642.81"), ("0.6", "600"), (" 012.50 ", "12500"), ("-1", "-1000"), ("0", "0")],
)
def test_what_is_typed_in_ml_is_kept_in_mm3_to_the_digit_and_shown_again(typed, kept):
    assert read_number(VOLUME, typed) == kept
    assert read_number(VOLUME, show_number(VOLUME, kept)) == kept


@pytest.mark.parametrize("typed", ["", " ", "large", "4,6", "1e99", "nan"])
def test_what_is_no_number_stays_as_it_was_typed(typed):
    assert read_number(VOLUME, typed) == typed


def test_what_no_program_measures_keeps_the_unit_that_its_question_names():
    assert (name_unit(OTHER), show_number(OTHER, "4642.8")) == ("mm3", "4642.8")
    assert read_number(OTHER, "4642.8") == "4642.8"


def test_a_length_that_is_measured_has_one_decimal():
    assert show_number(LONGEST, "22.641", is_measured=True) == "22.6"
    assert show_number(LONGEST, "22", is_measured=True) == "22"
    assert (name_unit(LONGEST), show_number(LONGEST, "22.641")) == ("mm", "22.641")
    assert name_unit(None) == ""
    assert show_number(None, "7") == "7"
