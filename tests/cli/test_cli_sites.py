"""`mamamia site evaluate` as a site's engineer runs it."""

import pytest
from tests.cli.warm_program import mamamia
from tests.services.challenge_world import write_references, write_team


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
    assert "11 case(s)" in answer.stdout


def test_what_is_left_out_is_named_and_the_exit_code_says_so(site):
    (site / "reference" / "C_03.nii.gz").write_bytes(b"damaged")
    answer = evaluate(site)
    assert answer.returncode == 3, answer.stderr
    assert "failed: C_03: left out: " in answer.stderr
    assert "10 case(s)" in answer.stdout
