"""Side, quadrant, clock, depth: worked out by hand, and by a slow way that shares nothing."""

import itertools
import math

import numpy as np
import pytest

from napari_mamamia.core.answers import (
    Answer,
    Answers,
    CaseFacts,
    Landmark,
    Landmarks,
    LesionFacts,
    MarkedPoint,
    Place,
    Side,
)
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.core.form import FieldScope
from napari_mamamia.core.grid import Grid
from napari_mamamia.findings import lesion_position
from napari_mamamia.findings.form_rules import fill_computed, find_contradictions
from napari_mamamia.findings.lesion_position import (
    LEAST_RADIUS_MM,
    NEAR_MIDLINE_MM,
    find_depth,
    keep_names,
    list_hours,
    place_lesions,
)
from napari_mamamia.io.forms.form_file import read_shipped_lexicon
from napari_mamamia.scoring.case.failures import THRESHOLDS
from napari_mamamia.services.findings.case_facts import measure_case

FORM = read_shipped_lexicon("breast-mri-2013").form
RIGHT_NIPPLE, LEFT_NIPPLE = (90.0, 60.0, 0.0), (-90.0, 60.0, 0.0)
WALL = (90.0, -30.0, 0.0)
BOTH = Landmarks(
    (
        MarkedPoint(Landmark.NIPPLE, Side.RIGHT, RIGHT_NIPPLE),
        MarkedPoint(Landmark.NIPPLE, Side.LEFT, LEFT_NIPPLE),
    )
)


def facts_at(*centres, midline=0.0):
    lesions = [
        LesionFacts(str(n), _side_of(centre, midline), 100.0, 12.0, centre_mm=centre)
        for n, centre in enumerate(centres, start=1)
    ]
    return CaseFacts(tuple(lesions), is_one_breast=midline is None, midline_x_mm=midline)


def _side_of(centre, midline):
    if midline is None or abs(centre[0] - midline) < NEAR_MIDLINE_MM:
        return None
    return Side.RIGHT if centre[0] > midline else Side.LEFT


def placed(centre, landmarks=BOTH, midline=0.0):
    return place_lesions(facts_at(centre, midline=midline), landmarks).lesions[0]


def marked(side, point, landmark=Landmark.NIPPLE):
    return Landmarks((MarkedPoint(landmark, side, point),))


# On the right breast, seen from the front, the patient's right is on the viewer's left: 30 mm
# outward is x = 120, on the left breast x = -120.
@pytest.mark.parametrize(
    ("centre", "side", "quadrant", "clock"),
    [
        ((120.0, 40.0, 0.5), Side.RIGHT, "UO", "9"),
        ((60.0, 40.0, 0.5), Side.RIGHT, "UI", "3"),
        ((90.5, 40.0, 30.0), Side.RIGHT, "UO", "12"),
        ((90.5, 40.0, -30.0), Side.RIGHT, "LO", "6"),
        ((120.0, 40.0, 30.0), Side.RIGHT, "UO", "11"),  # 45 degrees: the hand comes to 11
        ((-120.0, 40.0, 0.5), Side.LEFT, "UO", "3"),
        ((-60.0, 40.0, 0.5), Side.LEFT, "UI", "9"),
        ((-60.0, 40.0, -20.0), Side.LEFT, "LI", "8"),
        # 26 outward and 15 down: 30 degrees below 3 o'clock
        ((-116.0, 40.0, -15.0), Side.LEFT, "LO", "4"),
        ((116.0, 40.0, -15.0), Side.RIGHT, "LO", "8"),
    ],
)
def test_clock_and_quadrant_by_hand(centre, side, quadrant, clock):
    one = placed(centre)
    assert (one.side, one.quadrant, one.clock) == (side, quadrant, clock)


def test_on_the_line_between_quadrants_there_is_an_hour_and_no_quadrant():
    one = placed((90.0, 40.0, 30.0))
    assert (one.clock, one.quadrant) == ("12", "")


def test_the_distance_to_the_nipple_is_in_space():
    assert placed((120.0, 20.0, 0.0)).to_nipple_mm == pytest.approx(50.0)  # 30 and 40 mm


def test_behind_the_nipple_no_clock_is_guessed():
    facts = place_lesions(facts_at((90.0, 20.0, LEAST_RADIUS_MM - 0.1)), BOTH)
    (one,) = facts.lesions
    assert (one.clock, one.quadrant) == ("", "")
    assert one.to_nipple_mm == pytest.approx(math.hypot(40.0, 9.9))
    assert facts.remarks == (
        "Lesion 1 is behind the nipple: enter clock position and quadrant yourself.",
    )
    assert placed((90.0, 20.0, LEAST_RADIUS_MM)).clock == "12"


