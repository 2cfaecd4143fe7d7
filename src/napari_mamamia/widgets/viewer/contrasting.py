"""Named ranges of grey for the image on screen, found in a thread."""

from typing import Any, Final

from qtpy.QtCore import QObject, Signal

from napari_mamamia.services.case.show_contrast import contrast_names
from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.layers import Role, array_of, tag_of
from napari_mamamia.widgets.base.notify import Failed, Finished, Notifier, Outcome
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.viewer.scene import Scene

_LANE: Final = "contrast"
_KINDS: Final = {
    Role.PHASE: "phase",
    Role.SUBTRACTION: "enhancement",
    Role.PROJECTION: "enhancement",
    Role.MAP: "map",
}


class Contrasting(QObject):
    """Sets the range of the image on screen; `chosen` carries the names there are and the one."""

    chosen = Signal(object, str)

    def __init__(
        self, scene: Scene, jobs: JobRunner, services: Services, notifier: Notifier
    ) -> None:
        super().__init__()
        self._scene = scene
        self._jobs = jobs
        self._services = services
        self._notifier = notifier
        self._name: dict[str, str] = {}

    @property
    def kind(self) -> str:
        """What the image on screen is: "phase" or "enhancement"."""
        layer = self._scene.image_on_screen()
        tag = None if layer is None else tag_of(layer)
        return "phase" if tag is None else _KINDS[tag.role]

    @property
    def names(self) -> tuple[str, ...]:
        """The ranges for the image on screen."""
        return contrast_names(self.kind)

    @property
    def name(self) -> str:
        """The range chosen last for this kind of image."""
        return self._name.get(self.kind, self.names[0])

    def next(self) -> None:
        """Choose the range after the present one."""
        names = self.names
        self.choose(names[(names.index(self.name) + 1) % len(names)])

    def choose(self, name: str) -> None:
        """Choose a range of `names`."""
        layer, kind = self._scene.image_on_screen(), self.kind
        if layer is None:
            return
        self._name[kind] = name
        self.chosen.emit(self.names, name)
        array, made = self._values(layer), tuple(layer.contrast_limits)

        def done(outcome: Outcome[tuple[float, float]]) -> None:
            if isinstance(outcome, Failed):
                self._notifier.fail("Contrast", outcome.error)
            elif isinstance(outcome, Finished) and layer in self._scene.viewer.layers:
                layer.contrast_limits = outcome.result

        find = self._services.contrast_limits
        self._jobs.start(
            _LANE, "Contrast", lambda: find(array, kind, name, made), done, shown=False
        )

    def _values(self, layer: Any) -> Any:
        """Return the volume on screen: of the phases, the one that is shown."""
        array, phase = array_of(layer), self._scene.phase
        return array[phase] if layer is self._scene.layer(Role.PHASE) else array
