"""Challenges as data: definitions, what an unusable answer is worth, ranks, and the instances."""

import hashlib
import json
import re
import shutil
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import begun, ids, write_references, write_team

from napari_mamamia.core.errors import FormatError, Remedy
from napari_mamamia.core.plugins import load_group
from napari_mamamia.core.records import ScoreStatus
from napari_mamamia.features.challenge.io.challenge_file import read_challenge
from napari_mamamia.features.challenge.io.definition import (
    MISSING_TEXTS,
    MissingAnswer,
    definition_named,
    definition_texts,
    parse_definition,
)
from napari_mamamia.features.challenge.scoring.defined_ranking import (
    CaseValue,
    MeasuredCases,
    ValueState,
    count_values,
    evaluate_formula,
    measure_team,
    rank_by_definition,
)
from napari_mamamia.features.challenge.scoring.image_measures import find_midline, frechet_distance
from napari_mamamia.features.challenge.scoring.measure_registry import MEASURES
from napari_mamamia.features.challenge.services.challenge import answers
from napari_mamamia.features.challenge.services.challenge.answers import (
    list_truth,
    load_models,
    measure_folder,
    measure_rules,
    require_measures,
)
from napari_mamamia.features.challenge.services.challenge.begin import (
    ChallengeSettings,
    begin_challenge,
)
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.publish import PublishSettings, publish
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.features.challenge.services.challenge.verify import (
    list_unchecked,
    verify_challenge,
)
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.services.batch.output_folder import Existing

MODELS = {"segmenter": "threshold:1.75", "contrast": "mean-intensity", "tumour": "mean-intensity"}
HONEST, OFFICIAL = "mama-synth-2026", "mama-synth-2026-official"
ODELIA_FILE = "bilateral-breast-classification-likelihoods.json"
YAML = """
name: lesion-count
version: 1
truth: {table: truth.csv, id: case, columns: {"": n}}
answer: {kind: numbers, file: counts.csv, id: case}
measures:
  - {id: error, of: number.absolute_error, better: low, worst: 10}
ranking: {by: aggregate-then-rank}
"""
MASKS = """
name: surfaces
version: 1
answer: {kind: masks}
measures:
  - {id: surface, of: assd_mm, better: low, worst: 100}
ranking: {by: aggregate-then-rank}
"""


def measured(definition, root, folder):
    case_ids, _ = list_truth(definition, root)
    return measure_folder(definition, root, folder, case_ids, load_models(MODELS, root))


def numbers(definition, values):
    rules = measure_rules(definition)
    n = max(len(measure.values) for measure in values.measures)
    full = np.ones((1, n), dtype=np.int64)
    return {
        rule.measure.id: values.by_id[rule.measure.id].problem
        or float(measure_team(rule, values.by_id[rule.measure.id].values, definition)(full)[0])
        for rule in rules
    }


# ------------------------------------------------------------------ the definition


def test_every_built_in_definition_names_registered_measures():
    assert len(definition_texts()) >= 7
    for name in definition_texts():
        definition = definition_named(name)
        assert definition.name == name
        require_measures(definition)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("by: aggregate-then-rank", "by: best"), "best"),
        (("of: number.absolute_error", "of: number.nothing"), "number.nothing"),
        (("of: number.absolute_error", "of: image.mse"), "image.mse"),
        (("worst: 10", "args: {cut: 3}"), "cut"),
        (("by: aggregate-then-rank", "by: score, score: 'error.__class__'"), "Attribute"),
        (("by: aggregate-then-rank", "by: score, score: 'err'"), "err"),
        (("version: 1", "version: 1\nshape: round"), "shape"),
        (("name: lesion-count", "name: ../../count"), "../../count"),
        (("id: error", "id: my-error"), "my-error"),
        (("by: aggregate-then-rank", "by: sites"), "ranking.sites"),
        ((", worst: 10", ""), "error: add `worst`"),
    ],
)
def test_a_wrong_definition_is_refused_with_what_was_found(change, found):
    text = YAML.replace(*change)
    assert text != YAML
    with pytest.raises(FormatError, match=found):
        require_measures(parse_definition(text, "cup.yaml"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("version: 1", "version: 1\nname: again"), "line 4: the key 'name' is already in line 2"),
        (("worst: 10", "worst: 10, id: b"), "line 7: the key 'id' is already in line 7"),
        (("answer: {", "answer: &a {file: x, "), "the key 'file' is already in line 5"),
        (("{kind: numbers", "[kind: numbers"), r"line 5, column \d+: .*[\]}]"),
        (("version: 1", "version: 1\n\tname: b"), "line 4, column 1: .*token"),
        (("name: lesion-count", "name: *none"), "line 2, column 7: .*none"),
        (("name: lesion-count", "name: !!python/name:os.system x"), "line 2, column 7: .*tag"),
        (("version: 1", "version: \x07"), "special characters"),
    ],
)
def test_a_broken_yaml_file_is_refused_in_one_line_with_its_place(change, expected):
    text = YAML.replace(*change)
    assert text != YAML
    with pytest.raises(FormatError, match=expected) as caught:
        parse_definition(text, "cup.yaml")
    assert "\n" not in str(caught.value)


def test_an_anchor_of_yaml_may_be_used_twice():
    text = YAML.replace("better: low", "better: &b low")
    more = text.replace("worst: 10}", "worst: 10}\n  - {id: b, of: number.rmse, better: *b}")
    assert parse_definition(more, "cup.yaml").measures[1].better == "low"


def test_a_measure_that_does_not_rank_needs_no_worst_value():
    more = "better: low, worst: 10}\n  - {id: shown, of: number.absolute_error, better: low}"
    text = YAML.replace("better: low, worst: 10}", more)
    with pytest.raises(FormatError, match="shown"):
        require_measures(parse_definition(text, "cup.yaml"))
    text = text.replace("by: aggregate-then-rank", "by: score, score: 1 - error")
    assert require_measures(parse_definition(text, "cup.yaml")) == ()
    text = YAML.replace(", worst: 10", "").replace("ranking:", "missing: last-rank\nranking:")
    assert require_measures(parse_definition(text, "cup.yaml")) == ()


