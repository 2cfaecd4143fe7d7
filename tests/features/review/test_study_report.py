"""The report of a study: what it tells, whom it names, and what it survives."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.test_leaderboard import BROWSER, measure
from tests.review_study import study, write_study

from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.core.quality import Queue, QueuePlace
from napari_mamamia.features.review.core.review import FilePrint, Meaning
from napari_mamamia.features.review.io import keys
from napari_mamamia.features.review.io.quality_files import queue_text
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.services.agreement.agree import measure_agreement
from napari_mamamia.features.review.services.agreement.agreement_output import save_agreement
from napari_mamamia.features.review.services.client import (
    StudyClient,
    describe_agreement,
    load_quality_status,
)
from napari_mamamia.features.review.services.look import ORDER, load_state
from napari_mamamia.features.review.services.report import study_report
from napari_mamamia.features.review.services.report.study_figures import make_labels
from napari_mamamia.features.review.services.report.study_report import (
    DEFAULT,
    ReportChoice,
    count_other_forms,
    make_study_page,
    write_study_report,
)
from napari_mamamia.features.review.services.session import ReviewSession
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.checksums import hash_text
from napari_mamamia.io.forms.form_file import read_shipped_lexicon
from napari_mamamia.scoring.report.page import PageSection, render_page
from napari_mamamia.scoring.report.text import Column, ReportTable, Row

GRID = Grid.of_spacing((4, 10, 10), (2.0, 1.0, 1.0))
CASES = ("<b>A</b>", "B", "C", "D")
QUICK = ReportChoice(n_resamples=20)


def mask_file(folder, rows):
    """A bar of so many rows; its file's bytes."""
    array = np.zeros(GRID.shape, np.uint8)
    array[1:3, 2 : 2 + rows, 2:8] = 1
    path = folder / f"mask-{rows}.nii.gz"
    if not path.exists():
        write_volume(array, GRID, path)
    return path.read_bytes()


def at_work(home, name):
    store = FolderStore(home / "STUDY", home / name, host=f"PC-OF-{name}", session="1")
    return ReviewSession(store, name, home / name)


