"""The Predict page: models, inputs, start and stop, candidates and uncertain regions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtWidgets import (
    QComboBox,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.texts import tr
from napari_mamamia.segmentation.model.device import usual_threads
from napari_mamamia.segmentation.model.planner import LADDER, Rung
from napari_mamamia.segmentation.model.recipe import presets
from napari_mamamia.segmentation.model.segmenter import Candidate
from napari_mamamia.services.predict.model_choice import RunChoices
from napari_mamamia.widgets.controls.controls import (
    button,
    fill_column,
    heading,
    label,
    line,
    named,
    row,
    set_level,
)
from napari_mamamia.widgets.controls.fields import checkbox, combo_box, spin_box
from napari_mamamia.widgets.controls.page import Page
from napari_mamamia.widgets.controls.page_area import PageArea
from napari_mamamia.widgets.controls.targets import CheckBox
from napari_mamamia.widgets.predict.card import ModelCard, ModelPanel
from napari_mamamia.widgets.predict.help import PredictHelp
from napari_mamamia.widgets.predict.model_cards import ModelList
from napari_mamamia.widgets.predict.uncertainty_list import UncertaintyList

# Settings of a trained model: device, recipe, mirrored copies, time limit and allowed reductions.

_LIMIT_S: Final = 300
"""The challenge's time limit for one case, in seconds."""

_LONGEST_S: Final = 86_400
_TIPS: Final = {
    Rung.TILES: tr(
        "Skips tiles that do not overlap the breast, so the result is exact inside the "
        "breast and empty outside."
    ),
    Rung.PRECISION: tr(
        "Uses half precision, which is about twice as fast but may change individual voxels at "
        "the edge."
    ),
    Rung.STEP: tr(
        "Overlaps tiles less, which needs about a third of the tiles but changes the mask slightly."
    ),
    Rung.FLIPS: tr("Averages fewer mirrored copies: 8, then 4, 2 and 1."),
    Rung.FOLDS: tr("Averages fewer of the model's folds."),
}


