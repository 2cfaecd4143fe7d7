"""Answers on the BI-RADS form, from `mamamia review init` to every file that leaves the study."""

import hashlib
import json
from dataclasses import replace
from functools import partial

from tests.form_story import (
    PROTOCOL,
    READERS,
    SAID,
    draw_boxes,
    require_accepted,
    require_agreement,
    require_audit,
    require_long,
    require_mrmc,
    require_report,
    require_wide,
    unveil,
    write_both_breasts,
)
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.case import Mask
from napari_mamamia.core.provenance import Maker, Provenance
from napari_mamamia.features.review.core.review import ConsensusRule
from napari_mamamia.features.review.io.study_file import Draft
from napari_mamamia.features.review.services.client import open_client
from napari_mamamia.features.review.services.judging import (
    decide_dispute,
    fuse_dispute,
    open_dispute,
)
from napari_mamamia.findings.form_values import parse_answers, record_answers
from napari_mamamia.findings.lesion_numbers import keep_anchors
from napari_mamamia.io.data_set.volumes import write_mask
from napari_mamamia.services.case.data_set import open_data_set
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.findings.case_facts import fill_hidden, measure_lesions


def call(*words):
    done = CliRunner().invoke(app, ["review", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def init(data, study, protocol):
    protocol.write_text(json.dumps(PROTOCOL))
    people = [word for who in READERS for word in ("--reader", who)]
    people += ["--lead", "Lea Lead", "--adjudicator", "Jo Judge"]
    words = ("--protocol", protocol, "--mode", "independent", "--freeze")
    done = call("init", data, "--out", study, *people, *words)
    assert done.exit_code == 0, done.output


def load(data, case_id):
    """Return a case with its times, as a window opens it."""
    opened = open_data_set(data)
    return load_case(opened.data_set.case(case_id), opened.record(case_id))


def read_all(study, home, who):
    """Read as a blind reader's window does: measured numbers come with the handing in."""
    client = open_client(study, who).client
    while (taken := client.take_next()) is not None:
        case_id = unveil(study)[taken.case_id]
        said = SAID[who, case_id]
        case = load(taken.data_set, case_id)
        answers = parse_answers(said.answers)
        labels = draw_boxes(said.boxes)
        facts = measure_lesions(case, labels, with_numbers=False)
        answers = replace(answers, anchors=keep_anchors(answers, facts))
        record, saved = record_answers(client.form, answers), None
        if said.boxes:
            record = fill_hidden(client.form, case, labels, record)
            path = home / who / f"{taken.case_id}.nii.gz"
            path.parent.mkdir(exist_ok=True)
            made = Provenance(taken.case_id, Maker.READER, who)
            write_mask(Mask(case.grid, labels > 0, made), path)
            saved = (path, hashlib.sha256(path.read_bytes()).hexdigest())
        client.hand_in(taken, saved, Draft(record, 60))()
    client.close()


def judge(study, data, home):
    """Decide A_2 by the union, with the answers of whoever comes first."""
    client = open_client(study, "Jo Judge").client
    (shown,) = (one for one, case_id in unveil(study).items() if case_id == "A_2")
    dispute = open_dispute(client, f"c{shown.removeprefix('case-')}")
    union = fuse_dispute(client, dispute, ConsensusRule.UNION)
    path = home / "union.nii.gz"
    path.write_bytes(union.content)
    case = load(data, "A_2")
    saved = (path, hashlib.sha256(union.content).hexdigest())
    measure = partial(fill_hidden, client.form, case)
    answers = dispute.readings[0]
    decided = decide_dispute(
        client, dispute, saved, "both saw a part of it", answers, union, measure
    )
    assert (decided.choice, decided.lost) == ("union", ())
    client.close()


def test_every_answer_of_the_shipped_form_leaves_the_study_as_it_was_given(tmp_path):
    study, out = tmp_path / "STUDY", tmp_path / "out"
    data = write_both_breasts(tmp_path / "data")
    init(data, study, tmp_path / "protocol.json")
    for who in READERS:
        read_all(study, tmp_path, who)
    judge(study, data, tmp_path)
    lead = ("--reader", "Lea Lead")
    formats = [word for one in ("answers", "mrmc") for word in ("--format", one)]
    done = call("export", study, "--out", out / "export", *formats, "--rating", "assessment", *lead)
    assert done.exit_code == 0, done.output
    images = data / "images"
    rows = require_long(out / "export" / "answers" / "answers_long.csv", images)
    require_accepted(out / "export" / "answers" / "answers_long.csv", images)
    require_wide(out / "export" / "answers" / "answers_wide.csv", images)
    require_mrmc(out / "export" / "mrmc" / "mrmc.csv")
    call("agreement", study, "--out", out, "--bootstrap", "0", *lead)
    assert require_agreement(out / "agreement_questions.csv", rows) >= 8
    call("audit", study, "--out", out, *lead)
    require_audit(out / "audit.html", study)
    call("report", study, "--out", out, *lead)
    require_report(out / "report.html", study)
    assert call("verify", study, "--images", data).exit_code == 0
