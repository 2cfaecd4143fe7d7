"""Summary of the selected model: description, inputs from the open case, and run time."""

from dataclasses import dataclass

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.controls.controls import button, label, named, set_level
from napari_mamamia.widgets.controls.wrapped import breakable
from napari_mamamia.widgets.predict.inputs import InputStrip


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The description of the selected model.

    `note` must be shown with the model's results. `facts` are lines about the model, and `detail`
    is the tooltip of these lines. `needs` states the time and memory that the model needs.
    `is_trained` says whether the options of a trained model are shown.
    """

    title: str
    note: str
    needs: str
    facts: str = ""
    detail: str = ""
    is_trained: bool = False


class ModelPanel(QFrame):
    """A panel that shows a `ModelCard`; `measure_wanted` requests to measure a tile's duration."""

    measure_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        named(self, "predict_card", tr("The model that Start runs"))
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.title = label("predict_title", tip=tr("The model that Start runs"))
        self.title.setProperty("heading", True)
        self.measure = button(
            "predict_measure",
            tr("Measure time"),
            tr("Runs one tile to measure how long this case will take."),
            self.measure_wanted.emit,
        )
        self.note = label("predict_note", tip=tr("Caveat that applies to all results of the model"))
        set_level(self.note, "warning")
        self.facts = label("predict_facts", tip=tr("Description of the model"))
        self.needs = label(
            "predict_needs", tip=tr("Time and memory that the model needs for this case")
        )
        self.problem = label("predict_problem", tip=tr("Why the model cannot run on this case"))
        set_level(self.problem, "warning")
        self.inputs = InputStrip()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(3)
        first = QHBoxLayout()
        first.addWidget(self.title, stretch=1)
        first.addWidget(self.measure)
        layout.addLayout(first)
        for part in (self.note, self.facts, self.problem, self.inputs, self.needs):
            layout.addWidget(part)

    def show_model(self, card: ModelCard) -> None:
        """Show a model, hiding lines without text."""
        self.title.setText(breakable(card.title))
        self.measure.setVisible(card.is_trained)
        for part, text in ((self.note, card.note), (self.facts, card.facts)):
            part.setText(text)
            part.setVisible(bool(text))
        self.facts.setToolTip(card.detail or tr("Description of the model"))
        self.show_needs(card.needs)

    def show_needs(self, text: str) -> None:
        """Show the time and memory that the model needs, for example after a measurement."""
        self.needs.setText(text)
        self.needs.setVisible(bool(text))

    def show_problem(self, text: str) -> None:
        """Show why the model cannot run on this case; "" hides the text."""
        self.problem.setText(text)
        self.problem.setVisible(bool(text))
        self.measure.setEnabled(not text)
