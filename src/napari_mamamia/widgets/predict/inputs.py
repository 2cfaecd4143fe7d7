"""Inputs of the selected model for the open case: a small image and a text for each channel."""

import re
from collections.abc import Sequence
from typing import Final

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from napari_mamamia.core.counting import slice_number
from napari_mamamia.core.texts import tr
from napari_mamamia.services.predict.input_pictures import (
    InputChannel,
    InputPicture,
    InputPictures,
)
from napari_mamamia.widgets.controls.controls import discard, label, named, set_level
from napari_mamamia.widgets.controls.grey_pixmap import grey_pixmap
from napari_mamamia.widgets.controls.wrapped import breakable

_IN_A_ROW: Final = 4
_SIDES: Final = (92, 68)
"""Width of an image in pixels for up to three images in a row, and for four."""
_NO_BREAK: Final = "\u00a0"
_KEPT_TOGETHER: Final = re.compile(r"(channel|phase|contrast|\(\d+) (\d+|←|s\))")
"""Pattern of numbers that a line break must not separate from their word or unit."""


class InputStrip(QWidget):
    """A widget that shows the texts immediately, and each image when the image is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("predict_input_strip")
        self.warning = label("predict_input_warning", tip=tr("Warnings about this case's input"))
        set_level(self.warning, "warning")
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(6)
        self._grid.setVerticalSpacing(2)
        self._shown: tuple[InputChannel, ...] = ()
        self._pictures: list[QLabel] = []
        self._height = 1.0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addLayout(self._grid)
        layout.addWidget(self.warning)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.show_channels(())

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each channel."""
        return tuple(channel.text for channel in self._shown)

    @property
    def has_pictures(self) -> bool:
        """Whether the images of the displayed channels exist."""
        return any(not picture.pixmap().isNull() for picture in self._pictures)

    def show_channels(self, channels: Sequence[InputChannel]) -> None:
        """Show the texts, and keep images of the same channels until new images arrive."""
        if tuple(channels) == self._shown and channels:
            return
        self._shown = tuple(channels)
        self._clear_grid()
        side = _SIDES[0] if len(channels) < _IN_A_ROW else _SIDES[1]
        for number, channel in enumerate(channels):
            across, down = number % _IN_A_ROW, 2 * (number // _IN_A_ROW)
            picture = self._make_frame(number, channel, side)
            text = label(f"predict_input_text_{number}", _make_caption(channel.text), channel.text)
            text.setAlignment(Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(picture, down, across, Qt.AlignmentFlag.AlignLeft)
            self._grid.addWidget(text, down + 1, across)
            self._grid.setColumnStretch(across, 1)
            self._pictures.append(picture)
        self.warning.hide()
        self.setVisible(bool(channels))

    def show_pictures(self, found: InputPictures) -> None:
        """Show the images, and discard images of channels that are not displayed."""
        if tuple(picture.channel for picture in found.pictures) != self._shown:
            return
        shapes = [picture.pixels.shape for picture in found.pictures if picture.pixels is not None]
        self._height = max((min(rows / columns, 1.0) for rows, columns in shapes), default=1.0)
        for place, one in zip(self._pictures, found.pictures, strict=True):
            place.setFixedHeight(round(place.width() * self._height))
            _fill_frame(place, one, found.slice_index)
        self.warning.setText(found.warning)
        self.warning.setVisible(bool(found.warning))

    def forget_pictures(self) -> None:
        """Remove the images, for example the images of another case."""
        for picture in self._pictures:
            picture.clear()
        self.warning.hide()

    def _make_frame(self, number: int, channel: InputChannel, side: int) -> QLabel:
        frame: QLabel = named(QLabel(), f"predict_input_{number}", channel.text)
        frame.setFixedSize(side, round(side * self._height))
        frame.setAlignment(Qt.AlignmentFlag.AlignCenter)
        return frame

    def _clear_grid(self) -> None:
        self._pictures = []
        while (item := self._grid.takeAt(0)) is not None:
            discard(item.widget())
        for across in range(_IN_A_ROW):
            self._grid.setColumnStretch(across, 0)


def _fill_frame(place: QLabel, one: InputPicture, slice_index: int) -> None:
    if one.pixels is None:
        place.setText("–")
        return
    rows, columns = one.pixels.shape
    share = min(place.width() / columns, place.height() / rows)
    place.setPixmap(grey_pixmap(one.pixels, int(columns * share), int(rows * share)))
    place.setToolTip(
        tr(
            "{words}, slice {slice_index}: black {low:.4g}, white {high:.4g} (1st and 99th "
            "percentile)",
            words=one.channel.text,
            slice_index=slice_number(slice_index),
            low=one.low,
            high=one.high,
        )
    )


def _make_caption(text: str) -> str:
    together = _KEPT_TOGETHER.sub(rf"\1{_NO_BREAK}\2", text)
    return breakable(together.replace(" ←", f"{_NO_BREAK}←"))
