"""The lead's view: draft of a study, readers' progress, and quality-control queue."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from qtpy.QtCore import QPointF, Signal
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QListWidget,
    QWidget,
)

from napari_mamamia.core.errors import CaseError
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.features.review.core.review import Role
from napari_mamamia.features.review.services import plan_study
from napari_mamamia.features.review.services.check_study import ReaderProgress
from napari_mamamia.features.review.services.client import (
    QualityRow,
    QualityStatus,
    StudySnapshot,
)
from napari_mamamia.features.review.widgets.signing_view import NOT_THE_SAME, LeadKeyForm
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import checkbox, line_edit
from napari_mamamia.widgets.controls.line_list import make_line_list

_CURVE_HEIGHT: Final = 90
_CURVE_COLOUR: Final = "#E69F00"
_LIST_HEIGHT: Final = 120
_NO_KEY: Final = tr(
    "The passphrase is needed for each attempt: type it again, or freeze once more to begin "
    "without a key."
)


class ProgressView(QWidget):
    """View of the readers' progress and agreement, and of the quality-control queue."""

    agreement_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_lead")
        self.states = label("review_states", tip=tr("Number of cases by state"))
        self.readers = label("review_readers", tip=tr("Progress and working time of every reader"))
        self.measure = button(
            "review_agreement",
            tr("Measure agreement"),
            tr("Compares all submitted masks and answers, which takes a few seconds."),
            self.agreement_wanted.emit,
        )
        self.agreement = label("review_agreement_lines", tip=tr("Current agreement of the readers"))
        self.agreement.hide()
        self.curve = CaptureCurve()
        self.stop = label("review_capture", tip=tr("Errors found, and the stopping rule"))
        self.queue = make_line_list(
            "review_quality_queue", tr("Quality control queue in reading order")
        )
        self._quality: QualityStatus | None = None
        self._lead = column(
            heading(tr("Cases")),
            self.states,
            heading(tr("Readers")),
            self.readers,
            row(self.measure, 1),
            self.agreement,
        )
        self._control = column(heading(tr("Quality control")), self.stop, self.curve, self.queue)
        self._control.hide()
        fill_column(self, self._lead, self._control, 1, margins=(0, 4, 0, 0))

    def show_look(self, look: StudySnapshot) -> None:
        """Show the state of the study."""
        self._lead.setVisible(Role.LEAD in look.roles)
        rows = "".join(
            f"<tr><td>{state}</td><td align='right'>&nbsp;&nbsp;{count}</td></tr>"
            for state, count in (look.states or {}).items()
        )
        self.states.setText(f"<table>{rows}</table>")
        head = tr("<tr><td></td><td>&nbsp;&nbsp;read</td><td>&nbsp;&nbsp;time</td><td></td></tr>")
        self.readers.setText(f"<table>{head}{''.join(map(_row_of_reader, look.readers))}</table>")

    def show_agreement(self, lines: Sequence[str]) -> None:
        """Show lines of text on the readers' agreement."""
        self.agreement.setText("<br>".join(map(escape, lines)))
        self.agreement.setVisible(bool(lines))

    @property
    def has_quality(self) -> bool:
        """Return whether a quality-control queue is shown."""
        return self._quality is not None

    def show_quality(self, quality: QualityStatus | None) -> None:
        """Show the queue and the errors found; None if the study has no queue."""
        if quality == self._quality:
            return
        self._quality = quality
        self._control.setVisible(quality is not None)
        if quality is None:
            return
        self.stop.setText("<br>".join(map(escape, quality.says)))
        self.curve.show_points(quality.points, len(quality.rows))
        self.queue.clear()
        self.queue.addItems([_describe_place(k, one) for k, one in enumerate(quality.rows, 1)])
        self.queue.fit()


def _row_of_reader(row: ReaderProgress) -> str:
    each = (
        tr("{active:.1f} min per case", active=row.active_s / 60 / row.n_read) if row.n_read else ""
    )
    return tr(
        "<tr><td>{name}</td><td align='right'>&nbsp;&nbsp;{n_read} of "
        "{n_tasks}</td><td align='right'>&nbsp;&nbsp;{active:.0f} min</td><td "
        "align='right'>&nbsp;&nbsp;{each}</td></tr>",
        name=escape(row.name),
        n_read=row.n_read,
        n_tasks=row.n_tasks,
        active=row.active_s / 60,
        each=each,
    )


