"""Every command, killed, on a full disk, with files that fail while read: nothing is lost.

A trial is right if the exit code and one clear error tell of the fault, what was there before is
byte for byte the same, no half file has a final name, and the next run makes what an undisturbed
one does and leaves nothing temporary. `table.py` counts trials and prints them.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
import typer

pytest.importorskip("pydicom")
sys.path.insert(0, str(Path(__file__).parent))
from trials import KINDS, Trials
from worlds import COMMANDS, ELSEWHERE, Way

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

QUICK = [way for way in COMMANDS if not way.is_slow]
REPORTING = ("score", "score-table", "score-pcr", "kinetics", "register")
"""The dearest; of these one by day."""
PLACES_AT_NIGHT = 5
SEED = int(os.environ.get("FAULT_SEED", "1"))


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="module")
def drawn_trials(tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("worlds"), has_figures=True)


def leaves(command, before=""):
    """Return the names of all commands below one of the program's."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return {before.strip()}
    return {leaf for name, one in inner.items() for leaf in leaves(one, f"{before} {name}")}


def test_every_command_of_the_program_is_struck():
    from napari_mamamia.cli.app import app

    assert leaves(typer.main.get_command(app)) == {way.command for way in COMMANDS} | {*ELSEWHERE}


def kinds_of(way: Way) -> tuple[str, ...]:
    """Return what can strike a way: one that writes nothing meets no full disk."""
    return KINDS if way.out else ("eio", "estale")


def of_the_day() -> list[tuple[Way, str]]:
    """Return a fault for each way that is quick, the kinds in turn: another part for each seed."""
    kinds = [kinds_of(way) for way in QUICK]
    return [
        (way, own[(number + SEED) % len(own)])
        for number, (way, own) in enumerate(zip(QUICK, kinds, strict=True))
        if way.command not in REPORTING or way.command == REPORTING[SEED % len(REPORTING)]
    ]


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        # by day: that all write in one way, tests/io/test_writers
        pytest.param(w, k, id=f"{w.name}-{k}", marks=[pytest.mark.night] * (number % 3 > 0))
        for number, (w, k) in enumerate(of_the_day())
    ],
)
def test_a_fault_costs_nothing_that_was_there_and_the_next_run_is_whole(trials, way, kind):
    (place,) = trials.places(way, kind, 1, SEED)
    trial = trials.strike(way, kind, place)
    assert trial.problems == [], str(trial)


@pytest.mark.night
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", [pytest.param(way, id=way.name) for way in COMMANDS])
def test_many_faults_cost_nothing(drawn_trials, way):
    found = [
        drawn_trials.strike(way, kind, place)
        for kind in kinds_of(way)
        for place in drawn_trials.places(way, kind, PLACES_AT_NIGHT, SEED)
    ]
    assert [str(trial) for trial in found if trial.problems] == []


def way_named(name):
    return next(way for way in COMMANDS if way.name == name)


def temporary_things(world):
    return list(world.rglob(".mamamia-*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_program_that_is_told_to_end_tidies_up_at_once(trials, number):
    """An imported zip lies unpacked, the patient's name in it, while the import runs."""
    way = way_named("import (zip)")
    words = trials.words(way)
    world = trials.world(way)
    answer = trials.run(world, words, "stop", 60, number)
    assert answer["code"] == 130, trials.said
    assert "Traceback" not in trials.said
    assert temporary_things(world) == []
    assert answer["orphans"] == []


@pytest.mark.night
def test_a_second_ctrl_c_may_leave_something_which_the_next_run_removes(trials):
    way = way_named("import (zip)")
    trial = trials.strike(way, "twice", 60)
    assert trial.problems == [], str(trial)
