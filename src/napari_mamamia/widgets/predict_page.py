"""Page Predict: the models, what they are given, start and stop, candidates and doubtful places."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtWidgets import (
    QFileDialog,
    QFrame,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.segmentation.segmenter import Candidate
from napari_mamamia.widgets.controls import button, heading, label, line, named, row, set_level
from napari_mamamia.widgets.doubt_list import DoubtList
from napari_mamamia.widgets.model_cards import ModelList, RunOptions
from napari_mamamia.widgets.page import Page

__all__ = ["ModelCard", "PredictPage"]

_LEAST_HEIGHT: Final = 90


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is shown of the chosen model.

    `note` must stand by its results; `needs` says what it takes. `is_trained` shows the options of
    a trained model.
    """

    title: str
    note: str
    needs: str
    is_trained: bool = False


class PredictPage(Page):
    """Start, stop, choose a model, a candidate or a doubtful place.

    `prompt_wanted` carries "click", "box" or "" (none), `candidate_chosen` a `Candidate`,
    `grow_wanted` asks to grow it,
    `model_added` the path of a model, `place_wanted` the number of a doubtful place.
    """

    start_wanted = Signal()
    all_wanted = Signal()
    measure_wanted = Signal()
    cancel_wanted = Signal()
    model_added = Signal(object)
    place_wanted = Signal(int)
    prompt_wanted = Signal(str)
    candidate_chosen = Signal(object)
    grow_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("predict")
        self.body.addWidget(self._make_area())
        self.models = ModelList()
        self.models.folder_wanted.connect(self._choose_folder)
        self.models.zip_wanted.connect(self._choose_zip)
        self.inner.addWidget(self.models)
        self.inner.addWidget(self._make_card())
        self.options = RunOptions()
        self.inner.addWidget(self.options)
        self.inner.addWidget(self._make_buttons())
        self.inner.addWidget(self._make_prompts())
        self.result = label("predict_result", tip="What the last prediction gave")
        self.inner.addWidget(self.result)
        self.candidates_title = heading("Candidates")
        self.inner.addWidget(self.candidates_title)
        self.inner.addWidget(self._make_list(), stretch=1)
        self.grow = button(
            "predict_grow",
            "Grow from this candidate",
            "Takes the chosen candidate into your own mask on page Refine, and follows the image "
            "to its edge",
            self.grow_wanted.emit,
        )
        self.inner.addWidget(self.grow)
        self.doubt = DoubtList()
        self.doubt.chosen.connect(self.place_wanted.emit)
        self.inner.addWidget(self.doubt, stretch=1)
        self.inner.addStretch()
        self.show_result("", (), 0)

    # ------------------------------------------------------------- for the dock

    def show_model(self, card: ModelCard) -> None:
        """Show the model that Start runs."""
        self.title.setText(card.title)
        self.note.setText(card.note)
        self.show_needs(card.needs)
        self.options.setVisible(card.is_trained)
        self.measure.setVisible(card.is_trained)

    def show_needs(self, text: str) -> None:
        """Show what the chosen model takes, such as after it was measured."""
        self.needs.setText(text)

    def show_inputs(self, mapping: str, problem: str) -> None:
        """Show which phase goes where, or why the model cannot run on this case."""
        self.inputs.setText(problem or mapping)
        set_level(self.inputs, "warning" if problem else "hint")
        for control in (self.start, self.all, self.measure, self.at_click, self.in_box):
            control.setEnabled(not problem)

    def set_running(self, running: bool) -> None:
        """Show the button that stops in place of the one that starts."""
        for control in (self.start, self.all):
            control.setVisible(not running)
        self.cancel.setVisible(running)
        if running:
            self.result.setText("predicting…")

    def show_result(self, text: str, candidates: Sequence[Candidate], chosen: int) -> None:
        """Show what came out; `chosen` is the rank of the candidate on screen, 0 for none."""
        self.result.setText(text)
        self.list.blockSignals(True)
        self.list.clear()
        for candidate in candidates:
            item = QListWidgetItem(_line_of(candidate))
            item.setData(Qt.ItemDataRole.UserRole, candidate)
            item.setToolTip("\n".join(candidate.reasons) or "No reasons were given")
            self.list.addItem(item)
            if candidate.rank == chosen:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)
        self.list.setVisible(bool(candidates))
        if text:
            self._reveal.start()
        self.candidates_title.setVisible(bool(candidates))
        self.grow.setVisible(bool(candidates))

    def set_prompt(self, mode: str) -> None:
        """Show which prompt the image waits for."""
        self.at_click.setChecked(mode == "click")
        self.in_box.setChecked(mode == "box")

    # -------------------------------------------------------------------- inner

    def _make_area(self) -> QScrollArea:
        """Return what scrolls when a window is too low for all, instead of making it higher."""
        self.area: QScrollArea = named(QScrollArea(), "predict_scroll", "")
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        self.inner = QVBoxLayout(holder)
        self.inner.setContentsMargins(0, 0, 0, 0)
        self.area.setWidget(holder)
        self._reveal = QTimer(self)
        self._reveal.setSingleShot(True)
        self._reveal.timeout.connect(lambda: self.area.ensureWidgetVisible(self.result))
        return self.area

    def _make_card(self) -> QFrame:
        card: QFrame = named(QFrame(), "predict_card", "The model that Start runs")
        card.setFrameShape(QFrame.Shape.StyledPanel)
        self.title = heading("")
        self.note: QLabel = label("predict_note", tip="What to know about every result of it")
        self.note.setProperty("level", "warning")
        self.needs = label("predict_needs", tip="What the model needs")
        self.inputs = label("predict_inputs", tip="Which phase of this case the model gets as what")
        self.measure = button(
            "predict_measure",
            "Measure",
            "Runs one tile to tell how long this case will take",
            self.measure_wanted.emit,
        )
        layout = QVBoxLayout(card)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(3)
        layout.addWidget(row(self.title, 1, self.measure))
        for part in (self.note, self.needs, self.inputs):
            layout.addWidget(part)
        return card

    def _make_buttons(self) -> QWidget:
        self.start = button(
            "predict_start",
            "Start",
            "Segments the tumour in the whole volume",
            self.start_wanted.emit,
            primary=True,
        )
        self.cancel = button(
            "predict_cancel",
            "Cancel",
            "Stops; nothing is changed",
            self.cancel_wanted.emit,
        )
        self.cancel.hide()
        self.all = button(
            "predict_all",
            "Predict all",
            "Predicts every case of the data set that has no prediction of this model yet",
            self.all_wanted.emit,
        )
        return row(self.start, self.cancel, self.all, 1)

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "nnU-Net result folder")
        if chosen:
            self.model_added.emit(Path(chosen))

    def _choose_zip(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(
            self, "Exported nnU-Net model", "", "Models (*.zip)"
        )
        if chosen:
            self.model_added.emit(Path(chosen))

    def _make_prompts(self) -> QWidget:
        self.at_click = self._prompt_button(
            "click", "at a click", "Then click on the tumour in the image"
        )
        self.in_box = self._prompt_button(
            "box",
            "in a box",
            "Then drag a box around the tumour in the image; it is as deep as its longer side",
        )
        return row(QLabel("or only"), self.at_click, self.in_box, 1)

    def _prompt_button(self, mode: str, text: str, tip: str) -> QPushButton:
        made = button(f"predict_{mode}", text, tip, lambda: None)
        made.setCheckable(True)
        made.clicked.connect(lambda on: self.prompt_wanted.emit(mode if on else ""))
        return made

    def _make_list(self) -> QListWidget:
        self.list: QListWidget = named(
            QListWidget(),
            "predict_candidates",
            "Regions that may be the tumour, best first; a click shows one and makes it the "
            "prediction",
        )
        self.list.setWordWrap(True)
        self.list.setMinimumHeight(_LEAST_HEIGHT)
        self.list.setMaximumHeight(2 * _LEAST_HEIGHT)
        self.list.setAlternatingRowColors(True)
        self.list.currentItemChanged.connect(self._choose)
        self.inner.addWidget(line())
        return self.list

    def _choose(self, item: QListWidgetItem | None, _before: object = None) -> None:
        if item is not None:
            self.candidate_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _line_of(candidate: Candidate) -> str:
    reason = f"\n{candidate.reasons[0]}" if candidate.reasons else ""
    return f"{candidate.rank}   {candidate.volume_mm3 / 1000:.2f} ml{reason}"
