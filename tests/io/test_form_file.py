"""Lexicons and own questions: what is read, what is refused, and codes as their source has them."""

import json

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.core.form import FieldKind, FieldScope, Measure
from napari_mamamia.io.forms.form_file import (
    form_text,
    parse_form,
    read_form,
    read_lexicon,
    read_shipped_lexicon,
)
from napari_mamamia.io.workspace.protocol import read_protocol

LEXICON = {
    "mamamia_lexicon": 1,
    "name": "small",
    "edition": "1",
    "title": "Small",
    "remark": "ours",
    "fields": [{"id": "a", "text": "A", "kind": "text"}],
}


def saved(tmp_path, content, name="l.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def question(**about):
    return {"id": "q", "text": "Which?", "kind": "single", "terms": TERMS, **about}


TERMS = [{"id": "y", "text": "yes"}, {"id": "n", "text": "no"}]


@pytest.fixture(scope="module")
def breast():
    return read_shipped_lexicon("breast-mri-2013")


def codes(lexicon, field):
    terms = lexicon.form.field(field).terms
    return {term.id: [code.text for code in term.codes] for term in terms}


# Typed again from where the codes were looked up (DICOM PS3.16, SNOMED CT, RadLex, NCIt), not from
# the file: a line a question, its terms in their order; - is a term without a code.
CODED = """
fgt: a - b - c - d -
bpe: minimal S255605001 mild S255604002 moderate S6736007 marked -
finding: focus - mass S4147007 nme - intramammary_node S443808008 skin_lesion S95324001
 non_enhancing - fat_containing -
mass.shape: oval S84360004 round S42700002 irregular S49608001
mass.margin: circumscribed S129738007 not_circumscribed RRID34355
mass.margin_not: irregular S49608001 spiculated S129742005
mass.internal: homogeneous D112160 heterogeneous RRID6060 rim - dark_septations -
nme.distribution: focal S87017008 linear D112150 segmental S62372003 regional S410674003
 multiple_regions - diffuse S19648000
nme.internal: homogeneous - heterogeneous - clumped - clustered_ring -
kin.initial: slow - medium - fast -
kin.delayed: persistent D130597,RRID34331 plateau D130598,RRID34332 washout D130599,RRID34333
associated: nipple_retraction S271955004 nipple_invasion D111472 skin_retraction - skin_thickening -
 skin_invasion - axillary_adenopathy S127189005 pectoralis_invasion - chest_wall_invasion -
 architectural_distortion -
non_enhancing: duct_t1_bright - cyst S399294002 postop_collection - post_therapy_thickening - mass -
 distortion - signal_void -
side: right S73056007 left S80248007 both S63762007
quadrant: UO S76365002 UI S77831004 LO S33564002 LI S19100000 central S129786000
 subareolar S129784002 axillary_tail S129785001
clock: 1 S129772004 2 S129773009 3 S129774003 4 S129775002 5 S129776001 6 S129777005 7 S129778000
 8 S129779008 9 S129780006 10 S129781005 11 S129782003 12 S129783008
depth: anterior S255549009 middle NC25569 posterior S255551008
"""
SCHEMES = {"S": "SCT", "D": "DCM", "R": "RADLEX", "N": "NCIt"}


def test_the_shipped_lexicon_has_the_codes_that_were_looked_up(breast):
    for line in CODED.strip().replace("\n ", " ").splitlines():
        field, _, rest = line.partition(": ")
        words = rest.split()
        expected = {
            term: [] if code == "-" else [f"{SCHEMES[c[0]]}:{c[1:]}" for c in code.split(",")]
            for term, code in zip(words[::2], words[1::2], strict=True)
        }
        assert codes(breast, field) == expected, field
        assert list(codes(breast, field)) == list(expected), field
    numbers = {"to_nipple": "121242", "to_skin": "121243", "to_chest_wall": "121244"}
    for field, code in numbers.items():
        assert [one.text for one in breast.form.field(field).codes] == [f"DCM:{code}"]


def test_codes_that_mean_mammography_are_not_taken(breast):
    # SNOMED's 129716005 ... 129719003 are of mammographic density, 129796009, 129797000 and
    # 129792006 of mammographic skin and distortion, 397138000 ... of mammography's assessment
    text = json.dumps([code for field in breast.fields for code in codes(breast, field.id).items()])
    for code in ("12971", "129796009", "129797000", "129792006", "39713", "39714"):
        assert f"SCT:{code}" not in text
    assert not any(codes(breast, "fgt").values())
    assert [code.text for code in breast.form.field("assessment").codes] == ["DCM:111005"]


def test_terms_come_without_definitions(breast):
    assert max(len(t.text) for f in breast.fields for t in f.terms) < 40
    assert "%" not in json.dumps([t.text for f in breast.fields for t in f.terms])
    assert "American College of Radiology" in breast.remark


def test_a_lexicon_of_a_later_version_is_read_past_what_it_added(tmp_path):
    later = json.loads(json.dumps(LEXICON))
    later["retired"] = ["x"]
    later["fields"][0]["picture"] = "a.png"
    assert read_lexicon(saved(tmp_path, later)).fields[0].kind is FieldKind.TEXT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mamamia_lexicon": 2}, "version 1"),
        ({"fields": []}, "1 to 500 questions, but it has 0"),
        ({"fields": "no"}, "to be a list"),
        ({"fields": [{"id": "a", "text": "A", "kind": "slider"}]}, "one of single, multiple"),
        ({"fields": [{"id": "a", "text": " ", "kind": "text"}]}, "1 to 4000 characters"),
        ({"fields": [{"id": "a", "text": "A", "kind": "text"}] * 501}, "1 to 500 questions"),
        ({"fields": [question(terms=[*TERMS, {"id": "Y", "text": "YES"}])]}, "'Y' twice"),
        (
            {"fields": [question(terms=[{"id": "y", "text": "y", "codes": ["1234"]}])]},
            "SCHEME:VALUE",
        ),
    ],
)
def test_a_damaged_lexicon_is_one_error_that_names_the_file(tmp_path, change, message):
    path = saved(tmp_path, {**LEXICON, **change})
    with pytest.raises(FormatError, match=message) as refused:
        read_lexicon(path)
    assert str(path) in str(refused.value)


