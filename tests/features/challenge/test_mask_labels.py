"""Masks with several labels: measures of each label, and measures of other packages."""

import re
import shutil
import sys

import nibabel as nib
import numpy as np
import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import SHAPE, write_mask

from napari_mamamia.core.errors import CaseError, FormatError, Remedy
from napari_mamamia.core.plugins import load_group
from napari_mamamia.features.challenge.io.challenge_file import read_challenge
from napari_mamamia.features.challenge.io.definition import parse_definition
from napari_mamamia.features.challenge.services.challenge.answers import require_measures
from napari_mamamia.features.challenge.services.challenge.begin import (
    ChallengeSettings,
    begin_challenge,
)
from napari_mamamia.features.challenge.services.challenge.board_pages import rank_challenge
from napari_mamamia.features.challenge.services.challenge.publish import PublishSettings, publish
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.features.challenge.services.challenge.single import score_answers
from napari_mamamia.features.challenge.services.challenge.verify import verify_challenge
from napari_mamamia.io.data_set.case_list import read_case_list
from napari_mamamia.io.files.json_text import read_json

TEXT = """
name: liver
version: 1
title: Liver and tumour
answer: {kind: masks, labels: {liver: [1, 2], tumour: 2}}
measures:
  - {id: liver, of: dsc, label: liver, better: high, worst: 0, title: Dice of the liver}
  - {id: tumour, of: dsc, label: tumour, better: high, worst: 0}
  - {id: far, of: hausdorff_mm, label: tumour, better: low, worst: 500}
ranking: {by: aggregate-then-rank}
"""


def organ(depth=4, *, n_tumour=2, more=0):
    """Return a liver of `depth` slices of 16 voxels, with a tumour of `n_tumour` slices of 4."""
    mask = np.zeros(SHAPE, np.uint8)
    mask[1 : 1 + depth, 2:6, 2:6] = 1
    mask[1 : 1 + n_tumour, 2:4, 2:4] = 2
    mask[1 : 1 + more, 4:6, 2:4] = 2
    return mask


def definition(*changes):
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return parse_definition(text, "liver.yaml")


@pytest.fixture
def folders(tmp_path):
    """Return folders of references and of a team's masks of one case, C_00."""
    write_mask(tmp_path / "truth" / "C_00.nii.gz", organ())
    write_mask(tmp_path / "team" / "C_00.nii.gz", organ(2, more=1))
    return tmp_path / "truth", tmp_path / "team"


def score(definition, folders):
    scored = score_answers(definition, *folders, {})
    return {name: round(number, 6) for name, number in scored.numbers.items()}, scored.unusable


def test_each_label_is_measured_as_a_region_of_its_own(folders):
    numbers, unusable = score(definition(), folders)
    # liver, both values: 64 and 32 voxels, all 32 common. tumour: 8 and 12 voxels, 8 common; its
    # 4 extra voxels end 2 rows of 0.8 mm away.
    assert numbers == {"liver": round(2 * 32 / 96, 6), "tumour": 0.8, "far": 1.6}
    assert unusable == ()


def test_a_case_without_the_label_in_its_reference_counts_for_no_team(folders):
    write_mask(folders[0] / "C_01.nii.gz", organ(n_tumour=0))
    write_mask(folders[1] / "C_01.nii.gz", organ())
    numbers, unusable = score(definition(), folders)
    assert (numbers["tumour"], numbers["far"], unusable) == (0.8, 1.6, ())
    assert numbers["liver"] == round((2 * 32 / 96 + 1) / 2, 6)


@pytest.mark.parametrize(("n_tumour", "dice", "far"), [(0, 1, 0), (2, 0, 500)])
def test_a_mask_without_an_absent_label_can_have_the_best_value(folders, n_tumour, dice, far):
    write_mask(folders[0] / "C_01.nii.gz", organ(n_tumour=0))
    write_mask(folders[1] / "C_01.nii.gz", organ(n_tumour=n_tumour))
    best = definition(("tumour: 2}", "tumour: 2}, absent: empty-is-best"))
    numbers, unusable = score(best, folders)
    assert (numbers["tumour"], numbers["far"]) == (0.4 + dice / 2, 0.8 + far / 2)
    assert unusable == ()


