"""Controls for a case's tags: buttons on the Score page, and a context menu in the case table."""

from collections.abc import Callable, Sequence
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
    QWidgetAction,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.services.score.case_tags import KNOWN_TAGS
from napari_mamamia.widgets.controls.controls import button, call_by, discard, label, row
from napari_mamamia.widgets.controls.fields import line_edit

_LETTERS: Final = 34
"""Number of letters that fit on one line of buttons in a dock of 340 pixels."""
_MARGIN: Final = 4
_HINT: Final = tr("another tag, then Enter")


class TagsLine(QWidget):
    """Buttons for the predefined tags and the open case's tags, and a field for a new tag.

    The signal `tag_wanted` carries a tag and whether to add or remove the tag.
    """

    tag_wanted = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("score_tags")
        self._chips: dict[str, QPushButton] = {}
        self._lines = QVBoxLayout()
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(4)
        self.other = line_edit("score_tag_other", tr("Adds a tag in your own words to this case."))
        call_by(self.other, tr("another tag"))
        self.other.setPlaceholderText(_HINT)
        self.other.returnPressed.connect(self._add_other)
        self.whose = label("score_tags_whose", tip=tr("The readers who set the tags of this case."))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._lines)
        layout.addWidget(self.other)
        layout.addWidget(self.whose)
        self.show_tags((), "")

    def show_tags(self, tags: Sequence[str], whose: str) -> None:
        """Show the tags of the open case, and a text with their readers."""
        chip_tags = list(dict.fromkeys([*KNOWN_TAGS, *tags]))
        if chip_tags != list(self._chips):
            self._make_chips(chip_tags)
        for tag, chip in self._chips.items():
            chip.setChecked(tag in tags)
        self.whose.setText(whose)
        self.whose.setVisible(bool(whose))

    # -------------------------------------------------------------------- inner

    def _make_chips(self, tags: Sequence[str]) -> None:
        while (item := self._lines.takeAt(0)) is not None:
            discard(item.widget())
        self._chips = {tag: self._make_chip(tag) for tag in tags}
        for line in _in_lines(tags):
            self._lines.addWidget(row(*(self._chips[tag] for tag in line), 1))

    def _make_chip(self, tag: str) -> QPushButton:
        chip = button(
            f"score_tag_{tag.replace(' ', '_')}",
            tr(tag),
            tr(
                "Adds the tag {tag} to this case, or removes it. The case table also shows the "
                "tag.",
                tag=tag,
            ),
            lambda: self.tag_wanted.emit(tag, self._chips[tag].isChecked()),
        )
        chip.setCheckable(True)
        return chip

    def _add_other(self) -> None:
        text = self.other.text().strip()
        if text:
            self.other.clear()
            self.tag_wanted.emit(text, True)


def _in_lines(tags: Sequence[str]) -> list[list[str]]:
    """Return the tags in order, split into lines that fit the dock.

    Examples
    --------
    >>> _in_lines(["implant", "clip", "non-mass enhancement", "artefact"])
    [['implant', 'clip'], ['non-mass enhancement', 'artefact']]
    """
    lines: list[list[str]] = []
    room = 0
    for tag in tags:
        needed = len(tag) + _MARGIN
        if not lines or needed > room:
            lines.append([])
            room = _LETTERS + _MARGIN
        lines[-1].append(tag)
        room -= needed
    return lines


def tags_menu(
    parent: QWidget, case_id: str, tags: Sequence[str], want: Callable[[str, bool], object]
) -> QMenu:
    """Return the context menu of a row with the predefined tags and the case's own tags."""
    menu = QMenu(parent)
    menu.setObjectName("results_tags")
    menu.addAction(tr("Tags of {case_id}", case_id=case_id)).setEnabled(False)
    menu.addSeparator()
    for tag in dict.fromkeys([*KNOWN_TAGS, *tags]):
        action = menu.addAction(tag)
        action.setCheckable(True)
        action.setChecked(tag in tags)
        action.triggered.connect(lambda on, tag=tag: want(tag, bool(on)))
    menu.addSeparator()
    field = line_edit("results_tag_other", tr("Adds a tag in your own words."), _HINT)

    def add() -> None:
        text = field.text().strip()
        menu.close()
        if text:
            want(text, True)

    field.returnPressed.connect(add)
    holder = QWidgetAction(menu)
    holder.setDefaultWidget(field)
    menu.addAction(holder)
    return menu
