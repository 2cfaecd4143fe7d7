"""The Batch page: scores folders of masks, and shows case count, rate and remaining time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import QSize, Qt, QUrl, Signal
from qtpy.QtGui import QDesktopServices
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QLineEdit,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.texts import tr
from napari_mamamia.io.clinical.columns import BY_NAME, ColumnChoice
from napari_mamamia.scoring.case.profiles import CLINICAL, PROFILES, Profile
from napari_mamamia.services.batch.output_folder import Existing
from napari_mamamia.services.batch.work import Place
from napari_mamamia.services.score.clinical_table import ClinicalSummary
from napari_mamamia.services.score.models import PredictionFolder
from napari_mamamia.services.score.settings import ScoreSettings
from napari_mamamia.widgets.batch.options import NAMES, BatchOptions, name_of
from napari_mamamia.widgets.controls.controls import (
    button,
    column,
    discard,
    fill_column,
    heading,
    label,
    named,
    row,
    set_level,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.form import Browse, Form, option
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.progress_bar import ProgressBar

_TOOL_TIP: Final = Qt.ItemDataRole.ToolTipRole
_ALONE: Final = tr("Several models are compared by ranks, intervals and paired tests.")
_SEVERAL: Final = tr("Each model has its own results folder, and the models are compared.")

Offered = Sequence[tuple[str, Path]]
"""Mask folders, each with a title."""


class ModelsField(QWidget):
    """Rows of models, at least one; `changed` is emitted when a name or folder changes."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("batch_models")
        self.lines: list[_Line] = []
        self._offered: Offered = ()
        self.start_at = ""
        self._stack = QVBoxLayout()
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._stack.setSpacing(4)
        self.add: QToolButton = tool_button(
            "batch_add_model",
            tr("+ Add a model"),
            tr("Adds the folder of another model's masks."),
            self._add_model,
        )
        self.add.setProperty("framed", True)
        self.note = label("batch_models_note", _ALONE, tr("How several models are scored."))
        below = row(self.add, self.note)
        below.layout().setStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(self._stack)
        layout.addWidget(below)
        self._add_line()

    @property
    def folder(self) -> QComboBox:
        """The field with the mask folder of the first model."""
        return self.lines[0].folder

    def offer(self, folders: Offered, *, keep: bool) -> None:
        """Offer mask folders; with `keep`, fields that are not empty keep their text."""
        self._offered = folders
        if not keep:
            for line in self.lines[1:]:
                self._remove_line(line)
        for line in self.lines:
            line.offer(folders, keep=keep)
        self.changed.emit()

    def models(self) -> tuple[PredictionFolder, ...]:
        """Return the models with a folder; an unnamed model is named after its folder."""
        filled = [line for line in self.lines if line.path]
        return tuple(PredictionFolder(line.title, Path(line.path).expanduser()) for line in filled)

    # -------------------------------------------------------------------- inner

    def _add_model(self) -> None:
        self._add_line()
        taken = [line.path for line in self.lines]
        free = [str(folder) for _, folder in self._offered if str(folder) not in taken]
        self.lines[-1].offer(self._offered, keep=False)
        self.lines[-1].folder.setEditText(free[0] if free else "")
        self.lines[-1].folder.setFocus()
        self.changed.emit()

    def _add_line(self) -> None:
        number = len(self.lines)
        model_line = _Line(number, lambda: self.start_at)
        model_line.changed.connect(self.changed)
        model_line.remove_wanted.connect(lambda: self._remove_line(model_line))
        self.lines.append(model_line)
        self._stack.addWidget(model_line)
        self._follow_count()

    def _remove_line(self, line: "_Line") -> None:
        self.lines.remove(line)
        self._stack.removeWidget(line)
        discard(line)
        for number, other in enumerate(self.lines):
            other.number(number)
        self._follow_count()
        self.changed.emit()

    def _follow_count(self) -> None:
        several = len(self.lines) > 1
        self.note.setText(_SEVERAL if several else _ALONE)
        for line in self.lines:
            line.remove.setVisible(several)


