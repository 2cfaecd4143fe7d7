"""A challenge in a folder: begun, run, noted in the ledger, proved; and all who try to cheat."""

import json
import os
import shutil
import time
import zipfile
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from tests.features.challenge.challenge_world import (
    TEAMS,
    begun,
    ids,
    reference,
    write_mask,
    write_references,
    write_team,
)

from napari_mamamia.core.choices import Task
from napari_mamamia.core.errors import CaseError, FormatError, SaveConflictError
from napari_mamamia.features.challenge.io.challenge_file import ChallengeLimits, read_challenge
from napari_mamamia.features.challenge.io.ledger import AttemptOutcome, read_ledger
from napari_mamamia.features.challenge.services.challenge.attempt import ProgramSettings
from napari_mamamia.features.challenge.services.challenge.begin import (
    ChallengeSettings,
    begin_challenge,
)
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.features.challenge.services.challenge.verify import (
    list_unchecked,
    verify_challenge,
)
from napari_mamamia.io.files import checksums
from napari_mamamia.io.files.foreign import open_plain
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.io.volumes import streams
from napari_mamamia.services.batch import child
from napari_mamamia.services.batch.work import Place

TWO = 2


def ledger_of(folder: Path):
    opened = read_challenge(folder)
    return read_ledger(opened.attempts, opened.sha256)


def ledger_files(folder: Path) -> list[Path]:
    return sorted((folder / "attempts").rglob("*.jsonl"))


def by_team(run):
    return {one.team: one for one in run.teams}


@pytest.fixture
def challenge(tmp_path):
    return begun(tmp_path, 3)


# ---------------------------------------------------------------- the beginning


def test_a_challenge_freezes_every_case_with_the_hash_of_its_reference(challenge):
    frozen = json.loads((challenge / "challenge.json").read_text())
    assert [case["case_id"] for case in frozen["cases"]] == ids(3)
    assert all(len(case["reference"]["sha256"]) == 64 for case in frozen["cases"])
    assert frozen["profile"] == "clinical"
    assert json.loads((challenge / "places.json").read_text())["reference"] == "../reference"


def test_the_express_lane_has_the_smallest_tumour_first(tmp_path):
    folder = begun(tmp_path, 4)
    # edges 3, 4, 5, 6: the smallest, the middle one (the lower of two), the largest
    assert read_challenge(folder).challenge.express == ("C_00", "C_01", "C_03")


def test_a_challenge_is_never_begun_over_another(challenge):
    before = (challenge / "challenge.json").read_bytes()
    with pytest.raises(SaveConflictError, match="already contains a challenge"):
        begin_challenge(challenge, ChallengeSettings(reference=challenge.parent / "reference"))
    assert (challenge / "challenge.json").read_bytes() == before


def test_a_frozen_list_takes_only_its_cases_and_each_needs_a_reference(tmp_path):
    masks = write_references(tmp_path, 3)
    settings = ChallengeSettings(reference=masks, case_ids=("c_01", "C_02"))
    opened = begin_challenge(tmp_path / "a", settings).opened
    assert opened.challenge.case_ids == ("C_01", "C_02")
    with pytest.raises(CaseError, match="none for X"):
        begin_challenge(tmp_path / "b", replace(settings, case_ids=("X",)))
    with pytest.raises(CaseError, match="listed twice"):
        begin_challenge(tmp_path / "b", replace(settings, case_ids=("C_01", "c_01")))
    assert not (tmp_path / "b" / "challenge.json").exists()


def test_a_challenge_that_lacks_what_its_task_needs_is_refused(tmp_path):
    with pytest.raises(CaseError, match="neither"):
        begin_challenge(tmp_path / "a", ChallengeSettings())
    masks = write_references(tmp_path, 2)
    with pytest.raises(CaseError, match="clinical table with pcr"):
        begin_challenge(tmp_path / "a", ChallengeSettings(reference=masks, task=Task.BOTH))


# ---------------------------------------------------------------- run and ledger


