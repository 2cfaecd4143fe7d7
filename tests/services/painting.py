"""A painter for tests: a small case, random acts, and a process that can be killed while painting.

As a program it is warm and waits; for each line ``FOLDER SEED`` on its input it forks a child that
paints into a journal there. The child says its number, then each step that has returned from
`release` or `settle` with a checksum of mask and marks at that moment.
"""

import os
import sys
import zlib
from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Extent, Features, Sampling, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.refine.edit_case import open_editing
from napari_mamamia.smartpaint.brush.features import measure_features
from napari_mamamia.smartpaint.evidence.stroke import settle_stroke

SHAPE = (6, 16, 16)
GRID = Grid(SHAPE, np.diag([-1.0, 1.0, 2.0, 1.0]))
READER = "Ana"
MOST_ACTS = 400


def make_case(case_id="A"):
    rng = np.random.default_rng(11)
    signal = rng.normal(100, 8, (3, *SHAPE))
    signal[1:, 2:5, 5:12, 5:12] += 90
    phases = tuple(Phase(k, time_s) for k, time_s in enumerate((0.0, 150.0, 450.0)))
    return Case(case_id, GRID, signal.astype(np.int16), phases)


def make_images(case):
    return measure_features(case)


def open_for(folder, case, images, **settings):
    return open_editing(case, Workspace(Path(folder)), READER, images=images, **settings)


def journal_of(folder):
    return Workspace(Path(folder)).refined(READER, "A").with_name("A.journal")


def random_brush(rng):
    def one_of(kind):
        return list(kind)[rng.integers(len(kind))]

    return Brush(
        tool=one_of([tool for tool in Tool if tool is not Tool.LEARNED]),
        action=one_of(Action),
        radius_mm=float(rng.uniform(0.5, 5)),
        tolerance=float(rng.uniform(1, 4)),
        features=one_of(Features),
        extent=one_of(Extent),
        plane_axis=int(rng.integers(3)),
        sampling=one_of(Sampling),
        label=int(rng.integers(1, 3)),
        whole=bool(rng.random() < 0.2),
    )


def crc_of_state(session):
    """A checksum of the labels and of what strokes said of them."""
    crc = zlib.crc32(session.labels)
    for label in (1, 2):
        crc = zlib.crc32(session.state.words(label), crc)
    return crc


def random_stroke(session, rng):
    brush = random_brush(rng)
    first, *others = rng.uniform((-1, -1, -1), np.array(SHAPE) + 1, (rng.integers(1, 5), 3))
    session.press(tuple(first), brush)
    for place in others:
        session.drag(tuple(place))
    work = session.lift() if rng.random() < 0.5 else None
    return session.release() if work is None else session.settle(work, settle_stroke(work))


def random_act(session, rng):
    """One stroke, whole step, foreign painting, undo, redo, jump, lock, lift or forgetting."""
    kind = rng.integers(13)
    if kind < 5:
        session.locked = frozenset()
        return random_stroke(session, rng)
    if kind == 5:
        box = Box((1, 2, 3), (5, 14, 12))
        mask, holds = rng.random(box.shape) < 0.5, bool(rng.random() < 0.5)
        return session.apply("grow", box, mask, (("seed", int(kind)),), holds=holds)
    if kind == 6:
        z, y, x = (int(rng.integers(n - 2)) for n in SHAPE)
        session.labels[z : z + 2, y : y + 2, x : x + 2] = rng.integers(4)
        return session.notice_external()
    if kind == 7:
        session.locked = frozenset({3})
        first = tuple(rng.uniform(0, 1, 3) * SHAPE)
        session.press(first, Brush(tool=Tool.SPHERE, radius_mm=4.0))
        return session.release()
    if kind == 8:
        return session.go_to(int(rng.integers(len(session.steps) + 1)))
    if kind == 9:
        return session.forget_marks(int(rng.integers(1, 3)))
    if kind == 10:  # a stroke that whatever comes next has to settle
        session.locked = frozenset()
        session.press(tuple(rng.uniform(0, 1, 3) * SHAPE), Brush(tool=Tool.EVIDENCE, radius_mm=3.0))
        return session.lift()
    return session.undo() if kind == 11 else session.redo()


def paint_for_ever(folder, seed, say):
    case = make_case()
    editing = open_for(folder, case, IMAGES)
    rng = np.random.default_rng(seed)
    say(f"pid {os.getpid()}")
    for _ in range(MOST_ACTS):
        step = random_stroke(editing.session, rng)
        if step is not None:
            say(f"done {step.number} {crc_of_state(editing.session)}")
    say("end 0")
    signal_free_wait()


def signal_free_wait():
    sys.stdin.readline()


def main():
    for line in sys.stdin:
        folder, seed = line.rsplit(" ", 1)
        child = os.fork()
        if child == 0:
            paint_for_ever(folder, int(seed), lambda text: os.write(1, f"{text}\n".encode()))
            os._exit(0)
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    IMAGES = make_images(make_case())
    main()
