"""The panel in a language that is none: each of our words stands between ⟦ and ⟧.

By day in a process of its own without napari's window, at night in the started program.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from napari_mamamia.core import texts

pytestmark = pytest.mark.door

LIST = Path(texts.__file__).parents[1] / "locales" / "napari_mamamia.pot"

PANEL = """
import napari
from napari_mamamia.widgets.dock.place import dock_of
panel = dock_of(napari.current_viewer())
"""
WORDS = """
from qtpy.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QWidget
from napari_mamamia.widgets.dock.steps import PAGES
for page in PAGES:
    panel.show_page(page)
panel.pages.toggle_keys()
panel.pages.show_import()
result = []
for one in panel.findChildren(QWidget):
    if isinstance(one, QLabel | QAbstractButton):
        result.append(("text", one.objectName(), one.text()))
    if isinstance(one, QComboBox):
        result += [("item", one.objectName(), one.itemText(i)) for i in range(one.count())]
    if isinstance(one, QLineEdit):
        result.append(("placeholder", one.objectName(), one.placeholderText()))
    if one.objectName() and not one.objectName().startswith("qt_"):
        result.append(("tip", one.objectName(), one.toolTip()))
"""


NAMES = re.compile(
    r"key_\w+|predict_(recipe|device)|kinetics_timing|batch_profile|header_progress_text"
    r"|view_(minus|beside)|ranking_metric|start_recent_\d+|prompt_(environment|server)"
)
"""Controls that show names: of keys, recipes, devices, profiles, phases, metrics, addresses."""
PROPER = {"STAPLE", "SmartPaint", "SER", "MIP"}
ENGLISH = {"view_contrast", "batch_coverage", "batch_confirm_columns"}
"""What stays English so far: a range of grey is its own name; services tell of a table."""


def make_language(path):
    """Write a catalogue in which each text is itself between brackets."""
    with LIST.open("rb") as stream:
        every = read_po(stream)
    marked = Catalog(locale="de")
    for message in every:
        if message.id:
            key = message.id
            put = "⟦{}⟧".replace
            text = put("{}", key) if isinstance(key, str) else tuple(put("{}", k) for k in key)
            marked.add(key, text)
    with path.open("wb") as stream:
        write_mo(stream, marked)
    return path


ALONE = """
import json, sys
from qtpy.QtWidgets import QApplication
app = QApplication([])
from napari.components import ViewerModel
from napari_mamamia.widgets.dock.dock import MamamiaDock
panel = MamamiaDock(ViewerModel())
panel.show()
"""


def test_every_word_of_the_panel_can_be_said_in_another_language(tmp_path):
    """In a process of its own: some words are asked for as modules are imported."""
    language = make_language(tmp_path / "marked.mo")
    code = f"{ALONE}{WORDS}print(json.dumps(result), flush=True)\nimport os\nos._exit(0)\n"
    environment = {**os.environ, texts.LANGUAGE: str(language)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert_translated(json.loads(done.stdout))


@pytest.mark.night
def test_every_word_of_the_started_program_can_be_said_so(start, small_data_set, tmp_path):
    language = make_language(tmp_path / "marked.mo")
    program = start("mamamia", "view", small_data_set, **{texts.LANGUAGE: str(language)})
    program.widget("cases_table")
    assert_translated(program.ask("evaluate", code=PANEL + WORDS))


def assert_translated(words):
    """Say which of the words (kind, name of the control, text) are in plain English."""
    plain = [
        (kind, name, text)
        for kind, name, text in words
        if not NAMES.fullmatch(name)
        and name not in ENGLISH
        and text not in PROPER
        and "⟦" not in text
        and re.search(r"[^\W\d_]{3,}", re.sub(r"<[^>]*>|&\w+;", " ", text))
    ]
    assert len(words) > 500
    assert not plain, "\n".join(map(str, plain))