def _describe_place(place: int, one: QualityRow) -> str:
    marks = {None: "", False: tr(" · no error"), True: tr(" · error")}
    return f"{place}. {one.case_id} · {one.why}{marks[one.has_error]}"


class CaptureCurve(QWidget):
    """Plot of the errors found (y) against the cases read (x), without axis labels."""

    def __init__(self) -> None:
        super().__init__()
        named(
            self,
            "review_capture_curve",
            tr("Errors found (vertical) against cases read (horizontal)"),
        )
        self.setMinimumHeight(_CURVE_HEIGHT)
        self._points: Sequence[tuple[int, int]] = ()
        self._n_cases = 1

    def show_points(self, points: Sequence[tuple[int, int]], n_cases: int) -> None:
        """Show points (cases read, errors found), the first one at zero cases."""
        self._points, self._n_cases = points, max(n_cases, 1)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw a frame and the curve."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = self.rect().adjusted(4, 4, -4, -4)
        painter.setPen(QPen(self.palette().mid().color(), 1))
        painter.drawRect(frame)
        most = max((n_errors for _, n_errors in self._points), default=0) or 1
        places = [
            QPointF(
                frame.left() + frame.width() * n_read / self._n_cases,
                frame.bottom() - frame.height() * n_errors / most,
            )
            for n_read, n_errors in self._points
        ]
        painter.setPen(QPen(QColor(_CURVE_COLOUR), 2))
        painter.drawPolyline(QPolygonF(places))