def test_a_missing_mask_never_has_the_best_value(folders):
    write_mask(folders[0] / "C_01.nii.gz", organ(n_tumour=0))
    best = definition(("tumour: 2}", "tumour: 2}, absent: empty-is-best"))
    numbers, ((case_id, reason),) = score(best, folders)
    assert (numbers["tumour"], case_id) == (0.4, "C_01")
    assert "worst value" in reason


@pytest.mark.parametrize("problem", ["missing", "no such label", "damaged", "grid", "fractions"])
def test_an_unusable_label_is_worth_its_worst_value(folders, problem):
    path = folders[1] / "C_01.nii.gz"
    write_mask(folders[0] / "C_01.nii.gz", organ())
    if problem == "no such label":
        write_mask(path, organ(n_tumour=0))
    elif problem == "damaged":
        path.write_bytes(b"no mask")
    elif problem == "grid":
        write_mask(path, organ()[:, :-1])
    elif problem == "fractions":
        mask = organ().astype(np.float32)
        mask[0, 0, 0] = 0.5
        write_mask(path, mask, dtype=np.float32)
    numbers, ((case_id, reason),) = score(definition(), folders)
    assert (numbers["tumour"], numbers["far"], case_id) == (0.4, 250.8, "C_01")
    assert reason


def test_labels_may_have_any_whole_number_and_touch_each_other(folders):
    for folder in folders:
        path = folder / "C_00.nii.gz"
        values = np.asarray(nib.load(path).dataobj).transpose()
        write_mask(path, np.where(values == 2, 250, values * 40))
    own = definition(("liver: [1, 2], tumour: 2", "liver: [40, 250], tumour: 250"))
    assert score(own, folders)[0]["liver"] == round(2 * 32 / 96, 6)
    assert score(own, folders)[0]["tumour"] == 0.8


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("label: liver", "label: spleen"), "spleen"),
        (("tumour: 2", "tumour: 0"), "tumour"),
        (("tumour: 2", "tumour: []"), "tumour"),
        (("kind: masks", "kind: responses"), "responses"),
        (("of: hausdorff_mm", "of: profile.performance"), "profile"),
        (("worst: 0, title", "title"), "liver"),
    ],
)
def test_wrong_labels_are_refused(change, found):
    with pytest.raises(FormatError, match=found):
        require_measures(definition(change))


def test_init_refuses_a_label_that_no_reference_has_and_counts_the_others(folders, tmp_path):
    settings = ChallengeSettings(reference=folders[0], definition=definition(("r: 2}", "r: 7}")))
    with pytest.raises(FormatError, match="tumour"):
        begin_challenge(tmp_path / "none", settings)
    settings = ChallengeSettings(reference=folders[0], definition=definition())
    begun = begin_challenge(tmp_path / "cup", settings)
    assert begun.notes == ("label liver: in 1 of 1 reference", "label tumour: in 1 of 1 reference")
    with pytest.raises(CaseError) as caught:
        begin_challenge(
            tmp_path / "other", ChallengeSettings(case_ids=("C_00",), definition=definition())
        )
    assert Remedy("reference", ("DIR",)) in caught.value.remedies


# ------------------------------------------------------------------ from init to a site