def test_a_run_scores_every_team_and_notes_each_attempt(challenge):
    run = run_challenge(challenge)
    assert run.all_ok
    assert {one.team: one.number for one in run.teams} == dict.fromkeys(TEAMS, 1)
    rows = read_case_scores(by_team(run)["alpha"].folder / "scores" / "case_scores.csv")
    assert [row.dsc for row in rows] == [1.0, 1.0, 1.0]
    assert [one.outcome for one in ledger_of(challenge).attempts] == [AttemptOutcome.SCORED] * 3
    assert verify_challenge(challenge) == ()


def test_what_did_not_change_is_no_new_attempt_and_what_did_is_the_second(challenge):
    run_challenge(challenge)
    lines = [path.read_bytes() for path in ledger_files(challenge)]
    again = run_challenge(challenge)
    assert [one.is_new for one in again.teams] == [False] * 3
    assert [path.read_bytes() for path in ledger_files(challenge)] == lines
    write_team(challenge / "submissions" / "beta", 0, 3)
    assert by_team(run_challenge(challenge))["beta"].number == TWO


def test_attempts_over_the_limit_are_not_scored(tmp_path):
    folder = begun(tmp_path, 2, limits=ChallengeLimits(attempts=1))
    run_challenge(folder, ["beta"])
    write_team(folder / "submissions" / "beta", 0, 2)
    (outcome,) = run_challenge(folder, ["beta"]).teams
    assert outcome.outcome is AttemptOutcome.REFUSED
    assert "at most 1 attempt," in outcome.reason
    assert len(ledger_of(folder).attempts) == 1


def test_a_case_that_was_not_handed_in_is_named_and_scored_as_missing(challenge):
    (challenge / "submissions" / "beta" / "C_01.nii.gz").unlink()
    outcome = by_team(run_challenge(challenge))["beta"]
    assert outcome.outcome is AttemptOutcome.SCORED
    assert [one.case_id for one in outcome.breaches] == ["C_01"]
    assert (outcome.folder / "for_team" / "contract.csv").read_text().count("\n") == TWO


def test_names_of_teams_that_one_disk_would_take_for_one_are_both_left_out(challenge):
    shutil.copytree(challenge / "submissions" / "beta", challenge / "submissions" / "BETA")
    if len(os.listdir(challenge / "submissions")) < 4:  # noqa: PTH208
        pytest.skip("this disk takes the names for one")
    outcomes = run_challenge(challenge).teams
    left_out = [one for one in outcomes if one.outcome is AttemptOutcome.REFUSED]
    assert {one.team for one in left_out} == {"beta", "BETA"}
    assert all("BETA and beta" in one.reason for one in left_out)
    assert by_team(run_challenge(challenge))["alpha"].outcome is AttemptOutcome.SCORED


@pytest.mark.parametrize("name", ["../reference", "a/b", "", "con", "x" * 201])
def test_a_name_that_is_no_name_of_a_folder_is_refused(challenge, name):
    with pytest.raises(CaseError, match="name of a team"):
        run_challenge(challenge, [name])


def test_a_team_with_200_letters_takes_part(challenge):
    name = "t" * 200
    write_team(challenge / "submissions" / name, 0, 3)
    (outcome,) = run_challenge(challenge, [name]).teams
    assert outcome.number == 1


def test_without_a_submission_the_run_says_where_to_put_one(tmp_path):
    masks = write_references(tmp_path, 2)
    begin_challenge(tmp_path / "c", ChallengeSettings(reference=masks))
    with pytest.raises(CaseError, match=r"TEAM\.zip"):
        run_challenge(tmp_path / "c")
    with pytest.raises(CaseError, match="submission from delta"):
        run_challenge(tmp_path / "c", ["delta"])


def test_a_link_to_the_references_is_no_mask(challenge):
    team = challenge / "submissions" / "beta"
    (team / "C_00.nii.gz").unlink()
    (team / "C_00.nii.gz").symlink_to(challenge.parent / "reference" / "C_00.nii.gz")
    (challenge / "submissions" / "delta").symlink_to(challenge.parent / "reference")
    run = by_team(run_challenge(challenge))
    assert [one.case_id for one in run["beta"].breaches] == ["C_00"]
    assert any("link" in note for note in run["beta"].notes)
    assert "link" in run["delta"].reason


def test_copies_of_the_references_are_told(challenge):
    notes = by_team(run_challenge(challenge))["alpha"].notes
    assert notes == ("masks identical to the references, byte for byte: 3",)


