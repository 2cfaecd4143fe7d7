"""Agreement with the reference on the image: correct, false positive and missed voxels.

The legend is drawn on the image, so that the layout does not move when the legend appears.
"""

from typing import Any, Final

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, Qt, QTimer, Signal
from qtpy.QtWidgets import QLabel, QWidget

from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.score.review import Agreement, Agrees
from napari_mamamia.widgets.adapter.adapter import canvas_widget, font_share, text_scale
from napari_mamamia.widgets.base.blinding import ROLES, why_hidden
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.base.layers import Role, tag_for
from napari_mamamia.widgets.controls.colours import AGREEMENT_COLOURS
from napari_mamamia.widgets.controls.controls import named
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart

_WAIT_MS: Final = 400
_KINDS: Final = {Agrees.FALSE: tr("false positive"), Agrees.MISSED: tr("missed")}
_MM3_PER_ML: Final = 1000.0


class Reviewing(WindowPart):
    """A component that shows and updates the agreement map, and steps through the errors.

    The signal `changed` carries the legend as rich text, or "" while the map is off; `switched`
    carries whether the map is on. `listed` carries the displayed `Agreement` or None; `stepped`
    carries the index of the current error, or -1.
    """

    changed = Signal(str)
    switched = Signal(bool)
    listed = Signal(object)
    stepped = Signal(int)

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context)
        self._role: Role | None = None
        self._shown: Agreement | None = None
        self._compared = Role.PREDICTION
        self._at = -1
        self._jump = False
        self.is_on = False
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_WAIT_MS)
        self._wait.timeout.connect(self._start_comparing)
        self._session.case_changed.connect(self._follow_case)
        self._session.masks_changed.connect(self._ask_later)
        self._session.mask_edited.connect(self._ask_later)
        self._case_key = self._session.case_key

    def turn_on(self, role: Role | None = None) -> None:
        """Show where a mask agrees with the reference, and go to the largest error.

        Without `role`, the edited mask is compared, or the prediction if nothing was edited.
        """
        self._role, self._jump, self._at = role, True, -1
        if self._why_not():
            self._notifier.hint(self._why_not())
            self.turn_off()
            return
        self.is_on = True
        self.switched.emit(True)
        self._start_comparing()

    def turn_off(self) -> None:
        """Hide the map, and show the masks as they were before."""
        self._wait.stop()
        self._jobs.cancel("agreement")
        self.is_on, self._shown, self._at = False, None, -1
        self._scene.overlays.hide_agreement()
        self.switched.emit(False)
        self.changed.emit("")
        self.listed.emit(None)

    def next_error(self) -> None:
        """Go to the next error, or from the last to the first; turn the map on if needed."""
        self._step_error(1)

    def previous_error(self) -> None:
        """Go to the previous error, or from the first to the last; turn the map on if needed."""
        self._step_error(-1)

    def go_to_error(self, place: int) -> None:
        """Go to the error at the given index in the list; index 0 is the largest error."""
        if self._shown is not None and 0 <= place < len(self._shown.errors):
            self._at = place
            self._view_error()
            self._emit_state()

    # -------------------------------------------------------------------- inner

    def _step_error(self, by: int) -> None:
        if not self.is_on or self._shown is None:
            self.turn_on(self._role)
        elif not self._shown.errors:
            self._notifier.hint(tr("There is no error, because the masks are equal."))
        else:
            self.go_to_error((max(self._at, 0 if by < 0 else -1) + by) % len(self._shown.errors))

    def _follow_case(self) -> None:
        if self._session.case_key != self._case_key:
            self._case_key = self._session.case_key
            self._shown, self._at, self._jump = None, -1, True
            self._jobs.cancel("agreement")
            self.changed.emit("")
            self.listed.emit(None)

    def _ask_later(self) -> None:
        if self.is_on:
            self._wait.start()

    def _mask_role(self) -> Role:
        if self._role is not None:
            return self._role
        edited = self._session.mask(Role.REFINED)
        return Role.PREDICTION if edited is None else Role.REFINED

    def _why_not(self) -> str:
        if self._session.case is None:
            return tr("Open a case first.")
        hidden = why_hidden(self._session.blinding, ROLES[Role.AGREEMENT])
        if hidden:
            return hidden
        if self._session.mask(Role.REFERENCE) is None:
            return tr("This case has no reference mask to compare with.")
        if self._session.mask(self._mask_role()) is None:
            return tr("There is no mask to compare with the reference: predict or edit one first.")
        return ""

    def _start_comparing(self) -> None:
        case = self._session.case
        role = self._mask_role()
        reference, mask = self._session.mask(Role.REFERENCE), self._session.mask(role)
        counting = self._session.counting
        if not self.is_on:
            return
        if case is None or reference is None or mask is None:
            self._shown = None
            self._scene.overlays.hide_agreement()
            self.changed.emit(self._why_not())
            self.listed.emit(None)
            return

        self._jobs.start(
            "agreement",
            tr("Comparing with the reference"),
            lambda: self._services.compare_masks(
                reference.raw_values, mask.raw_values, case.grid, counting
            ),
            lambda agreement: self._show_agreement(agreement, role),
            shown=False,
        )

    def _show_agreement(self, found: Agreement, role: Role) -> None:
        case = self._session.case
        if case is None or not self.is_on or case.grid.shape != found.array.shape:
            return
        self._shown, self._compared = found, role
        self._scene.overlays.show_agreement(tag_for(case, Role.AGREEMENT), found.array)
        self._at = min(self._at, len(found.errors) - 1)
        self.listed.emit(found)
        if self._jump and found.errors:
            self._at = 0
            self._view_error()
        self._jump = False
        self._emit_state()

    def _view_error(self) -> None:
        if self._shown is not None:
            voxel = self._shown.errors[self._at].voxel
            self._scene.view.reveal(voxel)

    def _emit_state(self) -> None:
        if self._shown is not None:
            self.changed.emit(legend(self._shown, self._at, str(self._compared)))
            self.stepped.emit(self._at)


