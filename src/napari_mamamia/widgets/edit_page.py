"""Page Edit: the reader's own mask, made from another one and painted with napari's tools."""

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QLabel, QWidget

from napari_mamamia.widgets.controls import button, column, label, row, set_primary
from napari_mamamia.widgets.keys import NAPARI_KEYS
from napari_mamamia.widgets.layers import Role
from napari_mamamia.widgets.page import Page

__all__ = ["EditPage"]


class EditPage(Page):
    """Make, paint, save. `start_wanted` carries the role to start from, None for an empty mask."""

    start_wanted = Signal(object)
    brush_wanted = Signal()
    pan_wanted = Signal()
    save_wanted = Signal()
    discard_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("edit")
        self._asked: Role | None = None
        self._has_mask = False
        self._roles: tuple[Role, ...] = ()
        self.whose = label("edit_whose", tip="Whose mask is edited and what it was made from")
        self.body.addWidget(self.whose)
        self.body.addWidget(self._make_tools())
        self.state = label("edit_state", tip="Whether the mask is saved, and where")
        self.body.addWidget(self.state)
        self.body.addWidget(self._make_start())
        self.body.addWidget(self._make_question())
        self.body.addWidget(self._make_help())
        self.body.addStretch()
        self.show_mask("", "", has_mask=False)

    # ------------------------------------------------------------- for the dock

    def show_sources(self, roles: Sequence[Role]) -> None:
        """Offer the masks that an own mask can be made from."""
        self.from_prediction.setEnabled(Role.PREDICTION in roles)
        self.from_reference.setEnabled(Role.REFERENCE in roles)
        self._roles = tuple(roles)
        self._mark_next()

    def show_mask(self, whose: str, state: str, *, has_mask: bool) -> None:
        """Show the reader's mask, or that there is none yet."""
        self._has_mask = has_mask
        self.whose.setText(whose or "Make your own mask of this case and paint on it:")
        self.state.setText(state)
        self.state.setVisible(has_mask)
        self._tools.setVisible(has_mask)
        self._help.setVisible(has_mask)
        again = "again " if has_mask else ""
        self.start_title.setText(f"Start {again}from a copy of")
        self._ask(None, show=False)
        self._mark_next()

    def set_save_is_next(self, is_next: bool, *, failed: bool) -> None:
        """Make Save the next step while something is unsaved; after a failure offer to discard."""
        set_primary(self.save, is_next)
        self.discard.setVisible(failed)

    # -------------------------------------------------------------------- inner

    def _mark_next(self) -> None:
        """Make a copy of the prediction the next step, or else of the reference."""
        first = next((r for r in (Role.PREDICTION, Role.REFERENCE) if r in self._roles), None)
        set_primary(self.from_prediction, not self._has_mask and first is Role.PREDICTION)
        set_primary(self.from_reference, not self._has_mask and first is Role.REFERENCE)

    def _make_tools(self) -> QWidget:
        self.brush = button(
            "edit_brush", "Paint", "Takes napari's brush on your mask", self.brush_wanted.emit
        )
        self.pan = button(
            "edit_pan", "Move image", "Puts the brush down, to move the image", self.pan_wanted.emit
        )
        self.save = button(
            "edit_save",
            "Save",
            "Saves your mask now; it is saved by itself as well",
            self.save_wanted.emit,
        )
        self.discard = button(
            "edit_discard",
            "Discard",
            "Forgets your mask in this window; the file that was saved last stays",
            self.discard_wanted.emit,
        )
        self.discard.hide()
        self._tools = row(self.brush, self.pan, 1, self.discard, self.save)
        return self._tools

    def _make_start(self) -> QWidget:
        self.start_title = QLabel("Start from")
        self.from_prediction = button(
            "edit_from_prediction",
            "prediction",
            "Makes your own mask from a copy of the prediction",
            lambda: self._start(Role.PREDICTION),
        )
        self.from_reference = button(
            "edit_from_reference",
            "reference",
            "Makes your own mask from a copy of the reference",
            lambda: self._start(Role.REFERENCE),
        )
        self.from_nothing = button(
            "edit_from_nothing",
            "nothing",
            "Makes your own mask, with nothing in it yet",
            lambda: self._start(None),
        )
        return column(
            self.start_title,
            row(self.from_prediction, self.from_reference, self.from_nothing, 1),
        )

    def _make_question(self) -> QWidget:
        self.question = label("edit_question", tip="Asks before your mask is replaced")
        self.replace = button(
            "edit_replace",
            "Replace",
            "Your present mask is replaced, here and at the next saving",
            lambda: self.start_wanted.emit(self._asked),
        )
        self.keep = button(
            "edit_keep", "Keep", "Nothing is changed", lambda: self._ask(None, show=False)
        )
        self._question = row(self.question, self.replace, self.keep)
        self._question.layout().setStretch(0, 1)
        return self._question

    def _make_help(self) -> QWidget:
        lines = "".join(
            f"<tr><td><b>{key}</b>&nbsp;&nbsp;</td><td>{text}</td></tr>"
            for key, text in NAPARI_KEYS
        )
        self.help = label("edit_help", f"<table>{lines}</table>", "napari's keys while painting")
        self._help = row(self.help)
        return self._help

    def _start(self, role: Role | None) -> None:
        if self._has_mask:
            self._ask(role, show=True)
        else:
            self.start_wanted.emit(role)

    def _ask(self, role: Role | None, *, show: bool) -> None:
        self._asked = role
        self.question.setText("Replace your mask of this case?")
        self._question.setVisible(show)
