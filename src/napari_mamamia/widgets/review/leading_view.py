"""What a lead sees: a new study planned, shown and frozen; how far everybody is."""

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

from qtpy.QtCore import QPointF, QTimer, Signal
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.review import ConsensusRule, ReadingMode, Role
from napari_mamamia.core.texts import tr
from napari_mamamia.services.review.desk_records import ReaderRow, StudyLook
from napari_mamamia.services.review.make_study import StudyDraft, StudyPeople
from napari_mamamia.services.review.overseeing import QualityLook, QualityRow
from napari_mamamia.services.review.plan_study import StudyWish, describe_draft
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    heading,
    label,
    line,
    named,
    row,
    set_level,
    set_primary,
)
from napari_mamamia.widgets.review.reading_view import make_case_list
from napari_mamamia.widgets.review.signing_view import NOT_THE_SAME, LeadKeyForm, show_in_scroll

_MODE_TEXTS: Final = {
    ReadingMode.INDEPENDENT: tr("independent: each for himself, a judge accepts"),
    ReadingMode.SECOND_LOOK: tr("second look: the second sees the first"),
    ReadingMode.ARBITRATION: tr("arbitration: two, a judge where they disagree"),
    ReadingMode.PANEL: tr("panel: each for himself, all are judged"),
}
_CURVE_HEIGHT: Final = 90
_CURVE_COLOUR: Final = "#E69F00"
_MOST_SEED: Final = 2_000_000_000


class ProgressView(QWidget):
    """How far a study is and how far its readers agree, for its lead; quality control's queue."""

    agreement_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_lead")
        self.states = label("review_states", tip=tr("Cases of the study by where they stand"))
        self.readers = label("review_readers", tip=tr("How far every reader is, and time of work"))
        self.measure = button(
            "review_agreement",
            tr("Agreement so far"),
            tr("Compares all masks and answers that were handed in; it takes seconds"),
            self.agreement_wanted.emit,
        )
        self.agreement = label("review_agreement_lines", tip=tr("How far the readers agree so far"))
        self.agreement.hide()
        self.curve = CaptureCurve()
        self.stop = label("review_capture", tip=tr("What was caught, and whether one may stop"))
        self.queue = make_case_list(
            "review_quality_queue", tr("Quality control's queue, in its order")
        )
        self._quality: QualityLook | None = None
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        for part in (self._lead, self._control):
            layout.addWidget(part)
        layout.addStretch(1)

    def show_look(self, look: StudyLook) -> None:
        """Show where the study stands."""
        self._lead.setVisible(Role.LEAD in look.roles)
        rows = "".join(
            f"<tr><td>{state}</td><td align='right'>&nbsp;&nbsp;{count}</td></tr>"
            for state, count in (look.states or {}).items()
        )
        self.states.setText(f"<table>{rows}</table>")
        head = tr("<tr><td></td><td>&nbsp;&nbsp;read</td><td>&nbsp;&nbsp;time</td><td></td></tr>")
        self.readers.setText(f"<table>{head}{''.join(map(_row_of_reader, look.readers))}</table>")

    def show_agreement(self, lines: Sequence[str]) -> None:
        """Show how far the readers agree, in lines."""
        self.agreement.setText("<br>".join(map(escape, lines)))
        self.agreement.setVisible(bool(lines))

    @property
    def has_quality(self) -> bool:
        """Whether a queue of quality control is shown."""
        return self._quality is not None

    def show_quality(self, quality: QualityLook | None) -> None:
        """Show the queue and what was caught; None for a study that is read in no such order."""
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


def _row_of_reader(one: ReaderRow) -> str:
    each = (
        tr("{active:.1f} min a case", active=one.active_s / 60 / one.n_read) if one.n_read else ""
    )
    return tr(
        "<tr><td>{name}</td><td align='right'>&nbsp;&nbsp;{n_read} of "
        "{n_tasks}</td><td align='right'>&nbsp;&nbsp;{active:.0f} min</td><td "
        "align='right'>&nbsp;&nbsp;{each}</td></tr>",
        name=escape(one.name),
        n_read=one.n_read,
        n_tasks=one.n_tasks,
        active=one.active_s / 60,
        each=each,
    )


def _describe_place(place: int, one: QualityRow) -> str:
    marks = {None: "", False: tr(" · no error"), True: tr(" · error")}
    return f"{place}. {one.case_id} · {one.why}{marks[one.has_error]}"


