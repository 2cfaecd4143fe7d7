"""`mamamia review` under the name of somebody whose key counts: it is asked for, and all see it."""

import csv

import pytest
from tests.cli.warm_program import mamamia

WORDS = "three small words"


@pytest.fixture
def study(tmp_path, small_data_set, monkeypatch):
    """A blind study whose lead's key is bound; returns its folder and a change of computer."""
    (tmp_path / "words").write_text(WORDS)
    (tmp_path / "wrong").write_text("some other words")

    def sit_at(computer):
        monkeypatch.setenv("MAMAMIA_CONFIG_DIR", str(tmp_path / computer))

    sit_at("lea")
    made = mamamia(
        *("review", "init", small_data_set, "--out", tmp_path / "STUDY", "--freeze"),
        *("--lead", "Lea", "--reader", "Ana", "--reader", "Ben", "--key", "Lea"),
        *("--passphrase-file", tmp_path / "words"),
    )
    assert made.returncode == 0, made.stderr
    return tmp_path / "STUDY", sit_at


def commands(study, out):
    """Every command that shows what all readers did, or the site, to who asks."""
    yield "status", (study,)
    yield "verify", (study,)
    for name in ("audit", "agreement", "export", "report"):
        yield name, (study, "--out", out / name)


def test_nobody_acts_as_a_lead_whose_key_is_bound_without_it(study, tmp_path):
    """On a reader's computer the audit trail of all answers was shown for the name alone."""
    folder, sit_at = study
    before = sorted(folder.rglob("*"))
    trials = (
        ("ana", "words", "is not on this computer"),
        ("lea", "wrong", "the passphrase of the key"),
    )
    for computer, words, why in trials:
        sit_at(computer)
        for name, arguments in commands(folder, tmp_path / "out"):
            asker = ("--reader", "Lea", "--passphrase-file", tmp_path / words)
            answer = mamamia("review", name, *arguments, *asker)
            assert answer.returncode == 1, (name, computer)
            assert why in answer.stderr, name
    assert sorted(folder.rglob("*")) == before
    assert not (tmp_path / "out").exists()


def test_what_a_lead_sees_is_an_event_that_everybody_sees(study, tmp_path):
    folder, _sit_at = study
    asker = ("--reader", "Lea", "--passphrase-file", tmp_path / "words")
    names = []
    for name, arguments in commands(folder, tmp_path / "out"):
        answer = mamamia("review", name, *arguments, *asker)
        assert answer.returncode == 0, answer.stderr
        names.append(name)
    last = mamamia("review", "audit", folder, "--out", tmp_path / "last", *asker)
    assert last.returncode == 0, last.stderr
    with (tmp_path / "last" / "audit.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    shown = [row for row in rows if row["act"] == "unblind"]
    assert [row["what"].rpartition("text: ")[2] for row in shown] == [*names, "audit"]
    assert {row["name"] for row in shown} == {"Lea"}
    assert mamamia("review", "verify", folder).returncode == 0


def test_a_reader_whose_key_counts_is_asked_for_it_too(study, tmp_path):
    """Unblinding under somebody else's name was noted as that person's."""
    folder, sit_at = study
    words = ("--passphrase-file", tmp_path / "words")
    sit_at("ana")
    key = mamamia("review", "key", folder, "--reader", "Ana", *words)
    digits = key.stdout.split("Key of Ana: ")[1].splitlines()[0]
    asked = ("review", "agreement", folder, "--reader", "Ana", "--unblind", "the pilot is over")
    first = mamamia(*asked, "--out", tmp_path / "a")
    assert first.returncode == 0, first.stderr  # the key does not count yet
    sit_at("lea")
    vouched = ("--reader", "Lea", "--of", "Ana", "--digits", digits, *words)
    assert mamamia("review", "countersign", folder, *vouched).returncode == 0
    sit_at("ben")
    other = mamamia(*asked, "--out", tmp_path / "b", *words)
    assert other.returncode == 1
    assert "expected the key of Ana at" in other.stderr
    sit_at("ana")
    own = mamamia(*asked, "--out", tmp_path / "c", *words)
    assert own.returncode == 0, own.stderr
    told = mamamia("review", "verify", folder)
    assert told.returncode == 0, told.stderr
    assert "it began before Ana entered with a key, or somebody else wrote it" in told.stdout