class _NameField(QLineEdit):
    """A name field that is at least as wide as the labels of the other fields."""

    def sizeHint(self) -> QSize:
        """Return the width of the widest label plus the frame of the field."""
        hint = super().sizeHint()
        wide = max(self.fontMetrics().horizontalAdvance(name) for name in NAMES)
        return QSize(wide + hint.height() // 2, hint.height())


class _Line(QWidget):
    """A row with fields for name and folder, a browse button and a remove button."""

    changed = Signal()
    remove_wanted = Signal()

    def __init__(self, number: int, start_at: object) -> None:
        super().__init__()
        self._start_at = start_at
        self.name: QLineEdit = named(
            _NameField(), "batch_model", tr("The model's name; if empty, the name of its folder.")
        )
        self.name.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.name.textChanged.connect(lambda _text: self.changed.emit())
        self.folder = combo_box("batch_prediction", tr("Folder of the masks to score, ID.nii.gz."))
        self.folder.setEditable(True)
        self.folder.setMinimumContentsLength(6)
        self.folder.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.folder.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.folder.currentTextChanged.connect(self._follow_folder)
        self.browse = tool_button(
            "batch_choose_prediction", "…", tr("Choose a folder"), self._browse_folder
        )
        self.remove = tool_button(
            "batch_remove_model",
            "✕",
            tr("Removes this model from the list, but keeps its files."),
            self.remove_wanted.emit,
        )
        for tool in (self.browse, self.remove):
            tool.setProperty("framed", True)
        line = row(self.name, self.folder, self.browse, self.remove)
        line.layout().setStretch(1, 1)
        fill_column(self, line)
        self._follow_folder("")
        self.number(number)

    @property
    def path(self) -> str:
        """The folder as entered."""
        return str(self.folder.currentText()).strip()

    @property
    def title(self) -> str:
        """The model's name."""
        return self.name.text().strip() or Path(self.path).name

    def number(self, number: int) -> None:
        """Set the objectNames of the controls by the row's number; the first row has no number."""
        end = f"_{number + 1}" if number else ""
        for part, name in (
            (self.name, "batch_model"),
            (self.folder, "batch_prediction"),
            (self.browse, "batch_choose_prediction"),
            (self.remove, "batch_remove_model"),
        ):
            part.setObjectName(f"{name}{end}")

    def offer(self, folders: Offered, *, keep: bool) -> None:
        """Offer folders, and select the first folder unless the field keeps its text."""
        before = self.folder.currentText()
        self.folder.blockSignals(True)
        self.folder.clear()
        for title, folder in folders:
            self.folder.addItem(str(folder))
            self.folder.setItemData(self.folder.count() - 1, title, _TOOL_TIP)
        if keep and before:
            self.folder.setEditText(before)
        self.folder.blockSignals(False)
        self._follow_folder(self.folder.currentText())

    def _follow_folder(self, text: str) -> None:
        self.name.setPlaceholderText(Path(text.strip()).name or tr("name"))
        self.folder.setToolTip(
            tr("Folder of the masks to score, ID.nii.gz.\n{words}", words=text).strip()
        )
        self.changed.emit()

    def _browse_folder(self) -> None:
        start = self._start_at() if callable(self._start_at) else ""
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Choose a folder"), self.path or str(start)
        )
        if chosen:
            self.folder.setEditText(chosen)


# This widget shows the coverage of the clinical table on page Batch, and columns to confirm.


class BatchClinical(QWidget):
    """The fields for the clinical table; `confirmed` reports that proposed columns are accepted.

    The accepted columns are in `columns`.
    """

    confirmed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.columns: ColumnChoice = BY_NAME
        self._answer: ColumnChoice | None = None
        self.coverage = label(
            "batch_coverage", tip=tr("Number of cases with a value in each field of the table.")
        )
        self.question = label("batch_columns", tip=tr("Proposed columns, with the reasons."))
        set_level(self.question, "warning")
        self.confirm = button(
            "batch_confirm_columns",
            tr("Use these columns"),
            tr("Uses the columns above for this table."),
            self._confirm_columns,
        )
        fill_column(self, self.coverage, self.question, row(self.confirm, 1))
        self.forget()

    def forget(self) -> None:
        """Clear the texts and detect the columns again, because another table was chosen."""
        self.columns = BY_NAME
        self.show_look(ClinicalSummary(""))

    def show_look(self, look: ClinicalSummary) -> None:
        """Show the contents of a table, and a question with its button if there is one."""
        self._answer = look.answer
        self.coverage.setText(look.text)
        self.coverage.setVisible(bool(look.text))
        self.question.setText(look.question)
        self.question.setVisible(bool(look.question))
        self.confirm.setText(look.action)
        self.confirm.setVisible(look.answer is not None)

    # -------------------------------------------------------------------- inner

    def _confirm_columns(self) -> None:
        if self._answer is not None:
            self.columns = self._answer
            self.confirmed.emit()


