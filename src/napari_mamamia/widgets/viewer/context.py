"""`WindowContext` with the objects shared within a window, and `WindowPart`, a component."""

from dataclasses import dataclass

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.viewer.scene import Scene


@dataclass(frozen=True, slots=True)
class WindowContext:
    """Objects shared by all components of a window.

    `session` holds the open data and `scene` shows them in napari. `jobs` runs work in threads,
    `services` are the service functions, and `notifier` shows messages. Components are deleted with
    `owner`.
    """

    session: Session
    scene: Scene
    jobs: JobRunner
    services: Services
    notifier: Notifier
    owner: QObject | None = None


class WindowPart(QObject):
    """A component of a window that connects a page, the session and jobs.

    Its constructor takes the context, then its own objects, such as its page or other components. A
    page itself is not a `WindowPart`.
    """

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context.owner)
        self._session = context.session
        self._scene = context.scene
        self._jobs = context.jobs
        self._services = context.services
        self._notifier = context.notifier
