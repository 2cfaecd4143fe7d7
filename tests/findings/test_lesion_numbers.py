"""Numbers of lesions while their mask changes: by hand, and by every way to deal them."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_mamamia.core.answers import (
    Answer,
    Answers,
    CaseFacts,
    LesionAnchors,
    LesionFacts,
    Place,
)
from napari_mamamia.core.form import Field, FieldKind, FieldScope, Form
from napari_mamamia.findings.form_values import parse_answers, record_answers
from napari_mamamia.findings.lesion_numbers import (
    N_ANCHORS,
    follow_numbers,
    keep_anchors,
    list_lost,
    pick_anchors,
)

FORM = Form("f", "1", (Field("note", "Remark", FieldKind.TEXT, FieldScope.LESION),))


def said(*names):
    return Answers(tuple(Answer("note", ("x",), Place(FieldScope.LESION, one)) for one in names))


def test_without_a_past_parts_are_numbered_in_their_order():
    numbers = follow_numbers({}, (2, 0, 1), 2)
    assert numbers.names == {2: "1", 0: "2"}


def test_a_number_goes_where_its_anchors_are_whatever_is_largest():
    numbers = follow_numbers({"1": [1, 1], "2": [0, 0]}, (0, 1), 100)
    assert numbers.names == {0: "2", 1: "1"}
    assert numbers.joined == numbers.parted == ()


def test_of_a_lesion_that_came_apart_the_part_with_most_of_it_keeps_the_number():
    numbers = follow_numbers({"1": [0, 0, 1, 1, 1]}, (0, 1), 100)
    assert numbers.names == {1: "1", 0: "2"}
    assert numbers.parted == (("2", "1"),)


def test_of_two_halves_the_larger_part_keeps_the_number():
    assert follow_numbers({"1": [0, 1]}, (1, 0), 100).names == {1: "1", 0: "2"}
    assert follow_numbers({"1": [0, 1]}, (0, 1), 100).names == {0: "1", 1: "2"}


def test_of_two_lesions_in_one_part_the_smaller_number_keeps_it_and_both_are_told():
    numbers = follow_numbers({"10": [0, 0], "9": [0, 0]}, (0,), 100)
    assert numbers.names == {0: "9"}
    assert numbers.joined == (("10", "9"),)


def test_a_lesion_that_is_gone_keeps_its_number_from_what_is_new():
    numbers = follow_numbers({"1": [-1, -1], "2": [0]}, (1, 0), 100)
    assert numbers.names == {1: "3", 0: "2"}
    assert numbers.joined == ()
    assert follow_numbers({"1": []}, (0,), 100).names == {0: "2"}


def test_what_is_described_keeps_its_number_among_more_than_have_one():
    numbers = follow_numbers({"7": [199]}, tuple(range(200)), 100)
    assert len(numbers.names) == 100
    assert numbers.names[199] == "7"
    assert {numbers.names[part] for part in range(7)} == {"1", "2", "3", "4", "5", "6", "8"}


@given(
    st.lists(st.lists(st.integers(-1, 3), min_size=1, max_size=6), min_size=1, max_size=4),
    st.permutations(range(4)),
)
def test_as_much_stays_as_in_the_best_of_all_ways_to_deal_the_numbers(held, order):
    """Every way to give 4 names to 4 parts or to none, the sum of shares of each."""

    def share(name, part):
        places = held[name]
        return places.count(part) / len(places) if part is not None else 0.0

    slots = [*range(4), *([None] * len(held))]
    best = max(
        sum(share(name, part) for name, part in enumerate(way))
        for way in set(permutations(slots, len(held)))
    )
    names = follow_numbers({str(k + 1): places for k, places in enumerate(held)}, order, 100).names
    kept = sum(share(int(name) - 1, part) for part, name in names.items() if int(name) <= len(held))
    assert kept == pytest.approx(best)
    assert len(set(names.values())) == len(names) == 4
    again = follow_numbers(
        {str(k + 1): places for k, places in reversed(list(enumerate(held)))}, order, 100
    )
    assert again.names == names


def test_anchors_are_spread_over_the_lesion_and_few():
    voxels = np.argwhere(np.ones((3, 4, 25)))
    anchors = pick_anchors(voxels)
    assert len(anchors) == len(set(anchors)) == N_ANCHORS == 16
    assert anchors[0] == (0, 0, 0)
    assert anchors[-1] == (2, 3, 24)
    # 300 voxels, 100 a slice: 15 steps of 19.93 voxels each
    assert [sum(z == k for z, _, _ in anchors) for k in range(3)] == [6, 5, 5]
    assert pick_anchors(voxels[:3]) == ((0, 0, 0), (0, 0, 1), (0, 0, 2))


def test_a_number_of_which_nobody_said_anything_is_free_again_and_others_are_kept():
    before = (LesionAnchors("1", ((0, 0, 0),)), LesionAnchors("2", ((1, 1, 1),)))
    facts = CaseFacts((LesionFacts("3", anchors=((2, 2, 2),)),))
    answers = replace(said("2", "4"), anchors=before)
    assert keep_anchors(answers, facts) == (
        LesionAnchors("3", ((2, 2, 2),)),
        LesionAnchors("2", ((1, 1, 1),)),
        LesionAnchors("4", ()),  # of an older version: no new part takes its number
    )
    assert list_lost(answers, facts) == ("2", "4")
    assert list_lost(answers, CaseFacts(None)) == ()
    assert answers.leave_out(Place(FieldScope.LESION, "2")).anchors == before[:1]


def test_the_record_holds_anchors_and_gives_them_back():
    answers = replace(said("1"), anchors=(LesionAnchors("1", ((1, 2, 3), (1, 2, 4))),))
    record = json.loads(json.dumps(record_answers(FORM, answers)))
    assert record["@lesions"] == {"1": [[1, 2, 3], [1, 2, 4]]}
    assert parse_answers(record).anchors == answers.anchors
    assert "@lesions" not in record_answers(FORM, said("1"))


@pytest.mark.parametrize(
    "damaged",
    [
        7,
        [],
        {"1": 7},
        {"1": [[1, 2]]},
        {"1": [[1, 2, -3]]},
        {"1": [[True, 2, 3]]},
        {"1": [[1.5, 2, 3]]},
        {"1": [[1, 2, 10**9]]},
        {"1": [{"z": 1}]},
    ],
)
def test_a_damaged_record_has_no_anchors_and_its_answers_stay(damaged):
    answers = parse_answers({"note@1": {"text": "x"}, "@lesions": damaged})
    assert answers.items == said("1").items
    assert not any(one.voxels for one in answers.anchors)