def _free_folder(folder: Path, name: str) -> Path:
    numbers = ("", *(f" {number}" for number in range(2, _MOST_RUNS)))
    paths = (folder / f"{name}{number}" for number in numbers)
    return next((path for path in paths if not path.exists()), folder / name)


_MOST_RUNS: Final = 1000
_STEPS: Final = 1000
_TAKEN: Final = tr("This folder already contains files. Choose another folder, or:")
_COMPARED: Final = "comparison"
_PROFILE_TEXTS: Final = {
    "clinical": tr("Distances are in mm (HD95), and undefined values stay empty."),
    "official-code": tr(
        "The definitions are those of the challenge's published scripts, including their "
        "peculiarities."
    ),
    "paper": tr("The definitions are the equations in the challenge's paper."),
}


@dataclass(frozen=True, slots=True)
class BatchFolders:
    """The reference, clinical table, profile and output folder of a batch."""

    reference: Path | None = option(
        None,
        tr("Reference"),
        "batch_reference",
        tr("Folder of reference masks, ID.nii.gz."),
        browse=Browse("batch_choose_reference", tr("Choose a folder"), tr("Choose a folder")),
    )
    clinical: Path | None = option(
        None,
        tr("Clinical"),
        "batch_clinical",
        tr(
            "Table with age, menopausal status and breast density for the fairness score "
            "(optional)."
        ),
        placeholder=tr("none; fairness stays undefined"),
        browse=Browse(
            "batch_choose_clinical",
            tr("Choose a table (.xlsx, .ods, .csv)"),
            tr("Choose the clinical table"),
            tr("Tables (*.xlsx *.ods *.csv)"),
        ),
    )
    profile: Profile = option(
        CLINICAL,
        tr("Profile"),
        "batch_profile",
        tr("Defines how each metric is computed."),
        choices=tuple((profile, profile.name, "") for profile in PROFILES.values()),
    )
    out: Path | None = option(
        None,
        tr("Results folder"),
        "batch_out",
        tr("Folder for tables, summary and report."),
        browse=Browse("batch_choose_out", tr("Choose a folder"), tr("Choose a folder")),
    )


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """The settings of a requested run; if `place` is None, it runs in this program without a limit.

    `case_list` is a file of the cases to score, or None for all cases with a reference.
    """

    reference: Path
    models: tuple[PredictionFolder, ...]
    out: Path
    settings: ScoreSettings
    place: Place | None
    existing: Existing
    case_list: Path | None = None


@dataclass(frozen=True, slots=True)
class BatchDefaults:
    """Initial values from the open data set: titled mask folders, and the output folder."""

    reference: Path | None
    predictions: tuple[tuple[str, Path], ...]
    clinical: Path | None
    scores: Path


