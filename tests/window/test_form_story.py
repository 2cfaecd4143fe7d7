"""The BI-RADS form read by two people in windows of their own: every answer comes out again."""

import json

import pytest
from tests.features.review.test_form_story import call, init
from tests.form_story import (
    IDS,
    READERS,
    SAID,
    read_rows,
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
from tests.window.test_review_story import begin, finish

pytestmark = [pytest.mark.window, pytest.mark.night]


def tell(study, who, path):
    """Write what somebody is going to draw and answer, by what the cases are called to him."""
    told = {}
    for shown, case_id in unveil(study).items():
        said = SAID[who, case_id]
        boxes = [[(part.start, part.stop) for part in box] for box in said.boxes]
        told[shown] = {"boxes": boxes, "answers": list(said.values.items())}
    path.write_text(json.dumps(told), encoding="utf-8")
    return f"describe:{path}"


def test_what_two_readers_answer_in_windows_leaves_the_study_as_they_said_it(
    tmp_path, picture_folder
):
    study, out = tmp_path / "STUDY", tmp_path / "out"
    data = write_both_breasts(tmp_path / "data")
    init(data, study, tmp_path / "protocol.json")

    def picture(tab, name):
        return f"picture:{tab}={picture_folder / name}.png"

    readers = [
        begin(study, tmp_path / IDS[who], who, tell(study, who, tmp_path / f"{IDS[who]}.json"),
              "sign:author", picture("Read", f"form-{IDS[who]}"))
        for who in READERS
    ]  # fmt: skip
    digits = [finish(one)[0] for one in readers]
    (worst,) = [shown for shown, case_id in unveil(study).items() if case_id == "A_2"]
    judged = (f"judge:union:{worst}", picture("Judge", "form-jo"), "sign:reviewer")
    (jo_digits,) = finish(begin(study, tmp_path / "jo", "Jo Judge", *judged))
    words = [f"countersign:{who}={text}" for who, text in zip(READERS, digits, strict=True)]
    words += [f"countersign:Jo Judge={jo_digits}"]
    finish(begin(study, tmp_path / "lea", "Lea Lead", *words))

    lead = ("--reader", "Lea Lead")
    formats = [word for one in ("answers", "mrmc") for word in ("--format", one)]
    done = call("export", study, "--out", out / "export", *formats, "--rating", "assessment", *lead)
    assert done.exit_code == 0, done.output
    assert "1 case accepted, 2 not" in done.output
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
    text = require_report(out / "report.html", study)
    assert "decide: union: both saw a part of it" in text
    signed = [row for row in read_rows(out / "audit.csv") if row["act"] == "sign"]
    assert len(signed) >= 7
    done = call("verify", study, "--images", data)
    assert done.exit_code == 0, done.output
