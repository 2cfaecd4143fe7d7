"""Page Predict: the model, what it is given, start and stop, its ranked candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QFrame,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.segmentation.segmenter import Candidate
from napari_mamamia.widgets.controls import button, heading, label, line, named, row, set_level
from napari_mamamia.widgets.page import Page

__all__ = ["ModelCard", "PredictPage"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is shown of a model: its title, the note that must stand by its results, its needs."""

    title: str
    note: str
    needs: str


class PredictPage(Page):
    """Start, stop, choose a candidate.

    `prompt_wanted` carries "click", "box" or "" (none), `candidate_chosen` a `Candidate`.
    """

    start_wanted = Signal()
    cancel_wanted = Signal()
    prompt_wanted = Signal(str)
    candidate_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__("predict")
        self.body.addWidget(self._make_card())
        self.body.addWidget(self._make_buttons())
        self.body.addWidget(self._make_prompts())
        self.result = label("predict_result", tip="What the last prediction gave")
        self.body.addWidget(self.result)
        self.candidates_title = heading("Candidates")
        self.body.addWidget(self.candidates_title)
        self.body.addWidget(self._make_list(), stretch=1)
        self.body.addStretch()
        self.show_result("", (), 0)

    # ------------------------------------------------------------- for the dock

    def show_model(self, card: ModelCard) -> None:
        """Show the model that Start runs."""
        self.title.setText(card.title)
        self.note.setText(card.note)
        self.needs.setText(card.needs)

    def show_inputs(self, mapping: str, problem: str) -> None:
        """Show which phase goes where, or why the model cannot run on this case."""
        self.inputs.setText(problem or mapping)
        set_level(self.inputs, "warning" if problem else "hint")
        for control in (self.start, self.at_click, self.in_box):
            control.setEnabled(not problem)

    def set_running(self, running: bool) -> None:
        """Show the button that stops in place of the one that starts."""
        self.start.setVisible(not running)
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
        self.candidates_title.setVisible(bool(candidates))

    def set_prompt(self, mode: str) -> None:
        """Show which prompt the image waits for."""
        self.at_click.setChecked(mode == "click")
        self.in_box.setChecked(mode == "box")

    # -------------------------------------------------------------------- inner

    def _make_card(self) -> QFrame:
        card: QFrame = named(QFrame(), "predict_card", "The model that Start runs")
        card.setFrameShape(QFrame.Shape.StyledPanel)
        self.title = heading("")
        self.note: QLabel = label("predict_note", tip="What to know about every result of it")
        self.note.setProperty("level", "warning")
        self.needs = label("predict_needs", tip="What the model needs")
        self.inputs = label("predict_inputs", tip="Which phase of this case the model gets as what")
        layout = QVBoxLayout(card)
        for part in (self.title, self.note, self.needs, self.inputs):
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
        return row(self.start, self.cancel)

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
        self.list.setAlternatingRowColors(True)
        self.list.currentItemChanged.connect(self._choose)
        self.body.addWidget(line())
        return self.list

    def _choose(self, item: QListWidgetItem | None, _before: object = None) -> None:
        if item is not None:
            self.candidate_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _line_of(candidate: Candidate) -> str:
    reason = f"\n{candidate.reasons[0]}" if candidate.reasons else ""
    return f"{candidate.rank}   {candidate.volume_mm3 / 1000:.2f} ml{reason}"