def test_without_the_nipple_of_its_breast_a_lesion_has_a_side_and_no_more():
    facts = place_lesions(
        facts_at((120.0, 40.0, 9.0), (-120.0, 40.0, 9.0)), marked(Side.RIGHT, RIGHT_NIPPLE)
    )
    right, left = facts.lesions
    assert right.clock
    assert (left.side, left.clock, left.quadrant, left.to_nipple_mm) == (Side.LEFT, "", "", None)
    assert facts.remarks == ("The left nipple is not marked, so the clock position is unknown.",)


def test_in_a_volume_of_one_breast_the_marked_nipple_tells_the_side():
    unknown = place_lesions(facts_at((30.0, 40.0, 30.0), midline=None), Landmarks())
    assert unknown.lesions[0].side is None
    assert unknown.remarks == (
        "The volume contains one breast; its side and the clock position are unknown until the "
        "nipple is marked.",
    )
    # a coil's volume may lie anywhere: here a left breast right of the scanner's centre
    one = placed((30.0, 40.0, 30.0), marked(Side.LEFT, (20.0, 70.0, 0.0)), None)
    assert (one.side, one.clock, one.quadrant) == (Side.LEFT, "11", "UI")


def test_both_nipples_tell_the_middle_of_a_patient_who_lies_beside_it():
    landmarks = Landmarks(
        (
            MarkedPoint(Landmark.NIPPLE, Side.RIGHT, (130.0, 60.0, 0.0)),
            MarkedPoint(Landmark.NIPPLE, Side.LEFT, (-50.0, 60.0, 0.0)),
        )
    )
    one = placed((20.0, 40.0, 30.0), landmarks)  # right of the volume's middle, left of hers
    assert (one.side, one.clock) == (Side.LEFT, "10")
    assert placed((45.0, 40.0, 30.0), landmarks).side is None


@pytest.mark.parametrize(
    "landmarks",
    [
        Landmarks(
            (
                MarkedPoint(Landmark.NIPPLE, Side.RIGHT, LEFT_NIPPLE),
                MarkedPoint(Landmark.NIPPLE, Side.LEFT, RIGHT_NIPPLE),
            )
        ),
        marked(Side.LEFT, RIGHT_NIPPLE),
    ],
)
def test_nipples_that_cannot_be_meant_are_told_and_not_used(landmarks):
    facts = place_lesions(facts_at((120.0, 40.0, 30.0)), landmarks)
    assert (facts.lesions[0].side, facts.lesions[0].clock) == (Side.RIGHT, "")
    assert "again" in facts.remarks[0]


def test_depth_is_thirds_from_nipple_to_chest_wall_and_unknown_without():
    nipple = RIGHT_NIPPLE  # y from 60 to -30: thirds at 30 and 0
    depths = {y: find_depth((80.0, y, 5.0), nipple, WALL) for y in (59, 31, 29, 0.1, -1, -31, 61)}
    assert list(depths.values()) == [
        *("anterior", "anterior", "middle", "middle", "posterior", "", ""),
    ]
    assert find_depth((80.0, 0.0, 5.0), nipple, None) == ""
    assert find_depth((80.0, 0.0, 5.0), nipple, (90.0, 70.0, 0.0)) == ""  # in front of the nipple
    assert placed((120.0, 40.0, 0.0)).depth == ""


def test_placing_again_after_a_mark_was_taken_away_forgets_all():
    before = place_lesions(facts_at((120.0, 40.0, 9.0)), BOTH)
    (one,) = place_lesions(before, BOTH.put(MarkedPoint(Landmark.NIPPLE, Side.RIGHT, None))).lesions
    assert (one.clock, one.quadrant, one.to_nipple_mm) == ("", "", None)


# ------------------------------------------------- the slow way: hands of a clock on a picture


def slow_clock(side, centre, nipple):
    """Look at the patient from the front: which of twelve hands points most at the lesion."""
    picture = np.array([-(centre[0] - nipple[0]), centre[2] - nipple[2]])  # right, up on paper
    hands = {}
    x, y = 0.0, 1.0
    for hour in [12, *range(1, 12)]:
        hands[str(hour)] = x * picture[0] + y * picture[1]
        x, y = x * math.sqrt(3) / 2 + y / 2, -x / 2 + y * math.sqrt(3) / 2  # 30 degrees clockwise
    hour = max(hands, key=hands.get)
    is_upper = picture[1] > 0
    is_on_papers_right = picture[0] > 0
    is_outer = is_on_papers_right == (side is Side.LEFT)
    return hour, f"{'U' if is_upper else 'L'}{'O' if is_outer else 'I'}"