def test_a_lexicon_cut_in_the_middle_is_one_error(tmp_path):
    path = saved(tmp_path, json.dumps(LEXICON)[:60])
    with pytest.raises(FormatError, match="expected a lexicon"):
        read_lexicon(path)


def test_a_protocol_asks_a_lexicon_and_then_its_own_questions(tmp_path):
    own = question(asked_if=[{"field": "finding", "values": ["mass"]}], scope="lesion")
    content = {"name": "s", "form": "breast-mri-2013", "questions": [own]}
    form = read_protocol(saved(tmp_path, content)).form
    assert (form.name, form.edition) == ("breast-mri-2013", "2013")
    assert form.fields[-1].id == "q"
    assert form.fields[-1].scope is FieldScope.LESION
    assert form.field("kin.initial").measure is Measure.INITIAL_RISE


def test_forms_that_differ_in_one_word_have_other_hashes():
    one, other = (parse_form("", [question(text=t)], "x") for t in ("Which?", "Which one?"))
    assert one.sha256 == parse_form("", [question()], "elsewhere").sha256
    assert one.sha256 != other.sha256


def test_a_protocol_without_questions_has_no_form(tmp_path):
    assert read_protocol(saved(tmp_path, {"name": "s"})).form is None


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([question(require=True)], "unknown key.*require"),
        ([question(), question(id="Q", text="Other")], "'Q' twice"),
        ([question(id="é"), question(id="é", text="Other")], "twice"),
        ([question(id="a@right")], "no @"),
        ([question(id="x" * 201)], "1 to 200"),
        ([question(id="a\nb")], "printable"),
        ([question(terms=[])], "expected terms if the kind is"),
        ([question(kind="number")], "expected terms if the kind is"),
        ([{"id": "n", "text": "N", "kind": "text", "unit": "mm"}], "only numeric questions"),
        ([{"id": "n", "text": "N", "kind": "number", "low": 2, "high": 1}], "at most the upper"),
        ([question(measure="volume-mm3")], "scope lesion"),
        ([question(asked_if=[{"field": "q", "values": ["y"]}])], "an earlier question"),
        (
            [
                question(required_if=[{"field": "r", "values": ["y"]}]),
                question(id="r", required_if=[{"field": "q", "values": ["y"]}]),
            ],
            "two questions cannot depend on each other",
        ),
        (
            [
                question(scope="lesion"),
                question(id="r", asked_if=[{"field": "q", "values": ["y"]}]),
            ],
            "about the same case",
        ),
        (
            [question(), question(id="r", asked_if=[{"field": "q", "values": ["?"]}])],
            "terms of 'q'",
        ),
        ([question(), question(id="r", asked_if=[{"field": "q", "values": []}])], "'none'"),
        (["which?"], "an object"),
    ],
)
def test_questions_that_cannot_be_meant_are_refused(questions, message):
    with pytest.raises(FormatError, match=message):
        parse_form("", questions, "p.json")


def test_an_own_question_may_not_take_a_name_of_the_lexicon():
    with pytest.raises(FormatError, match="'FGT' twice"):
        parse_form("breast-mri-2013", [question(id="FGT")], "p.json")


def test_a_lexicon_that_is_not_shipped_is_refused_with_those_that_are(tmp_path):
    path = saved(tmp_path, {"name": "s", "form": "../../etc/passwd"})
    with pytest.raises(FormatError, match="breast-mri-2013"):
        read_protocol(path)


def test_names_with_html_and_200_letters_are_questions():
    text = "<script>alert(1)</script> Größe?"
    form = parse_form("", [question(id="<b>" + "ü" * 197, text=text)], "p.json")
    assert form.fields[0].text == text


def test_a_form_that_was_written_out_comes_back_the_same(tmp_path):
    form = parse_form("breast-mri-2013", [question(id="own", low=None)], "p.json")
    path = saved(tmp_path, form_text(form))
    assert read_form(path) == form
    path.write_text(form_text(form).replace('"text": "Which?"', '"text": "What?"'), "utf-8")
    with pytest.raises(FormatError, match="their hash differs"):
        read_form(path)
