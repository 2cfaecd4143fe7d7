"""Accepting the mask of a case: the row below the Mask step, the line above Check, the shortcut."""

from collections.abc import Callable
from typing import Final

from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.context import CaseKey
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.base.pages import find_page
from napari_mamamia.widgets.controls.controls import button, label, row, set_level, set_primary
from napari_mamamia.widgets.predict.page import PredictPage
from napari_mamamia.widgets.predict.predicting import Predicting
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.page import RefinePage
from napari_mamamia.widgets.refine.readers import Readers
from napari_mamamia.widgets.refine.state import NextStep
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_USE: Final = tr("Use this mask")
_ACCEPT: Final = tr("Accept and next")
_USE_TIP: Final = tr(
    "Copies the prediction into your own mask, accepts that mask and opens the next case."
)
_ACCEPT_TIP: Final = tr("Saves and accepts your mask, and opens the next case.")

LOOK_MS: Final = 1500
"""Time in ms for which a new case must be displayed before a mask is accepted (our choice)."""
_LOOK_STEPS: Final = 10


class AcceptRow(QWidget):
    """The row below the sections of the Mask step, for accepting the mask or editing a copy."""

    accept_wanted = Signal()
    edit_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("accept_row")
        self.accept = button("refine_accept", _USE, _USE_TIP, self.accept_wanted.emit)
        self.edit = button(
            "refine_edit_copy",
            tr("Edit a copy"),
            with_key(
                tr(
                    "Copies the prediction into your own mask and opens the mask on the Refine "
                    "page."
                ),
                "edit_copy",
            ),
            self.edit_wanted.emit,
        )
        line = row(self.accept, self.edit)
        line.layout().setStretch(0, 1)
        self.setLayout(line.layout())

    def show_state(self, *, is_own: bool, can_accept: bool, can_edit: bool, is_next: bool) -> None:
        """Show which mask the button accepts: the reader's own mask, or the prediction."""
        self.accept.setText(_ACCEPT if is_own else _USE)
        self.accept.setToolTip(with_key(_ACCEPT_TIP if is_own else _USE_TIP, "accept"))
        self.accept.setEnabled(can_accept)
        self.edit.setEnabled(can_edit)
        self.edit.setVisible(not is_own)
        set_primary(self.accept, is_next)


class AcceptedLine(QWidget):
    """The line above the sections of Check, which shows whether the case has an accepted mask."""

    accept_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("accepted_line")
        self.state = label("accepted_state", tip=tr("Whether the mask of this case is accepted."))
        self.accept = button("accepted_accept", _USE, _USE_TIP, self.accept_wanted.emit)
        line = row(self.state, self.accept)
        line.layout().setStretch(0, 1)
        self.setLayout(line.layout())

    def show_state(self, text: str, action: str) -> None:
        """Show the state, with a button for the missing action; "" hides the button."""
        self.state.setText(text)
        set_level(self.state, "warning" if action else "hint")
        self.accept.setText(action)
        self.accept.setVisible(bool(action))
        set_primary(self.accept, bool(action))


