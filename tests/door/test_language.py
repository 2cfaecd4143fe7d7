"""The started program in a language that is none: each of our words stands between ⟦ and ⟧."""

import re

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from tools.texts import LIST

from napari_mamamia.core import texts

pytestmark = pytest.mark.door

WORDS = """
import napari
from qtpy.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QWidget
from napari_mamamia.widgets.dock.place import dock_of
from napari_mamamia.widgets.dock.steps import PAGES
panel = dock_of(napari.current_viewer())
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
)
"""Controls that show names: of keys, recipes, devices, profiles, and of what runs."""
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


def test_every_word_of_the_panel_can_be_said_in_another_language(start, small_data_set, tmp_path):
    language = make_language(tmp_path / "marked.mo")
    program = start("mamamia", "view", small_data_set, **{texts.LANGUAGE: str(language)})
    program.widget("cases_table")
    words = program.ask("evaluate", code=WORDS)
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
