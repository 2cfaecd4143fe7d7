"""A cine loop through the phases."""

from typing import Final

from qtpy.QtCore import QObject, QTimer, Signal

from napari_mamamia.widgets.base.layers import Role
from napari_mamamia.widgets.viewer.scene import Scene

PACES: Final = (1, 2, 4, 8)
"""Available speeds in phases per second."""

_MS: Final = 1000


class Cine(QObject):
    """A timer that steps through the phases; `changed` carries whether the loop is playing."""

    changed = Signal(bool)

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.step)
        self.set_pace(2)

    @property
    def is_playing(self) -> bool:
        """Whether the loop is playing."""
        return bool(self._timer.isActive())

    def toggle(self) -> None:
        """Start the loop, or stop at the displayed phase; do nothing for a single phase."""
        layer = self._scene.layer(Role.PHASE)
        if self.is_playing or layer is None or layer.data.shape[0] < 2:
            self.stop()
        else:
            self._timer.start()
            self.changed.emit(True)

    def stop(self) -> None:
        """Stop at the displayed phase."""
        self._timer.stop()
        self.changed.emit(False)

    def set_pace(self, phases_per_s: int) -> None:
        """Set the number of phases per second."""
        self._timer.setInterval(_MS // phases_per_s)

    def step(self) -> None:
        """Show the next phase; the last phase is followed by the first."""
        layer, phase = self._scene.layer(Role.PHASE), self._scene.phase
        if layer is None or phase is None:
            self.stop()
            return
        self._scene.go_to_phase((phase + 1) % int(layer.data.shape[0]))