def test_a_measure_of_all_cases_without_worst_value_is_stated():
    (note,) = require_measures(definition_named(HONEST))
    assert note.startswith("frd ")


def test_a_mask_measure_that_ranks_needs_a_worst_value():
    text = MASKS.replace(", worst: 100", "")
    with pytest.raises(FormatError, match="surface"):
        require_measures(parse_definition(text, "cup.yaml"))
    require_measures(parse_definition(MASKS, "cup.yaml"))


def test_a_missing_mask_is_explained_by_the_definition(tmp_path):
    folder = begun(tmp_path, definition=parse_definition(MASKS, "cup.yaml"))
    (folder / "submissions" / "alpha" / "C_00.nii.gz").unlink()
    outcomes = {outcome.team: outcome for outcome in run_challenge(folder).teams}
    (failure,) = outcomes["alpha"].breaches
    (table,) = (folder / "results" / "alpha").rglob("case_scores.csv")
    (row,) = (row for row in read_case_scores(table) if row.case_id == "C_00")
    assert row.status is ScoreStatus.PREDICTION_MISSING
    for reason in (failure.reason, row.reason):
        assert MISSING_TEXTS[MissingAnswer.WORST] in reason
        assert "empty" not in reason
    assert verify_challenge(folder) == ()


def test_a_definition_that_extends_another_keeps_what_it_does_not_change():
    honest, official = definition_named(HONEST), definition_named(OFFICIAL)
    assert (honest.missing, official.missing) == (MissingAnswer.WORST, MissingAnswer.LEAVE_OUT)
    assert official.honest == HONEST
    assert official.ranking == honest.ranking
    changed = [one.id for one, other in zip(official.measures, honest.measures, strict=True)
               if one != other]  # fmt: skip
    assert changed == ["auroc_contrast"]


@pytest.mark.parametrize("measures", ["3", "[3]", "[{}]", "[{id = [1]}]"])
def test_changed_measures_without_an_id_are_refused(measures):
    text = f'extends = "mama-mia-2025-task1"\nmeasures = {measures}'
    with pytest.raises(FormatError, match=r"cup\.toml"):
        parse_definition(text, "cup.toml")


def test_formulas_have_only_arithmetic_min_and_max():
    assert evaluate_formula("-(a + 2 * max(b, 1)) / 4", {"a": 1.0, "b": 0.5}) == -0.75
    assert evaluate_formula("min(a, 1) - a", {"a": np.array([0.5, 2.0])}).tolist() == [0, -1]
    for formula in ("__import__('os')", "a if a else 1", "a ** 2", "(", "[a]"):
        with pytest.raises(FormatError):
            evaluate_formula(formula, {"a": 1.0})


# ------------------------------------------------------------------ unusable answers


def values_of(*numbers_or_states, worst=((0.0,),)):
    cases = []
    for index, item in enumerate(numbers_or_states):
        if isinstance(item, ValueState):
            reason = "wrong shape" if item is ValueState.FAILED else ""
            cases.append(CaseValue(f"c{index}", (), worst, item, reason))
        else:
            cases.append(CaseValue(f"c{index}", ((item,),), worst))
    return cases


def counted(cases, missing, sign=1.0):
    rows = count_values(cases, missing, sign)
    return None if rows is None else [None if row is None else float(row[0, 0]) for row in rows]


def test_a_case_without_an_answer_is_worst_left_out_or_ranks_the_team_last():
    cases = values_of(0.8, ValueState.NOT_DEFINED, ValueState.NO_TRUTH)
    assert counted(cases, MissingAnswer.WORST) == [0.8, 0.0, None]
    assert counted(cases, MissingAnswer.LEAVE_OUT) == [0.8, None, None]
    assert counted(cases, MissingAnswer.LAST_RANK) is None


def test_an_answer_that_does_not_fit_removes_the_official_number_of_the_team():
    assert counted(values_of(0.8, ValueState.FAILED), MissingAnswer.LEAVE_OUT) is None
    assert counted(values_of(0.8, ValueState.FAILED), MissingAnswer.WORST) == [0.8, 0.0]


def test_no_answer_is_worse_than_no_answer():
    cases = values_of(3.0, 99.0, float("nan"), worst=((10.0,),))
    assert counted(cases, MissingAnswer.WORST, sign=-1.0) == [3.0, 10.0, 10.0]
    assert counted(values_of(3.0, float("nan"), worst=()), MissingAnswer.WORST) is None


def test_a_table_without_a_column_names_it(tmp_path):
    (tmp_path / "truth.csv").write_text("exam,n\nA,1\n")
    with pytest.raises(FormatError, match=r"case.*truth\.csv|truth\.csv.*case"):
        list_truth(parse_definition(YAML, "cup.yaml"), tmp_path)


def test_a_table_has_a_problem_for_each_case_that_cannot_be_used(tmp_path):
    text = YAML.replace('{"": n}', "{left: l, right: r}").replace(
        "id: case}", "id: case, part: side}", 2
    )
    text = text.replace("truth.csv, id: case, part: side", "truth.csv, id: case")
    definition = parse_definition(text, "cup.yaml")
    (tmp_path / "truth.csv").write_text("case,l,r\nA,1,2\nB,1,2\nC,1,2\nD,1,2\nE,1,2\n")
    rows = ["A,left,1", "A,right,4", "B,left,1", "C,left,1", "C,right,2", "C,right,2", "D,left,x"]
    (tmp_path / "counts.csv").write_text("\n".join(["case,side,value", *rows, "D,right,2"]))
    values = measured(definition, tmp_path, tmp_path)
    assert [case_id for case_id, _ in values.unusable] == ["B", "C", "D", "E"]
    # A: (0 + 2) / 2; the others 10 by `worst`
    assert numbers(definition, values)["error"] == pytest.approx((1 + 4 * 10) / 5)


# ------------------------------------------------------------------ measures by hand


def test_the_frechet_distance_of_shifted_features_is_the_shift():
    truth = np.array([[0.0], [2.0], [4.0]])  # z: sd sqrt(8/3)
    rows = np.concatenate([truth, truth + 2], axis=1)
    assert frechet_distance(rows) == pytest.approx(np.log(4 / (8 / 3)))
    assert np.isnan(frechet_distance(rows[:1]))


