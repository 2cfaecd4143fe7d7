"""The View panel below the header: layout, image, slab, window/level, cine and sides."""

from collections.abc import Sequence
from typing import Any, Final

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QButtonGroup, QComboBox, QFrame, QLabel, QWidget

from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.texts import tr
from napari_mamamia.widgets.base.keys import with_key
from napari_mamamia.widgets.controls.controls import (
    FittedLabel,
    call_by,
    fill_column,
    named,
    row,
    row_name,
    tool_button,
)
from napari_mamamia.widgets.controls.fields import combo_box
from napari_mamamia.widgets.controls.targets import Slider
from napari_mamamia.widgets.viewer.cine import PACES
from napari_mamamia.widgets.viewer.planes import Layout

_MOST_SLAB_MM: Final = 60
_WHOLE: Final = tr("whole volume")
_NAMES: Final = (tr("Layout"), tr("Image"), tr("MIP slab"), tr("Window"), tr("Phases"))


class ViewPanel(QFrame):
    """The View panel, which is independent of the viewer; its signals are user requests."""

    layout_wanted = Signal(object)
    beside_wanted = Signal(int)
    image_wanted = Signal(str)
    minus_wanted = Signal(int)
    slab_wanted = Signal(float)
    contrast_wanted = Signal(str)
    cine_wanted = Signal()
    pace_wanted = Signal(int)
    neurological_wanted = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("view_panel")
        self.setToolTip(tr("Settings of the image view."))
        fill_column(
            self,
            self._make_layouts(),
            self._make_images(),
            self._make_slab(),
            self._make_contrast(),
            self._make_cine(),
            margins=(0, 0, 0, 2),
            spacing=3,
        )

    # ---------------------------------------------------------------- to show

    def set_layout_shown(self, layout: Layout) -> None:
        """Check the button of the displayed layout, or no button during a hanging step."""
        self._layout_group.setExclusive(False)  # otherwise the last button could not be unchecked
        for other, chosen in self.layouts.items():
            chosen.setChecked(other is layout)
        self._layout_group.setExclusive(True)
        self._beside_line.setVisible(layout is Layout.PHASES)

    def set_image(self, image: str) -> None:
        """Show the displayed image: "phase", "subtraction" or "projection"."""
        self.images[image].setChecked(True)

    def set_phases(self, count: int, minus: int, beside: int, n_before: int = 1) -> None:
        """List the phases of the open case."""
        for box, chosen, text in ((self.minus, minus, "−"), (self.beside, beside, "")):
            box.blockSignals(True)
            box.clear()
            names = (phase_name(k, n_before) for k in range(max(count, chosen + 1)))
            box.addItems([f"{text}{name}" for name in names])
            box.setCurrentIndex(chosen)
            box.blockSignals(False)

    def set_slab(self, slab_mm: float) -> None:
        """Show the thickness of the slab in mm; 0 means the whole volume."""
        self.slab.blockSignals(True)
        self.slab.setValue(round(slab_mm))
        self.slab.blockSignals(False)
        self._say_slab(round(slab_mm))

    def set_contrasts(self, names: Sequence[str], chosen: str) -> None:
        """List the window/level ranges for the displayed image."""
        if [self.contrast.itemText(k) for k in range(self.contrast.count())] != list(names):
            self.contrast.clear()
            self.contrast.addItems(list(names))
        self.contrast.setCurrentText(chosen)

    def set_playing(self, playing: bool) -> None:
        """Show whether the loop through the phases is playing."""
        self.play.setText(tr("■ Stop") if playing else tr("▶ Play"))

    def set_pace(self, phases_per_s: int) -> None:
        """Show the speed of the loop."""
        self.pace.setCurrentText(f"{phases_per_s} / s")

    def set_neurological(self, on: bool) -> None:
        """Show which side of the screen shows the patient's right."""
        self.neurological.setChecked(on)

    # ---------------------------------------------------------------- to make

    def _make_layouts(self) -> QWidget:
        texts = {
            Layout.ONE: (tr("1 plane"), with_key(tr("One plane fills the image area"), "planes")),
            Layout.PLANES: (
                tr("3 planes"),
                with_key(tr("Three linked planes with a cross-hair"), "planes"),
            ),
            Layout.PHASES: (
                tr("2 phases"),
                with_key(tr("Shows another phase next to this one"), "two_phases"),
            ),
        }
        self.layouts = {
            layout: _make_choice(
                f"view_layout_{layout.name.lower()}",
                text,
                tip,
                lambda chosen=layout: self.layout_wanted.emit(chosen),
            )
            for layout, (text, tip) in texts.items()
        }
        self._layout_group = _make_group(self, list(self.layouts.values()))
        self.beside = combo_box(
            "view_beside", tr("Phase to show next to the phase selected with the slider.")
        )
        self.beside.activated.connect(self.beside_wanted.emit)
        self._beside_line = row(QLabel(tr("second phase")), self.beside)
        self._beside_line.hide()
        return row(_make_name(tr("Layout")), *self.layouts.values(), 1)

    def _make_images(self) -> QWidget:
        texts = {
            "phase": (tr("Phase"), tr("The phase selected with the slider, as acquired.")),
            "subtraction": (tr("Subtraction"), with_key(tr("Signed difference"), "subtraction")),
            "projection": (
                "MIP",
                with_key(tr("Brightest enhancement along the viewing direction"), "projection"),
            ),
        }
        self.images = {
            image: _make_choice(
                f"view_image_{image}",
                text,
                tip,
                lambda chosen=image: self.image_wanted.emit(chosen),
            )
            for image, (text, tip) in texts.items()
        }
        self._image_group = _make_group(self, list(self.images.values()))
        self.minus = combo_box(
            "view_minus", tr("Phase to subtract from the phase selected with the slider.")
        )
        call_by(self.minus, tr("minus phase"))
        # At 200 % text the row fits the panel only if the longest name does not set its width.
        self.minus.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.minus.setMinimumContentsLength(3)
        self.minus.activated.connect(self.minus_wanted.emit)
        return row(_make_name(tr("Image")), *self.images.values(), 1, self.minus)

    def _make_slab(self) -> QWidget:
        self.slab: Slider = named(
            Slider(Qt.Orientation.Horizontal),
            "view_slab",
            tr("Thickness of the MIP slab in mm; the left end means the whole volume."),
        )
        self.slab.setRange(0, _MOST_SLAB_MM)
        self.slab.valueChanged.connect(self._on_slab)
        self.slab_mm: QLabel = named(
            FittedLabel("", (_WHOLE,)), "view_slab_mm", tr("Thickness of the MIP slab.")
        )
        self._say_slab(0)
        line = row(_make_name(tr("MIP slab")), self.slab, self.slab_mm)
        line.layout().setStretch(1, 1)
        return line

    def _make_contrast(self) -> QWidget:
        self.contrast = combo_box(
            "view_contrast",
            with_key(
                tr("Window/level preset; drag with the middle button to set your own."), "contrast"
            ),
        )
        self.contrast.textActivated.connect(self.contrast_wanted.emit)
        self.neurological: Any = _make_choice(
            "view_neurological",
            tr("R on the right"),
            with_key(
                tr("Neurological: the patient's right, marked R, is on the right of the screen"),
                "sides",
            ),
            lambda: self.neurological_wanted.emit(self.neurological.isChecked()),
        )
        line = row(_make_name(tr("Window")), self.contrast, self.neurological)
        line.layout().setStretch(1, 1)
        return line

    def _make_cine(self) -> QWidget:
        self.play = tool_button(
            "view_play",
            tr("▶ Play"),
            with_key(tr("Plays the phases in a loop"), "cine"),
            self.cine_wanted.emit,
        )
        self.play.setProperty("framed", True)
        self.pace = combo_box("view_pace", tr("Phases per second."))
        self.pace.addItems([f"{pace} / s" for pace in PACES])
        self.pace.activated.connect(lambda at: self.pace_wanted.emit(PACES[at]))
        return row(_make_name(tr("Phases")), self.play, self.pace, self._beside_line, 1)

    def _on_slab(self, slab_mm: int) -> None:
        self._say_slab(slab_mm)
        self.slab_wanted.emit(float(slab_mm))

    def _say_slab(self, slab_mm: int) -> None:
        self.slab_mm.setText(tr("{slab_mm} mm", slab_mm=slab_mm) if slab_mm else _WHOLE)


def _make_choice(name: str, text: str, tip: str, on_click: Any) -> Any:
    choice_button = tool_button(name, text, tip, on_click)
    choice_button.setCheckable(True)
    choice_button.setProperty("framed", True)
    return choice_button


def _make_group(parent: QWidget, buttons: Sequence[Any]) -> QButtonGroup:
    group = QButtonGroup(parent)
    for member in buttons:
        group.addButton(member)
    buttons[0].setChecked(True)
    return group


def _make_name(text: str) -> QLabel:
    return row_name(text, _NAMES)