@pytest.fixture
def cup(tmp_path):
    """Return a challenge of 12 cases with three teams, begun and run by commands."""
    (tmp_path / "liver.yaml").write_text(TEXT)
    for number in range(12):
        name = f"C_{number:02d}.nii.gz"
        write_mask(tmp_path / "truth" / name, organ())
        write_mask(tmp_path / "teams" / "good" / name, organ(more=1))
        write_mask(tmp_path / "teams" / "half" / name, organ(2, n_tumour=1))
        if number:
            write_mask(tmp_path / "teams" / "none" / name, organ(4, n_tumour=0))
    folder = tmp_path / "cup"
    done = mamamia("challenge", "init", folder, "--challenge", tmp_path / "liver.yaml",
                   "--reference", tmp_path / "truth", "--bootstrap", 20)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "TEAM.csv" not in done.stdout  # such scores of a team are refused
    shutil.copytree(tmp_path / "teams", folder / "submissions", dirs_exist_ok=True)
    return folder


@pytest.mark.usefixtures("quick_figures")
def test_teams_are_ranked_by_their_labels_up_to_a_published_site(cup, tmp_path):
    assert mamamia("challenge", "run", cup, "--workers", 2).returncode == 3
    board = tmp_path / "board"
    notes = rank_challenge(cup, board).board.notes
    assert not any("All labels" in note for note in notes)
    rows = {row["team"]: row for row in read_json(board / "leaderboard.json")["boards"][0]["rows"]}
    measures = {team: dict(row["measures"]) for team, row in rows.items()}
    # half: liver 32 of 64 voxels, tumour 4 of 8, a slice of 2 mm away; none: liver 11 of 12
    assert measures["good"] == pytest.approx({"liver": 1, "tumour": 0.8, "far": 1.6})
    assert measures["half"] == pytest.approx({"liver": 2 / 3, "tumour": 2 / 3, "far": 2})
    assert measures["none"] == pytest.approx({"liver": 11 / 12, "tumour": 0, "far": 500})
    # ranks good 1 1 1, half 3 2 2, none 2 3 3
    assert {team: row["rank"] for team, row in rows.items()} == {"good": 1, "half": 2, "none": 3}
    assert rows["none"]["score"] == pytest.approx(8 / 3)
    assert verify_challenge(board) == ()
    publish([board], tmp_path / "site", PublishSettings())
    page = (tmp_path / "site" / "index.html").read_text()
    assert "Dice of the liver\N{NO-BREAK SPACE}↑" in page


@pytest.mark.usefixtures("quick_figures")
@pytest.mark.parametrize("by", ["aggregate-then-rank", "score, score: liver"])
def test_a_site_shows_ranks_on_a_public_and_a_private_part(cup, tmp_path, by):
    folder = tmp_path / "split"
    own = definition(("by: aggregate-then-rank", f"by: {by}"))
    settings = ChallengeSettings(reference=tmp_path / "truth", definition=own, n_resamples=0)
    begin_challenge(folder, settings)
    shutil.copytree(cup / "submissions", folder / "submissions", dirs_exist_ok=True)
    run_challenge(folder)
    rank_challenge(folder, tmp_path / "board")
    (tmp_path / "public.csv").write_text("case_id\n" + "\n".join(f"C_{n:02d}" for n in range(6)))
    public = read_case_list(tmp_path / "public.csv")
    split = PublishSettings(public=public, minimum_group=5)
    publish([tmp_path / "board"], tmp_path / "site", split)
    (task,) = read_json(tmp_path / "site" / "leaderboard.json")["tasks"]
    rows = {row["team"]: row for row in task["rows"]}
    scores = {team: (row["public_score"], row["private_score"]) for team, row in rows.items()}
    ranks = {team: (row["public_rank"], row["private_rank"]) for team, row in rows.items()}
    assert task["parts"] == [6, 6]
    if by == "aggregate-then-rank":
        # "none" lacks C_00: on the public part its liver is 5 / 6, below good 1, above half 2 / 3;
        # on the private part it shares the first rank with good
        assert scores["good"] == (1, 1)
        assert scores["half"] == (pytest.approx(7 / 3), pytest.approx(7 / 3))
        assert scores["none"] == (pytest.approx(8 / 3), pytest.approx(7 / 3))
        assert ranks == {"good": (1, 1), "half": (2, 2), "none": (3, 2)}
    else:
        assert scores["none"] == (pytest.approx(5 / 6), pytest.approx(1))
        assert ranks == {"good": (1, 1), "half": (3, 3), "none": (2, 1)}


