"""The Refine page, on which the reader starts, paints, grows, checks and accepts a mask."""

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QPushButton, QWidget

from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.controls.call_later import call_later
from napari_mamamia.widgets.controls.colours import MARK_COLOURS
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    heading,
    label,
    line,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.findings.gap_views import GapList
from napari_mamamia.widgets.refine.history_list import HistoryList
from napari_mamamia.widgets.refine.more import RefineMore
from napari_mamamia.widgets.refine.numbers import RefineNumbers
from napari_mamamia.widgets.refine.state import NextStep, PaintTool, next_text
from napari_mamamia.widgets.refine.tools import RefineTools


class RefinePage(Page):
    """The page with start, tools, measurements, history and saving.

    The signal `start_wanted` carries the role to start from, or None for an empty mask.
    `take_over_wanted` carries whether to keep recovered strokes. `changes_wanted`, `compare_wanted`
    and `marks_wanted` carry whether to show changes, the start mask or marks. `protocol_wanted`
    requests a protocol file, `forget_wanted` the removal of all marks, and `lesion_wanted` another
    lesion.
    """

    start_wanted = Signal(object)
    take_over_wanted = Signal(bool)
    save_wanted = Signal()
    discard_wanted = Signal()
    changes_wanted = Signal(bool)
    compare_wanted = Signal(bool)
    protocol_wanted = Signal()
    marks_wanted = Signal(bool)
    forget_wanted = Signal()
    lesion_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("refine")
        self._asked: Role | None = None
        self._has_mask = False
        self._roles: tuple[Role, ...] = ()
        self.tools = RefineTools()
        self.numbers = RefineNumbers()
        self.history = HistoryList()
        self.more = RefineMore(
            ((tr("Brush"), self.tools.extras), (tr("Marks and lesions"), self._make_marks())),
            (
                (tr("Since the start"), self._make_compare()),
                (tr("History"), self.history),
                (tr("Protocol"), self._make_protocol_button()),
            ),
        )
        self.more.folded.connect(self._show_start)
        self.body.setSpacing(5)
        self.whose = label("refine_whose", tip=tr("Owner and origin of the edited mask."))
        for widget in (
            self.whose,
            self._make_offer(),
            self._make_protocol(),
            self._make_work(),
        ):
            self.body.addWidget(widget)
        self.body.setStretchFactor(self._work, 1)
        self.body.addStretch()
        self.show_mask("", has_mask=False)
        self.show_offer("")
        self.show_protocol("", ())

    # ------------------------------------------------------------- for the dock

    def show_sources(self, roles: Sequence[Role]) -> None:
        """Show buttons for the masks from which the own mask can be copied."""
        self.from_prediction.setEnabled(Role.PREDICTION in roles)
        self.from_reference.setEnabled(Role.REFERENCE in roles)
        self._roles = tuple(roles)
        self._mark_next()

    def set_blind(self, blinding: Blinding) -> None:
        """Hide the buttons that start from hidden masks or compare with hidden masks."""
        self.from_reference.setHidden(blinding.hides(Hidden.REFERENCE))
        self.from_prediction.setHidden(blinding.hides(Hidden.MODEL))
        is_hidden = blinding.hides(Hidden.REFERENCE) or blinding.hides(Hidden.NUMBERS)
        self.numbers.set_blind("Blind" if is_hidden else "")

    def show_mask(self, whose: str, *, has_mask: bool) -> None:
        """Show the owner of the reader's mask, or that there is no mask yet."""
        self._has_mask = has_mask
        self.whose.setText(whose or tr("Make your own mask for this case and paint on it:"))
        for part in (self._tools, self._saving):
            part.setVisible(has_mask)
        self.start_title.setText(tr("Start again from") if has_mask else tr("Start from"))
        self._ask_replacing(None, show=False)
        self._show_start()
        self._mark_next()

    def show_offer(self, text: str) -> None:
        """Show buttons for the strokes recovered after a crash; "" hides these buttons."""
        self.offer.setText(text)
        set_level(self.offer, "warning")
        self._offer.setVisible(bool(text))

    def show_protocol(self, text: str, checklist: Sequence[str]) -> None:
        """Show the name of the protocol, the time used, and the checklist."""
        lines = "".join(f"<br>☐ {point}" for point in checklist)
        self.protocol.setText(f"{text}{lines}" if text else "")
        self.protocol.setVisible(bool(text))

    def set_save_is_next(self, is_next: bool, *, failed: bool) -> None:
        """Enable saving if it is the next step; show the Discard button if saving failed."""
        self.save.setEnabled(is_next)
        self.discard.setVisible(failed)

    def show_next(self, step: NextStep, tool: PaintTool) -> None:
        """Highlight the control of the next step, and describe the step."""
        self.tools.show_next(step, next_text(step, tool))
        set_primary(self.save, step is NextStep.SAVE)

    def ask_replacing(self, role: Role) -> None:
        """Ask whether to replace the own mask with a copy of another mask."""
        self._ask_replacing(role, show=True)
        call_later(self, lambda: self._area.ensureWidgetVisible(self._question))

    def set_comparing(self, comparing: bool, *, changes: bool) -> None:
        """Show which comparison with the initial mask is displayed."""
        self.compare.setDown(comparing)
        self.changes.setChecked(changes)
        self.changes_legend.setVisible(changes)

    def show_marks(self, *, shown: bool) -> None:
        """Show whether marks are drawn, and the meaning of their colours."""
        self.marks.setChecked(shown)
        self.marks_legend.setVisible(shown)

    # -------------------------------------------------------------------- inner

    def _mark_next(self) -> None:
        is_first = not self._has_mask and Role.PREDICTION not in self._roles
        set_primary(self.from_reference, is_first and Role.REFERENCE in self._roles)
        set_primary(self.from_nothing, is_first and Role.REFERENCE not in self._roles)

    def _make_offer(self) -> QWidget:
        self.offer = label(
            "refine_offer", tip=tr("Work that was not saved when the program ended.")
        )
        self.take_over = button(
            "refine_take_over",
            tr("Keep strokes"),
            tr("Continues with the recovered strokes."),
            lambda: self.take_over_wanted.emit(True),
            primary=True,
        )
        self.leave = button(
            "refine_leave",
            tr("Start from saved mask"),
            tr("Ignores the recovered strokes without deleting them."),
            lambda: self.take_over_wanted.emit(False),
        )
        self._offer = column(self.offer, row(self.take_over, self.leave, 1))
        return self._offer

    def _make_protocol(self) -> QWidget:
        self.protocol = label("refine_protocol_text", tip=tr("The loaded annotation protocol."))
        return self.protocol

    def _make_work(self) -> QWidget:
        self._tools = column(self.tools, line(), self.numbers, line(), self.more)
        # In the scroll area, so that the rows below it stay where they are.
        inner = column(self._tools, self._make_start(), self._make_question(), 1)
        self._area = PageArea(inner, "refine_scroll", is_part=True)
        self.gaps = GapList("refine_gaps", is_brief=True)
        self._saving = column(self.gaps, self._make_buttons())
        holder = column(self._area, self._saving)
        for part in (self._tools, inner, self._saving, holder):
            part.layout().setSpacing(5)
        holder.layout().setStretch(0, 1)
        self._work = holder
        return holder

    def _make_compare(self) -> QWidget:
        self.changes = button(
            "refine_changes",
            tr("Show changes"),
            tr("Colours the voxels added (yellow) and removed (purple) since editing began."),
            lambda: self.changes_wanted.emit(self.changes.isChecked()),
        )
        self.changes.setCheckable(True)
        self.compare: QPushButton = button(
            "refine_compare",
            tr("Compare with start"),
            with_key(tr("Shows the initial mask while the button is held down"), "compare"),
            lambda: None,
        )
        self.compare.pressed.connect(lambda: self.compare_wanted.emit(True))
        self.compare.released.connect(lambda: self.compare_wanted.emit(False))
        text = _make_legend(("added", "removed"), tr("{} since editing began"))
        self.changes_legend = label(
            "refine_changes_legend", text, tr("The colours of the changes.")
        )
        self.changes_legend.hide()
        holder = column(row(self.changes, self.compare, 1), self.changes_legend)
        holder.layout().setSpacing(3)
        return holder

    def _make_buttons(self) -> QWidget:
        self.save = button(
            "refine_save",
            tr("Save"),
            tr("Saves your mask now; it is also saved automatically."),
            self.save_wanted.emit,
        )
        self.discard = button(
            "refine_discard",
            tr("Discard"),
            tr("Discards your mask in this window; the last saved file is kept."),
            self.discard_wanted.emit,
        )
        self.discard.hide()
        return row(self.history.undo, 1, self.discard, self.save)

    def _make_marks(self) -> QWidget:
        self.marks = button(
            "refine_marks",
            tr("Show marks"),
            tr("Colours the voxels that your strokes keep inside or outside the mask."),
            lambda: self.marks_wanted.emit(self.marks.isChecked()),
        )
        self.marks.setCheckable(True)
        forget = button(
            "refine_forget_marks",
            tr("Forget marks"),
            tr(
                "Removes the marks of your strokes on this lesion; the mask stays. Undo restores "
                "them."
            ),
            self.forget_wanted.emit,
        )
        lesion = button(
            "refine_new_lesion",
            tr("New lesion"),
            tr(
                "Starts another lesion with its own label and marks, without changing existing "
                "lesions."
            ),
            self.lesion_wanted.emit,
        )
        self.marks_legend = label(
            "refine_marks_legend",
            _make_legend(("inside", "outside"), tr("held {}")),
            tr("The colours of the marks."),
        )
        self.marks_legend.hide()
        return column(row(self.marks, forget, 1), self.marks_legend, row(lesion, 1))

    def _make_protocol_button(self) -> QWidget:
        load = button(
            "refine_protocol",
            tr("Protocol…"),
            tr(
                "Loads an annotation protocol with phase, brush, structures, checklist and time "
                "limit."
            ),
            self.protocol_wanted.emit,
        )
        return row(load, 1)

    def _make_start(self) -> QWidget:
        self.start_title = heading(tr("Start from"))
        self.from_prediction = button(
            "refine_from_prediction",
            tr("prediction"),
            tr("Makes your own mask from a copy of the prediction."),
            lambda: self._start_mask(Role.PREDICTION),
        )
        self.from_reference = button(
            "refine_from_reference",
            tr("reference"),
            tr("Makes your own mask from a copy of the reference."),
            lambda: self._start_mask(Role.REFERENCE),
        )
        self.from_nothing = button(
            "refine_from_nothing",
            tr("empty mask"),
            tr("Makes your own empty mask."),
            lambda: self._start_mask(None),
        )
        sources = row(self.from_prediction, self.from_reference, self.from_nothing, 1)
        self._start = column(self.start_title, sources)
        return self._start

    def _show_start(self) -> None:
        self._start.setVisible(not self._has_mask or not self.more.is_folded)

    def _make_question(self) -> QWidget:
        self.question = label("refine_question", tip=tr("Asks before your mask is replaced."))
        self.replace = button(
            "refine_replace",
            tr("Replace mask"),
            tr("Replaces your current mask; Undo restores it."),
            lambda: self.start_wanted.emit(self._asked),
        )
        self.keep = button(
            "refine_keep",
            tr("Keep mask"),
            tr("Changes nothing."),
            lambda: self._ask_replacing(None, show=False),
        )
        self._question = row(self.question, self.replace, self.keep)
        self._question.layout().setStretch(0, 1)
        return self._question

    def _start_mask(self, role: Role | None) -> None:
        if self._has_mask:
            self._ask_replacing(role, show=True)
        else:
            self.start_wanted.emit(role)

    def _ask_replacing(self, role: Role | None, *, show: bool) -> None:
        self._asked = role
        self.question.setText(tr("Replace your mask for this case?"))
        self._question.setVisible(show)


def _make_legend(kinds: Sequence[str], words: str) -> str:
    return " &nbsp; ".join(
        f'<span style="color:{MARK_COLOURS[kind]}">■</span> {words.format(kind)}' for kind in kinds
    )
