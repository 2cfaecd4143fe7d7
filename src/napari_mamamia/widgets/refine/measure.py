"""Jobs that follow the edited mask: image noise, measurements and changed voxels."""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QElapsedTimer, QTimer, Signal

from napari_mamamia.core.blinding import Hidden
from napari_mamamia.core.box import Box
from napari_mamamia.core.case import LabelMap
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.texts import tr
from napari_mamamia.services.case.show_case import reference_of
from napari_mamamia.services.refine.numbers import MaskNumbers, changed_voxels
from napari_mamamia.services.refine.strokes import held_voxels
from napari_mamamia.smartpaint.brush.features import FeatureImages
from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.refine.editing import Editing
from napari_mamamia.widgets.refine.numbers import ShownNumbers
from napari_mamamia.widgets.viewer.context import WindowContext, WindowPart
from napari_mamamia.widgets.viewer.marks import Marks

_LANES: Final = ("features", "numbers", "changes")
_ROW_MS: Final = 100
"""Largest time in ms between the steps of a series, such as undos while a key is held down."""
_AFTER_ROW_MS: Final = 60


class RefineMeasure(WindowPart):
    """A component that measures the images and the mask; `numbers` carries `ShownNumbers`."""

    numbers = Signal(object)
    images_ready = Signal()

    def __init__(self, context: WindowContext, editing: Editing, marks: Marks) -> None:
        super().__init__(context)
        self._editing = editing
        self._marks = marks
        self.shown = ShownNumbers(None, None)
        self._whole: MaskNumbers | None = None
        self.wants_changes = False
        self.wants_marks = False
        self._reference: LabelMap | None = None
        self._counting = self._session.counting
        self._of: object = None
        self._since_step = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.measure_now)
        self._session.masks_changed.connect(self._count_anew)
        self._session.blinding_changed.connect(self._follow_blinding)

    @property
    def images(self) -> FeatureImages | None:
        """The images that SmartPaint compares, or None before they are measured."""
        live = self._editing.live
        return None if live is None else live.images

    @property
    def _shown_reference(self) -> LabelMap | None:
        return None if self._session.blinding.hides(Hidden.REFERENCE) else self._reference

    @property
    def is_drawing(self) -> bool:
        """Whether changes or marks are drawn above the mask."""
        return self.wants_changes or self.wants_marks

    def begin(self) -> None:
        """Measure the opened mask, or reset all measurements if no mask is open."""
        live = self._editing.live
        if live is self._of:
            self.measure_images()
            return
        self._of = live
        for lane in _LANES:
            self._jobs.cancel(lane)
        reference = self._session.mask(Role.REFERENCE)
        self._reference = reference.labels if reference is not None else None
        self._counting = self._session.counting
        self._show_numbers(ShownNumbers(None, None))
        if live is not None:
            self.measure_images()
            self._measure_start(live.start_labels)

    def measure_images(self) -> None:
        """Measure the noise of the images that SmartPaint compares, after all phases are read."""
        live, case = self._editing.live, self._session.case
        if live is None or case is None or not case.is_loaded or live.images is not None:
            return
        if self._jobs.is_running("features"):
            return

        def measure() -> FeatureImages:
            # No stroke comes before its images are measured.
            self._services.prepare_steps()
            return self._services.measure_features(case)

        def take(images: FeatureImages) -> None:
            live.images = images
            self.images_ready.emit()

        self._jobs.start(
            "features",
            tr("Measuring the image for SmartPaint"),
            measure,
            take,
            still=lambda: self._editing.live is live,
            shown=False,
        )

    def measure_label(self) -> None:
        """Measure the initial and the current mask again for a different structure or lesion."""
        live = self._editing.live
        if live is not None and live is self._of:
            self._show_numbers(ShownNumbers(None, None, self.shown.reference))
            self._measure_start(live.start_labels)

    def measure_later(self) -> None:
        """Measure after this step, or in a series of steps only after the last step.

        Otherwise the measuring thread would delay each undo in a series by about 10 ms.
        """
        is_row = self._since_step.isValid() and self._since_step.elapsed() < _ROW_MS
        self._since_step.start()
        self._timer.start(_AFTER_ROW_MS if is_row else 0)

    def measure_now(self) -> None:
        """Measure the current mask; only the newest result is used."""
        live = self._editing.live
        if live is None:
            return
        if self._session.blinding.hides(Hidden.NUMBERS):
            self.show_changes()
            return
        # Not copied, though the thread reads it: each later step measures again.
        labels, grid = live.labels, live.grid
        reference, counting = self._shown_reference, self._counting
        blinding = self._session.blinding

        def job() -> MaskNumbers:
            expert = None if reference is None else reference_of(reference, grid, counting)
            return self._services.measure_mask(labels, expert, grid, live.label)

        def show(numbers: MaskNumbers) -> None:
            compared = numbers.compared or self._whole
            self._show_numbers(ShownNumbers(self.shown.start, numbers, compared))

        self._jobs.start(
            "numbers",
            tr("Measuring your mask"),
            job,
            show,
            still=lambda: self._editing.live is live and self._session.blinding == blinding,
            shown=False,
        )
        self.show_changes()

    def show_changes(self) -> None:
        """Draw the voxels changed since the start, or the voxels held by marks."""
        live = self._editing.live
        if live is not None and self.wants_marks:
            box, inside, outside = held_voxels(live)
            self._marks.draw_values([(box, inside, "inside"), (box, outside, "outside")])
        if live is None or not self.wants_changes:
            self._jobs.cancel("changes")
            return

        def draw(changes: tuple[Box, NDArray[np.bool_], NDArray[np.bool_]]) -> None:
            box, added, removed = changes
            self._marks.draw_values([(box, added, "added"), (box, removed, "removed")])

        start, labels, label = live.start_labels, live.labels, live.label
        self._jobs.start(
            "changes",
            tr("Comparing with the initial mask"),
            lambda: changed_voxels(start, labels, label),
            draw,
            still=lambda: self.wants_changes,
            shown=False,
        )

    def _count_anew(self) -> None:
        live = self._editing.live
        if live is None or live is not self._of or self._counting == self._session.counting:
            return
        self._counting = self._session.counting
        self._measure_start(live.start_labels)

    def _follow_blinding(self) -> None:
        self._whole = None
        self._show_numbers(ShownNumbers(None, None))
        self.measure_label()

    def _measure_start(self, start: LabelMap) -> None:
        live = self._editing.live
        reference, counting = self._shown_reference, self._counting
        blinding = self._session.blinding
        if live is None or self._session.blinding.hides(Hidden.NUMBERS):
            return
        measure = self._services.measure_mask

        def job() -> tuple[MaskNumbers, MaskNumbers | None]:
            counted = None if reference is None else reference_of(reference, live.grid, counting)
            first = measure(start, counted, live.grid, live.label)
            if counted is None:
                return first, None
            expert = LabelMap(live.grid, counted.box, counted.foreground())
            return first, (measure(expert, None, live.grid, 1))

        def show(numbers: tuple[MaskNumbers, MaskNumbers | None]) -> None:
            first, expert = numbers
            self._whole = expert
            self._show_numbers(ShownNumbers(first, self.shown.now or first, expert))
            self.measure_now()

        self._jobs.start(
            "start_numbers",
            tr("Measuring the initial mask"),
            job,
            show,
            still=lambda: self._editing.live is live and self._session.blinding == blinding,
            shown=False,
        )

    def _show_numbers(self, numbers: ShownNumbers) -> None:
        live = self._editing.live
        warning = "" if live is None else live.grid.spacing_warning
        self.shown = replace(numbers, grid_warning=warning)
        self.numbers.emit(self.shown)


def images_text(images: FeatureImages | None, *, is_reading: bool) -> str:
    """Return a text about the images that SmartPaint compares, and about missing images."""
    if images is None:
        return (
            tr(
                "Phases are still loading. Sphere can be used now; SmartPaint can be used when "
                "loading has finished"
            )
            if is_reading
            else tr("Measuring the image for SmartPaint…")
        )
    n_before = images.case.n_before
    phases = ", ".join(
        phase_name(channel.plus, n_before)
        if channel.minus is None
        else f"{phase_name(channel.plus, n_before)} − {phase_name(channel.minus, n_before)}"
        for channel in images.channels
    )
    return ". ".join((tr("Compares {phases}", phases=phases), *images.missing))