class Accepting(WindowPart):
    """A component that accepts the reader's own mask, or the prediction as the reader's own mask.

    The signal `changed` reports a change of `is_accepted`, `has_mask` or the highlighted control.

    Parameters
    ----------
    show_page
        Function that shows a page by its name.
    current_page
        Function that returns the name of the displayed page.
    open_next
        Function that opens the next case after a mask is accepted.
    accept_reading
        Function that submits the mask of a review study with its answers.
    """

    changed = Signal()

    def __init__(
        self,
        context: WindowContext,
        line: AcceptRow,
        notice: AcceptedLine,
        predict_page: PredictPage,
        refine_page: RefinePage,
        predicting: Predicting,
        editing: Editing,
        readers: Readers,
        show_page: Callable[[str], object],
        current_page: Callable[[], str],
        open_next: Callable[[], object],
        accept_reading: Callable[[], object],
    ) -> None:
        super().__init__(context)
        self._line, self._notice = line, notice
        self._predict_page, self._refine_page = predict_page, refine_page
        self._editing, self._readers = editing, readers
        self._show_page, self._current_page = show_page, current_page
        self._open_next, self._accept_reading = open_next, accept_reading
        self._next = NextStep.ACCEPT
        self._accepts_copy = self._is_reader_asked = False
        self._is_prediction_newer = False
        self._case: CaseKey = self._session.case_key
        self._unaccepted = ""
        self._looks_left = 0
        # Many short steps: a slow drawing of the image delays one step and does not use them all.
        self._look = QTimer(self)
        self._look.timeout.connect(self._take_look)
        line.accept_wanted.connect(self.accept)
        line.edit_wanted.connect(self.edit_copy)
        notice.accept_wanted.connect(self._supply_mask)
        predicting.answered.connect(self._on_answer)
        editing.opened.connect(self._on_opened)
        editing.stepped.connect(self._on_step)
        editing.state_changed.connect(self.show)
        self._session.case_changed.connect(self._on_case)
        self._session.masks_changed.connect(self.show)
        self.show()

    # ------------------------------------------------------------------- state

    @property
    def is_accepted(self) -> bool:
        """Whether the reader has accepted the displayed mask, which is the reader's own."""
        return self._editing.saving.is_accepted

    @property
    def has_mask(self) -> bool:
        """Whether there is a mask that the reader may accept."""
        return self._has_own or self._has_prediction

    @property
    def _has_own(self) -> bool:
        return self._session.mask(Role.REFINED) is not None

    @property
    def _has_prediction(self) -> bool:
        is_hidden = self._session.blinding.hides(Hidden.MODEL)
        return self._session.mask(Role.PREDICTION) is not None and not is_hidden

    def actions(self) -> dict[str, Callable[..., object]]:
        """Return the actions of the shortcuts by action name."""
        return {"accept": self.accept, "edit_copy": self.edit_copy}

    # ----------------------------------------------------------------- actions

    def accept(self) -> None:
        """Accept the reader's own mask, or else the prediction, and open the next case.

        In a review study, the mask is submitted together with the answers. Nothing is accepted
        until the case has been displayed for `LOOK_MS`.
        """
        if self._session.is_coming:
            self._notifier.hint(tr("A case is opening: look at it, then press again."))
        elif self._looks_left:
            case_id = self._session.case_id
            self._notifier.hint(tr("Look at {case_id} first, then press again.", case_id=case_id))
        elif self._session.study:
            self._accept_reading()
        elif find_page(self._current_page()).step == "Work list":
            self._notifier.hint(tr("Open a case first: the key accepts the mask of the open case."))
        elif self._editing.live is not None and not self._is_prediction_newer:
            self._editing.saving.accept(self._go_on)
        elif self._has_prediction:
            self._readers.with_reader(self._use_prediction)
        else:
            self._notifier.hint(
                tr("This case has no mask to accept: predict or outline the tumour first.")
            )

    def begin_look(self) -> None:
        """Start the time for which the case that was just displayed cannot be accepted."""
        if LOOK_MS:
            self._looks_left = _LOOK_STEPS
            self._look.start(LOOK_MS // _LOOK_STEPS)

    def edit_copy(self) -> None:
        """Open the reader's own mask on the Refine page, or start it from the prediction.

        A newer prediction replaces an own mask without strokes; otherwise the page asks first.
        """
        if self._session.case is None:
            return
        self._show_page("Refine")
        if self._is_prediction_newer:
            self._replace_own()
        elif not self._has_own and self._has_prediction:
            self._readers.with_reader(self._start_copy)

    def show_next(self, step: NextStep) -> None:
        """Highlight the accept button only if accepting is the next step of the Refine page."""
        self._next = step
        self.show()

    def wait_for_reader(self, is_asked: bool) -> None:
        """Disable accepting while the header asks for the reader's name."""
        self._is_reader_asked = is_asked
        self.show()

    def show(self) -> None:
        """Show what can be accepted, and whether it is accepted."""
        is_own = self._has_own and not self._is_prediction_newer
        is_asked = self._is_reader_asked
        is_next = self.has_mask and not self.is_accepted and not is_asked
        is_study = bool(self._session.study)
        if is_own or is_study:
            is_next = is_next and self._has_own and self._next is NextStep.ACCEPT
        self._line.show_state(
            is_own=is_own or is_study,
            can_accept=(self.has_mask or is_study) and not is_asked,
            can_edit=self.has_mask and not is_asked,
            is_next=is_next,
        )
        set_primary(self._predict_page.start, not self.has_mask and not is_asked)
        self._notice.setVisible(self._session.case is not None and not is_study)
        self._notice.accept.setEnabled(not is_asked)
        if self.is_accepted:
            name = self._session.reader or ""
            self._notice.show_state(tr("Accepted: {name}'s mask", name=name), "")
        else:
            action = _ACCEPT if is_own else _USE if self._has_prediction else tr("Make a mask")
            self._notice.show_state(tr("No accepted mask in this case"), action)
        if self._session.case_key == self._case:
            self._unaccepted = self._name_unaccepted()
        self.changed.emit()

    # -------------------------------------------------------------------- inner

    def _take_look(self) -> None:
        self._looks_left -= 1
        if self._looks_left <= 0:
            self._look.stop()

    def _use_prediction(self) -> None:
        """Accept the prediction as the own mask; ask the user first if this replaces edits."""
        if not self._has_own:
            self._accepts_copy = True
            self._editing.start(Role.PREDICTION)
        elif self._replace_own():
            self._editing.saving.accept(self._go_on)

    def _replace_own(self) -> bool:
        """Replace a mask without strokes with the prediction, or ask; return whether replaced."""
        live = self._editing.live
        is_replaced = live is not None and live.position == 0 and self._editing.open_is_new
        if not is_replaced:
            self._ask_replacing()
            return False
        self._editing.start(Role.PREDICTION)
        self._is_prediction_newer = False
        self.show()
        return True

    def _go_on(self, is_saved: bool) -> None:
        if is_saved:
            self._open_next()

    def _start_copy(self) -> None:
        if not self._has_own:
            self._editing.start(Role.PREDICTION)

    def _ask_replacing(self) -> None:
        self._is_prediction_newer = False
        self._show_page("Refine")
        self._refine_page.ask_replacing(Role.PREDICTION)
        self.show()

    def _supply_mask(self) -> None:
        if self.has_mask:
            self.accept()
        else:
            self._show_page("Predict")

    def _on_answer(self, _answer: object) -> None:
        self._is_prediction_newer = self._has_own
        self.show()

    def _on_step(self) -> None:
        self._is_prediction_newer = False

    def _on_opened(self) -> None:
        """Accept a copy that was made for acceptance, or ask if there is earlier work."""
        accepts_copy, self._accepts_copy = self._accepts_copy, False
        if accepts_copy and self._editing.live is None:
            self._accepts_copy = self._session.case_key == self._case
        elif accepts_copy and self._editing.open_is_new:
            self._editing.saving.accept(self._go_on)
        elif accepts_copy:
            self._ask_replacing()
        self.show()

    def _on_case(self) -> None:
        if self._session.case_key != self._case:
            unaccepted, self._unaccepted = self._unaccepted, ""
            self._case = self._session.case_key
            self._accepts_copy = self._is_prediction_newer = False
            self._next = NextStep.ACCEPT
            if unaccepted and self._session.case is not None:
                self._notifier.hint(
                    tr("The mask of {case_id} is not accepted.", case_id=unaccepted)
                )
        self.show()

    def _name_unaccepted(self) -> str:
        is_reading = find_page(self._current_page()).step in ("Read", "Work list")
        is_left = self._has_own or (self._has_prediction and not is_reading)
        is_free = self.is_accepted or bool(self._session.study)
        return self._session.case_id if is_left and not is_free else ""