def test_the_midline_is_the_valley_between_two_breasts():
    columns = np.arange(60)
    profile = np.exp(-((columns - 13) ** 2) / 40) + np.exp(-((columns - 46) ** 2) / 40)
    assert abs(find_midline(np.tile(profile, (20, 1))) - 29.5) <= 1
    assert find_midline(np.ones((20, 60))) is None


# ------------------------------------------------------------------ the official evaluators


@pytest.mark.real
@pytest.mark.parametrize("team", "abcd")
def test_mama_synth_equals_the_official_evaluator(real_data, team):
    root = real_data("mama_synth")
    expected = read_json(root / "expected.json")["teams"][team]
    definition = definition_named(OFFICIAL)
    values = measured(definition, root, root / "teams" / team)
    got = numbers(definition, values)
    assert got.pop("frd") == "not computed: no model was given for radiomics"
    assert got.pop("lpips") == "not computed: no model was given for backbone"
    for name, value in got.items():
        mean = expected["aggregates"].get(name, {"mean": np.nan})["mean"]
        assert value == pytest.approx(mean, abs=1e-9, nan_ok=True), name
    for case_id, of_case in expected["case"].items():
        for name in set(of_case) - {"lpips"}:
            (value,) = [one for one in values.by_id[name].values if one.case_id == case_id]
            assert value.rows[0][0] == pytest.approx(of_case[name], abs=1e-9)


EDGES = ("none", "missing", "nan", "inf", "constant", "equal", "cropped", "three_d", "five_slices",
         "mask_empty", "mask_one", "mask_label2", "mask_absent")  # fmt: skip


def edge_world(root, folder, edge):
    """Make three cases of team a, the first one changed."""
    case_ids = [f"SYN_00{number}" for number in (1, 2, 3)]
    for role in ("ground_truth", "mask", "input", "teams/a"):
        (folder / role).mkdir(parents=True)
        for case_id in case_ids:
            shutil.copy(root / role / f"{case_id}.mha", folder / role)
    is_mask = edge.startswith("mask")
    target = folder / ("mask" if is_mask else "teams/a") / "SYN_001.mha"
    if edge in ("missing", "mask_absent"):
        target.unlink()
    elif edge != "none":
        shutil.copy(root / "edge" / f"{edge}.mha", target)
    return folder


@pytest.mark.real
@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("edge", EDGES)
def test_bad_input_has_the_official_numbers(real_data, tmp_path, edge):
    root = real_data("mama_synth")
    world, definition = edge_world(root, tmp_path / "w", edge), definition_named(OFFICIAL)
    got = numbers(definition, measured(definition, world, world / "teams" / "a"))
    expected = read_json(root / "expected.json")["edge"][edge]["aggregates"]
    for name in set(got) - {"frd", "lpips"}:
        mean = float(expected.get(name, {"mean": "nan"})["mean"])
        assert got[name] == pytest.approx(mean, abs=1e-9, nan_ok=True), name


@pytest.mark.real
@pytest.mark.parametrize("edge", ["missing", "nan", "constant", "cropped"])
def test_a_team_gains_nothing_by_a_bad_image_the_honest_way(real_data, tmp_path, edge):
    root, definition = real_data("mama_synth"), definition_named(HONEST)
    plain, bad = (
        numbers(definition, measured(definition, world, world / "teams" / "a"))
        for world in (edge_world(root, tmp_path / name, name) for name in ("none", edge))
    )
    for measure in definition.measures[:1] + definition.measures[2:3] + definition.measures[4:]:
        sign = 1 if measure.better == "high" else -1
        assert sign * bad[measure.id] < sign * plain[measure.id], measure.id


@pytest.fixture
def odelia(real_data, tmp_path):
    root = real_data("mama_synth") / "odelia"
    for team in "abc":
        for study, content in read_json(root / f"team_{team}.json").items():
            file = tmp_path / team / study / ODELIA_FILE
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(content))
    return root, tmp_path


@pytest.mark.real
def test_odelia_equals_the_official_evaluator(odelia):
    root, teams = odelia
    definition, expected = definition_named("odelia-2025"), read_json(root / "expected.json")
    values = {team: measured(definition, root, teams / team) for team in "abc"}
    for team, of_team in values.items():
        got, official = numbers(definition, of_team), expected[team]
        pairs = {"auc": "AUC", "specificity": "Specificity", "sensitivity": "Sensitivity",
                 "macro_auc": "macro_AUC"}  # fmt: skip
        for name, other in pairs.items():
            assert got[name] == pytest.approx(official[other], abs=1e-9)
    ranking = rank_by_definition(
        definition, measure_rules(definition), {team: of.by_id for team, of in values.items()}
    )
    assert ranking.ranks.tolist() == [1, 2, 3]
    assert ranking.scores == pytest.approx([expected[team]["Score"] for team in "abc"], abs=1e-9)


@pytest.mark.real
def test_leaving_out_a_study_lowers_the_score_of_odelia(odelia):
    root, teams = odelia
    definition = definition_named("odelia-2025")
    shutil.rmtree(teams / "a" / "ODL_001_1")
    assert numbers(definition, measured(definition, root, teams / "a"))["auc"] < 0.9714


