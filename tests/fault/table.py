"""Print how commands stood their faults: ``python table.py [PLACES [SEED [NAME ...]]]``.

A name is that of a command, such as "models add"; without one all are struck, demo and the models'
own programs too, which takes hours at 8 places a kind.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))
from trials import COLUMNS, KINDS, Trials
from worlds import COMMANDS, Way

HEADS = ("kill", "full disk", "I/O error")


def main() -> None:
    places = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    say(f"| command | {' | '.join(HEADS)} | hostile folder |\n|---|" + "---|" * 4)
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(Path(folder))
        for way in COMMANDS if len(sys.argv) < 4 else named(sys.argv[3:]):
            cells = {head: Counter() for head in HEADS}
            for kind in KINDS if way.out else KINDS[-2:]:
                for place in trials.places(way, kind, places, seed):
                    trial = trials.strike(way, kind, place)
                    counts = cells[COLUMNS[kind]]
                    counts["tried"] += 1
                    counts["lost"] += bool(trial.losses)
                    counts["left"] += bool(trial.leftovers)
                    counts["unclear"] += bool(trial.manners)
                    if trial.problems:
                        sys.stderr.write(f"{trial}\n")
            for counts in cells.values():
                totals.update(counts)
            row = " | ".join(map(cell, cells.values()))
            say(f"| {way.name} | {row} | |")
    say(f"\nSeed {seed}, up to {places} places a kind: {cell(totals)}.")


def named(names: list[str]) -> list[Way]:
    return [way for way in COMMANDS if way.command in names or way.name in names]


def cell(counts: Counter) -> str:
    """Return trials, losses, leftovers and unclear ends; a dash where nothing can strike."""
    if not counts["tried"]:
        return "–"
    tried, *bad = (counts[name] for name in ("tried", "lost", "left", "unclear"))
    return "{}: {} lost, {} left, {} unclear".format(tried, *bad)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
