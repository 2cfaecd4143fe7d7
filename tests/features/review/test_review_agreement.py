"""Agreement of a study: numbers by hand and of the facts; what is missing is named, not guessed."""

import csv
import hashlib
import inspect
import json
import weakref
from dataclasses import replace

import numpy as np
import pytest
from tests.review_study import TableStore, made, new_tables, study
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.blinding import ALL_HIDDEN
from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.review.cli.commands import app as review
from napari_mamamia.features.review.core.review import Honeypots, ReadingMode, Task, Triggers
from napari_mamamia.features.review.io.store import FolderStore
from napari_mamamia.features.review.rules.ratings import Question, QuestionKind, compare_numbers
from napari_mamamia.features.review.rules.states import ReadingView
from napari_mamamia.features.review.services.agreement import agree
from napari_mamamia.features.review.services.agreement.agree import (
    Truth,
    list_orders,
    measure_agreement,
)
from napari_mamamia.features.review.services.agreement.agreement_output import (
    agreement_lines,
    save_agreement,
)
from napari_mamamia.features.review.services.check_study import (
    find_status,
    save_audit,
    verify_study,
)
from napari_mamamia.features.review.services.compare import compare_readings
from napari_mamamia.features.review.services.look import load_state
from napari_mamamia.features.review.services.session import ReviewSession, require_unblinding
from napari_mamamia.io.data_set.volumes import write_volume
from napari_mamamia.io.files.append_file import canonical
from napari_mamamia.io.forms.form_file import parse_form

GRID = Grid.of_spacing((4, 10, 10), (2.0, 1.0, 1.0))
# the facts' example
A = "123344452145"
B = "123444552244"
C = "133345452145"


@pytest.fixture(scope="module")
def masks(tmp_path_factory):
    """Files of bars of so many rows, 12 voxels of 2 mm3 each."""
    folder = tmp_path_factory.mktemp("masks")

    def file_of(rows, grid=GRID):
        array = np.zeros(grid.shape, np.uint8)
        array[1:3, 2 : 2 + rows, 2:8] = 1
        path = folder / f"{rows}-{grid.shape[0]}.nii.gz"
        if not path.exists():
            write_volume(array, grid, path)
        return path

    return file_of


def table_store(readers, n_cases, **about):
    of = study(
        mode=ReadingMode.INDEPENDENT,
        readers=readers,
        cases=[f"case {n}" for n in range(n_cases)],
        **about,
    )
    return TableStore(new_tables(), of)


def read(store, reader, number, mask=None, answers=None, occasion=0):
    """One reading, its three events."""
    body = {"case": f"c{number:04d}", "round": 1}
    if occasion:
        body["occasion"] = occasion
    for act in ("claim", "start"):
        store.append(reader, {"act": act, **body})
    digest = "" if mask is None else store.put_mask(mask.read_bytes())
    text = canonical(answers or {}).decode()
    store.append(reader, {"act": "read", **body, "mask": digest, "answers": text})
    return digest


def test_masks_and_volumes_by_hand(masks):
    store = table_store(("ana", "ben"), 4)
    for number, (one, other) in enumerate([(4, 1), (4, 4), (0, None), (2, None)], start=1):
        for reader, rows in (("ana", one), ("ben", other)):
            read(store, reader, number, None if rows is None else masks(rows))
    found = measure_agreement(store)
    # 48 and 12 voxels: 2 x 12 / 60 = 0.4; equal: 1; one empty: 0; both empty is in no mean
    assert [one.dsc for one in found.pairs[:2]] == [0.4, 1.0]
    assert [one.empty for one in found.pairs] == ["", "", "both", "one"]
    (pair,) = found.readers
    assert (pair.first, pair.second, pair.n, pair.n_both_empty, pair.n_one_empty) == (
        *("ana", "ben"),
        *(4, 1, 1),
    )
    assert pair.dsc.value == pytest.approx(1.4 / 3)
    assert pair.dsc.n == 3
    assert (pair.dsc.low, pair.dsc.high) == (0.0, 1.0)
    # rows of ana's bar end 3 mm from ben's: 4 rows of 6 and 1; 95 % of the contour is 3 mm away
    assert pair.hd95_mm.value == pytest.approx((3.0 + 0.0) / 2)
    assert pair.hd95_mm.n == pair.nsd.n == 2
    (volumes,) = found.volumes
    # mm3: 96 and 24, 96 and 96, 0 and 0, 48 and 0
    assert volumes.bland_altman.bias == pytest.approx((72 + 0 + 0 + 48) / 4)
    assert volumes.ratio.ratio == pytest.approx(2.0)  # the root of 4 x 1
    assert volumes.ratio.n_left_out == 2
    assert [one.lowest_dsc for one in found.cases[:2]] == [0.4, 1.0]
    assert found.left_out == ()
    text = "\n".join(agreement_lines(found))
    assert "In 1 pair both masks are empty; they agree, but are not included in means." in text