AXES = {
    "axial LPS": ((-1.0, 0, 0), (0, -1.0, 0), (0, 0, 2.5)),
    "axial from feet": ((1.0, 0, 0), (0, -1.0, 0), (0, 0, -2.5)),
    "sagittal": ((0, -1.0, 0), (0, 0, -1.0), (3.0, 0, 0)),
    "coronal": ((-1.0, 0, 0), (0, 0, -1.0), (0, 2.0, 0)),
    "oblique": ((-0.96, 0.2, 0.1), (-0.22, -0.95, 0.15), (0.3, 0.3, 2.4)),
}


def grid_of(axes, width_mm=320.0):
    """A grid about the scanner's centre; file axes as columns, arrays (z, y, x)."""
    matrix = np.array(axes, float).T
    n_xyz = [round(width_mm / np.linalg.norm(axis) / 4) for axis in np.array(axes, float)]
    affine = np.eye(4)
    affine[:3, :3] = matrix * 4
    affine[:3, 3] = -(matrix * 4) @ ((np.array(n_xyz) - 1) / 2) + (0.37, -0.21, 0.53)
    return Grid(tuple(reversed(n_xyz)), affine)


@pytest.mark.parametrize("name", AXES)
def test_every_orientation_of_the_file_gives_what_the_slow_way_gives(name):
    grid = grid_of(AXES[name])
    rng = np.random.default_rng(5)
    case = Case("A", grid, np.zeros((1, *grid.shape), np.int16), (Phase(0, 0.0, ()),))
    n_checked = 0
    for side, nipple in ((Side.RIGHT, RIGHT_NIPPLE), (Side.LEFT, LEFT_NIPPLE)):
        for _ in range(6):
            outward, up = rng.uniform(-45, 45, 2)
            at = np.array(nipple) + np.array((outward, -30.0, up))
            corner = np.round(grid.to_voxel(at)).astype(int)
            mask = np.zeros(grid.shape, np.bool_)
            mask[tuple(slice(n, n + 2) for n in corner)] = True
            index = [np.array(one) for one in itertools.product(*((n, n + 1) for n in corner))]
            matrix = np.asarray(grid.affine)
            world = [matrix[:3, :3] @ one[::-1] + matrix[:3, 3] for one in index]
            centre = sum(world) / len(world)
            (one,) = place_lesions(measure_case(case, mask), BOTH).lesions
            assert one.centre_mm == pytest.approx(tuple(centre))
            if math.hypot(centre[0] - nipple[0], centre[2] - nipple[2]) < LEAST_RADIUS_MM:
                continue
            assert (one.clock, one.quadrant) == slow_clock(side, centre, nipple)
            assert one.side is side
            assert one.to_nipple_mm == pytest.approx(float(np.linalg.norm(centre - nipple)))
            n_checked += 1
    assert n_checked >= 6