class CaseChoice(QWidget):
    """Selection of cases by ids and patterns, or from a list; an empty selection means all cases.

    The signal `changed` is emitted after a new selection, `list_wanted` to request the list.
    """

    changed = Signal()
    list_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_plan_choice")
        tip = tr(
            "Case ids separated by commas; * matches any letters, as in DUKE_*. Leave empty for "
            "all cases."
        )
        self.line = line_edit("review_plan_cases", tip, tr("all"))
        self.line.textChanged.connect(lambda _text: self.changed.emit())
        self.line.textChanged.connect(lambda _text: self._mark_cases())
        list_button = button(
            "review_plan_list_cases",
            tr("List cases"),
            tr("Lists the cases of the data set, to select them with the mouse."),
            self.list_wanted.emit,
        )
        self.note = make_note("cases")
        tip = tr(
            "Cases in the data set. Click to select a case; use Ctrl or Shift to select several. "
            "If no case is selected, all cases are used."
        )
        self.listed: QListWidget = named(QListWidget(), "review_plan_listed", tip)
        self.listed.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.listed.setFixedHeight(_LIST_HEIGHT)
        self.listed.itemSelectionChanged.connect(self._take_cases)
        self.listed.hide()
        self._ids: tuple[str, ...] = ()
        fill_column(self, row(QLabel(tr("Cases")), self.line, list_button), self.note, self.listed)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the entered or selected ids and patterns; empty if all cases are selected."""
        return plan_study.split_cases(self.line.text())

    def show_ids(self, case_ids: Sequence[str]) -> None:
        """List the cases of the data set; if `case_ids` is empty, hide the list."""
        self._ids = tuple(case_ids)
        self.listed.blockSignals(True)
        self.listed.clear()
        self.listed.addItems(self._ids)
        self.listed.blockSignals(False)
        self.listed.setVisible(bool(self._ids))
        self._mark_cases()

    def _mark_cases(self) -> None:
        if not self._ids:
            return
        try:
            chosen = set(plan_study.choose_cases(self._ids, self.patterns))
        except CaseError as error:
            self.note.setText(str(error))
            self.note.show()
            chosen = set()
        self.listed.blockSignals(True)
        for index, case_id in enumerate(self._ids):
            self.listed.item(index).setSelected(case_id in chosen)
        self.listed.blockSignals(False)

    def _take_cases(self) -> None:
        chosen = [
            identifier
            for index, identifier in enumerate(self._ids)
            if self.listed.item(index).isSelected()
        ]
        self.line.setText("" if len(chosen) == len(self._ids) else plan_study.join_cases(chosen))


class DraftView(QWidget):
    """The draft of a study, with the controls for freezing it.

    The signal `freezing_wanted` carries a `FreezeSetup`; `can_freeze` carries whether the study can
    be frozen next.
    """

    freezing_wanted = Signal(object)
    can_freeze = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_plan_shown")
        self.result = label("review_plan_result", tip=tr("Assignment of readers, and notes"))
        self.warning = label("review_plan_warning", tip=tr("Unreadable cases, with reasons"))
        set_level(self.warning, "warning")
        tip = tr("Freezes the study without the unreadable cases. They cannot be added later.")
        self.without_broken = checkbox(
            "review_plan_without_broken",
            tr("Begin without these cases"),
            tip,
            on_toggle=lambda _on: self._follow_broken(),
        )
        tip = tr("New folder for the study, on the network share")
        self.folder = line_edit("review_plan_folder", tip)
        self.notes = {field: make_note(field) for field in ("folder", "passphrase", "lead_keys")}
        self.keys = LeadKeyForm(self.notes["passphrase"], self.notes["lead_keys"])
        for edit in (self.folder, self.keys.new, self.keys.again, self.keys.others):
            edit.textEdited.connect(lambda _text: self.hide_notes())
        self.freeze = button(
            "review_plan_freeze",
            tr("Freeze study"),
            tr("Writes study.json into the new folder. It never changes afterwards."),
            self._want_freezing,
        )
        folder = row(QLabel(tr("Folder")), self.folder)
        folder.layout().setStretch(1, 1)
        parts = (self.result, self.warning, self.without_broken, folder, self.notes["folder"])
        fill_column(self, *parts, self.keys, row(self.freeze, 1))
        self._draft: plan_study.StudyDraft | None = None
        self._is_key_meant = False

    def hide_notes(self) -> None:
        """Hide the error notes, because the user is already correcting the fields."""
        for note in self.notes.values():
            note.hide()

    def _say_passphrase(self, text: str) -> None:
        self.notes["passphrase"].setText(text)
        self.notes["passphrase"].show()

    def _want_freezing(self) -> None:
        folder = Path(self.folder.text().strip())
        self.hide_notes()
        if folder == Path():
            # The study was not begun: keep the passphrase for the next click.
            self.freezing_wanted.emit(plan_study.FreezeSetup(folder))
            return
        key, was_meant = self.keys.read(), self._is_key_meant
        self._is_key_meant = key is None or bool(key[1])
        if key is None:
            self._say_passphrase(NOT_THE_SAME)
        elif was_meant and not key[1]:
            # A failed attempt clears the passphrase, and study.json can never be changed.
            self._say_passphrase(_NO_KEY)
        else:
            self.freezing_wanted.emit(
                plan_study.FreezeSetup(folder, self.without_broken.isChecked(), *key)
            )

    def show_draft(self, draft: plan_study.StudyDraft | None) -> None:
        """Show the assignment of cases to readers; None if there is no draft."""
        self._draft = draft
        self.setVisible(draft is not None)
        self.hide_notes()
        if draft is not None:
            leads = [reader.name for reader in draft.study.readers if Role.LEAD in reader.roles]
            self.keys.show_leads(leads)
            self.result.setText("<br>".join(map(escape, plan_study.describe_draft(draft))))
            n_left_out = len(draft.left_out)
            self.warning.setText(
                tr_n(
                    "{n} case cannot be read: repair its files, or begin without it.",
                    "{n} cases cannot be read: repair their files, or begin without them.",
                    n_left_out,
                )
            )
            self.warning.setVisible(n_left_out > 0)
            self.without_broken.setChecked(False)
            self.without_broken.setVisible(n_left_out > 0)
        self._follow_broken()

    def _follow_broken(self) -> None:
        draft = self._draft
        is_whole = draft is not None and not draft.left_out
        is_next = is_whole or (draft is not None and self.without_broken.isChecked())
        self.freeze.setEnabled(is_next)
        set_primary(self.freeze, primary=is_next)
        self.can_freeze.emit(is_next)


def make_note(field: str) -> QLabel:
    """Return an empty label, in which the error of a field will be shown."""
    note = label(f"review_plan_note_{field}", tip=tr("What to correct in this field"))
    set_level(note, "error")
    note.hide()
    return note