def test_answers_agree_as_the_facts_say(masks):
    store = table_store(("ana", "ben", "cem"), 12)
    for reader, ratings in (("ana", A), ("ben", B), ("cem", C)):
        for number, category in enumerate(ratings, start=1):
            read(store, reader, number, None, {"assessment": category})
    (found,) = measure_agreement(store).categories
    pair = found.pairs[0]
    assert pair.same == pytest.approx(2 / 3)
    assert pair.kappa.value == pytest.approx(0.5636363636, abs=1e-10)
    assert pair.linear.value == pytest.approx(0.7692307692, abs=1e-10)
    assert pair.quadratic.value == pytest.approx(0.9016393443, abs=1e-10)
    assert found.fleiss.value == pytest.approx(0.5705765407, abs=1e-10)
    assert found.alpha.value == pytest.approx(0.5825049702, abs=1e-10)
    assert found.alpha_ordinal.value == pytest.approx(0.8892371521, abs=1e-10)
    assert pair.kappa.low < pair.kappa.value < pair.kappa.high
    assert dict(found.prevalence)["4"] == pytest.approx((4 + 5 + 3) / 36)
    assert (found.n_readers, found.n_fleiss_left_out, found.is_ordered) == (3, 0, True)


def test_readers_may_be_missing_and_words_have_no_weights(masks):
    store = table_store(("ana", "ben", "cem"), 5)
    rows = {"ana": "mild none mild none mild", "ben": "mild none none none", "cem": "mild none"}
    for reader, words in rows.items():
        for number, word in enumerate(words.split(), start=1):
            read(store, reader, number, None, {"bpe": word})
    (found,) = measure_agreement(store).categories
    # Answers of a case: 3 3 2 2 1. Coincidences: mild-mild 3 (case 1), none-none 3 + 2, one of
    # each in case 3: 2 off the diagonal; n = 10, mild 4, none 6. Do = 2, De = 48 / 9
    assert found.alpha.value == pytest.approx(1 - 9 * 2 / 48)
    assert (found.n_rated, found.n_answers) == (5, 11)
    assert not found.is_ordered
    assert found.alpha_ordinal is None
    assert found.pairs[0].linear is None
    # two cases have three answers, two have two: Fleiss takes those with three
    assert (found.n_readers, found.n_fleiss_left_out) == (3, 3)
    ordered = measure_agreement(store, orders={"bpe": ("none", "mild", "marked")}).categories[0]
    assert ordered.pairs[0].linear.value == pytest.approx(found.pairs[0].kappa.value)
    assert [name for name, _ in ordered.prevalence] == ["none", "mild", "marked"]


def test_one_category_alone_is_undefined_and_said_so(masks):
    store = table_store(("ana", "ben"), 2)
    for reader in ("ana", "ben"):
        for number in (1, 2):
            read(store, reader, number, None, {"motion": "no"})
    found = measure_agreement(store)
    assert str(found.categories[0].alpha.value) == "nan"
    assert "motion: 4 answers (no 100 %). All answers are the same" in "\n".join(
        agreement_lines(found)
    )


