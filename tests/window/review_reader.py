"""One person of a review study in a process and a real window of its own; see test_review_story.

Usage: ``review_reader.py STUDY NAME ACT...`` where an act is ``read:SHIFT`` (draw every case, a box
moved by SHIFT voxels), ``describe:FILE`` (draw and answer what the JSON says of each case),
``judge:RULE:CASE`` (the worst, A_2 unless said), ``sign:MEANING``, ``countersign:NAME=DIGITS`` or
``picture:TAB=FILE``.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from napari import Viewer
from qtpy.QtWidgets import QApplication, QCheckBox, QComboBox, QLineEdit, QWidget

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.case import LabelMap
from napari_mamamia.features.review.core.review import ConsensusRule, Meaning
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.dock.place import show_dock

ABSENT = ("torch", "monai", "onnxruntime", "openvino")
"""A reader's computer has none of these: whoever imports one fails."""
BLOB = (slice(3, 6), slice(14, 20), slice(20, 26))
PATIENCE_S = 120


def wait(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        QApplication.processEvents()
        time.sleep(0.01)
        assert time.monotonic() < end, "waited too long"


def click(panel, name):
    widget = panel.findChild(QWidget, name)
    assert widget.isEnabled(), name
    widget.click()


def is_open(panel, case_id):
    return panel.session.case_id == case_id and panel.session.case.is_loaded


def read_cases(panel, shift):
    """Read all cases: draw a box on the lesion, answer, accept by the key's action."""
    view = panel.flow("Review").page.reading
    click(panel, "review_next")
    while True:
        wait(lambda: panel.flow("Review").reading.taken or view.rest)
        taken = panel.flow("Review").reading.taken
        if taken is None:
            return
        wait(lambda: is_open(panel, panel.flow("Review").reading.taken.case_id))
        assert Role.REFERENCE not in panel.session.masks
        assert Role.READING_A not in panel.session.masks
        assert panel.session.blinding.hides(Hidden.OTHER_READERS)
        grid = panel.session.case.grid
        mask = np.zeros(grid.shape, np.uint8)
        z, y, x = BLOB
        moved = shift if taken.case_id == "A_2" else 0
        mask[z, y, slice(x.start + moved, x.stop + moved)] = 1
        panel.editing.start_with(LabelMap.of(mask, grid), "drawn")
        wait(lambda: panel.editing.live is not None)
        answer = panel.findChild(QComboBox, "review_answer_lesion")
        answer.setCurrentIndex(1)
        answer.activated.emit(1)
        panel.flow("Review").accept()
        wait(lambda taken=taken: panel.flow("Review").reading.taken is not taken)


def describe_cases(panel, path):
    """Read all cases: draw boxes, answer every question by its control, hand in."""
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    view, reading = panel.flow("Review").page.reading, panel.flow("Review").reading
    click(panel, "review_next")
    while True:
        wait(lambda: reading.taken or view.rest)
        taken = reading.taken
        if taken is None:
            return
        wait(lambda: is_open(panel, reading.taken.case_id))
        show_tab(panel, "Read")
        draw_boxes(panel, told[taken.case_id]["boxes"])
        for key, values in told[taken.case_id]["answers"]:
            require_told(panel, key)
            give_answer(panel, key, values)
        if told[taken.case_id]["boxes"]:
            panel.flow("Review").accept()
        else:
            panel.flow("Review").accept()
            wait(view.empty.isVisible)
            click(panel, "review_empty")
        wait(lambda taken=taken: reading.taken is not taken)


def draw_boxes(panel, boxes):
    """Draw boxes, and wait until each of them is asked about."""
    if not boxes:
        return
    grid = panel.session.case.grid
    mask = np.zeros(grid.shape, np.uint8)
    for box in boxes:
        mask[tuple(slice(*ends) for ends in box)] = 1
    panel.editing.start_with(LabelMap.of(mask, grid), "drawn")
    wait(lambda: panel.editing.live is not None)
    wait(lambda: panel.findChild(QWidget, f"review_lesion_show_{len(boxes)}") is not None)


REQUIRED = {
    "mass.shape": "Mass: shape",
    "mass.margin_not": "Mass: margin, not circumscribed",
    "nme.distribution": "Non-mass: distribution",
    "assessment": "Assessment category",
    "fgt": "Amount of fibroglandular tissue",
}


def require_told(panel, key):
    """What has to be answered is told as missing where somebody hands in without it."""
    field, _, place = key.partition("@")
    if field not in REQUIRED:
        return
    panel.flow("Review").accept()
    missing = panel.flow("Review").page.reading.missing
    where = f"lesion {place}" if place.isdigit() else f"{place} breast" if place else ""
    texts = [one for one in missing.text().split("Missing: ")[-1].split(", ") if one]
    wait(lambda: REQUIRED[field] in missing.text())
    assert where in missing.text(), (where, texts)


def give_answer(panel, key, values):
    """Answer a question of the form by its control, as the hand does."""
    name = f"review_answer_{key.replace('@', '_')}"
    wait(
        lambda: panel.findChildren(QWidget, name) or panel.findChild(QWidget, f"{name}_{values[0]}")
    )
    control = panel.findChild(QWidget, name)
    if isinstance(control, QComboBox):
        at = control.findData(values[0])
        assert at > 0, (key, values)
        control.setCurrentIndex(at)
        control.activated.emit(at)
    elif isinstance(control, QLineEdit):
        control.setText(values[0])
        control.textEdited.emit(values[0])
    else:
        for value in values:
            panel.findChild(QCheckBox, f"{name}_{value}").click()


def judge_cases(panel, rule, case_id):
    """Take up what disagrees, look at its differences, decide by a rule, say why."""
    view, flow = panel.flow("Review").page.judging, panel.flow("Review").judging
    wait(lambda: view.queue.count() == 3)
    assert view.chosen.case_id == case_id
    click(panel, "review_take_up")
    wait(lambda: panel.scene.layer(Role.READING_B) is not None)
    wait(lambda: " of " in view.difference.text() and ": " in view.difference.text())
    first = view.difference.text()
    click(panel, "review_next_difference")
    assert view.difference.text() != first
    click(panel, f"review_{ConsensusRule(rule)}")
    wait(lambda: Role.REFINED in panel.session.masks and panel.editing.live is not None)
    view.reason.setText("both saw a part of it")
    click(panel, "review_decide")
    wait(lambda: flow.dispute is None)
    wait(lambda: any("not signed" in view.queue.item(k).text() for k in range(3)))


def make_key(panel, words):
    """Make this person's key, on tab Sign."""
    show_tab(panel, "Sign")
    view = panel.flow("Review").page.signing
    view.new.setText(words)
    view.again.setText(words)
    click(panel, "review_key_make")
    wait(lambda: "Your key is ready" in panel.header.message.text())
    wait(lambda: view.forgotten.isVisible())


def have_key(panel):
    """Make a key on tab Sign, where the page says that this person has none."""
    show_tab(panel, "Sign")
    view, make = panel.flow("Review").page.signing, panel.findChild(QWidget, "review_key_make")
    wait(lambda: view.forgotten.isVisible() or make.isVisible())
    if make.isVisible():
        make_key(panel, "three small words")


def sign_cases(panel, meaning):
    """Sign all that there is to sign in one meaning; print the digits that a lead asks for."""
    view = panel.flow("Review").page.signing
    have_key(panel)
    at = view.meaning.findData(Meaning(meaning))
    view.meaning.setCurrentIndex(at)
    view.meaning.activated.emit(at)
    view.things.selectAll()
    view.passphrase.setText("three small words")
    click(panel, "review_sign")
    wait(lambda: "signature" in panel.header.message.text())
    sys.stdout.write(f"digits {view.key.text()[:19]}\n")


def countersign(panel, name, digits):
    """Give a lead's word for somebody's key, whose digits were read out."""
    view = panel.flow("Review").page.signing
    have_key(panel)
    wait(lambda: view.whose.findText(name) >= 0)
    view.whose.setCurrentText(name)
    view.digits.setText(digits)
    view.word.setText("three small words")
    click(panel, "review_countersign")
    wait(lambda: f"The key of {name} counts" in panel.header.message.text())


def show_tab(panel, text):
    tabs = panel.flow("Review").page.tabs
    (at,) = [k for k in range(tabs.count()) if tabs.tabText(k).startswith(text)]
    tabs.setCurrentIndex(at)


def take_picture(viewer, path):
    """Save the whole window, once what is late has come."""
    for _ in range(30):
        QApplication.processEvents()
        time.sleep(0.01)
    viewer.window.screenshot(path, flash=False, canvas_only=False)


def main():
    study, name, *acts = sys.argv[1:]
    viewer = Viewer(show=True)
    viewer.window.resize(1400, 900)
    panel = show_dock(viewer, "Review")
    panel.flow("Review").open_study(Path(study), name)
    page = panel.flow("Review").page
    wait(lambda: panel.flow("Review").client is not None or page.secret.isVisible())
    if panel.flow("Review").client is None:  # the person has a key that counts
        page.secret.setText("three small words")
        click(panel, "review_begin")
    wait(lambda: panel.flow("Review").client is not None)
    for act in acts:
        what, _, value = act.partition(":")
        if what == "read":
            read_cases(panel, int(value))
        elif what == "describe":
            describe_cases(panel, value)
        elif what == "judge":
            rule, _, case_id = value.partition(":")
            judge_cases(panel, rule, case_id or "A_2")
        elif what == "sign":
            sign_cases(panel, value)
        elif what == "countersign":
            countersign(panel, *value.split("="))
        else:
            show_tab(panel, value.split("=")[0])
            take_picture(viewer, value.split("=")[1])
    assert panel.close_down()
    sys.stdout.write("all done\n")
    sys.stdout.flush()
    QApplication.processEvents()


if __name__ == "__main__":
    sys.modules |= dict.fromkeys(ABSENT)
    main()
