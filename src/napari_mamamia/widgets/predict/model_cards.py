"""The list of models on the Predict page: selecting, adding and removing models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QWidget,
)

from napari_mamamia.core.choices import FusionRule
from napari_mamamia.core.texts import tr
from napari_mamamia.segmentation.run.engines import MODEL_KINDS
from napari_mamamia.widgets.controls.controls import button, fill_column, label, named, row
from napari_mamamia.widgets.controls.fields import combo_box

_LIST_HEIGHT: Final = 102
_FOLDERS: Final = ", ".join(kind for kind, spec in MODEL_KINDS.items() if spec.is_folder)


def _join_filters() -> str:
    patterns = {
        str(kind): [f"*{end}" for end in spec.suffixes]
        for kind, spec in MODEL_KINDS.items()
        if spec.suffixes
    }
    every = dict.fromkeys(end for ends in patterns.values() for end in ends)
    kinds = (f"{kind} ({' '.join(ends)})" for kind, ends in patterns.items())
    return ";;".join([tr("Models ({names})", names=" ".join(every)), *kinds, tr("All files (*)")])


_HINT: Final = tr("Drop a model's folder or file here. Ctrl+click to select several models.")


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the list, with name, description, and the reason why it cannot be used, or ""."""

    name: str
    title: str
    text: str
    problem: str = ""


class ModelList(QWidget):
    """The list of models.

    The signal `chosen` carries the names of the selected models in list order. `path_chosen`
    carries the folder or file of a model to add; `fusing_changed` reports a new fusion rule.
    """

    chosen = Signal(object)
    path_chosen = Signal(object)
    forget_wanted = Signal(str)
    fusing_changed = Signal()

    def __init__(self, ways: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.setObjectName("predict_model_list")
        self.list: QListWidget = named(
            QListWidget(),
            "predict_models",
            tr("List of models; Start runs the selected models. ") + _HINT,
        )
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setWordWrap(True)
        self.list.setAlternatingRowColors(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setFixedHeight(_LIST_HEIGHT)
        self.list.itemSelectionChanged.connect(self._choose_models)
        self.add_folder = button(
            "predict_add_model",
            tr("Add folder…"),
            tr(
                "Selects a model folder ({folders}) to add, without running any of its code.",
                folders=_FOLDERS,
            ),
            self._choose_folder,
        )
        self.add_file = button(
            "predict_add_file",
            tr("Add file…"),
            tr(
                "Selects a model's zip or file ({names}) to add, without running any of its code.",
                names=", ".join(MODEL_KINDS),
            ),
            self._choose_file,
        )
        self.forget = button(
            "predict_forget_model",
            tr("Remove model"),
            tr("Removes the selected model from this list, but keeps its files."),
            lambda: self.forget_wanted.emit(self.current),
        )
        self.hint = label("predict_models_hint", _HINT, tr("How to add and select models"))
        self.fusing = combo_box(
            "predict_fused_by", tr("Rule by which the masks of the selected models are fused")
        )
        for key, text in ways:
            self.fusing.addItem(tr(text), key)
        self.fusing.currentIndexChanged.connect(lambda _index: self.fusing_changed.emit())
        self.fusing_said = label(
            "predict_fused_text", tip=tr("Selected models, in the order in which they run")
        )
        self.fusing_row = row(self.fusing_said, self.fusing)
        fill_column(
            self,
            self.list,
            self.hint,
            row(self.add_folder, self.add_file, 1, self.forget),
            self.fusing_row,
            spacing=4,
        )
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the selected models, in list order."""
        items = sorted(self.list.selectedItems(), key=self.list.row)
        return tuple(str(item.data(Qt.ItemDataRole.UserRole)) for item in items)

    @property
    def fusing_rule(self) -> FusionRule:
        """The rule for fusing several models, a key of `ways`."""
        rule: FusionRule = self.fusing.currentData()
        return rule

    @property
    def current(self) -> str:
        """Name of the selected model, or of the first selected model."""
        return next(iter(self.names), "")

    def show_models(self, lines: Sequence[ModelLine], chosen: Sequence[str]) -> None:
        """List the models, starting with the built-in one."""
        self.list.blockSignals(True)
        self.list.clear()
        for line in lines:
            item = QListWidgetItem(f"{line.title}\n{line.problem or line.text}")
            item.setData(Qt.ItemDataRole.UserRole, line.name)
            item.setToolTip(line.problem or line.text)
            self.list.addItem(item)
        self._select_models(chosen)
        self.list.blockSignals(False)
        self._show_choice()

    def choose(self, name: str) -> None:
        """Select one model by its name, as a click does."""
        self.list.blockSignals(True)
        self._select_models((name,))
        self.list.blockSignals(False)
        self._choose_models()

    def _select_models(self, names: Sequence[str]) -> None:
        self.list.clearSelection()
        items = [self.list.item(place) for place in range(self.list.count())]
        matches = [item for item in items if item.data(Qt.ItemDataRole.UserRole) in names]
        for item in matches or items[:1]:
            if item is (matches or items)[0]:
                # Setting the current item clears the selection, so this comes first.
                self.list.setCurrentItem(item)
            item.setSelected(True)

    def _choose_models(self) -> None:
        if self.names:
            self._show_choice()
            self.chosen.emit(self.names)

    def _show_choice(self) -> None:
        rows = [self.list.row(item) for item in self.list.selectedItems()]
        several = len(rows) > 1
        self.forget.setEnabled(len(rows) == 1 and rows[0] > 0)
        self.fusing_row.setVisible(several)
        self.fusing_said.setText(tr("{n_rows} models; fusion rule", n_rows=len(rows)))

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self, tr("Folder of a model ({folders})", folders=_FOLDERS)
        )
        if chosen:
            self.path_chosen.emit(Path(chosen))

    def _choose_file(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(self, tr("File of a model"), "", _join_filters())
        if chosen:
            self.path_chosen.emit(Path(chosen))