def test_a_changed_reference_stops_the_run_before_anything_is_scored(challenge):
    write_mask(challenge.parent / "reference" / "C_00.nii.gz", reference(3))
    with pytest.raises(FormatError, match=r"reference of C_00: C_00\.nii\.gz was changed"):
        run_challenge(challenge)
    assert not ledger_files(challenge)


def test_two_files_of_one_case_cost_that_case(challenge):
    write_mask(challenge / "submissions" / "beta" / "c_00.nii", reference(0))
    outcome = by_team(run_challenge(challenge))["beta"]
    assert [one.case_id for one in outcome.breaches] == ["C_00"]
    assert "case C_00 has several masks" in outcome.breaches[0].reason


def test_masks_of_other_tools_count_as_those_of_nifti_do(challenge):
    """Alpha hands in again: a MetaImage, a pair, and a mask in the folder of its case."""
    import SimpleITK as sitk  # noqa: N813 - the name that its own documentation uses

    alpha, other = challenge / "submissions" / "alpha", challenge / "submissions" / "other"
    (other / "C_02").mkdir(parents=True)
    image = sitk.ReadImage(str(alpha / "C_00.nii.gz"))
    sitk.WriteImage(image, str(other / "C_00.mha"))
    sitk.WriteImage(sitk.ReadImage(str(alpha / "C_01.nii.gz")), str(other / "C_01.hdr"))
    shutil.copy(alpha / "C_02.nii.gz", other / "C_02" / "mask.nii.gz")
    run = by_team(run_challenge(challenge))
    assert run["other"].breaches == ()
    tables = [
        read_case_scores(next((challenge / "results" / team).rglob("case_scores.csv")))
        for team in ("alpha", "other")
    ]
    first, second = ([(row.case_id, row.dsc, row.norm_hd) for row in table] for table in tables)
    assert first == second
    assert all(dsc == 1 for _, dsc, _ in first)  # alpha hands in the references


def test_what_is_no_mask_by_its_name_is_named_in_the_breach(challenge):
    beta = challenge / "submissions" / "beta"
    (beta / "C_00.nii.gz").rename(beta / "C_00.npy")
    (breach,) = by_team(run_challenge(challenge))["beta"].breaches
    assert breach.case_id == "C_00"
    assert "C_00.npy" in breach.reason


def test_a_reference_in_two_files_is_refused_for_its_hash_would_freeze_one(tmp_path):
    import nibabel as nib

    folder = write_references(tmp_path, 1)
    image = nib.load(folder / "C_00.nii.gz")
    nib.save(nib.Nifti1Pair(np.asarray(image.dataobj), image.affine), folder / "C_00.hdr")
    (folder / "C_00.nii.gz").unlink()
    settings = ChallengeSettings(reference=folder, clinical=tmp_path / "clinical.csv")
    with pytest.raises(FormatError, match=r"C_00\.hdr and C_00\.img: convert it"):
        begin_challenge(tmp_path / "challenge", settings)


# ---------------------------------------------------------------- zips and tables


def zipped(folder: Path, target: Path, more=()) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"inner/{path.name}")
        for name, content in more:
            archive.writestr(name, content)


def test_a_zip_counts_as_its_folder(challenge):
    team = challenge / "submissions" / "beta"
    zipped(team, challenge / "submissions" / "delta.zip")
    run = by_team(run_challenge(challenge))
    tables = [run[name].folder / "scores" / "case_scores.csv" for name in ("beta", "delta")]
    assert repr(read_case_scores(tables[0])) == repr(read_case_scores(tables[1]))
    assert verify_challenge(challenge) == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../reference/C_00.nii.gz", "points outside the folder"),
        ("/etc/C_00.nii.gz", "absolute path"),
        ("C:\\C_00.nii.gz", "absolute path"),
        ("a/./b.nii.gz", "points outside the folder"),
        ("inner/c_00.NII.GZ", "appears twice"),
    ],
)
def test_a_zip_whose_names_lead_out_or_come_twice_is_refused_whole(challenge, name, why):
    before = {p: p.read_bytes() for p in (challenge.parent / "reference").iterdir()}
    beta = challenge / "submissions" / "beta"
    zipped(beta, challenge / "submissions" / "delta.zip", [(name, b"x")])
    outcome = by_team(run_challenge(challenge, ["delta"]))["delta"]
    assert outcome.outcome is AttemptOutcome.REFUSED
    assert why in outcome.reason
    assert {p: p.read_bytes() for p in (challenge.parent / "reference").iterdir()} == before
    assert outcome.number == 0


