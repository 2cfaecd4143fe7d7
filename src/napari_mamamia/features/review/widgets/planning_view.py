"""The form for a new study: all settings of `mamamia review init`, the draft, and freezing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QWidget,
)

from napari_mamamia.core.blinding import Blinding, Hidden
from napari_mamamia.core.texts import tr
from napari_mamamia.features.review.core.review import (
    ConsensusRule,
    ReadingMode,
    StudyPlan,
    Triggers,
)
from napari_mamamia.features.review.services.plan_study import StudyDraft, StudyPeople, StudySetup
from napari_mamamia.features.review.widgets.leading_view import CaseChoice, DraftView, make_note
from napari_mamamia.widgets.controls.controls import (
    FormFold,
    button,
    column,
    fill_column,
    heading,
    line,
    named,
    row,
    row_name,
    set_primary,
)
from napari_mamamia.widgets.controls.fields import (
    checkbox,
    double_spin_box,
    line_edit,
    spin_box,
)
from napari_mamamia.widgets.controls.revealing import reveal
from napari_mamamia.widgets.controls.short_texts import DottedChoice
from napari_mamamia.widgets.controls.targets import CheckBox

_MODE_TEXTS: Final = {
    ReadingMode.INDEPENDENT: tr("independent: each reader works alone; an adjudicator accepts"),
    ReadingMode.SECOND_LOOK: tr("second look: the second reader sees the first reading"),
    ReadingMode.ARBITRATION: tr("arbitration: two readers, and an adjudicator if they disagree"),
    ReadingMode.PANEL: tr("panel: each reader works alone; all cases are adjudicated"),
}
_RULE_TEXTS: Final = {
    ConsensusRule.MAJORITY_BACKGROUND: tr("majority; a tie counts as background"),
    ConsensusRule.MAJORITY_FOREGROUND: tr("majority; a tie counts as lesion"),
    ConsensusRule.MAJORITY_THIRD: tr("majority; a third reader breaks ties"),
    ConsensusRule.UNION: tr("union: voxels in any reading"),
    ConsensusRule.INTERSECTION: tr("intersection: voxels in all readings"),
    ConsensusRule.STAPLE: tr("STAPLE, from at least three readings"),
}
_TITLES: Final = (tr("Data set"), tr("Title"), tr("Leads"), tr("Readers"), tr("Adjudicators"))
_FILES: Final = (tr("Protocol"), tr("Honeypots"), tr("Order"), tr("Consensus"))
_MOST_SEED: Final = 2_000_000_000
_USUAL: Final = Triggers()


class PlanningView(QWidget):
    """The form for a new study.

    The signal `draft_wanted` carries a `StudySetup`, `cases_wanted` the data set whose cases are to
    be listed, and `freezing_wanted` a `FreezeSetup`.
    """

    draft_wanted = Signal(object)
    cases_wanted = Signal(object)
    freezing_wanted = Signal(object)
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("review_planning")
        self._notes: dict[str, QLabel] = {}
        self._folds: dict[str, FormFold] = {}
        fill_column(
            self,
            heading(tr("New study")),
            *self._make_basics(),
            self._make_cases(),
            self._make_hidden(),
            self._make_rules(),
            self._make_extras(),
            line(),
            self._make_decision(),
            1,
        )
        self._forget_draft()

    # -------------------------------------------------------------------- making

    def _make_line(self, name: str, tip: str) -> QLineEdit:
        edit = line_edit(name, tip)
        edit.textChanged.connect(self._forget_draft)
        return edit

    def _make_field(
        self, field: str, title: str, among: Sequence[str], *controls: QWidget
    ) -> QWidget:
        self._notes[field] = note = make_note(field)
        titled = row(row_name(title, among), *controls)
        titled.layout().setStretch(1, 1)
        return column(titled, note)

    def _make_browse(self, target: QLineEdit, what: str) -> QWidget:
        def browse() -> None:
            if what.startswith("*"):
                kinds = tr("Files ({what})", what=what)
                chosen, _ = QFileDialog.getOpenFileName(self, tr("Choose a file"), "", kinds)
            else:
                chosen = QFileDialog.getExistingDirectory(self, tr("Choose {what}", what=what))
            if chosen:
                target.setText(chosen)

        return button(
            f"{target.objectName()}_browse", "…", tr("Selects {what}.", what=what), browse
        )

    def _make_basics(self) -> tuple[QWidget, ...]:
        people = tr("Names of {}, separated by commas. One person may have several roles.")
        self.data_set = self._make_line(
            "review_plan_data", tr("The data set whose cases are read.")
        )
        self.name = self._make_line("review_plan_name", tr("The title of the study."))
        self.leads = self._make_line("review_plan_leads", people.format(tr("the leads")))
        self.readers = self._make_line("review_plan_readers", people.format(tr("the readers")))
        self.judges = self._make_line("review_plan_judges", people.format(tr("the adjudicators")))
        browse = self._make_browse(self.data_set, tr("a data set"))
        fields = ("data_set", "name", "leads", "readers", "adjudicators")
        lines = ((self.data_set, browse), (self.name,), (self.leads,), (self.readers,))
        return (
            *(
                self._make_field(field, title, _TITLES, *controls)
                for field, title, controls in zip(
                    fields, _TITLES, (*lines, (self.judges,)), strict=True
                )
            ),
            self._make_mode(),
        )

    def _make_mode(self) -> QWidget:
        self.mode = self._make_choice(
            "review_plan_mode", tr("Number of readings per case, and who reads."), _MODE_TEXTS
        )
        self.mode.currentIndexChanged.connect(lambda _at: self._follow_mode())
        tip = tr("Number of readings per case, if the mode does not fix it.")
        self.readings = spin_box("review_plan_readings", tip, (1, 100), value=2)
        self.readings.valueChanged.connect(self._forget_draft)
        return column(
            self._make_field("mode", tr("Mode"), _TITLES, self.mode),
            self._make_field("n_readers", tr("Readings of a case"), (), self.readings),
        )

    def _make_choice(self, name: str, tip: str, texts: Mapping[Any, str]) -> QComboBox:
        chooser: QComboBox = named(DottedChoice(), name, tip)
        chooser.setMinimumContentsLength(10)
        chooser.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for value, text in texts.items():
            chooser.addItem(text, value)
        chooser.currentIndexChanged.connect(self._forget_draft)
        return chooser

    def _add_fold(
        self, name: str, text: str, tip: str, fields: Sequence[str], *parts: QWidget
    ) -> FormFold:
        fold = FormFold(f"review_plan_{name}", text, tip, *parts)
        self._folds.update(dict.fromkeys(fields, fold))
        return fold

    def _make_cases(self) -> QWidget:
        self.cases = CaseChoice()
        self.cases.changed.connect(self._forget_draft)
        self.data_set.textChanged.connect(lambda _text: self.cases.show_ids(()))
        self.cases.list_wanted.connect(
            lambda: self.cases_wanted.emit(Path(self.data_set.text().strip()))
        )
        self._notes["cases"] = self.cases.note
        tip = tr("The cases of the data set to be read")
        self._cases = self._add_fold("fold_cases", tr("Cases"), tip, ("cases",), self.cases)
        return self._cases

    def _make_box(self, name: str, text: str, tip: str, *, is_on: bool = True) -> CheckBox:
        return checkbox(name, text, tip, is_on=is_on, on_toggle=self._forget_draft)

    def _make_hidden(self) -> QWidget:
        self.hidden = {
            part: self._make_box(
                f"review_hide_{part.name.lower()}",
                tr(part.value),
                tr("Hide from readers: {what}", what=tr(part.value)),
            )
            for part in Hidden
        }
        one, two, three, four, five, six = self.hidden.values()
        self._blinding = self._add_fold(
            "fold_hidden",
            tr("Hidden from readers"),
            tr("What is hidden from readers. Earlier rounds are always hidden."),
            (),
            row(one, two, 1),
            row(three, four, 1),
            row(five, six, 1),
        )
        return self._blinding

    def _make_limit(self, name: str, tip: str, most: float, step: float) -> QDoubleSpinBox:
        spin = double_spin_box(name, tip, (step, most), step=step, decimals=2)
        spin.valueChanged.connect(self._forget_draft)
        return spin

    def _make_rules(self) -> QWidget:
        self.dice = self._make_limit(
            "review_plan_dice",
            tr("Two readings with a Dice below this value count as disagreeing."),
            1.0,
            0.05,
        )
        self.ratio = self._make_limit(
            "review_plan_ratio",
            tr("Readings with a volume ratio above this (larger over smaller) disagree."),
            100.0,
            0.1,
        )
        self.distance = self._make_limit(
            "review_plan_hd95",
            tr("Readings with a 95 % Hausdorff distance above this (mm) disagree."),
            1000.0,
            1.0,
        )
        self.distance.setSuffix(" mm")
        self.distance.setDecimals(1)
        self.ratio.setMinimum(1.0)
        usual = (_USUAL.dice_below, _USUAL.volume_ratio, _USUAL.hd95_mm)
        texts = (tr("Dice below"), tr("volume ratio above"), tr("HD95 above"))
        self._limits: list[tuple[CheckBox, QDoubleSpinBox]] = []
        for spin, value, text in zip(
            (self.dice, self.ratio, self.distance), usual, texts, strict=True
        ):
            box = self._make_box(f"{spin.objectName()}_on", text, spin.toolTip())
            box.toggled.connect(spin.setEnabled)
            spin.setValue(value or spin.minimum())
            self._limits.append((box, spin))
        self.lesions = self._make_box(
            "review_plan_lesions",
            tr("lesion marked by one reader only"),
            tr(
                "Readings disagree if a lesion is marked by only one reader, or is split or merged."
            ),
        )
        self.category = self._make_box(
            "review_plan_category",
            tr("different answer"),
            tr("Readings disagree if answers to a question with categories differ."),
        )
        self.consensus = self._make_choice(
            "review_plan_consensus", tr("Rule that combines readings into one mask."), _RULE_TEXTS
        )
        self._rules = self._add_fold(
            "fold_rules",
            tr("When readings disagree"),
            tr(
                "Sets when readings disagree (one trigger is enough), and the rule that combines "
                "readings into one mask."
            ),
            ("consensus", "triggers"),
            *(row(box, spin, 1) for box, spin in self._limits),
            row(self.lesions, 1),
            row(self.category, 1),
            self._make_field("consensus", _FILES[3], _FILES, self.consensus),
        )
        return self._rules

    def _make_extras(self) -> QWidget:
        tip = tr("Proportion of a reader's cases that are shown a second time.")
        self.repeats = spin_box("review_plan_repeats", tip, (0, 50), unit=" %")
        tip = tr("The same seed gives the same assignment.")
        self.seed = spin_box("review_plan_seed", tip, (0, _MOST_SEED), value=42)
        for control in (self.repeats, self.seed):
            control.valueChanged.connect(self._forget_draft)
        tips = (
            ("protocol", tr("a reading protocol (JSON) with the form"), "*.json"),
            (
                "honeypots",
                tr("honeypots: a file with the ids of cases whose truth is known, one per line"),
                "*.txt",
            ),
            (
                "order",
                tr("the quality control queue (JSON), which sets everybody's reading order"),
                "*.json",
            ),
        )
        self.files = {field: self._make_line(f"review_plan_{field}", t) for field, t, _ in tips}
        self._extras = self._add_fold(
            "fold_extras",
            tr("Form, repeats, honeypots, order"),
            tr("Questions for readers, and extra cases mixed into their work"),
            tuple(self.files),
            *(
                self._make_field(
                    field,
                    title,
                    _FILES,
                    self.files[field],
                    self._make_browse(self.files[field], kind),
                )
                for title, (field, _, kind) in zip(_FILES[:3], tips, strict=True)
            ),
            row(QLabel(tr("Repeated cases")), self.repeats, QLabel(tr("Seed")), self.seed, 1),
        )
        return self._extras

    def _make_decision(self) -> QWidget:
        self.draft = button(
            "review_plan_draft",
            tr("Show assignment"),
            tr("Assigns the cases to readers and shows the result without writing anything."),
            lambda: self.draft_wanted.emit(self.setup),
            primary=True,
        )
        self.back = button(
            "review_plan_back",
            tr("Back"),
            tr("Leaves this form without writing anything."),
            self.left.emit,
        )
        self.shown = DraftView()
        self.shown.freezing_wanted.connect(self.freezing_wanted)
        self.shown.can_freeze.connect(lambda is_next: set_primary(self.draft, primary=not is_next))
        self._notes.update(self.shown.notes)
        return column(row(self.draft, self.back, 1), self.shown)

    # ------------------------------------------------------------- for the flow

    @property
    def setup(self) -> StudySetup:
        """Return the settings entered in the form."""
        files = {field: edit.text().strip() for field, edit in self.files.items()}
        paths = {field: Path(text) if text else None for field, text in files.items()}
        dice, ratio, distance = (s.value() if b.isChecked() else None for b, s in self._limits)
        mode: ReadingMode = self.mode.currentData()
        return StudySetup(
            Path(folder) if (folder := self.data_set.text().strip()) else None,
            StudyPlan(
                self.name.text().strip(),
                mode,
                mode.n_fixed or self.readings.value(),
                Blinding(frozenset(part for part, box in self.hidden.items() if box.isChecked())),
                self.consensus.currentData(),
                Triggers(
                    dice, ratio, distance, self.lesions.isChecked(), self.category.isChecked()
                ),
                self.repeats.value() / 100,
                self.seed.value(),
            ),
            StudyPeople(*map(_split_names, (self.leads, self.readers, self.judges))),
            self.cases.patterns,
            paths["honeypots"],
            paths["protocol"],
            paths["order"],
        )

    def show_draft(self, draft: StudyDraft | None) -> None:
        """Show the assignment of cases to readers; None if there is no draft."""
        for note in self._notes.values():
            note.hide()
        self.shown.show_draft(draft)
        if draft is not None:
            reveal(self.shown.freeze)

    def show_problem(self, field: str, text: str) -> None:
        """Show an error next to its field; expand the section and scroll to the field."""
        note = self._notes.get(field, self._notes["name"])
        note.setText(text)
        note.show()
        if field in self._folds:
            self._folds[field].unfold(True)
        reveal(note)

    # -------------------------------------------------------------------- inner

    def _forget_draft(self, *_changed: object) -> None:
        if hasattr(self, "shown"):
            self.show_draft(None)
            self._say_folded()

    def _say_folded(self) -> None:
        self._cases.said.setText(self.cases.line.text().strip() or tr("all cases of the data set"))
        boxes = self.hidden.values()
        names = [box.text() for box in boxes if box.isChecked()]
        self._blinding.said.setText(", ".join(names) or tr("nothing"))
        limits = [f"{b.text()} {s.text()}" for b, s in self._limits if b.isChecked()]
        limits += [box.text() for box in (self.lesions, self.category) if box.isChecked()]
        words = ", ".join(limits) or tr("never")
        self._rules.said.setText(f"{words}; {self.consensus.currentText()}")
        named_files = [
            Path(file.text()).name for file in self.files.values() if file.text().strip()
        ]
        repeats = tr("{share} % repeats", share=self.repeats.value())
        self._extras.said.setText(", ".join((*named_files, repeats)))

    def _follow_mode(self) -> None:
        fixed = self.mode.currentData().n_fixed
        self.readings.setEnabled(fixed is None)
        if fixed is not None:
            self.readings.setValue(fixed)


def _split_names(edit: QLineEdit) -> tuple[str, ...]:
    parts = edit.text().replace(";", ",").split(",")
    return tuple(part.strip() for part in parts if part.strip())