class RunOptions(QWidget):
    """Settings of a trained model.

    The signal `changed` is emitted after each change; `edit_wanted` requests to edit the recipe.
    """

    changed = Signal()
    edit_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_options")
        self.device = self._make_combo(
            "device", ("auto", "cpu", "cuda", "mps"), tr("Device on which the network runs.")
        )
        self.recipe = self._make_combo(
            "recipe",
            ("own", *(name for name, _ in presets())),
            tr(
                "Processing before and after the network: the model's own recipe (by default "
                "channel k is phase k), or the recipe of a published pipeline."
            ),
        )
        self.edit = button(
            "predict_edit_recipe",
            tr("Edit recipe…"),
            tr(
                "Edits the processing before and after the network: channels, normalisation, "
                "spacing, region, postprocessing."
            ),
            self.edit_wanted.emit,
        )
        self.mirroring = self._make_check_box(
            "mirroring",
            tr("mirrored copies"),
            tr(
                "Averages the results of mirrored copies, as nnU-Net does by default; takes up to "
                "8 times as long."
            ),
            on=True,
        )
        self.uncertainty = self._make_check_box(
            "doubt",
            tr("uncertainty map"),
            tr("Keeps the mean probability and shows where the result is uncertain."),
        )
        self.limited = self._make_check_box(
            "limited", tr("at most"), tr("Stops a case that exceeds the time limit.")
        )
        self.seconds = spin_box(
            "predict_limit",
            tr("Time limit for one case; the challenge allows 300 s."),
            (1, _LONGEST_S),
            value=_LIMIT_S,
            unit=" s",
        )
        self.seconds.valueChanged.connect(lambda _value: self.changed.emit())
        self.rungs = {
            rung: self._make_check_box(f"give_up_{rung.name.lower()}", tr(rung.value), _TIPS[rung])
            for rung in LADDER
        }
        self.ladder = QWidget()
        boxes = list(self.rungs.values())
        fill_column(
            self.ladder,
            QLabel(tr("allowed reductions to meet the limit")),
            boxes[0],
            row(boxes[1], boxes[2], 1),
            row(boxes[3], boxes[4], 1),
            margins=(18, 0, 0, 0),
            spacing=1,
        )
        fill_column(
            self,
            row(QLabel(tr("recipe")), self.recipe, self.edit, 1),
            row(QLabel(tr("device")), self.device, self.mirroring, 1),
            self.uncertainty,
            row(self.limited, self.seconds, QLabel(tr("per case")), 1),
            self.ladder,
            spacing=3,
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.limited.toggled.connect(self._show_ladder)
        self._show_ladder(False)

    def choices(self) -> RunChoices:
        """Return the prediction settings chosen on this page."""
        limit = float(self.seconds.value()) if self.limited.isChecked() else None
        allowed = tuple(rung for rung, box in self.rungs.items() if box.isChecked())
        return RunChoices(
            device=self.device.currentText(),
            backend="auto",
            mirroring=self.mirroring.isChecked(),
            limit_s=limit,
            give_up=allowed if limit is not None else (),
            recipe=self.recipe.currentText() if self.recipe.currentIndex() > 0 else "",
            threads=usual_threads(),
            keep_probability=self.uncertainty.isChecked(),
        )

    def show_own_recipe(self, *, edited: bool, choose: bool = False) -> None:
        """Show whether the user edited the model's recipe; with `choose`, also select it."""
        self.recipe.setItemText(0, tr("own (edited)") if edited else tr("own"))
        if choose:
            self.recipe.setCurrentIndex(0)

    def set_several(self, several: bool) -> None:
        """Disable the recipe if several models run, because each has its own recipe."""
        self.recipe.setEnabled(not several)
        self.edit.setEnabled(not several)
        if several:
            self.recipe.setCurrentIndex(0)

    def _show_ladder(self, limited: bool) -> None:
        self.seconds.setEnabled(limited)
        self.ladder.setVisible(limited)

    def _make_combo(self, name: str, texts: Sequence[str], tip: str) -> QComboBox:
        combo = combo_box(f"predict_{name}", tip)
        combo.addItems(list(texts))
        combo.setMinimumContentsLength(4)
        combo.currentIndexChanged.connect(lambda _index: self.changed.emit())
        return combo

    def _make_check_box(self, name: str, text: str, tip: str, *, on: bool = False) -> CheckBox:
        return checkbox(
            f"predict_{name}", text, tip, is_on=on, on_toggle=lambda _on: self.changed.emit()
        )


_LEAST_HEIGHT: Final = 90
_WHEN_UNSURE: Final = tr(
    "Look at each candidate below, or choose “at a click” and click the tumour."
)
_LAID_OUT_MS: Final = 50
"""Time in ms in which new texts are laid out, after which the page can scroll to them."""


class PredictPage(Page):
    """The Predict page with start, stop, and the selection of models, candidates and regions.

    The signal `prompt_wanted` carries "click", "box" or "" (none), and `candidate_chosen` a
    `Candidate`. `grow_wanted` requests the growth of the candidate. `model_added` carries the path
    of a model, and `place_wanted` the number of an uncertain region.
    """

    start_wanted = Signal()
    all_wanted = Signal()
    cancel_wanted = Signal()
    model_added = Signal(object)
    place_wanted = Signal(int)
    prompt_wanted = Signal(str)
    candidate_chosen = Signal(object)
    grow_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("predict")
        self.setAcceptDrops(True)
        self.body.addWidget(self._make_area(), stretch=1)
        self.models = ModelList([(rule, rule.said) for rule in FusionRule])
        self.models.path_chosen.connect(self.model_added.emit)
        self.inner.addWidget(self.models)
        self.card = ModelPanel()
        self.inner.addWidget(self.card)
        self.options = RunOptions()
        self.inner.addWidget(self.options)
        # below the scroll area: visible in the lowest window
        self.body.addWidget(self._make_buttons())
        self.body.addWidget(self._make_prompts())
        self.result = label("predict_result", tip=tr("Result of the last prediction"))
        self.inner.addWidget(self.result)
        self.unsure = label("predict_unsure", tip=tr("Why candidate 1 may not be the tumour"))
        set_level(self.unsure, "warning")
        self.unsure.hide()
        self.inner.addWidget(self.unsure)
        self.help = PredictHelp()
        self.help.shown.connect(self._reveal.start)
        self.inner.addWidget(self.help)
        self.candidates_title = heading(tr("Candidates"))
        self.inner.addWidget(self.candidates_title)
        self.inner.addWidget(self._make_list(), stretch=1)
        self.grow = button(
            "predict_grow",
            tr("Grow candidate"),
            tr(
                "Copies the selected candidate into your own mask on the Refine page, and grows "
                "it to the tumour's edge in the image."
            ),
            self.grow_wanted.emit,
        )
        self.inner.addWidget(row(self.grow, 1))
        self.uncertainty = UncertaintyList()
        self.uncertainty.chosen.connect(self.place_wanted.emit)
        self.inner.addWidget(self.uncertainty, stretch=1)
        self.inner.addStretch()
        self.show_result("", (), 0)

    # ------------------------------------------------------------- for the dock

    def show_model(self, card: ModelCard) -> None:
        """Show the model that the Start button runs."""
        self.card.show_model(card)
        self.options.setVisible(card.is_trained)

    def show_problem(self, problem: str) -> None:
        """Show why the model cannot run on this case; "" hides the text."""
        self.card.show_problem(problem)
        for control in (self.start, self.all, self.at_click, self.in_box):
            control.setEnabled(not problem)

    def set_running(self, running: bool, said: str = "predicting…") -> None:
        """Show the stop button instead of the start button, and the text of the running task."""
        for control in (self.start, self.all):
            control.setVisible(not running)
        self.cancel.setVisible(running)
        if running:
            self.result.setText(said)
            self.help.show_remedies(())

    def show_result(
        self, text: str, candidates: Sequence[Candidate], chosen: int, unsure: str = ""
    ) -> None:
        """Show the result; `chosen` is the rank of the displayed candidate, or 0 for none.

        `unsure` is the reason why candidate 1 may not be the tumour.
        """
        self.result.setText(text)
        self.unsure.setText(
            tr(
                "Is this the tumour? {unsure}\n{when_unsure}",
                unsure=unsure,
                when_unsure=_WHEN_UNSURE,
            )
            if unsure
            else ""
        )
        self.unsure.setVisible(bool(unsure))
        self.help.show_remedies(())
        self.list.blockSignals(True)
        self.list.clear()
        for candidate in candidates:
            item = QListWidgetItem(_line_of(candidate))
            item.setData(Qt.ItemDataRole.UserRole, candidate)
            item.setToolTip("\n".join(candidate.reasons) or tr("No reasons given"))
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
        """Show which prompt (click or box) is expected in the image."""
        self.at_click.setChecked(mode == "click")
        self.in_box.setChecked(mode == "box")

    # ------------------------------------------------------------------ dropping

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a single local folder or file."""
        if _dropped_path(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Add the dropped model."""
        path = _dropped_path(event)
        if path is not None:
            event.acceptProposedAction()
            self.model_added.emit(path)

    # -------------------------------------------------------------------- inner

    def _make_area(self) -> PageArea:
        """Return a scroll area, so that the page does not increase the height of a small window."""
        holder = QWidget()
        self.inner = QVBoxLayout(holder)
        self.inner.setContentsMargins(0, 0, 0, 0)
        self.area = PageArea(holder, "predict_scroll", is_part=True)
        self._reveal = QTimer(self)
        self._reveal.setSingleShot(True)
        self._reveal.setInterval(_LAID_OUT_MS)
        self._reveal.timeout.connect(self._show_news)
        # the result may be laid out after the wait: scroll again then
        self.area.verticalScrollBar().rangeChanged.connect(self._news_grew)
        return self.area

    def _news_grew(self) -> None:
        if self.help.isVisible():
            self._reveal.start()

    def _show_news(self) -> None:
        if self.help.isVisible():
            self.area.ensureWidgetVisible(self.help)
            return
        for news in (self.grow, self.result):  # the last one has precedence if both do not fit
            if news.isVisible():
                self.area.ensureWidgetVisible(news)

    def _make_buttons(self) -> QWidget:
        self.start = button(
            "predict_start",
            tr("Start"),
            tr("Segments the tumour in the whole volume."),
            self.start_wanted.emit,
            primary=True,
        )
        self.cancel = button(
            "predict_cancel",
            tr("Cancel"),
            tr("Stops the prediction without changing anything."),
            self.cancel_wanted.emit,
        )
        self.cancel.hide()
        self.all = button(
            "predict_all",
            tr("Predict all"),
            tr("Predicts every case in the data set that has no prediction by this model yet."),
            self.all_wanted.emit,
        )
        return row(self.start, self.cancel, self.all, 1)

    def _make_prompts(self) -> QWidget:
        self.at_click = self._prompt_button(
            "click", tr("at a click"), tr("Waits for a click on the tumour in the image.")
        )
        self.in_box = self._prompt_button(
            "box",
            tr("in a box"),
            tr(
                "Waits for a box around the tumour in the image; the box is as deep as its longer "
                "side."
            ),
        )
        return row(QLabel(tr("or search only")), self.at_click, self.in_box, 1)

    def _prompt_button(self, mode: str, text: str, tip: str) -> QPushButton:
        prompt_button = button(f"predict_{mode}", text, tip, lambda: None)
        prompt_button.setCheckable(True)
        prompt_button.clicked.connect(lambda on: self.prompt_wanted.emit(mode if on else ""))
        return prompt_button

    def _make_list(self) -> QListWidget:
        self.list: QListWidget = named(
            QListWidget(),
            "predict_candidates",
            tr(
                "Regions that may be the tumour, most likely first. Click a region to show it and "
                "make it the prediction."
            ),
        )
        self.list.setWordWrap(True)
        self.list.setMinimumHeight(_LEAST_HEIGHT)
        self.list.setMaximumHeight(2 * _LEAST_HEIGHT)
        self.list.setAlternatingRowColors(True)
        self.list.currentItemChanged.connect(self._choose_candidate)
        self.inner.addWidget(line())
        return self.list

    def _choose_candidate(self, item: QListWidgetItem | None, _before: object = None) -> None:
        if item is not None:
            self.candidate_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _dropped_path(event: Any) -> Path | None:
    urls = event.mimeData().urls()
    local = urls[0].toLocalFile() if len(urls) == 1 else ""
    return Path(local) if local else None


def _line_of(candidate: Candidate) -> str:
    doubts = [reason for reason in candidate.reasons[1:] if reason.endswith("?")]
    lines = [
        tr("{rank}   {volume:.2f} ml", rank=candidate.rank, volume=candidate.volume_mm3 / 1000)
    ]
    return "\n".join((*lines, *candidate.reasons[:1], *doubts))