def test_a_zip_with_a_link_is_refused(challenge):
    link = zipfile.ZipInfo("C_00.nii.gz")
    link.external_attr = 0o120777 << 16
    zipped(
        challenge / "submissions" / "beta",
        challenge / "submissions" / "delta.zip",
        [(link, "../../reference/C_00.nii.gz")],
    )
    assert "is a link" in by_team(run_challenge(challenge, ["delta"]))["delta"].reason


def test_what_unpacks_to_more_than_the_limit_is_refused_and_leaves_nothing(tmp_path):
    folder = begun(tmp_path, 2, limits=ChallengeLimits(submission_bytes=1 << 20))
    with zipfile.ZipFile(folder / "submissions" / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("C_00.nii", bytes(2 << 20))
    (outcome,) = run_challenge(folder, ["bomb"]).teams
    assert "expected at most" in outcome.reason
    assert not list((folder / "results" / "bomb").rglob("*"))


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04" + bytes(40)])
def test_a_damaged_zip_is_refused(challenge, content):
    (challenge / "submissions" / "delta.zip").write_bytes(content)
    (outcome,) = run_challenge(challenge, ["delta"]).teams
    assert outcome.outcome is AttemptOutcome.REFUSED


def test_scores_that_a_team_computed_itself_count_only_where_the_challenge_takes_them(tmp_path):
    table = "case_id,dsc,norm_hd\nC_00,1,0\nC_01,1,0\n"
    folder = begun(tmp_path, 2)
    (folder / "submissions" / "delta.csv").write_text(table)
    (outcome,) = run_challenge(folder, ["delta"]).teams
    assert "computed itself" in outcome.reason
    settings = ChallengeSettings(reference=tmp_path / "reference", takes_tables=True, n_resamples=0)
    begin_challenge(tmp_path / "t", settings)
    (tmp_path / "t" / "submissions" / "delta.csv").write_text(table)
    (outcome,) = run_challenge(tmp_path / "t", ["delta"]).teams
    assert outcome.number == 1
    assert "not verified" in outcome.notes[0]
    assert verify_challenge(tmp_path / "t") == ()


def test_responses_are_scored_only_where_every_case_has_one(tmp_path):
    folder = begun(tmp_path, 6, task=Task.CLASSIFICATION)
    shutil.rmtree(folder / "submissions")
    (folder / "submissions").mkdir()
    rows = [f"{case_id},{k % 2},0.{k + 1}" for k, case_id in enumerate(ids(6))]
    full = folder / "submissions" / "full.csv"
    full.write_text("\n".join(("patient_id,pcr,score", *rows)))
    (folder / "submissions" / "less.csv").write_text("\n".join(("patient_id,pcr,score", *rows[1:])))
    run = by_team(run_challenge(folder))
    assert run["full"].outcome is AttemptOutcome.SCORED
    assert run["less"].outcome is AttemptOutcome.REFUSED
    assert [one.case_id for one in run["less"].breaches] == ["C_00"]
    assert verify_challenge(folder) == ()


# ---------------------------------------------------------------- proof


def changed(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def words(differences) -> str:
    return "\n".join(f"{one.where}: {one.text}" for one in differences)


def test_a_changed_removed_or_moved_line_of_the_ledger_is_found(challenge):
    run_challenge(challenge)
    (path,) = ledger_files(challenge)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for text in (
        whole.replace(b'"team":"beta"', b'"team":"bete"'),
        b"".join(lines[1:]),
        b"".join(lines[:2] + lines[3:]),
        b"".join([lines[1], lines[0], *lines[2:]]),
    ):
        path.write_bytes(text)
        assert "ledger: " in words(verify_challenge(challenge, is_quick=True))
    # The last lines alone: their results are there, and no attempt tells of them.
    path.write_bytes(b"".join(lines[:4]))
    assert "holds scores that belong to no attempt" in words(
        verify_challenge(challenge, is_quick=True)
    )
    path.write_bytes(whole)
    assert verify_challenge(challenge, is_quick=True) == ()


def test_a_whole_file_of_the_ledger_that_is_gone_is_found(challenge):
    run_challenge(challenge, ["alpha"])
    (first,) = ledger_files(challenge)
    other = started(challenge, ["beta"])
    other.join(60)
    first.unlink()
    assert "is missing" in words(verify_challenge(challenge, is_quick=True))


def test_a_challenge_that_was_changed_no_longer_fits_its_ledger(challenge):
    run_challenge(challenge)
    changed(challenge / "challenge.json", b'"seed": 42', b'"seed": 43')
    assert "ledger: " in words(verify_challenge(challenge, is_quick=True))


def test_masks_and_scores_that_were_changed_after_scoring_are_found(challenge):
    run = by_team(run_challenge(challenge))
    beta = run["beta"].folder
    table = beta / "scores" / "case_scores.csv"
    earlier = table.read_bytes()
    changed(table, b",ok,0.6", b",ok,0.7")
    found = words(verify_challenge(challenge))
    assert "scores/case_scores.csv was changed" in found
    assert "dsc was 0.7" in found
    table.write_bytes(earlier)
    write_mask(challenge / "submissions" / "beta" / "C_01.nii.gz", reference(1))
    assert verify_challenge(challenge) == ()
    assert "beta: beta was changed after it was sealed" in list_unchecked(challenge)
    write_mask(beta / "sealed" / "C_01.nii.gz", reference(1))
    (beta / "sealed" / "more.txt").write_text("x")
    found = words(verify_challenge(challenge))
    assert "sealed copy: C_01.nii.gz was changed" in found
    assert "more.txt was added" in found
    assert "C_01: dsc was 0.75, recomputed 1" in found


# ---------------------------------------------------------------- two at once, and ended in between


def started(challenge, teams=()):
    """Return a process of its own in which an organiser runs the challenge."""
    process = get_context("fork").Process(target=run_challenge, args=(challenge, teams))
    process.start()
    return process


def test_two_organisers_at_once_make_one_attempt_of_each_team(challenge):
    both = [started(challenge) for _ in range(2)]
    for one in both:
        one.join(120)
    assert [one.exitcode for one in both] == [0, 0]
    ledger = ledger_of(challenge)
    assert {team: ledger.count(team) for team in TEAMS} == dict.fromkeys(TEAMS, 1)
    assert verify_challenge(challenge) == ()


def test_a_run_that_was_killed_goes_on_with_the_attempt_that_it_had_begun(challenge):
    process = started(challenge)
    deadline = time.monotonic() + 60
    while not ledger_files(challenge) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    process.join(30)
    run = run_challenge(challenge)
    assert run.all_ok
    ledger = ledger_of(challenge)
    assert {team: ledger.count(team) for team in TEAMS} == dict.fromkeys(TEAMS, 1)
    assert verify_challenge(challenge) == ()
    assert not [path for path in challenge.rglob(".*") if path.is_file()]


def test_a_disk_that_refuses_once_brands_no_submission(challenge, monkeypatch):
    from napari_mamamia.features.challenge.io import handed_in

    def refuse(path):
        raise OSError(116, "Stale file handle", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(handed_in, "_open_handed", refuse)
        assert [one.outcome for one in run_challenge(challenge).teams] != [AttemptOutcome.SCORED]
    assert run_challenge(challenge).all_ok
    assert [one.outcome for one in ledger_of(challenge).attempts] == [AttemptOutcome.SCORED] * 3


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("refused", ["reference", "sealed"])
def test_a_file_that_the_disk_refuses_while_it_is_scored_costs_no_team_a_case(
    tmp_path, monkeypatch, refused, stays
):
    """Scored without a case whose reference could not be read, a team kept that score for good."""
    folder = begun(tmp_path, 3, limits=ChallengeLimits(attempts=1))
    calls = []

    def refuse(path):
        is_it = path.parts[-2:] == (refused, "C_01.nii.gz")
        if is_it and (stays or not calls):
            calls.append(path)
            raise OSError(116, "Stale file handle", str(path))
        return open_plain(path)

    def refuse_too(path):
        return refuse(path) if calls else open_plain(path)

    with monkeypatch.context() as patch:
        patch.setattr(streams, "open_plain", refuse)
        patch.setattr(checksums, "open_plain", refuse_too)
        run = run_challenge(folder, ["beta"])
    assert calls
    (team,) = run.teams
    if not stays:
        assert run.all_ok
    else:
        assert (team.outcome, team.number) == (AttemptOutcome.FAILED, 0)
        assert "Stale file handle" in team.reason
        assert not list((folder / "results").rglob("for_team"))
        assert not list((folder / "results").rglob("summary.json"))
    assert run_challenge(folder).all_ok
    counted = [one for one in ledger_of(folder).attempts if one.number]
    assert sorted(one.team for one in counted) == sorted(TEAMS)
    assert all(one.outcome is AttemptOutcome.SCORED for one in counted)
    assert verify_challenge(folder) == ()


@pytest.mark.parametrize("stays", [False, True])
def test_a_process_that_ends_while_it_scores_costs_no_team_a_case(tmp_path, monkeypatch, stays):
    """Memory that another program took made the case count as this team's worst, for good."""
    folder = begun(tmp_path, 3, limits=ChallengeLimits(attempts=1))
    receive, ended = child.Child.receive, []

    def end(self, case_id, limit_s):
        if case_id == "C_01" and (stays or len(ended) < 2):
            ended.append(case_id)
            self.kill()
            raise child._Ended("signal 9")
        return receive(self, case_id, limit_s)

    settings = ProgramSettings(place=Place(time_limit_s=1000.0))
    with monkeypatch.context() as patch:
        patch.setattr(child.Child, "receive", end)
        run = run_challenge(folder, ["beta"], settings)
    assert len(ended) >= 2
    (team,) = run.teams
    if not stays:
        assert run.all_ok
    else:
        assert (team.outcome, team.number) == (AttemptOutcome.FAILED, 0)
        assert "C_01: the process of the case ended 2 times" in team.reason
        assert not list((folder / "results").rglob("for_team"))
        assert not list((folder / "results").rglob("summary.json"))
    assert run_challenge(folder).all_ok
    counted = [one for one in ledger_of(folder).attempts if one.number]
    assert sorted(one.team for one in counted) == sorted(TEAMS)
    assert all(one.outcome is AttemptOutcome.SCORED for one in counted)
    assert verify_challenge(folder) == ()


def test_the_express_lane_alone_is_no_attempt(challenge):
    broken = challenge / "submissions" / "beta" / "C_02.nii.gz"
    broken.write_bytes(b"no mask")
    settings = ProgramSettings(is_express=True)
    (outcome,) = run_challenge(challenge, ["beta"], settings).teams
    assert "the output for 2 of 3 cases is valid" in outcome.reason
    assert [one.case_id for one in outcome.breaches] == ["C_02"]
    assert ledger_of(challenge).attempts == ()
    assert not (outcome.folder / "scores").exists()
    assert (outcome.outcome, outcome.is_whole) == (AttemptOutcome.STOPPED, False)
    assert (
        (outcome.folder / "for_team" / "contract.csv").read_text().startswith("case,problem\nC_02,")
    )
    run = run_challenge(challenge, ["alpha"], settings)
    assert (run.all_ok, run.teams[0].outcome) == (True, AttemptOutcome.PASSED)
    assert ledger_of(challenge).attempts == ()


def test_damaging_a_mask_costs_no_other_team_anything(challenge):
    first = run_challenge(challenge)
    before = read_case_scores(by_team(first)["alpha"].folder / "scores" / "case_scores.csv")
    write_mask(
        challenge / "submissions" / "beta" / "C_00.nii.gz", reference(0), np.diag([1, 1, 9, 1])
    )
    again = by_team(run_challenge(challenge))
    assert again["beta"].breaches[0].case_id == "C_00"
    after = read_case_scores(again["alpha"].folder / "scores" / "case_scores.csv")
    assert repr(after) == repr(before)  # since Python 3.13 no record with nan equals itself
