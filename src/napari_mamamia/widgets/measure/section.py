"""The Measure section of the View panel: tools and a list of drawings."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from qtpy.QtCore import QAbstractListModel, QModelIndex, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QListView,
    QToolButton,
    QWidget,
)

from napari_mamamia.core.measurement import MeasureKind
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.targets import ROW_PADDING
from napari_mamamia.widgets.measure.mouse import NAMES
from napari_mamamia.widgets.measure.record import Drawn

ACTIONS: Final[Mapping[MeasureKind, str]] = MappingProxyType(
    {
        MeasureKind.RULER: "ruler",
        MeasureKind.CROSS: "diameters",
        MeasureKind.ELLIPSE: "ellipse",
        MeasureKind.ANGLE: "angle",
        MeasureKind.ARROW: "arrow",
        MeasureKind.KEY_IMAGE: "key_image",
    }
)
"""The names of the tools in the table of shortcuts."""
_TIPS: Final = MappingProxyType(
    {
        MeasureKind.RULER: tr("Measures a length in mm: drag, or click both ends."),
        MeasureKind.CROSS: tr("Measures two perpendicular diameters in mm."),
        MeasureKind.ELLIPSE: tr(
            "Measures an area, and the mean and standard deviation of its values."
        ),
        MeasureKind.ANGLE: tr("Measures an angle: click one end, the corner and the other end."),
        MeasureKind.ARROW: tr("Points at something, with a short text."),
        MeasureKind.KEY_IMAGE: tr("Keeps the displayed slice for the report."),
    }
)
_IN_A_ROW: Final = 3
_LINES: Final = 6


class _DrawnModel(QAbstractListModel):
    """A list model of the drawings; the text of a line is created when it becomes visible."""

    def __init__(self) -> None:
        super().__init__()
        self.items: Sequence[Drawn] = ()
        self._say: Callable[[Drawn], str] = lambda one: one.key

    def show_items(self, items: Sequence[Drawn], say: Callable[[Drawn], str]) -> None:
        """Show new drawings; `say` returns the text of a drawing."""
        self._say = say
        if [item.key for item in items] == [item.key for item in self.items]:
            self.items = items
            self.dataChanged.emit(self.index(0), self.index(len(items) - 1))
            return
        self.beginResetModel()
        self.items = items
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of drawings."""
        return 0 if parent is not None and parent.isValid() else len(self.items)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text of a line."""
        texts = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
        is_line = role in texts and 0 <= index.row() < len(self.items)
        return self._say(self.items[index.row()]) if is_line else None


class MeasureSection(QWidget):
    """The tools and the list of drawings.

    The signal `tool_wanted` carries a `MeasureKind`, and `line_chosen` the key of a drawing.
    `words_wanted` requests a text field for the drawing; `delete_wanted` and `undo_wanted` request
    a deletion or an undo. `lesion_wanted` carries the lesion number of the selected drawing, or ""
    for none.
    """

    tool_wanted = Signal(object)
    line_chosen = Signal(str)
    words_wanted = Signal(str)
    lesion_wanted = Signal(str)
    delete_wanted = Signal()
    undo_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("measure")
        self.fold: QToolButton = tool_button(
            "measure_fold",
            tr("Measure"),
            tr("Shows or hides rulers and other shapes, and the list of drawings."),
            self._toggle_content,
        )
        self.fold.setArrowType(Qt.ArrowType.RightArrow)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.tools = {kind: self._make_tool(kind) for kind in MeasureKind}
        self._model = _DrawnModel()
        self.list: QListView = named(
            QListView(),
            "measure_list",
            tr("Drawings in this case: click to go to a drawing, double-click to edit its text."),
        )
        self.list.setModel(self._model)
        self.list.setUniformItemSizes(True)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.clicked.connect(lambda at: self.line_chosen.emit(self._key_at(at)))
        self.list.doubleClicked.connect(lambda at: self.words_wanted.emit(self._key_at(at)))
        self.undo = button(
            "measure_undo",
            tr("Undo"),
            with_key(tr("Undoes the last drawing, move or deletion."), "measure_undo"),
            self.undo_wanted.emit,
        )
        self.delete = button(
            "measure_delete",
            tr("Delete"),
            with_key(
                tr("Deletes the selected drawing; the file keeps its history."), "measure_delete"
            ),
            self.delete_wanted.emit,
        )
        self.lesion = combo_box(
            "measure_lesion", tr("Lesion to which the selected drawing belongs.")
        )
        self.lesion.activated.connect(
            lambda _at: self.lesion_wanted.emit(str(self.lesion.currentData()))
        )
        self.note = label("measure_note", tip=tr("Drawings that could not be saved or read."))
        set_level(self.note, "warning")
        self._content = column(
            self._lay_out_tools(),
            self.list,
            row(self.undo, self.delete, self.lesion, 1),
            self.note,
        )
        self._content.layout().setContentsMargins(8, 0, 0, 0)
        self._content.hide()
        fill_column(self, self.fold, self._content, spacing=4)
        self.show_drawn((), lambda one: one.key)

    def show_drawn(
        self,
        items: Sequence[Drawn],
        say: Callable[[Drawn], str],
        chosen: str = "",
        *,
        can_undo: bool = False,
        note: str = "",
        lesions: Sequence[str] = (),
    ) -> None:
        """Show the drawings with the texts returned by `say`, and the selected drawing.

        `lesions` are the lesion numbers to which the selected drawing can be assigned.
        """
        self._model.show_items(items, say)
        row_number = next((index for index, item in enumerate(items) if item.key == chosen), -1)
        if row_number >= 0:
            self.list.setCurrentIndex(self._model.index(row_number))
        else:
            self.list.clearSelection()
        self.list.setFixedHeight(self._find_height())
        self.list.setVisible(bool(items))
        drawn = items[row_number] if row_number >= 0 and items[row_number].is_own else None
        self.delete.setEnabled(drawn is not None)
        self._show_lesions(lesions, drawn)
        self.undo.setEnabled(can_undo)
        self.note.setText(note)
        self.note.setVisible(bool(note))
        count = f" ({len(items)})" if items else ""
        self.fold.setText(f"{tr('Measure')}{count}")

    def _show_lesions(self, lesions: Sequence[str], drawn: Drawn | None) -> None:
        of = "" if drawn is None else drawn.item.lesion
        self.lesion.clear()
        for name in dict.fromkeys(("", *lesions, of)):
            words = tr("lesion {name}", name=name) if name else tr("no lesion")
            self.lesion.addItem(words, name)
        self.lesion.setCurrentIndex(self.lesion.findData(of))
        self.lesion.setVisible(drawn is not None and self.lesion.count() > 1)

    def show_tool(self, kind: MeasureKind | None) -> None:
        """Show the active tool."""
        for other, control in self.tools.items():
            control.setChecked(other is kind)

    # -------------------------------------------------------------------- inner

    def _make_tool(self, kind: MeasureKind) -> QToolButton:
        control = tool_button(
            f"measure_{ACTIONS[kind]}",
            NAMES[kind],
            with_key(_TIPS[kind], ACTIONS[kind]),
            partial(self.tool_wanted.emit, kind),
        )
        control.setCheckable(kind is not MeasureKind.KEY_IMAGE)
        control.setProperty("framed", True)
        return control

    def _lay_out_tools(self) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        for index, control in enumerate(self.tools.values()):
            grid.addWidget(control, index // _IN_A_ROW, index % _IN_A_ROW)
        grid.setColumnStretch(_IN_A_ROW, 1)
        return holder

    def _toggle_content(self) -> None:
        is_open = self._content.isHidden()
        self._content.setVisible(is_open)
        arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
        self.fold.setArrowType(arrow)

    def _key_at(self, index: QModelIndex) -> str:
        items = self._model.items
        return items[index.row()].key if 0 <= index.row() < len(items) else ""

    def _find_height(self) -> int:
        lines = min(max(len(self._model.items), 1), _LINES)
        line_height = self.list.fontMetrics().height() + 2 * ROW_PADDING
        room: int = lines * line_height + 2 * self.list.frameWidth() + 2
        return room