@pytest.fixture
def lacking(tmp_path):
    """Return the board of 12 cases, of which C_00 to C_02 have no tumour, and of two teams."""
    for number in range(12):
        name, n_tumour = f"C_{number:02d}.nii.gz", 0 if number < 3 else 2
        write_mask(tmp_path / "truth" / name, organ(n_tumour=n_tumour))
        write_mask(tmp_path / "cup" / "submissions" / "good" / name, organ(more=1))
        write_mask(tmp_path / "cup" / "submissions" / "half" / name, organ(2, n_tumour=1))
    notes = ("measures:", 'source: Hospital A\nnotes: ["Labels 1 and 2"]\nmeasures:')
    settings = ChallengeSettings(
        reference=tmp_path / "truth", definition=definition(notes), n_resamples=20
    )
    begin_challenge(tmp_path / "cup", settings)
    run_challenge(tmp_path / "cup")
    rank_challenge(tmp_path / "cup", tmp_path / "board")
    return tmp_path / "board"


@pytest.mark.usefixtures("quick_figures")
def test_a_reference_without_the_label_is_a_missing_value_nowhere(lacking):
    tables = {table["metric"]: table for table in read_json(lacking / "rank.json")["tables"]}
    assert list(tables) == ["liver", "tumour", "far"]
    for table in tables.values():
        assert table["filled"] == {"good": 0, "half": 0}
    page = (lacking / "leaderboard.html").read_text()
    assert "no leader" not in page
    counts = "Dice of the liver ↑ 12, tumour ↑ 9, far ↓ 9"
    assert counts in page.replace("\N{NO-BREAK SPACE}", " ")
    team = (lacking / "teams" / "half.html").read_text()
    assert "inf" not in re.sub(r"<(style|script).*?</\1>", "", team, flags=re.DOTALL).split()
    assert "no value submitted" not in team
    assert "All 9 cases: tumour" in team
    assert verify_challenge(lacking) == ()


@pytest.mark.usefixtures("quick_figures")
def test_a_measure_with_few_cases_has_no_published_number(lacking, tmp_path):
    publish([lacking], tmp_path / "site", PublishSettings())
    (task,) = read_json(tmp_path / "site" / "leaderboard.json")["tasks"]
    for row in task["rows"]:
        numbers = {number["name"]: number for number in row["numbers"]}
        assert {name: number["n"] for name, number in numbers.items()} == {
            "liver": 12, "tumour": 9, "far": 9, "Score": 9
        }  # fmt: skip
        for name in ("tumour", "far", "Score"):
            assert {numbers[name][key] for key in ("value", "low", "high", "sd")} == {None}
        assert numbers["liver"]["value"] is not None
    assert [row["rank"] for row in task["rows"]] == [1, 2]
    page = (tmp_path / "site" / "index.html").read_text()
    assert (
        "fewer than 10 cases have this measure: tumour\N{NO-BREAK SPACE}↑, far\N{NO-BREAK SPACE}↓"
        in page
    )
    assert "0.8000" not in page
    assert "boxes-" not in page
    assert (task["source"], task["notes"][0]) == ("Hospital A", "Labels 1 and 2")
    assert "Source: Hospital A" in page
    publish([lacking], tmp_path / "nine", PublishSettings(minimum_group=9))
    (task,) = read_json(tmp_path / "nine" / "leaderboard.json")["tasks"]
    numbers = {number["name"]: number["value"] for number in task["rows"][0]["numbers"]}
    assert numbers["tumour"] == pytest.approx(0.8)
    with pytest.raises(CaseError):
        publish([lacking], tmp_path / "none", PublishSettings(minimum_group=13))


