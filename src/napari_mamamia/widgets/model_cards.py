"""The list of models on the page Predict, and what may be given up for a time limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.segmentation.device import usual_threads
from napari_mamamia.segmentation.planner import LADDER, Rung
from napari_mamamia.segmentation.recipe import presets
from napari_mamamia.services.model_choice import RunChoices
from napari_mamamia.widgets.controls import button, named, row

__all__ = ["ModelLine", "ModelList", "RunOptions"]

_LIST_HEIGHT: Final = 76
_LIMIT_S: Final = 300
"""The challenge's own limit for one case."""

_LONGEST_S: Final = 86_400
_TIPS: Final = {
    Rung.TILES: "Tiles that do not reach the breast are left out: exact inside, nothing outside",
    Rung.PRECISION: "Half precision: about twice as fast, single voxels at the edge differ",
    Rung.STEP: "Tiles overlap less: about a third of the tiles, the mask differs a little",
    Rung.FLIPS: "Fewer mirrored copies are averaged: 8, 4, 2, 1",
    Rung.FOLDS: "Fewer of the model's folds are averaged",
}


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the list: its name, one line on it, and why it cannot be used ("" if it can)."""

    name: str
    title: str
    text: str
    problem: str = ""


class ModelList(QWidget):
    """`chosen` carries the name of the model that was clicked."""

    chosen = Signal(str)
    folder_wanted = Signal()
    zip_wanted = Signal()
    forget_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_model_list")
        self.list: QListWidget = named(
            QListWidget(), "predict_models", "Models; the chosen one is what Start runs"
        )
        self.list.setWordWrap(True)
        self.list.setAlternatingRowColors(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setFixedHeight(_LIST_HEIGHT)
        self.list.currentItemChanged.connect(self._choose)
        self.add_folder = button(
            "predict_add_model",
            "Add model…",
            "Choose an nnU-Net result folder; it is recognised, nothing of it is run",
            self.folder_wanted.emit,
        )
        self.add_zip = button(
            "predict_add_zip",
            "from a zip…",
            "Choose an exported nnU-Net model; it is checked, nothing of it is run",
            self.zip_wanted.emit,
        )
        self.forget = button(
            "predict_forget_model",
            "Remove",
            "Takes the chosen model off this list; its files stay",
            lambda: self.forget_wanted.emit(self.current),
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.list)
        layout.addWidget(row(self.add_folder, self.add_zip, 1, self.forget))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def current(self) -> str:
        """Name of the chosen model."""
        item = self.list.currentItem()
        return "" if item is None else str(item.data(Qt.ItemDataRole.UserRole))

    def show_models(self, lines: Sequence[ModelLine], chosen: str) -> None:
        """List the models; the first one is this software's own."""
        self.list.blockSignals(True)
        self.list.clear()
        for number, one in enumerate(lines):
            item = QListWidgetItem(f"{one.title}\n{one.problem or one.text}")
            item.setData(Qt.ItemDataRole.UserRole, one.name)
            item.setToolTip(one.problem or one.text)
            self.list.addItem(item)
            if one.name == chosen or number == 0:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)
        self.forget.setEnabled(self.list.currentRow() > 0)

    def _choose(self, item: QListWidgetItem | None, _before: object = None) -> None:
        self.forget.setEnabled(self.list.currentRow() > 0)
        if item is not None:
            self.chosen.emit(str(item.data(Qt.ItemDataRole.UserRole)))


class RunOptions(QWidget):
    """How a trained model runs; `changed` after each change."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_options")
        self.device = self._combo("device", ("auto", "cpu", "cuda", "mps"), "Where it runs")
        self.recipe = self._combo(
            "recipe",
            ("own", *(name for name, _ in presets())),
            "What happens around the network: the model's own recipe (without one, channel k is "
            "phase k), or that of a published pipeline",
        )
        self.mirroring = self._check(
            "mirroring", "mirrored copies", "nnU-Net's own default; up to 8 times the work", on=True
        )
        self.doubt = self._check(
            "doubt", "map of doubt", "Keeps the mean probability and shows where it is undecided"
        )
        self.limited = self._check("limited", "at most", "Ends a case that takes longer")
        self.seconds: QSpinBox = named(
            QSpinBox(), "predict_limit", "Longest time for one case; the challenge's is 300 s"
        )
        self.seconds.setRange(1, _LONGEST_S)
        self.seconds.setValue(_LIMIT_S)
        self.seconds.setSuffix(" s")
        self.seconds.valueChanged.connect(lambda _value: self.changed.emit())
        self.rungs = {
            rung: self._check(f"give_up_{rung.name.lower()}", rung.value, _TIPS[rung])
            for rung in LADDER
        }
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(row(QLabel("on"), self.device, QLabel("recipe"), self.recipe, 1))
        layout.addWidget(row(self.mirroring, self.doubt, 1))
        layout.addWidget(row(self.limited, self.seconds, QLabel("for a case"), 1))
        self.ladder = QWidget()
        inner = QVBoxLayout(self.ladder)
        inner.setContentsMargins(18, 0, 0, 0)
        inner.setSpacing(1)
        inner.addWidget(QLabel("to stay within it, it may give up"))
        boxes = list(self.rungs.values())
        inner.addWidget(boxes[0])
        inner.addWidget(row(boxes[1], boxes[2], 1))
        inner.addWidget(row(boxes[3], boxes[4], 1))
        layout.addWidget(self.ladder)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.limited.toggled.connect(self._show_ladder)
        self._show_ladder(False)

    def choices(self) -> RunChoices:
        """Return what is set."""
        limit = float(self.seconds.value()) if self.limited.isChecked() else None
        allowed = tuple(rung for rung, box in self.rungs.items() if box.isChecked())
        recipe = self.recipe.currentText()
        return RunChoices(
            device=self.device.currentText(),
            backend="auto",
            mirroring=self.mirroring.isChecked(),
            limit_s=limit,
            give_up=allowed if limit is not None else (),
            recipe="" if recipe == "own" else recipe,
            threads=usual_threads(),
            keep_probability=self.doubt.isChecked(),
        )

    def _show_ladder(self, limited: bool) -> None:
        self.seconds.setEnabled(limited)
        self.ladder.setVisible(limited)

    def _combo(self, name: str, texts: Sequence[str], tip: str) -> QComboBox:
        made: QComboBox = named(QComboBox(), f"predict_{name}", tip)
        made.addItems(list(texts))
        made.setMinimumContentsLength(4)
        made.currentTextChanged.connect(lambda _text: self.changed.emit())
        return made

    def _check(self, name: str, text: str, tip: str, *, on: bool = False) -> QCheckBox:
        made: QCheckBox = named(QCheckBox(text), f"predict_{name}", tip)
        made.setChecked(on)
        made.toggled.connect(lambda _on: self.changed.emit())
        return made