class BatchPage(QWidget):
    """The Batch page; `start_wanted` carries a `BatchRequest`, other signals report clicks."""

    start_wanted = Signal(object)
    table_changed = Signal()
    cancel_wanted = Signal()
    table_wanted = Signal()
    log_wanted = Signal()
    leaderboard_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("batch")
        self._scores: Path | None = None
        self._offered_out = ""
        self._folder: Path | None = None
        self._report: Path | None = None
        form = PageArea(self._make_form(), "batch_form_area", is_part=True, is_fitted=True)
        form.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 4, 0)
        # The form scrolls on a low screen, so that Start, its questions and messages stay
        # visible.
        layout.addWidget(form, stretch=1)
        for section in (self._make_taken(), self._make_run(), self._make_end()):
            layout.addWidget(section)
        layout.addStretch()
        self._describe_profile()
        self.set_running(False)
        self.show_taken(False)
        self.show_end("", None, None)

    # ------------------------------------------------------------- for the dock

    def show_defaults(self, defaults: BatchDefaults) -> None:
        """Fill the form from the open data set, and offer its mask folders."""
        self._scores = defaults.scores
        self.reference.setText(str(defaults.reference or ""))
        self.clinical.setText(str(defaults.clinical or ""))
        self.show_predictions(defaults.predictions, keep=False)

    def show_predictions(
        self, predictions: Sequence[tuple[str, Path]], *, keep: bool = True
    ) -> None:
        """Offer mask folders; with `keep`, fields that are not empty keep their text."""
        self.models.offer(predictions, keep=keep)

    @property
    def table(self) -> Path | None:
        """The clinical table named in the form."""
        return self.form.settings().clinical

    def set_running(self, running: bool) -> None:
        """Show the Cancel button and the progress instead of the Start button."""
        self.start.setEnabled(not running)
        self.cancel.setVisible(running)
        self.progress.setVisible(running)
        if running:
            self.progress.setValue(0)
            self.say(tr("Searching for the masks"))

    def show_progress(self, fraction: float, text: str) -> None:
        """Show the progress of the run as a bar and as text."""
        self.progress.setValue(round(fraction * _STEPS))
        self.say(text)

    def say(self, text: str, level: str = "hint") -> None:
        """Show the state of the run."""
        self.state.setText(text)
        set_level(self.state, level)

    def show_taken(self, taken: bool) -> None:
        """Ask whether to continue or overwrite if the output folder already contains files."""
        self.taken.setVisible(taken)

    def show_end(self, text: str, folder: Path | None, report: Path | None) -> None:
        """Show the results of a run and their folder; `report` is None if there is no report."""
        self._folder, self._report = folder, report
        self.result.setText(text)
        self.end.setVisible(folder is not None)
        self.open_report.setVisible(report is not None)

    def show_report(self) -> None:
        """Open the report of the last run in the browser."""
        if self._report is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._report)))

    # -------------------------------------------------------------------- inner

    def _make_form(self) -> QWidget:
        self.form = Form(BatchFolders, NAMES)
        fields, rows = self.form.fields, self.form.rows
        self.reference, self.clinical = fields["reference"], fields["clinical"]
        self.profile, self.out = fields["profile"], fields["out"]
        self.models = ModelsField()
        self.models.changed.connect(self._offer_out)
        self.clinical_summary = BatchClinical()
        self.clinical.textChanged.connect(self._take_table)
        self.clinical_summary.confirmed.connect(self.table_changed)
        self.profile.currentIndexChanged.connect(lambda _at: self._describe_profile())
        self.profile_text = label("batch_profile_text", tip=tr("Meaning of this profile."))
        self.out.textChanged.connect(lambda _text: self.show_taken(False))
        self.options = BatchOptions()
        return column(
            heading(tr("Score folders of masks")),
            rows["reference"],
            row(name_of(tr("Model")), name_of(tr("Masks")), 1),
            self.models,
            rows["clinical"],
            self.clinical_summary,
            rows["profile"],
            self.profile_text,
            rows["out"],
            self.options,
        )

    def _make_taken(self) -> QWidget:
        self.taken_text = label("batch_taken_text", _TAKEN, tr("Why the run cannot start."))
        set_level(self.taken_text, "warning")
        self.resume = button(
            "batch_resume",
            tr("Continue"),
            tr("Continues an earlier run with the same folders and profile."),
            lambda: self._request_start(Existing.RESUME),
        )
        self.replace = button(
            "batch_replace",
            tr("Overwrite"),
            tr("Files with the same names are overwritten; others are kept."),
            lambda: self._request_start(Existing.OVERWRITE),
        )
        self.taken = column(self.taken_text, row(self.resume, self.replace, 1))
        return self.taken

    def _make_run(self) -> QWidget:
        self.start = button(
            "batch_start",
            tr("Start"),
            tr("Scores every case; an unreadable file affects only its own case."),
            lambda: self._request_start(None),
            primary=True,
        )
        self.cancel = button(
            "batch_cancel",
            tr("Cancel"),
            tr("Stops the run, which can be continued later."),
            self.cancel_wanted.emit,
        )
        self.log = tool_button(
            "batch_log", tr("Log"), tr("Shows the log of the plugin."), self.log_wanted.emit
        )
        self.leaderboard = tool_button(
            "batch_leaderboard",
            tr("Leaderboard"),
            tr("Shows the teams of a ranking and their cases below the image."),
            self.leaderboard_wanted.emit,
        )
        for tool in (self.log, self.leaderboard):
            tool.setProperty("framed", True)
        self.progress: ProgressBar = named(
            ProgressBar(), "batch_progress", tr("Progress of the run.")
        )
        self.progress.setRange(0, _STEPS)
        self.progress.setFixedHeight(8)
        self.state = label("batch_state", tip=tr("Current step of the run, or its result."))
        buttons = row(self.start, self.cancel, self.leaderboard, self.log)
        buttons.layout().setStretch(0, 1)
        return column(buttons, self.progress, self.state)

    def _make_end(self) -> QWidget:
        self.result = label("batch_result", tip=tr("Results of the last run."))
        self.open_report = button(
            "batch_report",
            tr("Open report"),
            tr("Opens report.html in the browser."),
            self.show_report,
        )
        self.open_folder = button(
            "batch_folder",
            tr("Open folder"),
            tr("Opens the folder with tables and summary."),
            self._open_folder,
        )
        self.show_table = button(
            "batch_table",
            tr("Show table"),
            tr("Shows the cases below the image, with the worst first."),
            self.table_wanted.emit,
        )
        self.end = column(self.result, row(self.show_table, self.open_report, self.open_folder, 1))
        return self.end

    def _describe_profile(self) -> None:
        profile = self.form.settings().profile
        self.profile_text.setText(_PROFILE_TEXTS.get(profile.name, profile.source))

    def _offer_out(self) -> None:
        self.form.start_at = self.reference.text() or str(Path.home())
        # Next to the masks of another model, because the reference is no model's folder.
        folders = [model.folder for model in self.models.models()] or [self._scores or Path.home()]
        self.models.start_at = str(folders[0].parent)
        if self._scores is None or self.out.text() not in ("", self._offered_out):
            return
        models = self.models.models()
        name = models[0].name if models else ""
        if len(models) > 1:
            name = " and ".join([_COMPARED, *(model.name for model in models)][:3])
        self._offered_out = str(_free_folder(self._scores, name)) if name else ""
        self.out.setText(self._offered_out)

    def _request_start(self, existing: Existing | None) -> None:
        models, chosen, options = (
            self.models.models(),
            self.form.settings(),
            self.options.settings(),
        )
        if chosen.reference is None or chosen.out is None or not models:
            needed = {
                "reference folder": chosen.reference,
                "prediction folder": models,
                "results folder": chosen.out,
            }
            empty = " and the ".join(name for name, value in needed.items() if not value)
            self.say(tr("Choose the {names} first.", names=empty), "warning")
            return
        if self.options.problem():
            self.say(self.options.problem(), "warning")
            return
        try:
            settings = ScoreSettings(
                profile=chosen.profile,
                clinical=chosen.clinical,
                columns=self.clinical_summary.columns,
                n_resamples=options.n_resamples,
                seed=options.seed,
                minimum_group=options.minimum_group,
                unusable=options.unusable,
            )
        except ValueError as error:  # The rule needs a worst value, which the profile lacks.
            self.say(tr("Nothing was started: {error}", error=error), "warning")
            return
        self.show_taken(False)
        self.start_wanted.emit(
            BatchRequest(
                chosen.reference,
                models,
                chosen.out,
                settings,
                options.place,
                existing or options.existing,
                options.case_list,
            )
        )

    def _take_table(self) -> None:
        self.clinical_summary.forget()
        self.table_changed.emit()

    def _open_folder(self) -> None:
        if self._folder is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder)))