def test_every_kind_of_answer_is_compared_or_named(masks):
    store = table_store(("ana", "ben"), 3)
    answers = {
        "ana": [
            {"features": ["skin", "node"], "size": {"number": "12.5"}, "note": {"text": "a"}},
            {"features": [], "size": {"number": "30"}, "assessment@right": "2"},
            {"shape@1": "oval", "shape@2": "round", "odd": "x", "@computed": ["shape@1"]},
        ],
        "ben": [
            {"features": ["skin"], "size": {"number": "10.5"}, "note": {"text": "b"}},
            {"features": ["node"], "size": {"number": "29"}, "assessment@right": "3"},
            {"shape@1": "oval", "odd": {"number": "1"}, "assessment@left": "3"},
        ],
    }
    for reader, rows in answers.items():
        for number, row in enumerate(rows, start=1):
            read(store, reader, number, None, row)
    found = measure_agreement(store)
    assert [one.question for one in found.categories] == [
        "assessment",
        "features: node",
        "features: skin",
        "shape",
    ]
    node = found.categories[1].pairs[0]
    assert (node.n, node.same) == (2, 0.0)
    (size,) = found.numbers
    assert size.pairs[0].bland_altman.bias == pytest.approx(1.5)
    assert found.n_lesions_unmatched == 1
    # of ben's lesion nobody else said anything: ana described two and drew none
    assert [(one.n, one.n_alone) for one in found.categories[3].pairs] == [(0, 1)]
    assert (
        "odd is not compared: it has answers of different types (category, number)" in found.notes
    )
    # a record that is no object, and broken ones, answer nothing
    for text in ("[]", "{", "[" * 5000):
        store.append("ana", {"act": "read-again", "case": "c0001", "round": 1, "reason": "x"})
        for act in ("claim", "start"):
            store.append("ana", {"act": act, "case": "c0001", "round": 1})
        body = {"act": "read", "case": "c0001", "round": 1, "mask": "", "answers": text}
        store.append("ana", body)
        assert len(measure_agreement(store).numbers[0].pairs) == 1


def test_a_mask_that_is_missing_damaged_or_on_another_grid_is_named_and_the_rest_counts(masks):
    store = table_store(("ana", "ben", "cem"), 3)
    other = Grid.of_spacing((5, 10, 10), (2.0, 1.0, 1.0))
    lost = read(store, "ana", 1, masks(3))
    read(store, "ben", 1, masks(4))
    read(store, "cem", 1, masks(4))
    for reader in ("ana", "ben"):
        read(store, reader, 2, masks(4))
    read(store, "cem", 2, masks(4, other))
    for reader in ("ana", "cem"):  # two who gave the same damaged file
        body = {"case": "c0003", "round": 1}
        for act in ("claim", "start"):
            store.append(reader, {"act": act, **body})
        digest = store.put_mask(b"no mask at all")
        store.append(reader, {"act": "read", **body, "mask": digest, "answers": "{}"})
    read(store, "ben", 3, masks(4))
    with_all = measure_agreement(store)
    content = store.tables["mask"].pop(lost)
    gone = measure_agreement(store)
    assert gone.left_out[0].what == "the read by ana"
    assert next((one.first, one.second) for one in gone.pairs) == ("ben", "cem")
    store.tables["mask"][lost] = content
    del store.tables["mask"][lost]
    store.tables["mask"][lost] = b"other bytes"
    found = measure_agreement(store)
    assert [(one.case_id, one.what) for one in found.left_out] == [
        ("case 0", "all pairs with ana"),
        ("case 1", "ana and cem"),
        ("case 1", "ben and cem"),
        ("case 2", "all pairs with ana"),
        ("case 2", "all pairs with cem"),
    ]
    assert [(one.case_id, one.first, one.second) for one in found.pairs] == [
        ("case 0", "ben", "cem"),
        ("case 1", "ana", "ben"),
    ]
    assert len(with_all.pairs) == 4
    assert "shape (4, 10, 10)" in found.left_out[1].why


def test_one_reader_and_no_pair_are_said_and_nothing_fails(masks):
    for readers in (("ana",), ("ana", "ben")):
        store = table_store(readers, 2)
        read(store, "ana", 1, masks(3), {"bpe": "mild"})
        found = measure_agreement(store)
        assert found.readers == found.volumes == ()
        assert (
            "no case was read completely by two people, so there is nothing to compare"
            in found.notes
        )
        assert agreement_lines(found)[0].startswith("0 of 2 cases")
        assert found.categories[0].pairs == ()


