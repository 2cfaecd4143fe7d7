"""How a trained model runs: device, recipe, mirrored copies, time limit and what it may cost."""

from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_mamamia.segmentation.model.device import usual_threads
from napari_mamamia.segmentation.model.planner import LADDER, Rung
from napari_mamamia.segmentation.model.recipe import presets
from napari_mamamia.services.predict.model_choice import RunChoices
from napari_mamamia.widgets.controls.controls import button, named, row

__all__ = ["RunOptions"]

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


class RunOptions(QWidget):
    """How a trained model runs; `changed` after each change, `edit_wanted` asks for the recipe."""

    changed = Signal()
    edit_wanted = Signal()

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
        self.edit = button(
            "predict_edit_recipe",
            "Edit recipe…",
            "Opens what happens around the network, field by field: channels, normalising, "
            "spacing, where it looks, steps after it",
            self.edit_wanted.emit,
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
        layout.addWidget(row(QLabel("recipe"), self.recipe, self.edit, 1))
        layout.addWidget(row(QLabel("on"), self.device, self.mirroring, 1))
        layout.addWidget(self.doubt)
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
        return RunChoices(
            device=self.device.currentText(),
            backend="auto",
            mirroring=self.mirroring.isChecked(),
            limit_s=limit,
            give_up=allowed if limit is not None else (),
            recipe=self.recipe.currentText() if self.recipe.currentIndex() > 0 else "",
            threads=usual_threads(),
            keep_probability=self.doubt.isChecked(),
        )

    def show_own_recipe(self, *, edited: bool, choose: bool = False) -> None:
        """Say whether the model's own recipe was edited here; `choose` makes it the chosen one."""
        self.recipe.setItemText(0, "own (edited)" if edited else "own")
        if choose:
            self.recipe.setCurrentIndex(0)

    def set_several(self, several: bool) -> None:
        """Offer no single recipe where several models run, each with its own."""
        self.recipe.setEnabled(not several)
        self.edit.setEnabled(not several)
        if several:
            self.recipe.setCurrentIndex(0)

    def _show_ladder(self, limited: bool) -> None:
        self.seconds.setEnabled(limited)
        self.ladder.setVisible(limited)

    def _combo(self, name: str, texts: Sequence[str], tip: str) -> QComboBox:
        made: QComboBox = named(QComboBox(), f"predict_{name}", tip)
        made.addItems(list(texts))
        made.setMinimumContentsLength(4)
        made.currentIndexChanged.connect(lambda _index: self.changed.emit())
        return made

    def _check(self, name: str, text: str, tip: str, *, on: bool = False) -> QCheckBox:
        made: QCheckBox = named(QCheckBox(text), f"predict_{name}", tip)
        made.setChecked(on)
        made.toggled.connect(lambda _on: self.changed.emit())
        return made