def legend(shown: Agreement, at: int, compared: str) -> str:
    """Return the three colours and the current error as rich text.

    Examples
    --------
    >>> import numpy as np
    >>> legend(Agreement(np.zeros((1, 1, 1), np.uint8), (), 0), -1, "prediction")[-36:]
    '<br>no error: prediction = reference'
    """
    names = {"correct": "correct", "false": tr("false positive"), "missed": "missed"}
    squares = "<br>".join(
        f'<span style="color:{AGREEMENT_COLOURS[name]}">■</span> {text}'
        for name, text in names.items()
    )
    if not shown.errors:
        return tr(
            "{squares}<br>no error: {compared} = reference", squares=squares, compared=compared
        )
    if at < 0:
        return tr_n(
            "{squares}<br>{n} error in the {compared}",
            "{squares}<br>{n} errors in the {compared}",
            shown.n_errors,
            squares=squares,
            compared=compared,
        )
    error = shown.errors[at]
    volume = error.volume_mm3 / _MM3_PER_ML
    return tr(
        "{squares}<br>error {at} of {n_errors} in the {compared}: {kind} {volume:.2f} ml",
        squares=squares,
        at=at + 1,
        n_errors=shown.n_errors,
        compared=compared,
        kind=_KINDS[error.kind],
        volume=volume,
    )


_MAP: Final = "mamamia_map"
"""Name of the overlay that shows a kinetic map's colours in the same corner, below the legend."""
_ABOVE: Final = ("mamamia_phase", "mamamia_tool")
"""Overlays in the upper corner; in a low image, the legend is shortened to keep them visible."""
_EDGE: Final = 6
_LETTER: Final = 20
"""Half the height of an orientation letter in pixels at the default text size; found by trial."""
_LINE: Final = 2.1
"""Height of a line of napari's canvas texts in pixels per point; found by trial."""
_STYLE: Final = "background-color: rgba(0, 0, 0, 140); color: white; padding: 3px 5px;"
"""Style for every theme, because the image background is always black."""


class AgreementLegend(QLabel):
    """The legend in the lower left corner of the image, which ignores the mouse.

    Parameters
    ----------
    viewer
        The viewer with the image; without a window, the legend is never visible.
    owner
        The parent widget if there is no window.
    """

    def __init__(self, viewer: Any, owner: QWidget) -> None:
        canvas = canvas_widget(viewer)
        super().__init__(owner if canvas is None else canvas)
        tip = with_key(
            tr(
                "Colours of the comparison with the reference. The shortcut goes to the next error."
            ),
            "lesion",
        )
        named(self, "agreement_legend", tip)
        self._viewer, self._canvas = viewer, canvas
        self._whole = ""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setStyleSheet(_STYLE)
        self.hide()
        if canvas is not None:
            canvas.installEventFilter(self)

    def follow_map(self) -> None:
        """Keep the legend above the colours of the kinetic map and below the image title."""
        for name in (_MAP, *_ABOVE):
            events = self._viewer.canvas.overlays[name].events
            for change in (events.text, events.visible, events.font_size):
                change.connect(self._place_text)

    def show_text(self, text: str) -> None:
        """Show rich text; "" hides the legend."""
        self._whole = text
        self.setText(text)
        self.setVisible(bool(text) and self._canvas is not None)
        self._place_text()

    def eventFilter(self, watched: QObject, event: Any) -> bool:
        """Keep the legend in its corner when the image is resized."""
        if watched is self._canvas and event.type() == QEvent.Type.Resize:
            self._place_text()
        return False

    def _place_text(self, _event: object = None) -> None:
        # the viewer's overlays outlive the panel; their events report the size of napari's texts
        if self._canvas is None or not isalive(self) or self.isHidden():
            return
        room = self._canvas.rect()
        most = room.width() // 2 - _EDGE - round(_LETTER * font_share() * text_scale())
        self.ensurePolished()
        over, above = self._find_height(_MAP), sum(map(self._find_height, _ABOVE))
        free = room.height() - over - above - 2 * _EDGE
        # use the tallest text that fits: lines below each other, one line, or the last line only
        for text in (self._whole, self._whole.replace("<br>", " "), self._whole.split("<br>")[-1]):
            if self.text() != text:
                self.setText(text)
            wide = max(min(self._measure_lines(), most), 1)
            high = self.heightForWidth(wide)
            if high <= free:
                break
        self.setGeometry(_EDGE, max(room.height() - high - over - _EDGE, 0), wide, high)

    def _measure_lines(self) -> int:
        self.setWordWrap(False)
        wide = int(self.sizeHint().width())
        self.setWordWrap(True)
        return wide

    def _find_height(self, name: str) -> int:
        overlay = self._viewer.canvas.overlays.get(name)
        if overlay is None or not overlay.visible or not overlay.text:
            return 0
        lines = str(overlay.text).count("\n") + 1
        return round(lines * _LINE * float(overlay.font_size) * text_scale()) + _EDGE
