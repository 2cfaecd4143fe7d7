"""Forms and answers: what is asked now, filled in, missing and against each other."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_mamamia.core.answers import (
    WHOLE_CASE,
    Answer,
    Answers,
    CaseFacts,
    LesionFacts,
    Place,
    Side,
)
from napari_mamamia.core.errors import ArgumentError, FormatError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.findings.form_rules import (
    fill_computed,
    find_contradictions,
    list_missing,
    list_places,
    list_questions,
    why_other_form,
)
from napari_mamamia.findings.form_values import (
    list_rows,
    normalise_answers,
    parse_answers,
    parse_answers_text,
    record_answers,
)
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.forms.form_file import parse_form

ONE, TWO = Place(FieldScope.LESION, "1"), Place(FieldScope.LESION, "2")
RIGHT, LEFT = Place(FieldScope.BREAST, "right"), Place(FieldScope.BREAST, "left")
MASS = LesionFacts("1", Side.RIGHT, 523.6, 10.0, "fast", "washout", (4, 5, 6))
FACTS = CaseFacts((MASS,))


@pytest.fixture(scope="module")
def breast():
    return parse_form("breast-mri-2013", [], "test")


def answers(*given):
    return Answers(tuple(Answer(*one) for one in given))


def asked_ids(form, told, facts, place):
    return [one.field.id for one in list_questions(form, told, facts) if one.place == place]


def texts(form, told, facts=FACTS):
    return [one.text for one in find_contradictions(form, told, facts)]


def test_only_what_the_finding_calls_for_is_asked(breast):
    told = answers(("finding", ("mass",), ONE))
    ids = asked_ids(breast, told, FACTS, ONE)
    assert [one for one in ids if one.startswith(("mass", "nme"))] == [
        "mass.shape",
        "mass.margin",
        "mass.internal",
    ]
    spiky = told.put(Answer("mass.margin", ("not_circumscribed",), ONE))
    assert "mass.margin_not" in asked_ids(breast, spiky, FACTS, ONE)
    nme = told.put(Answer("finding", ("nme",), ONE))
    ids = asked_ids(breast, nme, FACTS, ONE)
    assert "nme.distribution" in ids
    assert "mass.shape" not in ids


def test_an_answer_to_what_is_no_longer_asked_opens_nothing(breast):
    told = answers(("finding", ("nme",), ONE), ("mass.margin", ("not_circumscribed",), ONE))
    assert "mass.margin_not" not in asked_ids(breast, told, FACTS, ONE)


def test_each_lesion_has_its_own_questions(breast):
    told = answers(("finding", ("mass",), ONE), ("finding", ("non_enhancing",), TWO))
    assert list_places(told, FACTS) == (WHOLE_CASE, RIGHT, LEFT, ONE, TWO)
    assert "mass.shape" in asked_ids(breast, told, FACTS, ONE)
    assert "mass.shape" not in asked_ids(breast, told, FACTS, TWO)
    assert "kin.initial" not in asked_ids(breast, told, FACTS, TWO)


def test_what_must_be_answered_and_is_not(breast):
    told = answers(("fgt", ("b",)), ("bpe", ("mild",)), ("assessment", ("4",), RIGHT))
    missing = [(one.field.id, one.place) for one in list_missing(breast, told, FACTS)]
    assert missing == [("assessment", LEFT), ("finding", ONE)]  # the side is measured
    one_breast = CaseFacts((MASS,), is_one_breast=True)
    assert [one.field.id for one in list_missing(breast, told, one_breast)] == ["finding"]


def test_curve_side_and_sizes_are_filled_in_and_marked(breast):
    told = fill_computed(breast, answers(("finding", ("mass",), ONE)), FACTS)
    found = {one.field: one.values for one in told.items if one.is_computed}
    assert found == {
        "kin.initial": ("fast",),
        "kin.delayed": ("washout",),
        "side": ("right",),
        "long_axis": ("10",),
        "volume": ("523.6",),
    }


def test_what_somebody_touched_is_not_filled_in_again(breast):
    told = answers(("finding", ("mass",), ONE), ("kin.delayed", ("plateau",), ONE))
    told = fill_computed(breast, told.put(Answer("side", (), ONE)), FACTS)
    assert told.find("kin.delayed", ONE) == Answer("kin.delayed", ("plateau",), ONE)
    assert told.find("side", ONE).values == ()
    assert [one.field.id for one in list_missing(breast, told, FACTS) if one.place == ONE] == [
        "mass.shape",
        "mass.margin",
        "mass.internal",
        "side",
    ]


def test_a_measure_follows_the_mask_and_goes_with_it(breast):
    told = fill_computed(breast, answers(("finding", ("mass",), ONE)), FACTS)
    moved = CaseFacts((LesionFacts("1", Side.LEFT, 8.0),))
    after = fill_computed(breast, told, moved)
    assert after.find("side", ONE).values == ("left",)
    assert after.find("kin.initial", ONE) is None  # no class of the new curve
    gone = fill_computed(breast, told, CaseFacts(()))
    assert [one.field for one in gone.items] == ["finding"]


def test_a_term_that_the_form_has_not_is_never_filled_in():
    own = {"id": "s", "text": "S", "kind": "single", "scope": "lesion", "measure": "side"}
    form = parse_form("", [{**own, "terms": [{"id": "R", "text": "right"}]}], "test")
    assert fill_computed(form, Answers(), FACTS).items == ()


def test_mass_fields_of_a_finding_that_is_none(breast):
    told = answers(("finding", ("nme",), ONE), ("mass.shape", ("oval",), ONE))
    assert texts(breast, told) == [
        "Mass: shape: this question has an answer, but applies only if Finding is mass"
    ]


def test_a_mask_on_the_other_side(breast):
    told = answers(("finding", ("mass",), ONE), ("side", ("left",), ONE))
    assert texts(breast, told) == ["Side: left, but the mask of lesion 1 lies on the right side"]
    unknown = CaseFacts((LesionFacts("1", None),))
    assert texts(breast, told, unknown) == []


def test_a_negative_breast_with_a_mask_and_a_mass_without_one(breast):
    told = answers(("assessment", ("1",), RIGHT), ("assessment", ("1",), LEFT))
    assert texts(breast, told) == [
        "Assessment category: 1, negative, but the mask has a lesion in the right breast"
    ]
    mass = answers(("finding", ("mass",), TWO))
    assert texts(breast, mass) == ["Finding: mass, but the mask has no lesion 2"]
    assert texts(breast, mass, CaseFacts(None)) == []  # nothing is known of a mask
    assert texts(breast, mass, CaseFacts(())) == ["Finding: mass, but the mask has no lesion 2"]


def test_values_that_a_question_cannot_have(breast):
    told = answers(("fgt", ("a", "b")), ("to_skin", ("12,5",), ONE), ("to_nipple", ("401",), ONE))
    found = texts(breast, told)
    assert "expected one answer, but found a, b" in found[0]
    assert "401 lies outside 0 to 400 mm" in found[1]
    assert "but found '12,5'" in found[2]
    with pytest.raises(FormatError, match=r"to_skin@1.*12\.5, but found"):
        normalise_answers(breast, told.put(Answer("fgt", ("a",))))


def test_half_a_character_is_refused_before_it_reaches_a_file():
    with pytest.raises(FormatError, match="incomplete character"):
        record_answers(FORM, answers(("t", ("a\ud800",))))


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1e-999", "x", "9" * 21, "٣"])
def test_numbers_that_are_none(text):
    form = parse_form("", [{"id": "n", "text": "N", "kind": "number"}], "test")
    if text == "٣":  # a digit of another script is a digit
        assert normalise_answers(form, answers(("n", (text,)))).items[0].values == ("3",)
        return
    reason = "at most 20 digits" if any(map(str.isdigit, text)) else "with a decimal point"
    with pytest.raises(FormatError, match=f"expected a number.*{reason}"):
        normalise_answers(form, answers(("n", (text,))))


def test_a_question_of_the_case_asked_of_a_lesion_is_told(breast):
    told = Answers((Answer("fgt", ("a",), ONE),))
    assert "about a case, but the answer is about a lesion" in texts(breast, told)[0]


def test_a_record_comes_back_and_has_no_floats(breast):
    told = fill_computed(
        breast,
        answers(
            ("associated", ("skin_thickening", "nipple_invasion", "skin_thickening"), RIGHT),
            ("finding", ("mass",), ONE),
            ("to_skin", ("012.50",), ONE),
            ("fgt", ("b",)),
        ),
        FACTS,
    )
    record = record_answers(breast, told)
    assert record["fgt"] == "b"
    assert record["associated@right"] == ["nipple_invasion", "skin_thickening"]
    assert record["to_skin@1"] == {"number": "12.5", "unit": "mm"}
    assert record["@computed"] == [
        "kin.delayed@1",
        "kin.initial@1",
        "long_axis@1",
        "side@1",
        "volume@1",
    ]
    assert record["@form"]["sha256"] == breast.sha256
    back = parse_answers(json.loads(canonical(record)))
    assert set(back.items) == set(normalise_answers(breast, told).items)
    assert why_other_form(breast, back) == ""


def test_the_order_of_answering_changes_nothing(breast):
    given = [("fgt", ("b",)), ("bpe", ("mild",)), ("finding", ("mass",), ONE)]
    one, other = (record_answers(breast, answers(*order)) for order in (given, given[::-1]))
    assert canonical(one) == canonical(other)


def test_ids_of_a_later_edition_are_kept_and_told(breast):
    record = {
        "@form": {"name": "breast-mri-2013", "edition": "2031", "sha256": "0" * 64},
        "finding@1": "implant_rupture",
        "implant.type@right": ["silicone"],
        "fgt": "b",
    }
    told = parse_answers(record)
    assert why_other_form(breast, told) == "answered on the form breast-mri-2013 2031"
    assert texts(breast, told, CaseFacts(None)) == []
    again = record_answers(breast, told)
    assert again["finding@1"] == "implant_rupture"
    assert again["implant.type@right"] == ["silicone"]
    rows = {row.field: row for row in list_rows(breast, told)}
    assert rows["finding"].codes == ""
    assert not rows["finding"].known
    assert rows["fgt"].known


def test_another_version_of_one_form_is_told(breast):
    told = Answers((), "breast-mri-2013", "2013", "f" * 64)
    assert "a different version" in why_other_form(breast, told)


@pytest.mark.parametrize(
    "record",
    [
        {"@form": 3, "@computed": 4, "fgt": 5, "a": None, "b": {"number": 1.5}, "c": ["x", 1]},
        {"@form": {"name": ["x"]}, "": {}, "@": "", "fgt@": "a", "fgt@right@left": "a"},
    ],
)
def test_a_record_that_is_none_gives_what_can_be_read(record, breast):
    told = parse_answers(record)
    find_contradictions(breast, told, FACTS)
    assert all(isinstance(value, str) for one in told.items for value in one.values)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100000])
def test_answers_that_are_no_object_are_none(text):
    assert parse_answers_text(text) == Answers()


def test_rows_carry_public_codes_and_private_ones_where_there_is_none(breast):
    told = answers(("finding", ("mass",), ONE), ("mass.internal", ("rim",), ONE), ("fgt", ("d",)))
    rows = [
        (row.field, row.scope, row.place, row.value, row.text, row.codes)
        for row in list_rows(breast, told)
    ]
    assert rows == [
        ("fgt", "case", "", "d", "extreme", "99MAMAMIA:fgt.d"),
        ("finding", "lesion", "1", "mass", "mass", "SCT:4147007"),
        ("mass.internal", "lesion", "1", "rim", "rim enhancement", "99MAMAMIA:mass.internal.rim"),
    ]


FORM = parse_form(
    "",
    [
        {"id": "n", "text": "N", "kind": "number", "scope": "lesion", "measure": "volume-mm3"},
        {"id": "t", "text": "T", "kind": "text"},
        {
            "id": "m",
            "text": "M",
            "kind": "multiple",
            "scope": "breast",
            "terms": [{"id": one, "text": one} for one in "ab"],
        },
    ],
    "test",
)
TEXTS = st.text(max_size=20)
GIVEN = st.one_of(
    st.builds(
        Answer,
        st.just("n"),
        st.decimals(-999, 999, allow_nan=False, places=3).map(lambda one: (str(one),)),
        st.sampled_from([ONE, TWO]),
        st.booleans(),
    ),
    st.builds(Answer, st.just("t"), st.tuples(TEXTS)),
    st.builds(
        Answer,
        st.just("m"),
        st.lists(st.sampled_from("abz"), max_size=4).map(tuple),
        st.sampled_from([RIGHT, LEFT]),
    ),
    st.builds(Answer, st.just("later"), st.lists(TEXTS, min_size=2, max_size=3).map(tuple)),
)


@settings(max_examples=50)
@given(st.lists(GIVEN, max_size=8))
def test_whatever_was_answered_comes_back_from_its_record(given_answers):
    told = Answers()
    for one in given_answers:
        told = told.put(one)
    record = record_answers(FORM, told)
    back = parse_answers(json.loads(canonical(record)))
    assert set(back.items) == set(normalise_answers(FORM, told).items)
    assert canonical(record_answers(FORM, back)) == canonical(record)


@pytest.mark.parametrize(
    ("scope", "name"), [("case", "1"), ("breast", ""), ("breast", "1"), ("lesion", "left")]
)
def test_a_place_cannot_be_two_things(scope, name):
    with pytest.raises(ArgumentError, match="right or left for a breast"):
        Place(FieldScope(scope), name)


def test_required_if_is_required_only_there():
    yes_no = [{"id": "y", "text": "yes"}, {"id": "n", "text": "no"}]
    form = parse_form(
        "",
        [
            {"id": "sure", "text": "Sure?", "kind": "single", "terms": yes_no},
            {
                "id": "why",
                "text": "Why not?",
                "kind": "text",
                "required_if": [{"field": "sure", "values": ["n"]}],
            },
        ],
        "test",
    )
    assert list_missing(form, answers(("sure", ("y",)))) == ()
    missing = list_missing(form, answers(("sure", ("n",)), ("why", ("  ",))))
    assert [one.field.id for one in missing] == ["why"]


def test_500_questions_that_wait_for_each_other_in_a_row_are_gone_through():
    terms = [{"id": "y", "text": "yes"}]
    chain = [
        {
            "id": f"q{k}",
            "text": "?",
            "kind": "single",
            "terms": terms,
            "asked_if": [{"field": f"q{k - 1}", "values": ["y"]}] if k else [],
        }
        for k in range(500)
    ]
    form = parse_form("", chain, "test")
    told = answers(*((f"q{k}", ("y",)) for k in range(500)))
    assert len(list_questions(form, told)) == 500
