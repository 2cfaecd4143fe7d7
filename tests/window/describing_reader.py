"""A reader who describes a lesion and is killed, then goes on; see test_review_killed.

Usage: ``describing_reader.py STUDY NAME begin|finish PICTURE``.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from napari import Viewer
from qtpy.QtWidgets import QComboBox, QLabel, QWidget
from review_reader import ABSENT, is_open, take_picture, wait

from napari_mamamia.core.answers import Answer, Place
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.form import FieldScope
from napari_mamamia.widgets.dock.place import show_dock

LARGE, SMALL, GROWN = (
    np.s_[3:6, 14:20, 20:26],
    np.s_[2:3, 30:33, 40:43],
    np.s_[1:6, 26:36, 36:46],
)


def draw(panel, *boxes):
    grid = panel.session.case.grid
    mask = np.zeros(grid.shape, np.uint8)
    for box in boxes:
        mask[box] = 1
    panel.editing.start_with(LabelMap.of(mask, grid), "drawn")
    wait(lambda: panel.editing.live is not None and (panel.editing.live.labels > 0).sum() > 0)
    wait(lambda: np.array_equal(panel.editing.live.labels > 0, mask > 0))


def take_case(panel):
    panel.flow("Review").page.reading.next.click()
    wait(lambda: panel.flow("Review").reading.taken is not None)
    taken = panel.flow("Review").reading.taken
    wait(lambda: is_open(panel, taken.case_id))
    return taken


def begin(panel):
    """Describe the smaller lesion, make it the larger one, and die before anything is saved."""
    taken = take_case(panel)
    form, client = panel.flow("Review").page.form, panel.flow("Review").client
    draw(panel, LARGE, SMALL)
    wait(lambda: form.findChild(QWidget, "review_answer_shape_2") is not None)
    form.give(Answer("lesion", ("yes",)))
    form.give(Answer("shape", ("irr",), Place(FieldScope.LESION, "2")))
    wait(lambda: "shape@2" in client.files.read_draft(taken.task, taken.round).answers)
    draw(panel, LARGE, GROWN)
    os.kill(os.getpid(), signal.SIGKILL)


def finish(panel, picture):
    """Take the case again: the mask is recovered, and the answer is about the same lesion."""
    taken = take_case(panel)
    form = panel.flow("Review").page.form
    wait(lambda: panel.editing.live is not None)
    wait(lambda: form.findChild(QWidget, "review_lesion_show_2") is not None)
    assert panel.editing.live.labels[GROWN].all()
    assert form.findChild(QComboBox, "review_answer_shape_2").currentData() == "irr"
    assert form.findChild(QComboBox, "review_answer_shape_1").currentData() == ""
    form.findChild(QWidget, "review_lesion_show_2").click()
    take_picture(panel.scene.viewer, f"{picture}-kept.png")
    draw(panel, LARGE)  # the described one is erased: told, and not handed in
    wait(lambda: form.findChild(QLabel, "review_lesion_note_2") is not None)
    panel.flow("Review").accept()
    wait(lambda: "lesion 2 (described" in panel.flow("Review").page.reading.missing.text())
    assert panel.flow("Review").reading.taken is taken
    take_picture(panel.scene.viewer, f"{picture}-told.png")
    draw(panel, LARGE, GROWN)
    panel.flow("Review").accept()
    wait(lambda: panel.flow("Review").reading.taken is not taken)


def main():
    study, name, act, picture = sys.argv[1:]
    viewer = Viewer(show=True)
    viewer.window.resize(1280, 720)
    panel = show_dock(viewer, "Review")
    panel.flow("Review").open_study(Path(study), name)
    wait(lambda: panel.flow("Review").client is not None)
    if act == "begin":
        begin(panel)
    finish(panel, picture)
    assert panel.close_down()
    sys.stdout.write("all done\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.modules |= dict.fromkeys(ABSENT)
    main()