@pytest.mark.real
def test_mama_synth_runs_through_the_program_officially_and_honestly(real_data, tmp_path):
    root, folder = real_data("mama_synth"), tmp_path / "cup"
    models = [word for role, text in MODELS.items() for word in ("--model", f"{role}={text}")]
    words = ("--challenge", OFFICIAL, "--reference", root, "--bootstrap", 20)
    assert mamamia("challenge", "init", folder, *words, *models).returncode == 0
    for team in "abcd":
        shutil.copytree(root / "teams" / team, folder / "submissions" / team)
    (folder / "submissions" / "a" / "SYN_001.mha").unlink()
    assert mamamia("challenge", "run", folder).returncode == 3
    done = mamamia("challenge", "rank", folder, "--out", tmp_path / "board", has_figures=False)
    assert done.returncode == 0, done.stderr
    assert "frd: not computed" in done.stdout
    assert "ALARM" not in done.stdout  # b hands in the images before contrast, which it was given
    boards = read_json(tmp_path / "board" / "leaderboard.json")["boards"]
    assert [board["task"] for board in boards] == [OFFICIAL, HONEST]
    official, honest = (
        {row["team"]: dict(row["measures"]) for row in board["rows"]} for board in boards
    )
    expected = read_json(root / "expected.json")["teams"]
    assert official["c"]["mse"] == pytest.approx(expected["c"]["aggregates"]["mse"]["mean"])
    assert official["a"]["dice"] > expected["a"]["aggregates"]["dice"]["mean"]  # a hard case less
    assert honest["a"]["dice"] < official["a"]["dice"]
    assert honest["b"]["dice"] == 0
    assert official["b"]["dice"] is None
    words = ("--out", tmp_path / "site", "--minimum-group", 5)
    done = mamamia("challenge", "publish", tmp_path / "board", *words, has_figures=False)
    assert done.returncode == 0, done.stderr
    site = read_json(tmp_path / "site" / "leaderboard.json")
    assert [task["task"] for task in site["tasks"]] == [OFFICIAL, HONEST]
    assert site["overall"] == []
    assert (tmp_path / "site" / "codabench").exists()  # its models need no files


@pytest.mark.real
def test_a_copy_of_the_truth_raises_the_alarm(real_data, tmp_path):
    root, folder = real_data("mama_synth"), tmp_path / "cup"
    definition = definition_named(HONEST)
    settings = ChallengeSettings(definition=definition, reference=root, models=MODELS)
    begin_challenge(folder, replace(settings, n_resamples=0))
    for team in "ab":
        shutil.copytree(root / "teams" / team, folder / "submissions" / team)
    shutil.copy(root / "ground_truth" / "SYN_002.mha", folder / "submissions" / "a")
    run_challenge(folder)
    rows = rank_challenge(folder, tmp_path / "board").board.boards[0].rows
    assert {row.team: row.n_copies for row in rows} == {"a": 1, "b": 0}


@pytest.mark.real
def test_one_submission_to_odelia_is_scored_by_the_program(odelia, tmp_path):
    root, teams = odelia
    words = ("--challenge", "odelia-2025", "--reference", root, "--out", tmp_path / "m.json")
    done = mamamia("challenge", "score", teams / "a", *words)
    assert done.returncode == 0, done.stderr
    means = {
        name: value["mean"] for name, value in read_json(tmp_path / "m.json")["aggregates"].items()
    }
    official = read_json(root / "expected.json")["a"]
    assert means["score"] == pytest.approx(official["Score"], abs=1e-9)
    shutil.rmtree(teams / "a" / "ODL_001_1")
    done = mamamia("challenge", "score", teams / "a", *words, "--overwrite")
    assert done.returncode == 3
    assert "ODL_001_1" in done.stderr
    assert read_json(tmp_path / "m.json")["n_unusable"] == 1


# ------------------------------------------------------------------ MAMA-MIA as an instance


def test_the_formula_of_a_definition_ranks_the_teams_of_mama_mia(tmp_path):
    text = 'extends = "mama-mia-2025-task1"\nname = "cup"\n[ranking]\nby = "score"\nscore = "{}"'
    scores = {}
    formulas = ("ranking_score", "performance", "(performance + fairness) / 2")
    for number, formula in enumerate(formulas):
        definition = parse_definition(text.format(formula), "cup.toml")
        folder = begun(tmp_path / str(number), definition=definition)
        run_challenge(folder)
        rows = rank_challenge(folder, tmp_path / f"board{number}").board.boards[0].rows
        scores[formula] = {row.team: row.score for row in rows}
        performance = {row.team: row.performance for row in rows}
    first, second, third = scores.values()
    assert first == third != second == performance


def test_masks_of_sites_are_ranked_over_sites(tmp_path):
    reference = write_references(tmp_path)
    table = tmp_path / "clinical.csv"
    lines = table.read_text().splitlines()
    sites = ["dataset", *"AABBBB"]
    table.write_text("\n".join(f"{a},{b}" for a, b in zip(lines, sites, strict=True)))
    definition = definition_named("fets-2022")
    settings = ChallengeSettings(definition=definition, reference=reference, clinical=table)
    folder = tmp_path / "cup"
    begin_challenge(folder, settings)
    for team, shift in (("still", 0), ("near", 1), ("far", 2)):
        write_team(folder / "submissions" / team, shift)
    (folder / "submissions" / "still" / "C_00.nii.gz").unlink()
    run_challenge(folder)
    rows = rank_challenge(folder, tmp_path / "board").board.boards[0].rows
    # site A: still is third in one of two cases (mean rank 2, as near has 1.5 and far 2.5): near
    # first; site B: still first. Mean rank of still (2 + 1) / 2, near (1 + 2) / 2, far 3.
    assert {row.team: (row.rank, row.score) for row in rows} == {
        "still": (1, 1.5), "near": (1, 1.5), "far": (3, 3.0),
    }  # fmt: skip


def test_a_ranking_over_sites_needs_the_sites_before_anything_is_scored(tmp_path):
    with pytest.raises(FormatError, match="dataset") as caught:
        begun(tmp_path, definition=definition_named("fets-2022"))
    assert caught.value.remedies == (Remedy("clinical", ("FILE",)),)
    assert not (tmp_path / "challenge" / "challenge.json").exists()


# ------------------------------------------------------------------ an organiser's own challenge


@pytest.fixture
def counts(tmp_path):
    """Return a folder with a definition, its truth, and the submissions of three teams."""
    (tmp_path / "cup.yaml").write_text(YAML)
    (tmp_path / "truth").mkdir()
    rows = [f"{case_id},{number}" for number, case_id in enumerate(ids(6))]
    (tmp_path / "truth" / "truth.csv").write_text("\n".join(["case,n", *rows]))
    # errors: near 0.5 each; far 2 each; lazy 0 in five cases, no row for the sixth: 10 / 6
    for team, add, n in (("near", 0.5, 6), ("far", 2, 6), ("lazy", 0, 5)):
        rows = [f"{case_id},{number + add}" for number, case_id in enumerate(ids(n))]
        folder = tmp_path / "teams" / team
        folder.mkdir(parents=True)
        (folder / "counts.csv").write_text("\n".join(["case,value", *rows]))
    return tmp_path


