"""A program for tests: paint random sessions, or play their journals, with so many threads.

``FOLDER paint SIZE FIRST STOP`` leaves a journal for each seed and prints its checksum; ``FOLDER
play SIZE FIRST STOP`` plays each, draws all its strokes anew and prints the same. The number of
threads is what the environment says when the process starts.
"""

import importlib
import sys
from pathlib import Path

import numpy as np

from napari_mamamia.core.grid import Grid
from napari_mamamia.services.refine.journal_play import JournalPlay, play_journal
from napari_mamamia.services.refine.replay import replay_journal

# Found beside this program when it is started; pytest, which looks for doctests in every file, has
# no such path.
painting = importlib.import_module("painting") if __name__ == "__main__" else None

N_ACTS = 8


def paint_session(folder, seed, case, images):
    editing = painting.open_for(folder, case, images)
    rng = np.random.default_rng(seed)
    for _ in range(N_ACTS):
        painting.random_act(editing.session, rng)
    editing.close()
    return f"{painting.crc_of_state(editing.session)} same"


def play_session(folder, case):
    journal = painting.journal_of(folder)
    play = play_journal(JournalPlay(journal))
    replay = replay_journal(journal, Path(folder) / "again.nii.gz", case)
    (Path(folder) / "again.nii.gz").unlink()
    (Path(folder) / "again.json").unlink()
    same = replay.n_repeated == replay.n_strokes and not replay.notes
    return f"{painting.crc_of_state(play.session)} {'same' if same else replay.notes}"


def main():
    top, act, size, first, stop = sys.argv[1:]
    if size == "large":  # so large that a library divides its work among threads
        painting.SHAPE = (24, 96, 96)
        painting.GRID = Grid(painting.SHAPE, painting.GRID.affine)
    case = painting.make_case()
    images = painting.make_images(case)
    for seed in range(int(first), int(stop)):
        folder = Path(top) / str(seed)
        if act == "paint":
            words = paint_session(folder, seed, case, images)
        elif painting.journal_of(folder).exists():
            words = play_session(folder, case)
        else:
            continue
        if painting.journal_of(folder).exists():
            sys.stdout.write(f"{seed} {words}\n")


if __name__ == "__main__":
    main()
