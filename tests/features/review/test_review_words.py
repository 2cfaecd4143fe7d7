"""People read the words of a study's form, wherever its answers are told; programs read ids."""

import json
from dataclasses import replace

import pytest
from tests.review_study import opened, study
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form, Term
from napari_mamamia.features.review.core.review import FilePrint
from napari_mamamia.features.review.io.study_file import write_study
from napari_mamamia.features.review.rules.form_words import (
    word_answers,
    word_question,
    word_reason,
    word_term,
)
from napari_mamamia.features.review.services.client import describe_agreement, open_client
from napari_mamamia.features.review.services.judging import open_dispute
from napari_mamamia.features.review.services.look import FORM
from napari_mamamia.features.review.services.report.study_report import (
    ReportChoice,
    make_study_page,
)
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.files.checksums import hash_text
from napari_mamamia.io.forms.form_file import form_text, with_digest
from napari_mamamia.scoring.report.page import PageSection, render_page
from napari_mamamia.scoring.report.text import Column, ReportTable, Row

TERMS = (Term("oval", "Oval"), Term("irr", "Irregular"))
FIELDS = (
    Field("shape", "Shape", FieldKind.SINGLE, FieldScope.LESION, terms=TERMS),
    Field("fgt", "Gland", FieldKind.MULTIPLE, FieldScope.BREAST, terms=TERMS),
    Field("all", "Whole", FieldKind.MULTIPLE, FieldScope.CASE, terms=TERMS),
    Field("kind", "Kind of lesion", FieldKind.SINGLE, FieldScope.CASE, terms=TERMS),
    Field("d", "Distance", FieldKind.NUMBER, FieldScope.LESION, unit="mm"),
)
ASKED = with_digest(Form("f", fields=FIELDS))
WORDS = "Kind of lesion: Oval / Irregular"
IDS = "kind: oval and irr"


def test_why_readings_disagree_is_said_in_the_words_of_the_form():
    said = {
        "shape@1 and @2: oval and irr": "Shape, lesion 1 and 2: Oval / Irregular",
        "shape@3: irr and oval": "Shape, lesion 3: Irregular / Oval",
        "fgt@left: oval, irr and irr": "Gland, left breast: Oval, Irregular / Irregular",
        "all:  and irr": "Whole: – / Irregular",
        "shape@1: oval and other": "shape@1: oval and other",  # no term of this form
        "margin@1: a and b": "margin@1: a and b",
        "Dice 0.333 below 0.7": "Dice 0.333 below 0.7",
        "1 and 2 lesions": "1 and 2 lesions",
    }
    assert {one: word_reason(ASKED, one) for one in said} == said
    assert [word_reason(None, one) for one in said] == list(said)


def test_answers_questions_and_terms_are_said_in_words_and_what_no_form_knows_as_it_stands():
    record = {
        "@form": {"name": "f"},
        "@computed": ["d@2"],
        "d@2": {"number": "12.5", "unit": "mm"},
        "shape@2": "irr",
        "all": ["oval", "odd"],
        "fgt@left": [],
        "other@1": "x",
    }
    assert word_answers(ASKED, json.dumps(record)) == (
        "Distance, lesion 2: 12.5 mm (computed); Shape, lesion 2: Irregular; Whole: Oval, odd; "
        "Gland, left breast: –; other@1: x"
    )
    assert word_answers(None, json.dumps({"shape@2": "irr"})) == "shape@2: irr"
    assert word_answers(ASKED, "{}") == word_answers(ASKED, "no JSON") == "–"
    assert word_question(ASKED, "all: irr") == "Whole: Irregular"
    assert word_question(None, "all: irr") == "all: irr"
    assert word_term(ASKED, "all: irr", "yes") == "yes"


@pytest.fixture
def folder(tmp_path):
    """A study of one case of which two readers say something else, without a mask."""
    text = form_text(ASKED)
    (tmp_path / "STUDY").mkdir()
    (tmp_path / "STUDY" / FORM).write_text(text)
    frozen = replace(study(cases=("A",)), files=(FilePrint(FORM, hash_text(text)),))
    write_study(tmp_path / "STUDY", frozen)
    for who, said in (("ana", "oval"), ("ben", "irr")):
        session = ReviewSession(opened(tmp_path / "STUDY", tmp_path / who), who, tmp_path / who)
        task = session.next_task()
        session.claim(task)
        session.start(task)
        session.finish(task, None, {"kind": said, "all": [said]})
        session.close()
    return tmp_path / "STUDY"


def test_the_list_of_disputes_the_judge_agreement_report_and_audit_page_use_the_form_s_words(
    folder, tmp_path, monkeypatch
):
    client = open_client(folder, "Jo Judge").client
    (row,) = client.look().disputes
    assert row.because == ("Whole: Oval / Irregular", WORDS)
    monkeypatch.setattr(client, "require_images", lambda _case: None)
    assert open_dispute(client, "c0001").because == row.because
    client.close()
    lead = open_client(folder, "Lea Lead").client
    told = "\n".join(describe_agreement(lead))
    lead.close()
    run = CliRunner().invoke
    printed = run(app, ["review", "agreement", str(folder), "--out", str(tmp_path / "a")]).output
    for text in (told, printed):
        assert "Kind of lesion: 2 answers (Irregular 50 %, Oval 50 %)" in text
        assert "Whole: Oval: 2 answers (no 50 %, yes 50 %)" in text
    page = make_study_page(client.store, ReportChoice(n_resamples=20)).page
    cells = [cell for one in page.sections for table in one.tables for row in table.rows
             for cell in row.cells]  # fmt: skip
    assert f"Whole: Oval / Irregular; {WORDS}" in cells
    (cases,) = (table.columns[0] for one in page.sections if one.title == "Disagreements"
                for table in one.tables)  # fmt: skip
    assert cases.is_whole  # in print "DUKE_0" and "41" stood on two lines
    assert '<th scope="row" class="whole">A</th>' in render_page(page)
    # one long id of the hospital breaks its own line, and not those of all others
    table = ReportTable("t", (cases, Column("n")), (Row(("DUKE_041", "1")), Row(("x" * 60, "2"))))
    text = render_page(replace(page, sections=(PageSection("s", (table,)),)))
    assert '<th scope="row" class="whole">DUKE_041</th>' in text
    assert f'<th scope="row">{"x" * 60}</th>' in text
    assert "Kind of lesion" in cells
    assert any("Oval 50 %" in cell for cell in cells)
    assert run(app, ["review", "audit", str(folder), "--out", str(tmp_path / "b")]).exit_code == 0
    page = (tmp_path / "b" / "audit.html").read_text("utf-8")
    assert WORDS in page
    assert "Kind of lesion: Irregular" in page
    table = (tmp_path / "b" / "audit.csv").read_text("utf-8")
    assert IDS in table
    assert "Kind of lesion" not in table
    (questions,) = (tmp_path / "a").glob("agreement_questions.csv")
    assert "kind,readers,prevalence,irr" in questions.read_text("utf-8")
