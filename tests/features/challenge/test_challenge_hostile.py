"""A submission made to end `challenge run`: its row says why, other teams go on."""

import io
import struct
import zipfile
from pathlib import Path

import pytest
from tests.features.challenge.challenge_world import TEAMS, begun

from napari_mamamia.core.records import FailureCause
from napari_mamamia.features.challenge.io.ledger import AttemptOutcome, read_ledger
from napari_mamamia.features.challenge.services.challenge import run as run_module
from napari_mamamia.features.challenge.services.challenge.attempt import ProgramSettings
from napari_mamamia.features.challenge.services.challenge.run import run_challenge
from napari_mamamia.io.files.zip_files import open_zip
from napari_mamamia.services.batch.work import Outcome

MB = 1 << 20
ROWS = b"case_id,dsc\nC_00,1\n"
PACKED = {"compression": zipfile.ZIP_DEFLATED}


@pytest.fixture
def challenge(tmp_path):
    return begun(tmp_path, 2)


def packed(target, **members):
    with zipfile.ZipFile(target, "w", **PACKED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_csv", ".csv"), content)


def outcomes(run):
    return {team.team: team for team in run.teams}


def require_refused_for_good(challenge, why):
    """The bad team is refused, the others are scored; the next run does not read it again."""
    first = outcomes(run_challenge(challenge))
    assert [first[team].outcome for team in TEAMS] == [AttemptOutcome.SCORED] * len(TEAMS)
    assert first["bad"].outcome is AttemptOutcome.REFUSED
    assert why in first["bad"].reason
    again = outcomes(run_challenge(challenge))["bad"]
    assert (again.outcome, again.is_new) == (AttemptOutcome.REFUSED, False)
    assert again.reason == first["bad"].reason
    return first["bad"].reason


BOMBS = {
    "rows": {"scores_csv": ROWS + b"C_00,0.5\n" * (24 * MB // 9)},
    "one long line": {"scores_csv": b"case_id," + b"x" * (24 * MB)},
    "many tables": {f"t{number}_csv": b"0" * (3 * MB) for number in range(8)},
    "text": {"model.py": b"#" * (24 * MB)},
    "a zip in a zip": {"inner.zip": bytes(24 * MB)},
    "below a folder": {"a__b__scores_csv": bytes(24 * MB)},
    "beside a true mask": {"C_00.nii.gz": b"x", "scores_csv": bytes(24 * MB)},
    "masks of 2 GB and more": {},
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_zip_that_grows_beyond_measure_is_refused_before_it_is_unpacked(challenge, name):
    target = challenge / "submissions" / "bad.zip"
    members = BOMBS[name]
    packed(target, **(members or {"C_00.nii": b"x" * MB}))
    if not members:  # a directory may say so without the bytes
        whole = bytearray(target.read_bytes())
        entry = whole.index(b"PK\x01\x02")
        whole[entry + 24 : entry + 28] = struct.pack("<I", 0xFFFFFFF0)
        target.write_bytes(whole)
    reason = require_refused_for_good(challenge, "would unpack to")
    assert "bad.zip" in reason
    assert not list((challenge / "results" / "bad").rglob("sealed"))


def test_masks_that_shrink_a_thousand_times_are_no_bomb(challenge):
    """An unpacked mask of zeros: 30 MB in 30 kB. It is scored, whatever its grid."""
    packed(challenge / "submissions" / "zeros.zip", **{"C_00.nii": bytes(30 * MB)})
    assert outcomes(run_challenge(challenge))["zeros"].outcome is AttemptOutcome.SCORED


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError(), SystemError("odd"), KeyError(1)]
)
@pytest.mark.parametrize("where", ["look_inside", "evaluate"])
def test_whatever_a_submission_raises_costs_no_other_team_its_turn(
    challenge, monkeypatch, error, where
):
    packed(challenge / "submissions" / "bad.zip", **{"C_00.nii.gz": b"x"})
    whole = getattr(run_module, where)

    def fail(*given):
        if any("bad" in path.parts for path in given if isinstance(path, Path)):
            raise error
        return whole(*given)

    monkeypatch.setattr(run_module, where, fail)
    reason = require_refused_for_good(challenge, type(error).__name__)
    assert "are not tried again" in reason
    (noted,) = read_of(challenge, "bad")
    assert (noted.outcome, noted.reason) == (AttemptOutcome.REFUSED, reason)


def read_of(challenge, team):
    from napari_mamamia.features.challenge.io.challenge_file import read_challenge

    opened = read_challenge(challenge)
    return read_ledger(opened.attempts, opened.sha256).of_team(team)


def test_in_the_express_lane_too(challenge, monkeypatch):
    whole = run_module.evaluate

    def fail(opened, folder, *more):
        if "alpha" in str(folder):
            raise MemoryError
        return whole(opened, folder, *more)

    monkeypatch.setattr(run_module, "evaluate", fail)
    run = outcomes(run_challenge(challenge, (), ProgramSettings(is_express=True)))
    assert run["alpha"].outcome is AttemptOutcome.REFUSED
    assert run["beta"].outcome is AttemptOutcome.PASSED
    assert not read_of(challenge, "alpha")


def test_a_table_is_read_in_a_process_whose_memory_is_limited(challenge, monkeypatch):
    monkeypatch.setattr(run_module, "_TABLE_BYTES", 1 << 20)
    (challenge / "submissions" / "bad.csv").write_bytes(ROWS + b"C_01,0.123456789\n" * 200_000)
    require_refused_for_good(challenge, "not enough memory")


def test_a_table_that_ends_its_reader_is_refused_and_not_read_again(challenge, monkeypatch):
    def lose(_, __, inputs, ___):
        reason = "the process of the case ended 2 times without an answer (signal 9)"
        return Outcome(inputs.case_id, reason=reason, cause=FailureCause.WORKER_LOST)

    monkeypatch.setattr(run_module, "attempt_in_child", lose)
    (challenge / "submissions" / "bad.csv").write_bytes(ROWS)
    require_refused_for_good(challenge, "signal 9")


# ---------------------------------------------------------------- the directory of a zip


def zip_bytes(*members, compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return bytearray(stream.getvalue())


def overlapping():
    """Two names in the directory for the bytes of one member."""
    whole = zip_bytes(("a", b"1" * 500), ("b", b"2" * 500))
    second = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 4)
    whole[second + 42 : second + 46] = struct.pack("<I", 0)
    return whole


def too_long():
    whole = zip_bytes(("a", b"1" * 500))
    entry = whole.index(b"PK\x01\x02")
    whole[entry + 20 : entry + 24] = struct.pack("<I", 1 << 30)
    return whole


def nameless():
    whole = zip_bytes(("a", b"1"))
    entry = whole.index(b"PK\x01\x02")
    whole[entry + 28 : entry + 30] = struct.pack("<H", 0)
    del whole[entry + 46]
    end = whole.index(b"PK\x05\x06")
    whole[end + 12 : end + 16] = struct.pack("<I", end - entry)
    return whole


class Sparse(io.BytesIO):
    """A file of zeros of any length that ends as a zip whose directory is all of it."""

    def __init__(self, size):
        self.tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 9, 9, size, 0, 0)
        self.size, self.at = size + len(self.tail), 0

    def seek(self, at, whence=0):
        self.at = at + (0, self.at, self.size)[whence]
        return self.at

    def tell(self):
        return self.at

    def read(self, size=-1):
        size = min(size if size >= 0 else self.size, self.size - self.at)
        assert size < 10 * MB, "it asked for the whole directory"
        start = self.at - (self.size - len(self.tail))
        self.at += size
        zeros = bytes(max(0, min(size, -start)))
        return zeros + self.tail[max(0, start) : max(0, start + size)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (overlapping(), "overlaps another member"),
        (too_long(), "1,073,741,824 bytes does not fit into the file of 600 bytes"),
        (nameless(), "has no name"),
        (
            zip_bytes(("a", b"1" * 99), compression=zipfile.ZIP_LZMA),
            "a compression other than deflate",
        ),
        (
            zip_bytes(("a", b"1" * 99), compression=zipfile.ZIP_BZIP2),
            "a compression other than deflate",
        ),
        (None, "the list of members is 1024 MB long"),
    ],
    ids=["overlapping", "too long", "nameless", "LZMA", "bzip2", "directory of 1 GB"],
)
def test_a_directory_that_no_program_writes_is_refused(tmp_path, content, why):
    source = Sparse(1 << 30)
    if content is not None:
        source = tmp_path / "a.zip"
        source.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile, match=why), open_zip(source):
        pass


def test_a_zip_behind_other_bytes_and_an_empty_one_are_read(tmp_path):
    path = tmp_path / "self extracting.zip"
    path.write_bytes(b"program " * 100 + bytes(zip_bytes(("a", b"1"), ("b", b"22"))))
    with open_zip(path) as archive:
        assert [archive.read(name) for name in archive.namelist()] == [b"1", b"22"]
    path.write_bytes(zip_bytes())
    with open_zip(path) as archive:
        assert archive.namelist() == []
