"""A share that stops answering, under every command that opens a review study: none ever waits.

The study's folder hangs at a step of the command, whatever it is: a look, an open, a list, a read,
a write, a rename. The command ends, says so, and loses nothing: the next run is whole.
"""

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pydicom")
sys.path.insert(0, str(Path(__file__).parent))
from silence import STRAY
from tests.halves import half_by_day
from trials import Trials
from worlds import (
    Way,
    clinical,
    environment,
    masks,
    out,
    ran,
    review_agreement,
    review_audit,
    review_capture,
    review_export,
    review_init,
    review_queue,
    review_report,
    review_status,
    review_verify,
    reviewed,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pipes of Unix")

SEED = int(os.environ.get("FAULT_SEED", "1"))


def with_secret(world: Path) -> list[str]:
    (world / "secret").write_text("correct horse")
    return ["--passphrase-file", str(world / "secret")]


def score_study(world: Path) -> list[str]:
    words = ["score", "--study", str(reviewed(world)), "--prediction", masks(world)]
    return [*words, "--clinical", clinical(world), "--bootstrap", "20", *out(world)]


def key(world: Path) -> list[str]:
    return ["review", "key", str(reviewed(world)), "--reader", "Lea", *with_secret(world)]


def with_key(world: Path) -> str:
    ran(world, key(world))
    return str(world / "study")


def sign(world: Path) -> list[str]:
    words = ["review", "sign", with_key(world), "--reader", "Lea", "--meaning", "approver"]
    case_id = json.loads((world / "study" / "study.json").read_text())["cases"][0]["case_id"]
    return [*words, "--case", case_id, *with_secret(world)]


def countersign(world: Path) -> list[str]:
    study = with_key(world)
    ran(world, ["review", "key", study, "--reader", "Ana", *with_secret(world)])
    events = "".join(path.read_text() for path in (world / "study" / "events").rglob("*.jsonl"))
    (digits,) = {
        one for one in re.findall(r'"key":"([0-9a-f]{64})"', events) if is_of(world, "ana", one)
    }
    words = ["review", "countersign", study, "--reader", "Lea", "--of", "Ana"]
    return [*words, "--digits", short(digits), *with_secret(world)]


def is_of(world: Path, reader: str, public: str) -> bool:
    folder = world / "study" / "events" / reader
    return any(public in path.read_text() for path in folder.rglob("*.jsonl"))


def short(public: str) -> str:
    from napari_mamamia.features.review.rules.signatures import short_key

    return short_key(public)


def revoke(world: Path) -> list[str]:
    words = ["review", "revoke", with_key(world), "--reader", "Lea", "--reason", "lost"]
    return [*words, *with_secret(world)]


def view(world: Path) -> list[str]:
    return ["view", "--study", str(reviewed(world)), "--reader", "Nobody"]


WAYS = (
    Way("review init", review_init),
    Way("review status", review_status),
    Way("review verify", review_verify),
    Way("review audit", review_audit),
    Way("review agreement", review_agreement),
    Way("review report", review_report),
    Way("review export", review_export),
    Way("score", score_study, title="study"),
    Way("review key", key),
    Way("review sign", sign),
    Way("review countersign", countersign),
    Way("review revoke", revoke),
    Way("view", view),
)
ENDS = {0, 1, 3}
PLACES_AT_NIGHT = 40


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    made = Trials(tmp_path_factory.mktemp("silent"))
    os.mkfifo(made.folder / "pipe")
    return made


def run_silent(trials: Trials, way: Way, at: int, silent: str = "study") -> dict:
    world = trials.world(way)
    words = trials._words[way.name]
    pipe = trials.folder / "pipe"
    return trials.run(world, words, "silence", at, root=world / silent, pipe=pipe)


def count_steps(trials: Trials, way: Way, silent: str = "study") -> tuple[int, str]:
    """Run a command undisturbed: nobody but errands has been at the study.

    Returns how often they were, and what the command says of errors.
    """
    answer = run_silent(trials, way, 0, silent)
    assert not answer["hung"]
    assert "Traceback" not in trials.said
    counts = json.loads((trials.folder / "counts").read_text())
    assert [name for name in counts if name.startswith(STRAY)] == []
    return sum(counts.values()), trials.said


def strike_silent(trials: Trials, way: Way, at: int, usual: str, silent: str = "study") -> None:
    answer = run_silent(trials, way, at, silent)
    assert not answer["hung"], (at, trials.said)
    assert "Traceback" not in trials.said
    assert answer["orphans"] == []
    assert answer["code"] in ENDS, (at, answer, trials.said)
    if answer["code"] == 1 and trials.said != usual:
        assert "the network share does not respond" in trials.said, at
        assert len(trials.said) < 1000
    assert at > 1 or "the network share does not respond" in trials.said


def export_there(world: Path) -> list[str]:
    """An export into a folder that is new on the share `out`."""
    (world / "out").mkdir()
    words = review_export(world)
    return [str(world / "out" / "new") if one == str(world / "out") else one for one in words]


DATA = (
    Way("review init", review_init),
    Way("review verify", review_verify),
    Way("review report", review_report),
)
SCORES = (Way("review queue", review_queue), Way("review capture", review_capture))
OUT = (
    Way("review status", review_status),
    Way("review verify", review_verify),
    Way("review audit", review_audit),
    Way("review agreement", review_agreement),
    Way("review report", review_report),
    Way("review export", export_there, title="new folder"),
    *SCORES,
)
OTHERS = [
    (way, silent)
    for silent, ways in (("data set", DATA), ("scores", SCORES), ("out", OUT))
    for way in ways
]
"""Which other folder of a command falls silent: what it reads, and what it writes."""


def name_other(other: tuple[Way, str]) -> str:
    way, silent = other
    return f"{way.name}, {silent}"


BY_DAY = {"review init", "review status", "review report", "score", "review sign"}
"""The others open and write as these do; the window's start costs 23 s."""
WAYS_BY_DAY = [
    pytest.param(way, id=way.name, marks=[pytest.mark.night] * (way.command not in BY_DAY))
    for way in WAYS
]


@pytest.mark.parametrize("way", WAYS_BY_DAY)
def test_no_command_waits_for_a_share_that_stops_answering(trials, way):
    n_steps, usual = count_steps(trials, way)
    assert n_steps > 1
    for at in (1, random.Random(SEED).randint(2, n_steps)):
        strike_silent(trials, way, at, usual)


@pytest.mark.parametrize("other", half_by_day(OTHERS), ids=name_other)
def test_no_command_waits_for_another_folder_that_stops_answering(trials, other):
    way, silent = other
    n_steps, usual = count_steps(trials, way, silent)
    assert n_steps > 1
    for at in (1, random.Random(SEED).randint(2, n_steps)):
        strike_silent(trials, way, at, usual, silent)


@pytest.mark.night
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("other", OTHERS, ids=name_other)
def test_no_step_of_a_command_waits_for_another_folder_that_stops_answering(trials, other):
    way, silent = other
    n_steps, usual = count_steps(trials, way, silent)
    for at in range(1, n_steps + 1, max(1, n_steps // PLACES_AT_NIGHT)):
        strike_silent(trials, way, at, usual, silent)


@pytest.mark.night
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", [pytest.param(way, id=way.name) for way in WAYS])
def test_no_step_of_a_command_waits_for_a_share_that_stops_answering(trials, way):
    n_steps, usual = count_steps(trials, way)
    for at in range(1, n_steps + 1, max(1, n_steps // PLACES_AT_NIGHT)):
        strike_silent(trials, way, at, usual)


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from silence import silence
silence(sys.argv[2], 1, sys.argv[3])
sys.argv = ["mamamia", "review", "status", sys.argv[2]]
from napari_mamamia.cli import main
main()
"""


@pytest.mark.night
def test_a_program_ends_although_a_thread_of_it_hangs_in_the_share(trials):
    """In a Python of its own, which takes itself apart in the usual way."""
    world = trials.world(next(one for one in WAYS if one.name == "review status"))
    words = [str(Path(__file__).parent), str(world / "study"), str(trials.folder / "pipe")]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True, text=True, timeout=100, check=False,
        env=dict(os.environ, **environment(world)),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "the network share does not respond" in done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - began < 100