@pytest.mark.usefixtures("quick_figures")
def test_a_challenge_in_ten_lines_of_yaml_runs_from_init_to_a_site(counts, tmp_path):
    folder, board = counts / "cup", counts / "board"
    words = ("--challenge", counts / "cup.yaml", "--reference", counts / "truth")
    done = mamamia("challenge", "init", folder, *words, "--bootstrap", 50)
    assert done.returncode == 0, done.stderr
    for team in ("near", "far", "lazy"):
        shutil.copytree(counts / "teams" / team, folder / "submissions" / team)
    assert mamamia("challenge", "run", folder).returncode == 3  # lazy is not complete
    done = mamamia("challenge", "rank", folder, "--out", board, has_figures=False)
    assert done.returncode == 0, done.stderr
    rows = read_json(board / "leaderboard.json")["boards"][0]["rows"]
    errors = {row["team"]: dict(row["measures"])["error"] for row in rows}
    assert errors == pytest.approx({"near": 0.5, "far": 2.0, "lazy": 10 / 6})
    assert {row["team"]: row["rank"] for row in rows} == {"near": 1, "lazy": 2, "far": 3}
    assert {row["team"]: row["n_unusable"] for row in rows} == {"near": 0, "lazy": 1, "far": 0}
    assert mamamia("challenge", "verify", board, "--quick").returncode == 0
    words = ("--out", counts / "site", "--minimum-group", 2)
    done = mamamia("challenge", "publish", board, *words, has_figures=False)
    assert done.returncode == 0, done.stderr
    (task,) = read_json(counts / "site" / "leaderboard.json")["tasks"]
    assert task["task"] == "lesion-count"


SITES = YAML.replace("by: aggregate-then-rank", "by: sites, sites: site")


@pytest.mark.usefixtures("quick_figures")
def test_numbers_are_ranked_over_the_sites_of_a_table_without_breast_columns(counts):
    (counts / "cup.yaml").write_text(SITES)
    sites = [f"{case_id},{site}" for case_id, site in zip(ids(6), "AABBBB", strict=True)]
    sites = ["patient_id,site,age", *(f"{row},50" for row in sites)]
    (counts / "sites.csv").write_text("\n".join(sites))
    folder, words = counts / "cup", ("--challenge", counts / "cup.yaml")
    words = (*words, "--reference", counts / "truth", "--clinical", counts / "sites.csv")
    done = mamamia("challenge", "init", folder, *words, "--bootstrap", 0)
    assert done.returncode == 0, done.stderr
    assert "used site, not used age" in done.stdout
    assert "TEAM.csv" in done.stdout
    shutil.copytree(counts / "teams", folder / "submissions", dirs_exist_ok=True)
    assert mamamia("challenge", "run", folder).returncode == 3
    rank_challenge(folder, counts / "board")
    assert "used site, not used age" in (counts / "board" / "leaderboard.html").read_text()
    rows = read_json(counts / "board" / "leaderboard.json")["boards"][0]["rows"]
    # site A: lazy 1, near 2, far 3 in both cases; site B: lazy 1, 1, 1, 3 (mean 1.5), near
    # 2, 2, 2, 1 (1.75), far 3, 3, 3, 2 (2.75): in order lazy, near, far at both sites
    assert {row["team"]: row["score"] for row in rows} == {"lazy": 1, "near": 2, "far": 3}
    (folder / "clinical" / "sites.csv").write_text("patient_id,site\nC_00,A")
    assert mamamia("challenge", "rank", folder, "--out", counts / "again").returncode != 0


@pytest.mark.parametrize("header", ["patient_id,centre", None])
def test_init_names_the_columns_when_the_sites_are_not_in_the_table(counts, header):
    definition = parse_definition(SITES, "cup.yaml")
    settings = ChallengeSettings(definition=definition, reference=counts / "truth")
    if header:
        (counts / "sites.csv").write_text(f"{header}\nC_00,A\nC_01,B")
        settings = replace(settings, clinical=counts / "sites.csv")
    with pytest.raises(FormatError, match="centre" if header else "no clinical table") as caught:
        begin_challenge(counts / "cup", settings)
    assert caught.value.remedies == (Remedy("clinical", ("FILE",)),)
    assert not (counts / "cup" / "challenge.json").exists()


@pytest.mark.usefixtures("quick_figures")
def test_all_measures_together_are_ranked_as_the_definition_says(counts):
    text = RANKED.replace("BY", "aggregate-then-rank").replace(": low", ": low, worst: 10")
    text = text.replace(": high", ": high, worst: 0").replace("[c]]", "[c]], ties: average")
    definition = parse_definition(text, "cup.yaml")
    folder, board = counts / "cup", counts / "board"
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=counts / "truth"))
    shutil.copytree(counts / "teams", folder / "submissions", dirs_exist_ok=True)
    run_challenge(folder)
    rank_challenge(folder, board)
    # a (low): near 0.5, lazy 10 / 6, far 2. b (high): far 2, near 0.5, lazy 0: 1, 2, 3.
    # group a, b: near 3 / 2, lazy 5 / 2, far 4 / 2: ranks 1, 3, 2; c as a: 1, 2, 3
    # mean rank: near 1, lazy 2.5, far 2.5
    rows = read_json(board / "leaderboard.json")["boards"][0]["rows"]
    together = read_json(board / "rank.json")["overall"]
    assert list(together["methods"]) == ["composite"]
    assert {row["team"]: row["rank"] for row in rows} == {"near": 1, "lazy": 2, "far": 2}
    assert {row["team"]: row["rank"] for row in rows} == together["methods"]["composite"]
    scores = {"near": 1.0, "lazy": 2.5, "far": 2.5}
    assert {row["team"]: row["score"] for row in rows} == scores
    assert together["scores"]["composite"] == scores
    page = (board / "leaderboard.html").read_text()
    assert "Ties: average" in page
    assert "ranked again" not in page
    assert verify_challenge(board) == ()