def test_hidden_repeats_are_held_against_the_own_first_time(masks, tmp_path):
    store = table_store(("ana", "ben"), 2, repeat_share=0.5)
    store.study = replace(store.study, tasks=(*store.study.tasks, Task("ana", "c0001", 1)))
    read(store, "ana", 1, masks(4), {"bpe": "mild", "size": {"number": "12"}})
    read(store, "ben", 1, masks(4), {"bpe": "mild", "size": {"number": "20"}})
    again = {"bpe": "marked", "size": {"number": "9.5"}}
    read(store, "ana", 1, masks(1), again, occasion=1)
    found = measure_agreement(store)
    (own,) = found.repeats
    assert (own.first, own.second, own.dsc.value) == ("ana", "ana", 0.4)
    assert [(one.first, one.second) for one in found.readers] == [("ana", "ben")]
    assert found.repeat_answers[0].pairs[0].same == 0.0
    assert found.categories[0].pairs[0].same == 1.0, "a repeat is no second reader"
    (size,) = found.repeat_numbers
    assert (size.question, size.pairs[0].n, size.pairs[0].bias.value) == ("size", 1, 2.5)
    assert found.numbers[0].pairs[0].bias.value == -8
    save_agreement(found, tmp_path)
    with (tmp_path / "agreement_questions.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["what"] == "bias"]
    assert [(row["of"], row["value"]) for row in rows] == [("readers", "-8.0"), ("repeat", "2.5")]
    assert any("first time and repeat: difference 2.50" in one for one in agreement_lines(found))


def test_what_is_of_one_case_is_drawn_together():
    """The same answer of four lesions tells no more than that of one: intervals stay as wide."""
    sizes = [(5.0, 4.0), (9.0, 12.0), (3.0, 3.5), (20.0, 14.0), (7.0, 9.0)]

    def compare(n_lesions, cases=()):
        rows = {
            (at, f"lesion {k}"): {"ana": one, "ben": other}
            for at, (one, other) in enumerate(
                size for size in sizes for _ in range(n_lesions if cases else 1)
            )
            for k in range(1 if cases else n_lesions)
        }
        question = Question("size", QuestionKind.NUMBER, rows, {})
        return compare_numbers(question, ("ana", "ben"), 500, 1, cases).pairs[0]

    one, four = compare(1), compare(4)
    assert (one.n, four.n, four.bias.n) == (5, 20, 5)
    for name in ("bias", "log_ratio"):
        wanted, got = (getattr(pair, name) for pair in (one, four))
        assert (got.low, got.high) == pytest.approx((wanted.low, wanted.high))
    assert four.icc.high - four.icc.low == pytest.approx(one.icc.high - one.icc.low, rel=0.1)
    # hidden repeats of one case by four readers are of one case, too
    assert compare(4, [at for at in range(5) for _ in range(4)]).bias == four.bias


def test_honeypots_are_followed_over_time_by_the_list_of_the_beginning(masks, tmp_path):
    names = ("case 2", "case 0", "case 1")
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
    store = table_store(("ana",), 3)
    store.study = replace(store.study, honeypots=Honeypots(3, digest))
    truth = tmp_path / "truth"
    truth.mkdir()
    for number in (0, 1):
        (truth / f"case {number}.nii.gz").write_bytes(masks(4).read_bytes())
    for number, rows in ((2, 1), (1, 4), (3, 4)):  # the second case first, badly
        read(store, "ana", number, masks(rows))
    found = measure_agreement(store, Truth(names, truth))
    (course,) = found.honeypots
    assert (course.reader, course.masks.n) == ("ana", 2)
    assert (course.first_half_dsc, course.second_half_dsc) == (0.4, 1.0)
    # IoU 1 / 4 and 1: by CVAT's 0.4 one is missing and extra, one is valid
    counts = (course.objects.n_valid, course.objects.n_missing, course.objects.n_extra)
    assert counts == (1, 1, 1)
    shares = (course.objects.accuracy, course.objects.precision, course.objects.recall)
    assert shares == (1 / 3, 1 / 2, 1 / 2)
    assert [(one.case_id, one.what) for one in found.left_out] == [("case 2", "truth")]
    with pytest.raises(CaseError, match="the list of honeypots that was used to begin the study"):
        measure_agreement(store, Truth(names[:2], truth))
    assert any("honeypots are not evaluated" in one for one in measure_agreement(store).notes)


def test_masks_of_one_case_alone_are_held(masks, monkeypatch):
    store = table_store(("ana", "ben"), 12)
    for number in range(1, 13):
        for reader in ("ana", "ben"):
            read(store, reader, number, masks(1 + number % 4))
    crops, n_alive = [], []
    load = agree.load_stored_labels

    class Watched(np.ndarray):
        """An array that can be referred to weakly."""

    def watched(*about):
        labels = load(*about)
        crop = labels.crop.view(Watched)
        crops.append(weakref.ref(crop))
        n_alive.append(sum(one() is not None for one in crops))
        return replace(labels, crop=crop)

    monkeypatch.setattr(agree, "load_stored_labels", watched)
    assert measure_agreement(store).n_compared == 12
    assert len(n_alive) == 12, "two readers gave the same file"
    assert max(n_alive) <= 2


def test_the_command_writes_files_that_say_what_the_numbers_are(masks, tmp_path, monkeypatch):
    monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("MAMAMIA_CACHE_DIR", str(tmp_path / "cache"))
    folder = made(tmp_path, blinding=ALL_HIDDEN)
    for reader, rows in (("ana", 4), ("ben", 1)):
        store = FolderStore(folder, tmp_path / reader, host=reader, session="1")
        read(store, reader, 1, masks(rows), {"bpe": "=mild"})
        store.close()
    run = CliRunner().invoke
    words = ["review", "agreement", str(folder), "--out", str(tmp_path / "out")]
    refused = run(app, words)
    assert refused.exit_code != 0
    assert "expected the name of the person who asks" in f"{refused.output}{refused.exception}"
    assert not (tmp_path / "out").exists()
    done = run(app, [*words, "--reader", "Lea Lead", "--bootstrap", "50"])
    assert done.exit_code == 0, done.output
    assert "Dice 0.400 (0.400 to 0.400)" in done.output
    content = json.loads((tmp_path / "out" / "agreement.json").read_text("utf-8"))
    assert content["mamamia_agreement"] == 1
    assert content["readers"][0]["dsc"]["value"] == 0.4
    assert content["volumes"][0]["icc"]["value"] is None
    rows = list(csv.DictReader((tmp_path / "out" / "agreement_pairs.csv").open()))
    assert [(row["kind"], row["case_id"], row["dsc"]) for row in rows] == [("readers", "A", "0.4")]
    path = next((folder / "masks").iterdir())
    path.write_bytes(path.read_bytes() + b" ")
    broken = run(app, [*words, "--reader", "lea"])
    assert broken.exit_code == 3
    assert "failed: A: all pairs with" in broken.output


def test_who_reads_blind_sees_no_numbers_without_an_event_and_a_reason(masks, tmp_path):
    folder = made(tmp_path, blinding=ALL_HIDDEN)
    store = FolderStore(folder, tmp_path / "home", host="H", session="1")
    for who in ("lea", "jo"):
        require_unblinding(store, who, "", tmp_path)
    before = len(store.read().chains)
    with pytest.raises(CaseError, match="Ana is neither lead nor adjudicator"):
        require_unblinding(store, "ana", " ", tmp_path)
    assert len(store.read().chains) == before
    require_unblinding(store, "ana", "the pilot is over", tmp_path)
    assert load_state(store).refused == ()
    table, _ = save_audit(store, tmp_path / "audit")
    assert "the pilot is over" in table.read_text("utf-8")


def test_results_lie_outside_the_study_and_the_audit_trail_is_asked_for_by_name(tmp_path):
    folder = made(tmp_path, blinding=ALL_HIDDEN)
    before = sorted(folder.rglob("*"))
    takes_out = {
        one.name: ("--reader", "lea")
        for one in review.registered_commands
        if {"study", "out"} <= set(inspect.signature(one.callback).parameters)
    }
    assert len(takes_out) == 6
    run = CliRunner().invoke
    for name, who in takes_out.items():
        for place in (folder / "masks", folder / "events" / "ana", folder):
            done = run(app, ["review", name, str(folder), "--out", str(place), *who])
            assert done.exit_code == 1, name
            assert "expected a folder outside the study" in f"{done.output}{done.exception}", name
    assert sorted(folder.rglob("*")) == before
    out = ["--out", str(tmp_path / "out")]
    for who, why in (
        ((), "expected the name of the person"),
        (("--reader", "ana"), "would no longer be blind"),
    ):
        done = run(app, ["review", "audit", str(folder), *out, *who])
        assert why in f"{done.output}{done.exception}"
    assert not (tmp_path / "out").exists()


def test_a_lead_who_still_reads_is_blind_too(tmp_path):
    of = study(blinding=ALL_HIDDEN)
    readers = [
        replace(one, roles=(*one.roles, of.reader("ana").roles[0]))
        if one.reader_id == "lea"
        else one
        for one in of.readers
    ]
    of = replace(of, readers=tuple(readers), tasks=(*of.tasks, Task("lea", "c0001")))
    store = TableStore(new_tables(), of)
    with pytest.raises(CaseError, match="Lea Lead has open readings in this study"):
        require_unblinding(store, "lea", "", tmp_path)
    session = ReviewSession(store, "lea", tmp_path)
    session.claim(Task("lea", "c0001"))
    session.start(Task("lea", "c0001"))
    session.finish(Task("lea", "c0001"), None)
    require_unblinding(store, "lea", "", tmp_path)


def test_files_of_an_earlier_agreement_are_replaced(masks, tmp_path):
    store = table_store(("ana", "ben"), 1)
    found = measure_agreement(store)
    assert save_agreement(found, tmp_path) == save_agreement(found, tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_part_of_a_study_is_never_told_as_the_whole(masks, tmp_path):
    folder = made(tmp_path)
    store = FolderStore(folder, tmp_path / "home", host="H", session="1")
    read(store, "ana", 1, masks(3))
    store.close()
    lead = FolderStore(folder, tmp_path / "lea", host="L", session="1")
    folder.rename(tmp_path / "AWAY")
    tellers = (find_status, verify_study, measure_agreement, lambda one: save_audit(one, tmp_path))
    for tell in tellers:
        with pytest.raises(FormatError, match="check that the folder is reachable, then try again"):
            tell(lead)
    (tmp_path / "AWAY").rename(folder)
    assert find_status(lead).states["second reading needed"] == 1


def test_an_order_is_the_form_s_and_only_where_somebody_says_so():
    form = parse_form("breast-mri-2013", [], "test")
    assert list_orders(form, ["bpe"]) == {"bpe": ("minimal", "mild", "moderate", "marked")}
    for name in ("nothing", "size"):
        with pytest.raises(CaseError, match="a question with terms in the study's form"):
            list_orders(form, [name])
    with pytest.raises(CaseError, match="found 'bpe'"):
        list_orders(None, ["bpe"])


# ------------------------------------------------------------------------------- lesions


@pytest.fixture(scope="module")
def spots(tmp_path_factory):
    """Files of masks of bars in rows 2 to 5 of slice 1: columns from, to (excluded)."""
    folder = tmp_path_factory.mktemp("spots")
    grid = Grid.of_spacing((3, 8, 60), (2.0, 1.0, 1.0))

    def file_of(*columns):
        array = np.zeros(grid.shape, np.uint8)
        for start, stop in columns:
            array[1, 2:6, start:stop] = 1
        path = folder / f"{columns}.nii.gz"
        write_volume(array, grid, path, overwrite=True)
        return path

    return file_of


def read_lesions(spots, **bens):
    """Two cases: ana and ben number two lesions otherwise, and ben has one that ana has not.

    Of ana the largest is 1; ben drew the left one first, which is his smallest but one.
    """
    store = table_store(("ana", "ben"), 2)
    read(store, "ana", 1, spots((2, 10), (20, 24)), {"shape@1": "oval", "shape@2": "round"})
    of_ben = {"shape@1": "oval", "shape@2": "irregular", "shape@3": "round"}
    places = {"1": [[1, 3, 4]], "2": [[1, 3, 25]], "3": [[1, 2, 50], [1, 5, 51]]}
    masks = spots((2, 8), (20, 28), (50, 52))
    read(store, "ben", 1, masks, of_ben | {"@lesions": places} | bens)
    for reader in ("ana", "ben"):
        read(store, reader, 2, spots((2, 10)), {"shape@1": "round"})
    return store


def test_answers_about_lesions_are_compared_lesion_by_lesion_and_lone_ones_are_counted(spots):
    found = measure_agreement(read_lesions(spots))
    (shape,) = found.categories
    (pair,) = shape.pairs
    # oval and oval, round and irregular, round and round; by number it would be oval and oval too,
    # by size oval and irregular, round and oval
    assert (pair.n, pair.same) == (3, pytest.approx(2 / 3))
    # by chance (oval 1 x 1 + round 2 x 1) / 9: (2/3 - 1/3) / (1 - 1/3)
    assert pair.kappa.value == pytest.approx(0.5)
    # 6 values, oval 2, round 3, irregular 1: 1 - (2 / 6) / (1 - (2 + 6) / 30)
    assert shape.alpha.value == pytest.approx(1 - (1 / 3) / (22 / 30))
    assert (shape.n_rated, shape.n_alone, pair.n_alone) == (4, 1, 1)
    assert found.n_lesions_unmatched == 0
    (lesions,) = found.lesions
    assert (lesions.n_both, lesions.n_first, lesions.n_second, lesions.n_parts) == (3, 0, 1, 0)
    assert lesions.positive.value == pytest.approx(6 / 7)
    # columns of 4 rows: 2 x 6 / 14, 2 x 4 / 12 and 1
    assert lesions.dsc.value == pytest.approx((12 / 14 + 8 / 12 + 1) / 3)
    text = "\n".join(agreement_lines(found))
    assert "3 marked by both" in text
    assert "1 by ben only" in text
    assert "1 lesion from only one reader" in text


@pytest.mark.parametrize("damaged", [7, {}, {"1": [[0, 0, 0]]}, {"1": "x", "2": [], "3": [None]}])
def test_answers_of_lesions_that_nobody_can_tell_apart_are_counted_and_not_compared(spots, damaged):
    found = measure_agreement(read_lesions(spots, **{"@lesions": damaged}))
    (shape,) = found.categories
    # ana's two of the first case have no partner; both answered in the second
    assert (shape.pairs[0].n, shape.pairs[0].n_alone) == (1, 2)
    assert found.n_lesions_unmatched == 1
    assert found.lesions[0].n_both == 3  # the masks are the same


def test_files_and_report_have_lesions_and_what_is_of_one_alone(spots, tmp_path):
    found = measure_agreement(read_lesions(spots))
    save_agreement(found, tmp_path)
    content = json.loads((tmp_path / "agreement.json").read_text())
    (lesions,) = content["lesions"]
    assert (lesions["n_both"], lesions["n_first"], lesions["n_second"]) == (3, 0, 1)
    assert lesions["positive"]["value"] == pytest.approx(6 / 7)
    assert content["categories"][0]["n_alone"] == 1
    assert "10 mm" in content["definitions"]["lesions"]
    with (tmp_path / "agreement_readers.csv").open() as stream:
        (row,) = csv.DictReader(stream)
    assert (row["n_lesions_both"], row["n_lesions_second"]) == ("3", "1")
    with (tmp_path / "agreement_questions.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["what"] == "alone"]
    assert [(row["first"], row["value"]) for row in rows] == [("", "1"), ("ana", "1")]


def test_hidden_repeats_are_compared_lesion_by_lesion(spots):
    store = table_store(("ana", "ben"), 2, repeat_share=0.5)
    store.study = replace(store.study, tasks=(*store.study.tasks, Task("ana", "c0001", 1)))
    answers = {"shape@1": "oval", "shape@2": "round"}
    read(store, "ana", 1, spots((2, 10), (20, 24)), answers)
    # the second time the right one is larger, and is 1
    turned = {"shape@1": "round", "shape@2": "round"}
    read(store, "ana", 1, spots((2, 8), (20, 30)), turned, occasion=1)
    (shape,) = measure_agreement(store).repeat_answers
    assert (shape.pairs[0].n, shape.pairs[0].same) == (2, 0.5)


def test_readings_disagree_by_their_lesions_and_by_what_was_said_of_the_same_one(spots):
    store = table_store(("ana", "ben"), 1)
    triggers = Triggers(dice_below=None, volume_ratio=None, hd95_mm=None)

    def because(one, other, *answers):
        texts = [canonical(body).decode() for body in answers or ({}, {})]
        views = [
            ReadingView(name, mask=store.put_mask(spots(*bars).read_bytes()), answers=text)
            for name, bars, text in zip("ab", (one, other), texts, strict=True)
        ]
        return compare_readings(store, views, triggers).because

    both = ((2, 10), (20, 24))
    assert because(both, ((2, 10), (50, 54))) == (
        "same number of lesions; 2 marked by one reader only",
    )
    assert because(both, ((2, 10),)) == ("1 and 2 lesions",)
    # the same two, the other way round in size: what was said of the left one is the same
    turned = ((2, 6), (20, 28))
    answers = ({"k@1": "a", "k@2": "b"}, {"k@2": "a", "k@1": "c"})
    assert because(both, turned, *answers) == ("k@2 and @1: b and c",)