class CaptureCurve(QWidget):
    """Errors found (up) against cases read (right), of all cases; no numbers beside the words."""

    def __init__(self) -> None:
        super().__init__()
        named(
            self, "review_capture_curve", tr("Errors found (up) against cases read of all (right)")
        )
        self.setMinimumHeight(_CURVE_HEIGHT)
        self._points: Sequence[tuple[int, int]] = ()
        self._n_cases = 1

    def show_points(self, points: Sequence[tuple[int, int]], n_cases: int) -> None:
        """Show (cases read, errors found) from none on."""
        self._points, self._n_cases = points, max(n_cases, 1)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw a frame and the curve in it."""
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


class PlanningView(QWidget):
    """`draft_wanted` carries a `StudyWish`, `freezing_wanted` folder, lead, passphrase, others."""

    draft_wanted = Signal(object)
    freezing_wanted = Signal(object, str, str, str)
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_planning")
        self.data_set = self._make_line(
            tr("review_plan_data"), tr("The data set whose cases are read")
        )
        self.name = self._make_line(tr("review_plan_name"), tr("The study's title"))
        people = tr("Names of {}, with commas between; one person may have several roles")
        self.leads = self._make_line(
            tr("review_plan_leads"), people.format(tr("those who lead it"))
        )
        self.readers = self._make_line(
            tr("review_plan_readers"), people.format(tr("those who read"))
        )
        self.judges = self._make_line(
            tr("review_plan_judges"), people.format(tr("those who adjudicate"))
        )
        self.protocol = self._make_line(
            tr("review_plan_protocol"), tr("Protocol (JSON) with the form")
        )
        self.pots = self._make_line(
            tr("review_plan_pots"), tr("Honeypots: case ids of known truth")
        )
        self.order = self._make_line(
            tr("review_plan_order"),
            tr("Quality control's queue (JSON): everybody reads in its order"),
        )
        # Typed once the deal is shown, which it is no part of: it must not take that back.
        self.folder: QLineEdit = named(
            QLineEdit(), "review_plan_folder", tr("New folder of the study, on the share")
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for part in self._list_parts():
            layout.addWidget(part)
        layout.addStretch(1)
        self.show_draft(None)

    def _make_line(self, name: str, tip: str) -> QLineEdit:
        edit: QLineEdit = named(QLineEdit(), name, tip)
        edit.textEdited.connect(lambda _text: self._forget_draft())
        return edit

    def _list_parts(self) -> tuple[QWidget, ...]:
        return (
            heading(tr("New study")),
            self._make_titled(
                tr("Data set"), self.data_set, self._make_browse(self.data_set, tr("a data set"))
            ),
            self._make_titled(tr("Title"), self.name),
            self._make_titled(tr("Leads"), self.leads),
            self._make_titled(tr("Readers"), self.readers),
            self._make_titled(tr("Judges"), self.judges),
            self._make_mode(),
            self._make_rules(),
            self._make_hidden(),
            self._make_extras(),
            self._make_titled(
                tr("Protocol"), self.protocol, self._make_browse(self.protocol, "*.json")
            ),
            self._make_titled(tr("Honeypots"), self.pots, self._make_browse(self.pots, "*.txt")),
            self._make_titled(tr("Order"), self.order, self._make_browse(self.order, "*.json")),
            line(),
            self._make_decision(),
        )

    def _make_titled(self, text: str, *controls: QWidget) -> QWidget:
        titled = row(QLabel(text), *controls)
        titled.layout().setStretch(1, 1)
        return titled

    def _make_browse(self, target: QLineEdit, what: str) -> QWidget:
        def browse() -> None:
            if what.startswith("*"):
                kinds = tr("Files ({what})", what=what)
                chosen, _ = QFileDialog.getOpenFileName(self, tr("Choose a file"), "", kinds)
            else:
                chosen = QFileDialog.getExistingDirectory(self, tr("Choose {what}", what=what))
            if chosen:
                target.setText(chosen)
                self._forget_draft()

        return button(f"{target.objectName()}_browse", "…", tr("Chooses {what}", what=what), browse)

    def _make_mode(self) -> QWidget:
        self.mode: QComboBox = named(
            QComboBox(), "review_plan_mode", tr("How often a case is read, and by whom")
        )
        self.mode.setMinimumContentsLength(12)
        self.mode.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for mode, text in _MODE_TEXTS.items():
            self.mode.addItem(text, mode)
        self.mode.activated.connect(lambda _at: self._follow_mode())
        self.readings: QSpinBox = named(
            QSpinBox(),
            "review_plan_readings",
            tr("Readings of a case, where the mode leaves it open"),
        )
        self.readings.setRange(1, 100)
        self.readings.setValue(2)
        self.readings.valueChanged.connect(lambda _n: self._forget_draft())
        both = self._make_titled(tr("Mode"), self.mode)
        return column(both, row(QLabel(tr("Readings of a case")), self.readings, 1))

    def _make_rules(self) -> QWidget:
        self.dice: QDoubleSpinBox = named(
            QDoubleSpinBox(),
            "review_plan_dice",
            tr("Readings of a lower Dice disagree; 0 for none"),
        )
        self.dice.setRange(0.0, 1.0)
        self.dice.setSingleStep(0.05)
        self.dice.setValue(0.7)
        self.dice.valueChanged.connect(lambda _dice: self._forget_draft())
        self.consensus: QComboBox = named(
            QComboBox(), "review_plan_consensus", tr("How readings become one mask")
        )
        self.consensus.setMinimumContentsLength(8)
        for rule in ConsensusRule:
            self.consensus.addItem(tr(rule.value), rule)
        self.consensus.activated.connect(lambda _at: self._forget_draft())
        return column(
            row(QLabel(tr("Disagree below a Dice of")), self.dice, 1),
            self._make_titled(tr("Consensus"), self.consensus),
        )

    def _make_hidden(self) -> QWidget:
        self.hidden: dict[Hidden, QCheckBox] = {}
        for part in Hidden:
            name = f"review_hide_{part.name.lower()}"
            box: QCheckBox = named(
                QCheckBox(tr(part.value)),
                name,
                tr("Hide from readers: {what}", what=tr(part.value)),
            )
            box.setChecked(True)
            box.clicked.connect(lambda _on: self._forget_draft())
            self.hidden[part] = box
        one, two, three, four, five = self.hidden.values()
        return column(
            QLabel(tr("Hidden from readers")), row(one, two, 1), row(three, four, 1), five
        )

    def _make_extras(self) -> QWidget:
        self.repeats: QSpinBox = named(
            QSpinBox(),
            "review_plan_repeats",
            tr("Share of a reader's cases that comes a second time"),
        )
        self.repeats.setRange(0, 50)
        self.repeats.setSuffix(" %")
        self.seed: QSpinBox = named(
            QSpinBox(), "review_plan_seed", tr("The same seed deals the cases the same")
        )
        self.seed.setRange(0, _MOST_SEED)
        self.seed.setValue(42)
        for control in (self.repeats, self.seed):
            control.valueChanged.connect(lambda _n: self._forget_draft())
        return row(QLabel(tr("Hidden repeats")), self.repeats, QLabel(tr("Seed")), self.seed, 1)

    def _make_decision(self) -> QWidget:
        self.draft = button(
            "review_plan_draft",
            tr("Show who reads what"),
            tr("Deals the cases out and shows it; nothing is written"),
            lambda: self.draft_wanted.emit(self.wish),
            primary=True,
        )
        self.back = button(
            "review_plan_back",
            tr("Back"),
            tr("Leaves this form; nothing is written"),
            self.left.emit,
        )
        self.result = label(
            "review_plan_result", tip=tr("Who would read how much, and what to know")
        )
        self.warning = label("review_plan_warning", tip=tr("Why the study cannot be frozen so"))
        set_level(self.warning, "warning")
        self.freeze = button(
            "review_plan_freeze",
            tr("Freeze and begin"),
            tr("Writes study.json into the new folder: from then on it never changes"),
            self._want_freezing,
        )
        self.keys = LeadKeyForm()
        folder = self._make_titled(tr("Folder"), self.folder)
        self._freezing = column(folder, self.keys, row(self.freeze, 1))
        return column(row(self.draft, self.back, 1), self.result, self.warning, self._freezing)

    # ------------------------------------------------------------- for the flow

    @property
    def wish(self) -> StudyWish:
        """What the form says."""
        typed = (one.text().strip() for one in (self.protocol, self.pots, self.order))
        protocol, pots, order = (Path(one) if one else None for one in typed)
        return StudyWish(
            Path(self.data_set.text().strip()),
            self.name.text().strip(),
            self.mode.currentData(),
            self.readings.value(),
            Blinding(frozenset(part for part, box in self.hidden.items() if box.isChecked())),
            StudyPeople(*map(_split_names, (self.leads, self.readers, self.judges))),
            self.repeats.value() / 100,
            self.seed.value(),
            pots,
            protocol,
            self.consensus.currentData(),
            self.dice.value() or None,
            order,
        )

    def show_draft(self, draft: StudyDraft | None, problems: Sequence[str] = ()) -> None:
        """Show who would read what; None where nothing was dealt yet."""
        self.result.setText("" if draft is None else "<br>".join(describe_draft(draft)))
        self.result.setVisible(draft is not None)
        self.warning.setText("\n".join(problems))
        self.warning.setVisible(bool(problems))
        self._freezing.setVisible(draft is not None and not problems)
        set_primary(self.draft, primary=draft is None or bool(problems))
        set_primary(self.freeze, primary=draft is not None and not problems)
        if draft is not None:
            leads = [one.name for one in draft.study.readers if Role.LEAD in one.roles]
            self.keys.show_leads(leads)
            # The form is longer than a small screen; once it is laid out, what comes next is seen.
            QTimer.singleShot(0, partial(show_in_scroll, self.freeze))

    # -------------------------------------------------------------------- inner

    def _want_freezing(self) -> None:
        folder = Path(self.folder.text().strip())
        key = ("", "", "") if folder == Path() else self.keys.read()
        self.warning.setText("" if key else NOT_THE_SAME)
        self.warning.setVisible(key is None)
        if key is not None:
            self.freezing_wanted.emit(folder, *key)

    def _forget_draft(self) -> None:
        """Take back what was shown, which is out of date."""
        self.show_draft(None)

    def _follow_mode(self) -> None:
        fixed = self.mode.currentData().n_fixed
        self.readings.setEnabled(fixed is None)
        if fixed is not None:
            self.readings.setValue(fixed)
        self._forget_draft()


def _split_names(edit: QLineEdit) -> tuple[str, ...]:
    parts = edit.text().replace(";", ",").split(",")
    return tuple(part.strip() for part in parts if part.strip())
