"""`mamamia site evaluate` as a site's engineer runs it."""

import json

import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import write_references, write_team


def evaluate(folder, *more):
    team = ("--prediction", f"a={folder / 'a'}", "--digest", f"a={'a' * 64}")
    place = ("--site", "GUM", "--key", folder / "key", "--out", folder / "s.json")
    return mamamia("site", "evaluate", "--reference", folder / "reference", *team, *place, *more)


@pytest.fixture
def site(tmp_path):
    write_references(tmp_path, 11)
    write_team(tmp_path / "a", 0, 11)
    return tmp_path


def test_whole_data_end_well(site):
    answer = evaluate(site)
    assert answer.returncode == 0, answer.stderr
    assert "11 cases" in answer.stdout


def test_what_is_left_out_is_named_and_the_exit_code_says_so(site):
    (site / "reference" / "C_03.nii.gz").write_bytes(b"damaged")
    answer = evaluate(site)
    assert answer.returncode == 3, answer.stderr
    assert "failed: C_03: left out: " in answer.stderr
    assert "10 cases" in answer.stdout


def test_our_own_predictions_need_no_digest_and_cases_under_two_keys_are_told(
    tmp_path, small_data_set
):
    predicted = mamamia("predict", small_data_set, "--out", tmp_path / "kinetic")
    assert predicted.returncode == 0, predicted.stderr
    reference = small_data_set / "segmentations" / "expert"
    for site, prediction in (("GUM", "kinetic"), ("HCB", "kinetic")):
        place = ("--site", site, "--key", tmp_path / f"{site}.key", "--out", tmp_path / site)
        answer = mamamia(
            *("site", "evaluate", "--reference", reference, *place),
            *("--prediction", f"kinetic={tmp_path / prediction}"),
        )
        assert answer.returncode == 0, answer.stderr
    codes = [
        {row["code"] for row in json.loads((tmp_path / site).read_text())["rows"]}
        for site in ("GUM", "HCB")
    ]
    assert codes[0].isdisjoint(codes[1])
    merged = mamamia("site", "merge", tmp_path / "GUM", tmp_path / "HCB", "--out", tmp_path / "out")
    assert merged.returncode == 0, merged.stderr
    assert "3 of 3 cases of HCB have exactly the same numbers as GUM" in merged.stdout
    told = json.loads((tmp_path / "out" / "sites.json").read_text())["notes"]
    assert any("they count twice here" in note for note in told)