def answers(error):
    return {"@form": {"name": "f"}, "error": error}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A study of four cases: two disagree, one of them is adjudicated; one is left unread."""
    home = tmp_path_factory.mktemp("report")
    places = [QueuePlace(one, at == 2, at, (2, 1, 3, 4)[at - 1]) for at, one in enumerate(CASES, 1)]
    text = queue_text(Queue(tuple(sorted(places, key=lambda one: not one.is_random)), 1))
    (home / "STUDY").mkdir()
    (home / "STUDY" / ORDER).write_text(text)
    plan = {"blinding": ALL_HIDDEN, "cases": CASES, "readers": ("ana", "ben")}
    frozen = replace(study(**plan), files=(FilePrint(ORDER, hash_text(text)),))
    write_study(home / "STUDY", replace(frozen, plan=replace(frozen.plan, name="<script>x")))
    sizes = {"ana": (4, 4, 2), "ben": (4, 1, 6)}
    for name in ("ana", "ben"):
        session = at_work(home, name)
        for at in range(3):
            task = session.queue()[at][0]
            session.claim(task)
            session.start(task)
            content = mask_file(home, sizes[name][at])
            seconds = (30, 180, 600)[at] if name == "ana" else 0
            session.finish(task, content, answers("yes" if at == 1 else "no"), seconds)
        session.close()
    jo = at_work(home, "jo")
    view = jo.refresh().case("c0002")
    jo.adjudicate("c0002")
    jo.decide("c0002", view.readings[0].mask, "ana", 'Ben went "over" <i>the rim</i>')
    jo.close()
    lea = at_work(home, "lea")
    lea.accept("c0001")
    lea.make_key("correct horse")
    lea.sign("c0001", Meaning.APPROVER, "correct horse")
    lea.close()
    return home


@pytest.fixture
def store(home):
    return FolderStore(home / "STUDY", home / "reports", host="H", session="9")


@pytest.fixture(scope="module")
def page(home):
    return make_study_page(
        FolderStore(home / "STUDY", home / "r", host="H", session="8"), QUICK
    ).page


@pytest.fixture(scope="module")
def text(page):
    return render_page(page)


def section(page, title):
    return next(one for one in page.sections if one.title == title)


def cells(table):
    return [row.cells for row in table.rows]


def test_every_case_is_in_one_state_and_in_one_box(page):
    cases = section(page, "Cases")
    counts = {state: int(n) for _, state, n, _ in cells(cases.tables[0])}
    assert sum(counts.values()) == len(CASES)
    assert {state: n for state, n in counts.items() if n} == {
        "new": 1,
        "disagrees": 1,
        "accepted": 1,
        "signed": 1,
    }
    whole, boxes = cases.figures[0].drawing.arguments
    assert (whole.n, [box.n for box in boxes]) == (4, [1, 1, 2])
    assert boxes[2].lines == ("accepted: 1", "signed: 1")
    assert cells(cases.tables[1]) == [
        ("readings agreed", "1", "1", "0", "0"),
        ("readings disagreed", "1", "0", "1", "0"),
        ("not compared", "0", "0", "0", "0"),
    ]


def test_agreement_is_that_of_the_masks(page):
    # rows 4 and 4, 4 and 1, 2 and 6: Dice 1, 2 / 5 and 4 / 8
    masks = section(page, "Agreement").tables[0]
    assert cells(masks)[0][:3] == ("Dice", "3", "0.633")
    lowest = section(page, "Agreement").figures[0].drawing.arguments
    assert sorted(lowest[0]) == pytest.approx([0.4, 0.5, 1.0])
    assert lowest[1] == 0.7


def test_disagreements_come_worst_first_with_both_outlines(page):
    part = section(page, "Disagreements")
    assert [row[:3] for row in cells(part.tables[0])] == [
        ("B", "0.400", "accepted"),
        ("C", "0.500", "disagrees"),
    ]
    first = part.pictures[0].drawing.arguments[0]
    assert {int(first.reference.sum()), int(first.prediction.sum())} == {24, 6}
    assert first.image is None  # the data set of the study is not there, and the page says so
    assert "images are missing" in part.notes[0]


def test_no_order_of_rows_or_pairs_tells_whose_a_code_is(page, home, store):
    labels = make_labels(load_state(store))
    ana, ben = labels.call("ana"), labels.call("ben")
    # bars of 4, 4 and 2 rows by ana, of 4, 1 and 6 by ben: ratios 1, 4 and 1/3, mean (4 / 3) ** 1/3
    first, ratio = (ana, "1.10") if ana < ben else (ben, "0.91")
    (row,) = cells(section(page, "Agreement").tables[1])
    assert (row[0], row[4]) == (" and ".join(sorted((ana, ben))), ratio)
    assert row[5:] == ("–", "–"), "of three pairs no limits and no ICC"
    for picture in section(page, "Disagreements").pictures:
        assert f"blue {first}," in picture.caption
    named = make_study_page(store, replace(QUICK, are_named=True, by_reader=True)).page
    (row,) = cells(section(named, "Agreement").tables[1])
    assert (row[0], row[4]) == ("Ana and Ben", "1.10")
    # in a study in which somebody stands first whose code is second
    assert list(labels.labels) != [one.reader_id for one in store.study.readers]


def test_pictures_have_a_limit_and_what_is_left_out_is_counted(store):
    part = section(make_study_page(store, replace(QUICK, most_pictures=1)).page, "Disagreements")
    assert len(part.pictures) == 1
    assert "1 of the cases have no picture here" in part.says[-1]


def test_the_page_names_nobody_unless_asked(text, store):
    spoken = re.sub(r'data:image/png;base64,[^"]*', "", html.unescape(text))
    for word in ("ana", "ben", "lea", "jo", "Lea Lead", "Jo Judge", "PC-OF"):
        assert not re.search(rf"(?<!\w){word}(?!\w)", spoken, re.IGNORECASE), word
    assert re.search(r'R\d went "over" <i>the rim</i>', spoken)
    named = make_study_page(store, replace(QUICK, are_named=True)).page
    assert cells(section(named, "Signatures").tables[0])[0][1] == "Lea Lead"
    assert cells(section(named, "Agreement").tables[1])[0][0] == "Ana and Ben"


def test_what_people_typed_is_text_on_the_page(text):
    assert "<script" not in text
    assert "<b>A</b>" not in text
    assert "&lt;b&gt;A&lt;/b&gt;" in text
    assert "<i>the rim</i>" not in text


def test_the_page_loads_nothing(text):
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in text


@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_a_desk_and_a_phone(text, tmp_path, width):
    across, inside, _ = measure(text, width, tmp_path)
    assert (inside, across <= width) == (width, True)  # wide tables scroll in boxes of their own


def test_nothing_is_cut_on_paper_and_each_sheet_says_what_it_is_of(page, tmp_path):
    long = ReportTable(
        "Long", (Column("Case", False), Column("Why", False)), (Row(("x" * 200, "word " * 90)),)
    )
    text = render_page(replace(page, sections=(*page.sections, PageSection("Long", (long,)))))
    # "Review study: <script>x", in which nothing can end the style sheet
    assert r'content: "Review\20 study\3a \20 \3c script\3e x"' in text
    sheet = 182 * 96 / 25.4  # mm between the margins, in CSS's pixels
    as_printed = text.replace("@media print", "@media screen")
    across, _, _ = measure(as_printed, round(sheet), tmp_path)
    assert across <= round(sheet)


def test_the_page_prints_on_a_few_sheets_of_a4(text, tmp_path):
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    command = (
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer",
        f"--print-to-pdf={tmp_path / 'report.pdf'}", (tmp_path / "report.html").as_uri(),
    )  # fmt: skip
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    content = (tmp_path / "report.pdf").read_bytes()
    sheets = re.findall(
        rb"/Type /Page\b.{0,400}?/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content, re.S
    )
    assert 3 <= len(sheets) <= 7
    assert {(round(float(a)), round(float(b))) for a, b in sheets} == {(595, 842)}


def test_time_is_of_all_readings_and_of_each_reader_when_asked(page, store):
    part = section(page, "Time")
    # 0.5, 3 and 10 minutes; the other reader's time was not measured
    assert cells(part.tables[0]) == [("all", "3", "3.0", "1.8 to 6.5", "0.2")]
    assert "3 readings without a time" in part.tables[0].notes[1]
    assert [n for _, n in cells(part.tables[1])] == ["1", "0", "1", "0", "1", "0", "0", "0"]
    by_reader = section(make_study_page(store, replace(QUICK, by_reader=True)).page, "Time")
    assert len(by_reader.tables[0].rows) == 2


def test_what_was_caught_is_told_where_the_form_asks_for_errors(page):
    part = section(page, "Quality control")
    # the drawn case B comes first in the queue; read in the order A, B, C by whoever was first
    assert part.says[0] == "1 error in 3 of 4 cases"
    assert cells(part.tables[0])[-1] == ("3", "75 %", "1")


def test_readings_on_another_form_are_counted(store):
    form = read_shipped_lexicon("breast-mri-2013").form
    state = load_state(store)
    assert count_other_forms(state, form) == ()  # these name no form by its hash
    view = state.cases[0]
    told = f'{{"@form":{{"name":"{form.name}","edition":"2013","sha256":"{"0" * 64}"}}}}'
    readings = tuple(one._replace(answers=told) for one in view.readings)
    state = replace(state, cases=(replace(view, readings=readings),))
    assert count_other_forms(state, form) == (
        "2 readings answered on a different version of the form breast-mri-2013",
    )
    assert count_other_forms(state, None) == ()


def test_signatures_and_the_heads_of_all_chains_stand_on_the_page(page, store):
    (signed,) = cells(section(page, "Signatures").tables[0])
    assert (signed[0], signed[2], signed[5]) == ("<b>A</b>", "approver", "yes")
    chains = store.read().chains.values()
    heads = {chain[-1].hash for chain in chains if chain}
    shown = {row[3].replace(" ", "") for row in cells(section(page, "Chains").tables[0])}
    assert shown == heads
    assert store.origin in section(page, "Chains").says[0].replace(" ", "")


@pytest.mark.usefixtures("quick_figures")
def test_a_report_that_is_there_stays_unless_asked(store, tmp_path):
    path = write_study_report(store, tmp_path, QUICK).path
    before = path.read_bytes()
    with pytest.raises(SaveConflictError):
        write_study_report(store, tmp_path, QUICK)
    assert path.read_bytes() == before
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.usefixtures("quick_figures")
def test_a_damaged_mask_is_told_and_the_report_is_made(home, tmp_path):
    shutil.copytree(home / "STUDY", tmp_path / "STUDY")
    view = FolderStore(tmp_path / "STUDY", tmp_path / "h", host="H", session="1")
    victim = next(path for path in (tmp_path / "STUDY" / "masks").iterdir())
    victim.chmod(0o644)
    victim.write_bytes(b"not a mask")
    report = make_study_page(view, QUICK)
    page = report.page
    assert report.problems  # the command ends with 3
    assert any(victim.name.split(".")[0][:8] in text for text in page.failures)
    assert "problem" in page.warnings[0]
    assert [one.title for one in page.sections][-1] == "Chains"


def test_a_study_in_which_nothing_was_read_has_a_report(tmp_path):
    write_study(tmp_path / "STUDY", study())
    page = make_study_page(FolderStore(tmp_path / "STUDY", tmp_path / "h"), QUICK).page
    text = render_page(page)
    assert "Nothing was signed." in text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)


def test_page_and_window_have_the_intervals_of_the_command(home, store, tmp_path, monkeypatch):
    """They were drawn by two seeds, and of the window by another number of resamples."""
    command = mamamia(
        *("review", "agreement", home / "STUDY", "--out", tmp_path / "agreement"),
        *("--reader", "ben", "--unblind", "test"),
    )
    assert command.returncode == 0, command.stderr

    def read_numbers(folder):
        content = json.loads((folder / "agreement.json").read_text())
        del content["at"]
        return content

    made = read_numbers(tmp_path / "agreement")
    # Of few cases most ends of intervals are those of any seed; not all.
    for seed, is_same in ((DEFAULT.seed, True), (0, False)):
        result = measure_agreement(store, n_resamples=DEFAULT.n_resamples, seed=seed)
        save_agreement(result, tmp_path / str(seed))
        assert (read_numbers(tmp_path / str(seed)) == made) is is_same
    save_agreement(measure_agreement(store), tmp_path / "window")
    assert read_numbers(tmp_path / "window") == made
    drawn = []
    monkeypatch.setattr(
        study_report.agree,
        "measure_agreement",
        lambda *given, **settings: drawn.append(settings) or measure_agreement(*given, **settings),
    )
    make_study_page(store, DEFAULT)
    assert drawn == [{"n_resamples": 1000, "seed": 42}]


def sit_down_as_lea(home, folder, here):
    """Return her desk on another computer, to which she brought her key."""
    (key,) = home.rglob("lea.key.json")
    (here / "s1").mkdir(parents=True)
    shutil.copy(key, here / "s1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_COST", 1 << 15)  # as it was made
        return StudyClient(folder, "lea", here, "correct horse")


def test_a_lead_sees_the_queue_and_its_curve_while_the_study_is_read(home, tmp_path):
    client = sit_down_as_lea(home, home / "STUDY", tmp_path)
    client.look()
    look = load_quality_status(client)
    assert [(one.case_id, one.has_error) for one in look.rows] == [
        (CASES[1], True),  # the random part first
        (CASES[0], False),
        (CASES[2], False),
        (CASES[3], None),
    ]
    assert look.points == ((0, 0), (1, 0), (2, 1), (3, 1))  # as they were read
    assert look.says[0] == "1 error in 3 of 4 cases"
    assert describe_agreement(client)[0].startswith(
        "3 of 4 cases were read completely by two or more"
    )


def test_a_blind_reader_sees_neither_agreement_nor_what_others_found(home, tmp_path):
    client = StudyClient(home / "STUDY", "ana", tmp_path)
    client.look()
    assert load_quality_status(client) is None
    (line,) = describe_agreement(client)
    assert "only to leads and adjudicators" in line


def test_a_queue_that_was_changed_is_told_and_not_followed(home, tmp_path):
    shutil.copytree(home / "STUDY", tmp_path / "STUDY")
    (tmp_path / "STUDY" / ORDER).write_text("{}")
    look = load_quality_status(sit_down_as_lea(home, tmp_path / "STUDY", tmp_path / "home"))
    assert look.rows == ()
    assert "to be unchanged" in look.says[0]