@pytest.mark.usefixtures("quick_figures")
@pytest.mark.parametrize(("minimum", "is_shown"), [(3, False), (2, True)])
def test_parts_with_few_cases_of_a_measure_have_no_ranks(lacking, tmp_path, minimum, is_shown):
    # the public part has C_02 without a tumour, and two cases with one; letter case is ignored
    (tmp_path / "public.txt").write_text("C_02\nc_03\nC_04\n")
    split = PublishSettings(public=read_case_list(tmp_path / "public.txt"), minimum_group=minimum)
    publish([lacking], tmp_path / "site", split)
    (task,) = read_json(tmp_path / "site" / "leaderboard.json")["tasks"]
    assert task["parts"] == [3, 9]
    for row in task["rows"]:
        shown = [row[f"{part}_{what}"] is not None
                 for part in ("public", "private") for what in ("rank", "score")]  # fmt: skip
        assert shown == [is_shown] * 4
    assert ("No ranks on the public" in str(task["notes"])) is not is_shown


@pytest.mark.usefixtures("quick_figures")
def test_public_cases_that_are_in_no_challenge_are_refused(lacking, tmp_path):
    (tmp_path / "public.txt").write_text("C_02\nC_03\nnope\n")
    split = PublishSettings(public=read_case_list(tmp_path / "public.txt"), minimum_group=2)
    with pytest.raises(CaseError, match="nope"):
        publish([lacking], tmp_path / "site", split)


@pytest.mark.usefixtures("quick_figures")
def test_near_copies_and_equal_masks_of_teams_raise_notes_under_a_definition(tmp_path):
    whole = np.zeros((30, 40, 40), np.uint8)
    whole[1:29, 1:39, 1:39] = 1
    whole[4:26, 4:36, 4:36] = 2
    for number in range(3):
        name, copy, half = f"C_{number:02d}.nii.gz", whole.copy(), whole.copy()
        copy[1, 1, 1], copy[4, 4, 4] = 0, 1
        half[10:, :, :] = 0
        write_mask(tmp_path / "truth" / name, whole)
        for team, mask in (("near", copy), ("half", half), ("same", half)):
            write_mask(tmp_path / "cup" / "submissions" / team / name, mask)
    settings = ChallengeSettings(
        reference=tmp_path / "truth", definition=definition(), n_resamples=0
    )
    begin_challenge(tmp_path / "cup", settings)
    run_challenge(tmp_path / "cup")
    board = rank_challenge(tmp_path / "cup", tmp_path / "board").board
    n_near = {row.team: row.n_near_copies for row in board.boards[0].rows}
    assert n_near == {"near": 3, "half": 0, "same": 0}
    assert sum("ALARM" in note for note in board.notes) == 1
    assert any("half and same have the same mask in 3 cases" in note for note in board.notes)


def test_a_ladder_is_refused_for_measures_of_a_definition(folders, tmp_path):
    settings = ChallengeSettings(reference=folders[0], definition=definition(), ladder=True)
    with pytest.raises(CaseError, match="ladder"):
        begin_challenge(tmp_path / "cup", settings)


def test_verify_measures_labels_again_from_the_sealed_masks(cup, monkeypatch):
    run_challenge(cup)
    assert verify_challenge(cup) == ()
    from napari_mamamia.features.challenge.services.challenge import mask_answers

    before = mask_answers._select
    monkeypatch.setattr(mask_answers, "_select", lambda labels, codes: before(labels, (2,)))
    assert any("liver" in difference.text for difference in verify_challenge(cup))


def test_a_program_that_stops_continues_with_the_stored_cases(cup):
    run_challenge(cup)
    assert list((cup / "results").rglob("case_results.jsonl"))
    assert not list((cup / "results").rglob("case_scores.csv"))