@pytest.mark.usefixtures("quick_figures")
def test_only_a_clearly_better_attempt_of_a_definition_climbs_the_ladder(counts):
    text = YAML.replace("by: aggregate-then-rank", "by: score, score: 10 - error")
    folder, board = counts / "cup", counts / "board"
    settings = ChallengeSettings(
        definition=parse_definition(text, "cup.yaml"), reference=counts / "truth", ladder=True,
        n_resamples=20,
    )  # fmt: skip
    begin_challenge(folder, settings)
    table = folder / "submissions" / "own" / "counts.csv"
    true = [line.split(",") for line in (counts / "truth" / "truth.csv").read_text().split()[1:]]
    # every case is off by the same number, so each resample has the same score
    for off, number, score in ((3, 1, 7), (4, 1, 7), (2, 3, 8)):
        table.parent.mkdir(exist_ok=True)
        rows = [f"{case_id},{float(n) + off}" for case_id, n in true]
        table.write_text("\n".join(("case,value", *rows)))
        run_challenge(folder)
        ranking = rank_challenge(folder, board, existing=Existing.OVERWRITE)
        (row,) = ranking.board.boards[0].rows
        assert (row.attempt, row.score, row.rank) == (number, score, 1)
        assert verify_challenge(board) == ()


@pytest.mark.usefixtures("quick_figures")
def test_the_board_of_a_definition_has_bayes_factors_in_the_better_direction(counts):
    folder, board = counts / "cup", counts / "board"
    definition = definition_named(str(counts / "cup.yaml"))
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=counts / "truth"))
    for team, off in (("a", 1), ("b", 2)):  # a mean rank: 1 for a in all resamples, 2 for b
        text = (counts / "truth" / "truth.csv").read_text().split()
        rows = [f"{line.split(',')[0]},{float(line.split(',')[1]) + off}" for line in text[1:]]
        (folder / "submissions" / team).mkdir()
        (folder / "submissions" / team / "counts.csv").write_text("\n".join(["case,value", *rows]))
    run_challenge(folder)
    rank_challenge(folder, board)
    page = (board / "leaderboard.html").read_text()
    matrix = page[page.index("Bayes factor K") :]
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", matrix[: matrix.index("</table>")])
    text = " ".join(re.sub("<[^>]*>", "", cell) for cell in cells)
    assert re.search(r"a\b.* &gt; 1,000.* b 0\b", text), text


MODULE = """
from napari_mamamia.features.challenge.io.definition import AnswerKind
from napari_mamamia.features.challenge.scoring.measures import ChallengeMeasure


def squared(case):
    return (case.answer[""] - case.truth["table"][""]) ** 2


SQUARED = ChallengeMeasure("own.squared", AnswerKind.NUMBERS, squared, worst=100.0)
"""


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    """Return the module of an installed package with a measure."""
    site = tmp_path / "site-packages"
    info = site / "own_measures-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-measures\nVersion: 1.2\n")
    points = "[napari_mamamia.challenge_measures]\nown.squared = own_measures:SQUARED\n"
    (info / "entry_points.txt").write_text(points)
    (site / "own_measures.py").write_text(MODULE)
    monkeypatch.syspath_prepend(site)
    load_group.cache_clear()
    yield site / "own_measures.py"
    monkeypatch.undo()
    load_group.cache_clear()
    sys.modules.pop("own_measures", None)


@pytest.mark.usefixtures("quick_figures")
def test_changed_code_of_a_plug_in_stops_run_and_rank_and_is_found_by_verify(counts, own_package):
    text = YAML.replace("number.absolute_error", "own.squared")
    definition, folder = parse_definition(text, "cup.yaml"), counts / "cup"
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=counts / "truth"))
    (code,) = read_challenge(folder).challenge.code
    assert (code.name, code.package, code.version) == ("own.squared", "own-measures", "1.2")
    digest = hashlib.sha256(own_package.read_bytes()).hexdigest()
    assert code.modules == (("own_measures", digest),)
    shutil.copytree(counts / "teams" / "near", folder / "submissions" / "near")
    run_challenge(folder)
    rank_challenge(folder, counts / "board")
    assert verify_challenge(counts / "board") == ()
    own_package.write_text(MODULE.replace("** 2", "** 4"))
    with pytest.raises(FormatError, match=r"own\.squared"):
        run_challenge(folder)
    with pytest.raises(FormatError, match=r"own\.squared"):
        rank_challenge(folder, counts / "again")
    assert any("own.squared" in one.text for one in verify_challenge(folder, is_quick=True))
    # the measures are not computed again with other code, so nothing else differs
    (difference,) = verify_challenge(counts / "board")
    assert (difference.where, "own.squared" in difference.text) == ("challenge", True)
    assert any("not computed again" in text for text in list_unchecked(counts / "board"))
    own_package.write_text(MODULE)
    (info,) = own_package.parent.glob("*.dist-info")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-measures\nVersion: 1.3\n")
    with pytest.raises(FormatError, match=r"1\.3"):
        run_challenge(folder)


def test_a_board_that_is_older_than_an_attempt_is_valid_but_named_and_not_published(counts):
    folder = counts / "cup"
    settings = ChallengeSettings(
        definition=definition_named(str(counts / "cup.yaml")), reference=counts / "truth"
    )
    begin_challenge(folder, settings)
    first, *others = sorted((counts / "teams").iterdir())
    shutil.copytree(first, folder / "submissions" / first.name)
    run_challenge(folder)
    rank_challenge(folder, counts / "board")
    assert not any("is older" in text for text in list_unchecked(counts / "board"))
    shutil.copytree(others[0], folder / "submissions" / others[0].name)
    run_challenge(folder)
    assert verify_challenge(counts / "board") == ()
    assert any("is older" in text for text in list_unchecked(counts / "board"))
    with pytest.raises(FormatError, match="is older"):
        publish([counts / "board"], counts / "site", PublishSettings(minimum_group=2))
    rank_challenge(folder, counts / "board", existing=Existing.OVERWRITE)
    assert not any("is older" in text for text in list_unchecked(counts / "board"))
    rows = read_json(counts / "board" / "leaderboard.json")["boards"][0]["rows"]
    assert len(rows) == 2