def test_a_sagittal_volume_of_one_breast_has_no_side_until_its_nipple_is_marked():
    grid = grid_of(AXES["sagittal"], width_mm=160.0)
    case = Case("A", grid, np.zeros((1, *grid.shape), np.int16), (Phase(0, 0.0, ()),))
    mask = np.zeros(grid.shape, np.bool_)
    mask[tuple(slice(n // 2, n // 2 + 2) for n in grid.shape)] = True
    facts = measure_case(case, mask)
    assert facts.is_one_breast
    assert facts.midline_x_mm is None
    assert place_lesions(facts, Landmarks()).lesions[0].side is None
    x, y, z = facts.lesions[0].centre_mm
    (one,) = place_lesions(facts, marked(Side.RIGHT, (x - 20, y + 40, z - 20))).lesions
    assert (one.side, one.quadrant, one.clock) == (Side.RIGHT, "UO", "11")


def test_the_nipple_of_the_other_breast_is_told_not_used_and_no_side_is_filled_in():
    mass = LesionFacts("1", Side.RIGHT, 100.0, 12.0, centre_mm=(90.0, 40.0, 10.0))
    facts = CaseFacts((mass,), sides=(Side.RIGHT,), is_one_breast=True)
    assert place_lesions(facts, Landmarks()).lesions[0].side is Side.RIGHT
    mistaken = place_lesions(facts, marked(Side.LEFT, (110.0, 80.0, 0.0)))
    assert (mistaken.lesions[0].side, mistaken.lesions[0].clock) == (None, "")
    assert "left nipple is marked, but this exam is of the right breast" in mistaken.remarks[0]
    right = place_lesions(facts, marked(Side.RIGHT, (110.0, 80.0, 0.0))).lesions[0]
    assert (right.side, right.clock) == (Side.RIGHT, "2")


def test_the_middle_is_as_near_as_scoring_takes_it():
    assert THRESHOLDS.midline_mm == NEAR_MIDLINE_MM


@pytest.mark.parametrize("side", [Side.RIGHT, Side.LEFT])
def test_the_hours_of_a_quadrant_are_those_that_are_filled_in(side):
    for hour in range(1, 13):
        angle = math.radians(hour * 30)
        # a little off the hour both ways, as seen on paper
        for off in (-0.1, 0.1):
            x, z = math.sin(angle + off) * 30, math.cos(angle + off) * 30
            nipple = RIGHT_NIPPLE if side is Side.RIGHT else LEFT_NIPPLE
            one = placed((nipple[0] - x, 30.0, nipple[2] + z))
            assert one.clock in list_hours(side, one.quadrant)
    assert list_hours(side, "central") == ()
    assert list_hours("both", "UO") == ()


# --------------------------------------------------------------------- in the form

LESION = Place(FieldScope.LESION, "1")


def test_the_form_is_filled_in_until_somebody_answers():
    facts = place_lesions(facts_at((120.0, 40.0, 30.0)), BOTH)
    answers = fill_computed(FORM, Answers(), facts)
    expected = {"side": "right", "quadrant": "UO", "clock": "11", "to_nipple": "46.9"}
    for field, value in expected.items():
        answer = answers.find(field, LESION)
        assert (answer.values, answer.is_computed) == ((value,), True)
    assert answers.find("depth", LESION) is None
    told = fill_computed(FORM, answers.put(Answer("clock", ("10",), LESION)), facts)
    assert told.find("clock", LESION).values == ("10",)
    taken = fill_computed(FORM, answers.put(Answer("clock", (), LESION)), facts)
    assert taken.find("clock", LESION).values == ()


def test_a_clock_position_that_the_quadrant_has_not_is_told():
    facts = place_lesions(facts_at((120.0, 40.0, 30.0)), BOTH)
    answers = Answers().put(Answer("clock", ("4",), LESION))
    (problem,) = find_contradictions(FORM, answers, facts)
    assert problem.text == "Clock face: 4 o'clock, but upper outer of the right breast is 9 to 12"
    assert problem.place == LESION
    central = answers.put(Answer("quadrant", ("central",), LESION))
    assert find_contradictions(FORM, central, facts) == ()


def test_a_finding_on_the_left_with_its_mask_on_the_right_is_told():
    facts = place_lesions(facts_at((120.0, 40.0, 30.0)), BOTH)
    texts = [
        one.text
        for one in find_contradictions(
            FORM, Answers().put(Answer("side", ("left",), LESION)), facts
        )
    ]
    assert "Side: left, but the mask of lesion 1 lies on the right side" in texts


# --------------------------------------------------------- lesions keep their numbers


def test_what_was_said_of_a_lesion_stays_with_it_where_sizes_change_places():
    before = facts_at((100.0, 40.0, 0.0), (-100.0, 40.0, 0.0))
    now = facts_at((-99.0, 41.0, 0.0), (100.0, 40.0, 2.0), (0.0, 0.0, 0.0))
    described = {one.name: one.centre_mm for one in before.lesions}
    named = keep_names(now, described)
    assert [one.name for one in named.lesions] == ["2", "1", "3"]


def test_a_described_lesion_that_is_gone_leaves_its_number_to_nobody():
    named = keep_names(facts_at((50.0, 0.0, 0.0)), {"1": (-80.0, 0.0, 0.0)})
    assert [one.name for one in named.lesions] == ["2"]


def test_of_two_parts_of_a_split_lesion_the_nearer_keeps_the_number():
    named = keep_names(facts_at((54.0, 0, 0), (48.0, 0, 0)), {"1": (50.0, 0.0, 0.0)})
    assert [one.name for one in named.lesions] == ["2", "1"]
    assert keep_names(CaseFacts(None), {"1": (0.0, 0.0, 0.0)}) == CaseFacts(None)


def test_a_point_that_is_none_is_refused():
    for point in ((0.0, 0.0), (0.0, 0.0, float("nan")), (0.0, 0.0, 1e9)):
        with pytest.raises(ArgumentError):
            MarkedPoint(Landmark.NIPPLE, Side.LEFT, point)
    with pytest.raises(ArgumentError):
        MarkedPoint(Landmark.NIPPLE, Side.BOTH, (0.0, 0.0, 0.0))


def test_it_names_whose_rules_they_are():
    assert "our choice" in lesion_position.__doc__
