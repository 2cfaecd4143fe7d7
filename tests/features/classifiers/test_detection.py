"""Detection: matching, FROC, the readings of raFROC, strata, precision and patient level."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from napari_mamamia.core.choices import (
    CaseScoreRule,
    CurveReading,
    DuplicateRule,
    LesionMatching,
    RiskModel,
)
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    Overlaps,
    PredictedBoxes,
    axial_box_side_mm,
    box_overlaps,
    risk_of_size,
)
from napari_mamamia.features.classifiers.scoring.detection.detection import score_detection
from napari_mamamia.features.classifiers.scoring.detection.matching import (
    MatchingRule,
    match_lesions,
)
from napari_mamamia.features.classifiers.scoring.detection.results import (
    RATES,
    CurveKind,
    DetectionInput,
    DetectionSettings,
    Events,
    average_precision_of_lesions,
)
from napari_mamamia.scoring.statistics.auc import auc

QUICK = DetectionSettings(n_resamples=0)

# Case by case: lesions as x1, x2, y1, y2, z1, z2; boxes as the same and a score.
EXAMPLE = {
    "A": (
        [(0, 10, 0, 10, 0, 10), (50, 80, 50, 70, 50, 70)],
        [
            (50, 78, 50, 70, 50, 70, 0.9),
            (52, 80, 50, 70, 50, 70, 0.8),
            (1, 10, 0, 10, 0, 10, 0.3),
        ],
    ),
    "B": ([(0, 40, 0, 20, 0, 20)], [(100, 108, 0, 8, 0, 8, 0.7), (0, 36, 0, 20, 0, 20, 0.6)]),
    "C": (
        [(0, 22, 0, 22, 0, 22)],
        [(150, 250, 0, 100, 0, 30, 0.95), (100, 106, 0, 6, 0, 6, 0.5), (1, 20, 1, 20, 0, 22, 0.4)],
    ),
}


def data_of(cases, lesion_risks=None, box_risks=None, centres=()):
    """Make the input of cases as in `EXAMPLE`."""
    lesions = [(k, box) for k, (boxes, _) in enumerate(cases.values()) for box in boxes]
    boxes = [(k, box) for k, (_, boxes) in enumerate(cases.values()) for box in boxes]
    edges = np.array([box for _, box in lesions], dtype=float).reshape(-1, 6)
    rows = np.array([box for _, box in boxes], dtype=float).reshape(-1, 7)
    nothing = np.full(len(lesions), np.nan), np.full(len(boxes), np.nan)
    truth = Lesions(
        np.array([k for k, _ in lesions], dtype=np.intp),
        edges,
        nothing[0] if lesion_risks is None else np.array(lesion_risks),
    )
    predicted = PredictedBoxes(
        np.array([k for k, _ in boxes], dtype=np.intp),
        rows[:, :6],
        rows[:, 6],
        nothing[1] if box_risks is None else np.array(box_risks),
    )
    overlaps = box_overlaps(truth, predicted)
    return DetectionInput(tuple(cases), truth, predicted, overlaps, tuple(centres))


def scored(cases, settings=QUICK, **more):
    return score_detection(data_of(cases, **more), settings)


def random_cases(rng, n_cases=12):
    """Return cases with lesions and boxes close enough to meet; some have none."""
    cases = {}
    for k in range(n_cases):
        starts = rng.uniform(0, 30, (rng.integers(0, 4), 3))
        sides = rng.uniform(4, 40, starts.shape)
        lesions = [box(a, b) for a, b in zip(starts, sides, strict=True)]
        boxes = []
        for _ in range(rng.integers(0, 7)):
            start = rng.uniform(0, 40, 3)
            if len(starts) and rng.random() < 0.7:
                start = starts[rng.integers(len(starts))] + rng.normal(0, 4, 3)
            boxes.append((*box(start, rng.uniform(4, 40, 3)), float(rng.random())))
        cases[f"C{k}"] = (lesions, boxes)
    return cases


def box(start, sides):
    return tuple(float(v) for a, s in zip(start, sides, strict=True) for v in (a, a + s))


# ---------------------------------------------------------------- sizes and risk


def test_the_size_is_the_longer_in_plane_side_of_the_axial_plane():
    edges = np.array([[0.0, 10, 0, 25, 0, 90], [5, 40, 1, 2, 0, 1]])
    assert axial_box_side_mm(edges).tolist() == [25, 35]


def test_the_risk_follows_the_published_polynomial_and_is_cut_to_one():
    sizes = np.array([0.0, 10, 20, 30, 50, 100, 150, 200])
    expected = [0.002137, 0.180730, 0.334156, 0.464549, 0.664774, 0.911654, 1, 1]
    assert risk_of_size(sizes).round(6).tolist() == expected


def test_the_other_risk_is_that_of_2005():
    expected = np.exp(-np.exp(-(np.array([15.0, 25.0]) - 15) / 10))
    assert risk_of_size(np.array([15.0, 25.0]), RiskModel.VERSCHRAEGEN_2005) == pytest.approx(
        expected
    )


# ---------------------------------------------------------------- the worked example


def test_the_example_has_the_froc_of_the_reference_programs():
    found = scored(EXAMPLE)
    assert (found.n_true_positives, found.n_false_positives, found.n_nearly_free) == (4, 4, 1)
    assert found.froc == pytest.approx(0.5357142857, abs=5e-11)
    assert found.curve().at(np.array(RATES)).tolist() == [0, 0, 0.25, 0.5, 1, 1, 1]
    assert found.curve().reached_fp_per_case == 4 / 3


def test_the_three_readings_of_the_example_are_apart():
    risks = scored(EXAMPLE).risk_adjusted
    assert risks.strict == pytest.approx(0.6973303446, abs=5e-11)
    assert risks.reference_code == pytest.approx(0.7491893127, abs=5e-11)
    assert risks.paper_eq3 == pytest.approx(0.2756776786, abs=5e-11)
    assert risks.ceiling == pytest.approx(0.3953329735, abs=5e-11)
    curve = scored(EXAMPLE).curve(CurveKind.REFERENCE_CODE).at(np.array(RATES))
    assert curve.round(6).tolist() == [0.293771, 0.293771, 0.656784, 1, 1, 1, 1]


def test_the_third_false_box_weighs_as_worked_out():
    found = scored(EXAMPLE)
    strict = found.curve(CurveKind.STRICT).fp_per_case
    code = found.curve(CurveKind.REFERENCE_CODE).fp_per_case
    assert round(strict[4], 4) == 0.5003
    assert round(code[4], 3) == 0.452


def test_average_precision_of_the_example():
    assert scored(EXAMPLE).average_precision == (
        ("0.1", pytest.approx(0.5)),
        ("0.5", pytest.approx(0.5)),
        ("0.1:0.5:0.05", pytest.approx(0.5)),
    )


def test_strata_of_the_example_in_both_readings():
    rows = [
        (s.name, s.reading, s.n_lesions, s.n_true_positives, s.n_false_positives, round(s.froc, 10))
        for s in scored(EXAMPLE).strata
    ]
    assert rows == [
        ("0-20mm", "coco-ignore", 1, 1, 2, 0.5714285714),
        ("0-20mm", "discard-then-match", 1, 1, 3, 0.5714285714),
        ("20mm-", "coco-ignore", 3, 3, 2, 0.6190476190),
        ("20mm-", "discard-then-match", 3, 3, 2, 0.6190476190),
    ]


def test_a_lesion_of_just_the_cut_is_in_both_strata_and_said():
    found = scored({"A": ([(0, 20, 0, 5, 0, 5)], [(0, 20, 0, 5, 0, 5, 1.0)])})
    assert [s.n_lesions for s in found.strata] == [1, 1, 1, 1]
    assert any("20.0 mm are counted in both" in text for text in found.warnings)


def test_the_risk_adjusted_example_of_the_reference_code():
    # Three cases; lesions of risk .8, .7, .6, three of them found; false boxes of given risk.
    lesions = {"P1": [(0, 10) * 3, (100, 110) * 3], "P2": [(0, 10) * 3]}
    found = [(*lesions["P1"][0], 0.1), (*lesions["P1"][1], 0.2), (*lesions["P2"][0], 0.9)]
    cases = {
        "P1": (lesions["P1"], [found[0], found[1], (500, 510) * 3 + (0.5,)]),
        "P2": (lesions["P2"], [found[2]]),
        "P3": ([], []),
    }
    given = scored(cases, lesion_risks=[0.8, 0.7, 0.6], box_risks=[1, 1, 0.4, 1])
    assert given.risk == "given"
    # The largest risk is .8: weights 1, .875, .75; the false box weighs 1 - .5.
    curve = given.curve(CurveKind.REFERENCE_CODE)
    assert curve.sensitivity == pytest.approx(np.cumsum([0, 0.6, 0, 0.7, 0.8]) / 2.1)
    assert curve.fp_per_case == pytest.approx([0, 0, 0.5 / 3, 0.5 / 3, 0.5 / 3])
    assert given.curve(CurveKind.STRICT).fp_per_case[-1] == pytest.approx(0.6 / 3)


# ---------------------------------------------------------------- matching

TWO_LESIONS = {
    "A": (
        [(0, 10) * 3, (6, 16, 0, 10, 0, 10)],
        [(2, 12, 0, 10, 0, 10, 0.9), (0, 5.8, 0, 10, 0, 10, 0.8)],
    )
}


def test_greedy_and_hungarian_differ_where_the_better_score_takes_the_only_lesion_of_another():
    overlaps = data_of(TWO_LESIONS).overlaps
    assert overlaps.values.round(3).tolist() == [0.667, 0.429, 0.58]
    greedy = scored(TWO_LESIONS)
    assert (greedy.n_true_positives, greedy.n_false_positives) == (1, 1)
    rule = MatchingRule(LesionMatching.HUNGARIAN)
    hungarian = scored(TWO_LESIONS, DetectionSettings(rule, n_resamples=0))
    assert (hungarian.n_true_positives, hungarian.n_false_positives) == (2, 0)


@pytest.mark.parametrize("matching", [LesionMatching.GREEDY_SCORE, LesionMatching.HUNGARIAN])
def test_a_sought_lesion_comes_before_a_larger_overlap_with_another(matching):
    overlaps = Overlaps(np.array([0, 0]), np.array([0, 1]), np.array([0.2, 0.9]))
    rule = MatchingRule(matching, iou=0.1)
    matches = match_lesions(overlaps, np.array([0.5]), 2, rule, np.array([True, False]))
    assert matches.found_by.tolist() == [0, -1]
    assert matches.is_false.tolist() == [False]


def test_a_second_box_on_a_lesion_is_false_or_does_not_count():
    ignored = MatchingRule(duplicates=DuplicateRule.IGNORED)
    assert scored(EXAMPLE, DetectionSettings(ignored, n_resamples=0)).n_false_positives == 3
    assert scored(EXAMPLE).box_outcomes[1] == "false"
    assert scored(EXAMPLE, DetectionSettings(ignored)).box_outcomes[1] == "not counted"


def test_any_overlap_is_many_to_many():
    rule = MatchingRule(LesionMatching.ANY_OVERLAP)
    cases = {
        "A": (
            [(0, 10) * 3, (12, 20, 0, 10, 0, 10)],
            [(9, 13, 0, 10, 0, 10, 0.5), (0, 1) * 3 + (0.9,), (30, 40) * 3 + (0.7,)],
        )
    }
    found = scored(cases, DetectionSettings(rule, n_resamples=0))
    assert (found.n_true_positives, found.n_false_positives) == (2, 1)
    assert found.matches.found_by.tolist() == [1, 0]


def test_the_threshold_counts_as_enough_and_equal_overlaps_take_the_later_lesion():
    # 100 of 1000 mm3: an overlap of exactly 0.1.
    thin = {"A": ([(0, 10) * 3], [(0, 1, 0, 10, 0, 10, 1.0)])}
    assert scored(thin).n_true_positives == 1
    twins = {"A": ([(0, 10) * 3, (10, 20, 0, 10, 0, 10)], [(5, 15, 0, 10, 0, 10, 1.0)])}
    assert scored(twins).matches.found_by.tolist() == [-1, 0]


def greedy_by_loops(lesions, boxes, least):
    """The rule written out: lesions found (with score) and scores of false boxes."""
    free, found, false = list(range(len(lesions))), {}, []
    for *edges, score in sorted(boxes, key=lambda row: -row[6]):
        best = max(free, key=lambda k: (iou(lesions[k], edges), k), default=None)
        if best is not None and iou(lesions[best], edges) >= least:
            free.remove(best)
            found[best] = score
        else:
            false.append(score)
    return found, false


def iou(a, b):
    shared = 1.0
    for axis in range(3):
        low, high = max(a[2 * axis], b[2 * axis]), min(a[2 * axis + 1], b[2 * axis + 1])
        shared *= max(0, high - low)
    volume = [
        np.prod([row[k + 1] - row[k] for k in (0, 2, 4)]) for row in (np.array(a), np.array(b))
    ]
    return shared / (sum(volume) - shared)


def froc_by_loops(cases, least, rates):
    """FROC by its definition, threshold by threshold."""
    hits, misses = [], []
    for lesions, boxes in cases.values():
        found, false = greedy_by_loops(lesions, boxes, least)
        hits += found.values()
        misses += false
    n_lesions = sum(len(lesions) for lesions, _ in cases.values())
    points = [(0.0, 0.0)]
    for threshold in sorted({*hits, *misses}, reverse=True):
        fp = sum(score >= threshold for score in misses) / len(cases)
        points.append((fp, sum(score >= threshold for score in hits) / n_lesions))
    values = []
    for rate in rates:
        value = points[-1][1]
        for (x0, y0), (x1, y1) in pairwise(points):
            if x0 <= rate < x1:
                value = y0 + (y1 - y0) * (rate - x0) / (x1 - x0)
        values.append(value)
    return values


@pytest.mark.parametrize("seed", range(12))
def test_froc_is_that_of_its_definition_on_random_boxes(seed):
    cases = random_cases(np.random.default_rng(seed))
    rates = (0.1, *RATES)
    curve = scored(cases).curve()
    assert curve.at(np.array(rates)) == pytest.approx(froc_by_loops(cases, 0.1, rates))


def best_assignment(lesions, boxes, least):
    """Try every assignment: the most pairs, then the largest sum of overlaps."""
    table = [[iou(lesion, one[:6]) for lesion in lesions] for one in boxes]
    slots = [*range(len(lesions)), *([None] * len(boxes))]
    best = (0, 0.0)
    for chosen in set(permutations(slots, len(boxes))):
        pairs = [(b, k) for b, k in enumerate(chosen) if k is not None]
        if all(table[b][k] >= least for b, k in pairs):
            best = max(best, (len(pairs), sum(table[b][k] for b, k in pairs)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_hungarian_is_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    lesions = [box(rng.uniform(0, 8, 3), rng.uniform(8, 14, 3)) for _ in range(3)]
    boxes = [(*box(rng.uniform(0, 8, 3), rng.uniform(8, 14, 3)), 0.5) for _ in range(4)]
    data = data_of({"A": (lesions, boxes)})
    rule = MatchingRule(LesionMatching.HUNGARIAN, 0.2)
    matches = match_lesions(data.overlaps, data.boxes.scores, 3, rule)
    n_pairs, total = best_assignment(lesions, boxes, 0.2)
    assert np.count_nonzero(matches.found_by >= 0) == n_pairs
    assert np.nansum(matches.overlap) == pytest.approx(total)


def test_the_most_pairs_go_before_the_largest_overlaps():
    # A chain: two pairs overlap fully, three pairs a little. One gain of 1 for each pair would
    # take the two (2 + 1.9 > 3 + .45).
    values = np.array([0.15, 0.95, 0.15, 0.95, 0.15])
    boxes, lesions = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2])
    data = data_of(TWO_LESIONS)
    chain = type(data.overlaps)(boxes, lesions, values)
    rule = MatchingRule(LesionMatching.HUNGARIAN)
    assert match_lesions(chain, np.ones(3), 3, rule).found_by.tolist() == [0, 1, 2]


# ---------------------------------------------------------------- edges of the definitions


def test_no_prediction_scores_zero():
    found = scored({"A": ([(0, 10) * 3], []), "B": ([], [])})
    assert (found.froc, found.risk_adjusted.strict, found.n_false_positives) == (0, 0, 0)
    assert found.average_precision[0][1] == 0


def test_no_lesion_is_undefined_with_a_reason():
    found = scored({"A": ([], [(0, 10) * 3 + (0.5,)])})
    assert np.isnan(
        [found.froc, found.risk_adjusted.paper_eq3, found.average_precision[0][1]]
    ).all()
    assert found.reason == "there is no lesion to find"
    assert found.patient.reason == "no case with a lesion"


def test_no_true_positive_is_zero_and_not_undefined():
    found = scored({"A": ([(0, 10) * 3], [(50, 60) * 3 + (0.5,)])})
    assert (found.froc, found.risk_adjusted.strict, found.risk_adjusted.paper_eq3) == (0, 0, 0)


def test_without_false_boxes_the_last_sensitivity_holds_everywhere():
    lesions = [(0, 10) * 3, (20, 30) * 3]
    found = scored({"A": (lesions, [(0, 10) * 3 + (0.5,)])})
    assert found.froc == 0.5


def test_a_step_curve_is_never_above_the_linear_one():
    for seed in range(5):
        curve = scored(random_cases(np.random.default_rng(seed))).curve()
        rates = np.geomspace(0.01, 8, 50)
        assert (curve.at(rates, CurveReading.STEP) <= curve.at(rates) + 1e-12).all()
    assert scored(EXAMPLE).curve().at(np.array([0.5]), CurveReading.STEP).tolist() == [0.25]


def test_boxes_without_scores_have_one_point_and_no_score():
    data = data_of(EXAMPLE)
    bare = DetectionInput(
        data.case_ids,
        data.lesions,
        PredictedBoxes(data.boxes.cases, data.boxes.edges_mm, np.full(8, np.nan), data.boxes.risks),
        data.overlaps,
        (),
        has_scores=False,
    )
    found = score_detection(bare, QUICK)
    assert np.isnan([found.froc, found.risk_adjusted.strict]).all()
    assert "one operating point" in found.reason
    assert found.curve().fp_per_case.tolist() == [0, 4 / 3]


def test_a_box_that_cannot_be_read_is_false_ahead_of_every_threshold():
    whole = data_of(EXAMPLE)
    boxes = whole.boxes
    edges, scores = boxes.edges_mm.copy(), boxes.scores.copy()
    for row in range(8):
        damaged, surest = edges.copy(), scores.copy()
        damaged[row], surest[row] = np.nan, np.inf
        bad = PredictedBoxes(boxes.cases, damaged, surest, boxes.risks)
        data = DetectionInput(whole.case_ids, whole.lesions, bad, box_overlaps(whole.lesions, bad))
        found, before = score_detection(data, QUICK), score_detection(whole, QUICK)
        assert found.froc <= before.froc
        assert found.risk_adjusted.strict <= before.risk_adjusted.strict
        assert found.risk_adjusted.paper_eq3 <= before.risk_adjusted.paper_eq3


# ---------------------------------------------------------------- precision, patients, centres


def precision_by_loops(hits_in_order, n_lesions):
    """The mean of the best precision at each of 101 recalls or above."""
    points, n_hits = [], 0
    for n_boxes, hit in enumerate(hits_in_order, 1):
        n_hits += hit
        points.append((n_hits / n_lesions, n_hits / n_boxes))
    recalls = np.linspace(0, 1, 101)
    return np.mean([max((p for r, p in points if r >= level), default=0) for level in recalls])


@pytest.mark.parametrize("seed", range(6))
def test_average_precision_is_that_of_its_definition(seed):
    cases = random_cases(np.random.default_rng(seed + 100))
    data = data_of(cases)
    matches = match_lesions(
        data.overlaps, data.boxes.scores, data.lesions.cases.size, MatchingRule(iou=0.2)
    )
    risks = np.zeros(data.lesions.cases.size), np.zeros(data.boxes.cases.size)
    lesions = Lesions(data.lesions.cases, data.lesions.edges_mm, risks[0])
    boxes = PredictedBoxes(data.boxes.cases, data.boxes.edges_mm, data.boxes.scores, risks[1])
    events = Events.of(matches, lesions, boxes, data.n_cases)
    hits = np.isin(np.arange(boxes.cases.size), matches.found_by)
    in_order = hits[np.argsort(-boxes.scores)]
    expected = precision_by_loops(in_order, lesions.cases.size)
    assert average_precision_of_lesions(events) == pytest.approx(expected)


def test_the_score_of_a_case_is_its_highest_or_the_noisy_or():
    cases = {
        "A": ([(0, 10) * 3], [(0, 10) * 3 + (0.5,), (50, 60) * 3 + (0.5,)]),
        "B": ([], [(0, 10) * 3 + (0.6,)]),
        "C": ([], []),
    }
    assert scored(cases).patient.auc == 0.5
    noisy = DetectionSettings(case_score=CaseScoreRule.NOISY_OR, n_resamples=0)
    assert scored(cases, noisy).patient.auc == 1.0
    patient = scored(cases).patient
    assert (patient.sensitivity, patient.specificity) == (1.0, 0.5)


def test_ties_at_zero_count_half():
    cases = {"A": ([(0, 10) * 3], []), "B": ([], []), "C": ([], [(0, 1) * 3 + (0.4,)])}
    label, score = np.array([1.0, 0, 0]), np.array([0, 0, 0.4])
    assert scored(cases).patient.auc == auc(label, score) == 0.25


def test_all_cases_with_a_lesion_leave_the_patient_level_undefined():
    patient = scored(EXAMPLE).patient
    assert np.isnan(patient.auc)
    assert patient.reason == "no case without a lesion"


def test_negative_scores_keep_cases_without_boxes_below_all():
    cases = {"A": ([(0, 10) * 3], [(0, 10) * 3 + (-2.0,)]), "B": ([], [])}
    assert scored(cases).patient.auc == 1.0


def test_a_centre_has_the_numbers_of_its_own_cases():
    found = scored(EXAMPLE, centres=("x", "x", "y"))
    alone = scored({name: EXAMPLE[name] for name in "AB"})
    first, second = found.centres
    assert (first.name, first.n_cases, first.froc) == ("x", 2, pytest.approx(alone.froc))
    assert first.strict == pytest.approx(alone.risk_adjusted.strict)
    assert (second.n_lesions, second.n_false_positives) == (1, 2)


# ---------------------------------------------------------------- intervals and warnings


def test_intervals_resample_cases_and_count_resamples_without_a_lesion():
    cases = {f"C{k}": ([], []) for k in range(3)}
    cases["A"] = ([(0, 10) * 3], [(0, 10) * 3 + (0.9,)])
    found = scored(cases, DetectionSettings(n_resamples=200, seed=1))
    froc = found.intervals[0]
    drawn = np.random.default_rng(1).integers(0, 4, (200, 4))
    without = int((~(drawn == 3).any(axis=1)).sum())
    assert (froc.n_undefined, froc.low, froc.high) == (without, 1.0, 1.0)


@pytest.mark.parametrize("kind", list(CurveKind))
def test_a_resample_scores_as_its_cases_written_out(kind):
    cases = random_cases(np.random.default_rng(7), 6)
    names = list(cases)
    drawn = [0, 2, 2, 3, 5, 5]
    data = data_of(cases)
    found = score_detection(data, QUICK)
    events = Events.of(found.matches, found.data.lesions, found.data.boxes, 6)
    weights = np.bincount(drawn, minlength=6).astype(float)
    written = {f"{k}": cases[names[place]] for k, place in enumerate(drawn)}
    expected = scored(written).curve(kind).score()
    assert events.scores_of((kind,), weights[None])[0] == pytest.approx(expected)


def test_one_tumour_for_each_case_is_said():
    said = " ".join(scored({"A": ([(0, 10) * 3], [])}).warnings)
    assert "may be a true additional lesion" in said
    assert "may be a true additional lesion" not in " ".join(scored(EXAMPLE).warnings)


def test_scores_that_are_all_equal_are_said():
    boxes = [(0, 10) * 3 + (0.5,), (50, 60) * 3 + (0.5,)]
    assert any(
        "all scores are equal" in text for text in scored({"A": ([(0, 10) * 3], boxes)}).warnings
    )