@pytest.mark.parametrize(("text", "is_right"), [("text", False), ("[text]", True)])
def test_notes_of_a_definition_are_a_list(text, is_right):
    own = f"{YAML.rstrip()}\nnotes: {text}\n"
    if is_right:
        assert parse_definition(own, "cup.yaml").notes == ("text",)
        return
    with pytest.raises(FormatError, match=r"'notes' of"):
        parse_definition(own, "cup.yaml")


def test_measures_of_this_package_are_bound_by_its_version_alone(counts):
    definition = definition_named(str(counts / "cup.yaml"))
    settings = ChallengeSettings(definition=definition, reference=counts / "truth")
    assert begin_challenge(counts / "cup", settings).opened.challenge.code == ()


@pytest.mark.usefixtures("quick_figures")
def test_verify_finds_changed_truth_definition_values_and_answers(counts):
    folder = counts / "cup"
    definition = definition_named(str(counts / "cup.yaml"))
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=counts / "truth"))
    shutil.copytree(counts / "teams" / "near", folder / "submissions" / "near")
    run_challenge(folder)
    rank_challenge(folder, counts / "board")
    assert verify_challenge(counts / "board") == ()
    (values,) = (folder / "results").rglob("lesion-count.json")
    (sealed,) = (folder / "results").rglob("counts.csv")
    definition = folder / "definitions" / "lesion-count.json"
    changes = {values: "answers/", sealed: "sealed copy", definition: "definition:"}
    for path, text in (changes | {counts / "truth" / "truth.csv": "truth:"}).items():
        before = path.read_text()
        path.write_text(before.replace("1", "2"))
        texts = [difference.text for difference in verify_challenge(counts / "board")]
        assert any(text in one for one in texts), (path, texts)
        path.write_text(before)
    assert verify_challenge(counts / "board") == ()


@pytest.mark.usefixtures("quick_figures")
def test_verify_measures_the_sealed_answers_again(counts, monkeypatch):
    folder = counts / "cup"
    definition = definition_named(str(counts / "cup.yaml"))
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=counts / "truth"))
    shutil.copytree(counts / "teams" / "near", folder / "submissions" / "near")
    run_challenge(folder)
    spec = MEASURES["number.absolute_error"]
    other = replace(spec, of_case=lambda case: spec.of_case(case) + 1)
    monkeypatch.setattr(answers, "MEASURES", {"number.absolute_error": other})
    (difference,) = verify_challenge(folder)
    assert "error" in difference.text


PAIRS = """
name: pairs
version: 1
truth: {table: truth.csv, id: case, columns: {"": n}}
answer: {kind: numbers, file: counts.csv, id: case}
measures:
  - {id: rmse, of: number.rmse, better: low, title: Error, worst: 20}
  - {id: r, of: number.pearson, better: high, title: Correlation, worst: -1}
  - {id: r2, of: number.r2, better: high, worst: -9}
ranking: {by: aggregate-then-rank}
"""


@pytest.fixture
def pairs(tmp_path):
    """Return a folder with a true number of each of 12 cases, and the answers of one team."""
    rng = np.random.default_rng(3)
    true, answer = rng.normal(size=12), rng.normal(size=12)
    answer += true
    for name, head, column in (
        ("truth/truth.csv", "n", true),
        ("team/counts.csv", "value", answer),
    ):
        rows = [f"{case_id},{float(x)!r}" for case_id, x in zip(ids(12), column, strict=True)]
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("\n".join([f"case,{head}", *rows]))
    return tmp_path, true, answer


def test_measures_of_numbers_agree_with_scipy_and_numpy(pairs):
    root, true, answer = pairs
    definition = parse_definition(PAIRS, "cup.yaml")
    values = measured(definition, root / "truth", root / "team")
    assert numbers(definition, values) == pytest.approx(
        {
            "rmse": np.sqrt(np.mean((answer - true) ** 2)),
            "r": scipy.stats.pearsonr(answer, true).statistic,
            "r2": sklearn.metrics.r2_score(true, answer),
        },
        rel=1e-12,
    )


def test_a_measure_of_all_cases_has_its_worst_value_if_a_case_is_missing(pairs):
    root, _, _ = pairs
    table = root / "team" / "counts.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]))
    definition = parse_definition(PAIRS, "cup.yaml")
    values = measured(definition, root / "truth", root / "team")
    assert numbers(definition, values) == {"rmse": 20, "r": -1, "r2": -9}
    plain = parse_definition(
        PAIRS.replace(", worst: -1", "").replace(", worst: -9", ""), "cup.yaml"
    )
    found = numbers(plain, measured(plain, root / "truth", root / "team"))
    assert np.isnan([found["r"], found["r2"]]).all()
    assert {note.split()[0] for note in require_measures(plain)} == {"r", "r2"}


@pytest.mark.parametrize("case", ["constant answers", "constant truth"])
def test_a_correlation_of_constant_numbers_is_not_defined(case):
    rows = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]])
    rows = rows if case == "constant answers" else rows[:, ::-1]
    assert np.isnan(MEASURES["number.pearson"].of_rows(rows))
    assert np.isnan(MEASURES["number.r2"].of_rows(rows)) == (case == "constant truth")