def test_express_checks_masks_by_label_without_scores(cup):
    done = mamamia("challenge", "run", cup, "--express", "--team", "half")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 of 3" in done.stdout
    assert not list((cup / "results").rglob("liver.json"))


def test_scores_that_a_team_computed_are_refused(cup):
    (cup / "submissions" / "own.csv").write_text("case_id,dsc,norm_hd\nC_00,1,0\n")
    run_challenge(cup)
    board = rank_challenge(cup, cup.parent / "board").board
    (row,) = (row for row in board.boards[0].rows if row.team == "own")
    assert row.rank is None


# ------------------------------------------------------------------ measures of packages

MODULE = """
from napari_mamamia.features.challenge.io.definition import AnswerKind
from napari_mamamia.features.challenge.scoring.measures import ChallengeMeasure, NotDefinedError


def volume_error(prediction, reference, spacing_mm, unit=1.0):
    if not prediction.any():
        raise NotDefinedError("the mask is empty")
    z, y, x = spacing_mm
    voxel = z * y * x / unit
    assert (z, prediction.ndim) == (2.0, 3)
    return abs(float((prediction > 0).sum()) - float((reference > 0).sum())) * voxel


def n_values(prediction, reference, spacing_mm):
    return abs(len(set(prediction.ravel().tolist())) - len(set(reference.ravel().tolist())))


VOLUME = ChallengeMeasure("own.volume", AnswerKind.MASKS, volume_error, worst=9.0)
VALUES = ChallengeMeasure("own.values", AnswerKind.MASKS, n_values, worst=9.0)
"""


@pytest.fixture
def _own_package(tmp_path, monkeypatch):
    """Install a package with two measures of masks."""
    site = tmp_path / "site-packages"
    info = site / "own_masks-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-masks\nVersion: 1.0\n")
    points = "own.volume = own_masks:VOLUME\nown.values = own_masks:VALUES\n"
    (info / "entry_points.txt").write_text(f"[napari_mamamia.challenge_measures]\n{points}")
    (site / "own_masks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(site)
    load_group.cache_clear()
    yield
    monkeypatch.undo()
    load_group.cache_clear()
    sys.modules.pop("own_masks", None)


OWN = (
    "  - {id: far, of: hausdorff_mm, label: tumour, better: low, worst: 500}",
    "  - {id: far, of: own.volume, label: tumour, better: low, args: {unit: 2}}\n"
    "  - {id: n, of: own.values, better: low}",
)


@pytest.mark.usefixtures("_own_package")
def test_a_function_of_two_masks_and_their_spacing_is_a_measure(folders):
    # 12 and 8 voxels of 2 x 0.8 x 0.8 mm, divided by 2; the whole masks both have values 0, 1, 2
    numbers, unusable = score(definition(OWN), folders)
    assert numbers["far"] == pytest.approx(4 * 1.28 / 2)
    assert (numbers["n"], unusable) == (0, ())


@pytest.mark.usefixtures("_own_package")
def test_a_function_of_masks_is_frozen_and_its_worst_value_counts(folders, tmp_path):
    write_mask(folders[0] / "C_01.nii.gz", organ())
    write_mask(folders[1] / "C_01.nii.gz", organ(n_tumour=0))
    numbers, ((case_id, reason),) = score(definition(OWN), folders)
    assert numbers["far"] == pytest.approx((4 * 1.28 / 2 + 9) / 2)
    assert (case_id, numbers["n"]) == ("C_01", 0.5)
    assert "empty" in reason or "label" in reason
    changes = ((", labels: {liver: [1, 2], tumour: 2}", ""), (" label: liver,", ""))
    own = definition(OWN, *changes, (" label: tumour,", ""))
    begin_challenge(tmp_path / "cup", ChallengeSettings(reference=folders[0], definition=own))
    names = {code.name for code in read_challenge(tmp_path / "cup").challenge.code}
    assert names == {"own.volume", "own.values"}