@pytest.mark.usefixtures("quick_figures")
def test_board_and_site_name_measures_by_title_and_direction(pairs):
    root, _, _ = pairs
    folder, board = root / "cup", root / "board"
    text = PAIRS.replace("version: 1", "version: 1\ntitle: Pairs of numbers").replace(
        "{id: r2, of: number.r2, better: high, worst: -9}",
        "{id: dev, of: number.absolute_error, better: low, worst: 9, title: Deviation}",
    )
    definition = parse_definition(text, "cup.yaml")
    begin_challenge(folder, ChallengeSettings(definition=definition, reference=root / "truth"))
    shutil.copytree(root / "team", folder / "submissions" / "team")
    table = folder / "submissions" / "team" / "counts.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]))
    run_challenge(folder)
    rank_challenge(folder, board)
    page = (board / "leaderboard.html").read_text()
    for label in (
        "Error\N{NO-BREAK SPACE}↓",
        "Correlation\N{NO-BREAK SPACE}↑",
        "Deviation\N{NO-BREAK SPACE}↓",
        MISSING_TEXTS[MissingAnswer.WORST],
    ):
        assert label in page
    assert "definition clinical" not in page.lower()
    assert "Pairs of numbers: who leads" in page
    team = (board / "teams" / "team.html").read_text()
    assert "C_11" in team
    assert "the table has no row for this case" in team
    publish([board], root / "site")
    page = (root / "site" / "index.html").read_text()
    for label in (
        "Error\N{NO-BREAK SPACE}↓",
        "Correlation\N{NO-BREAK SPACE}↑",
        "definition pairs",
        MISSING_TEXTS[MissingAnswer.WORST],
    ):
        assert label in page
    assert "SD: over" not in page
    assert re.findall("<h2[^>]*>(.*?)</h2>", page)[-2:] == [
        "Pairs of numbers",
        "Pairs of numbers: figures",
    ]
    assert read_json(root / "site" / "leaderboard.json")["tasks"][0]["title"] == "Pairs of numbers"


def test_a_team_without_a_number_is_explained_on_the_board_its_page_and_the_site(counts):
    own = parse_definition(
        YAML.replace("number.absolute_error, better: low, worst: 10", "number.rmse, better: low"),
        "cup.yaml",
    )
    folder, board = counts / "cup", counts / "board"
    settings = ChallengeSettings(definition=own, reference=counts / "truth", n_resamples=20)
    begin_challenge(folder, settings)
    shutil.copytree(counts / "teams", folder / "submissions", dirs_exist_ok=True)
    run_challenge(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        rule = rank_challenge(folder, board).board.rule
        publish([board], counts / "site", PublishSettings(minimum_group=2))
    assert "error has no worst value" in rule
    lacks = "no value of error\N{NO-BREAK SPACE}↓"
    assert lacks in (board / "leaderboard.html").read_text()
    team = (board / "teams" / "lazy.html").read_text()
    assert "C_05" in team
    assert "the table has no row for this case" in team
    (task,) = read_json(counts / "site" / "leaderboard.json")["tasks"]
    assert [bool(row["remark"]) for row in task["rows"]] == [False, False, True]
    page = (counts / "site" / "index.html").read_text()
    assert lacks in page
    assert "Mean rank\N{NO-BREAK SPACE}↓" in page
    assert "Grey" not in page


def test_a_label_among_the_arguments_is_refused_with_a_way_out():
    text = MASKS.replace("worst: 100", "worst: 100, args: {label: 2}")
    with pytest.raises(FormatError, match=r"answer\.labels"):
        require_measures(parse_definition(text, "cup.yaml"))


@pytest.mark.usefixtures("quick_figures")
def test_the_board_of_masks_states_that_labels_are_merged(tmp_path):
    folder = begun(tmp_path, definition=parse_definition(MASKS, "cup.yaml"))
    run_challenge(folder)
    board = rank_challenge(folder, tmp_path / "board").board
    assert any("All labels" in note for note in board.notes)
    page = (tmp_path / "board" / "leaderboard.html").read_text()
    assert "Definition surfaces" in page


# ------------------------------------------------------------------ ranks by hand

RANKED = """
name: cup
version: 1
truth: {table: truth.csv, id: case, columns: {"": n}}
answer: {kind: numbers, file: counts.csv, id: case}
measures:
  - {id: a, of: number.absolute_error, better: low}
  - {id: b, of: number.absolute_error, better: high}
  - {id: c, of: number.absolute_error, better: low}
ranking: {by: BY, within: [[a, b], [c]]}
"""


def ranked(by, values, **more):
    """Rank teams by the values of cases, by team and measure."""
    definition = parse_definition(RANKED.replace("BY", by), "cup.yaml")
    teams = {
        team: {name: MeasuredCases(name, tuple(values_of(*of_cases, worst=())))
               for name, of_cases in zip("abc", of_team, strict=True)}
        for team, of_team in values.items()
    }  # fmt: skip
    return rank_by_definition(definition, measure_rules(definition), teams, **more)


def test_ranks_are_averaged_in_each_group_and_ranked_again():
    x, y, z = ((1,), (9,), (3,)), ((2,), (7,), (1,)), ((3,), (8,), (2,))
    # a: x 1, y 2, z 3; b: x 1, y 3, z 2: group x 1, y 2 and z 2 (5 / 2 each); c: x 3, y 1, z 2
    ranking = ranked("aggregate-then-rank", {"x": x, "y": y, "z": z})
    assert ranking.scores.tolist() == [2, 1.5, 2]
    assert ranking.ranks.tolist() == [2, 1, 2]


def test_a_team_without_a_number_is_last_in_its_measure():
    bad = ValueState.NOT_DEFINED
    ranking = ranked("aggregate-then-rank", {"x": ((bad,), (9,), (1,)), "y": ((50,), (8,), (2,))})
    # a: x 2, y 1; b: x 1, y 2: tied in the group; c: x 1
    assert ranking.scores.tolist() == [1, 1.5]


def test_ranking_in_each_case_differs_from_ranking_the_means():
    same = (1, 1, 1)
    values = {"x": ((1, 1, 90), same, same), "y": ((2, 2, 2), same, same)}
    assert ranked("aggregate-then-rank", values).ranks.tolist() == [2, 1]
    assert ranked("rank-then-aggregate", values).ranks.tolist() == [1, 2]


def test_the_resamples_of_a_clear_leader_are_all_won():
    better, worse = (1, 2, 3, 1), (5, 6, 7, 5)
    values = {"x": (better, worse, better), "y": (worse, better, worse)}
    ranking = ranked("aggregate-then-rank", values, n_resamples=30, seed=1)
    assert ranking.stability.first.tolist() == [1, 0]
    assert ranking.draws["Score"].tolist() == [[1, 2]] * 30
    assert ranking.draws["a"].shape == (30, 2)
    assert ranking.draws["a"].min() >= 1
