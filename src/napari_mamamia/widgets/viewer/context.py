"""`WindowContext`: the objects that every part of one window uses; `WindowPart`: such a part."""

from dataclasses import dataclass

from qtpy.QtCore import QObject

from napari_mamamia.widgets.base.jobs import JobRunner
from napari_mamamia.widgets.base.notify import Notifier
from napari_mamamia.widgets.base.service_record import Services
from napari_mamamia.widgets.base.session import Session
from napari_mamamia.widgets.viewer.scene import Scene


@dataclass(frozen=True, slots=True)
class WindowContext:
    """Shared by all parts of one window.

    `session` holds the open data, `scene` shows them in napari; `jobs` run work in threads,
    `services` are the calls, `notifier` shows messages. Parts end with `owner`.
    """

    session: Session
    scene: Scene
    jobs: JobRunner
    services: Services
    notifier: Notifier
    owner: QObject | None = None


class WindowPart(QObject):
    """A component of a window that connects a page, the session and jobs. Pages are not parts.

    A part takes the context and then its own objects: its page, other parts.
    """

    def __init__(self, context: WindowContext) -> None:
        super().__init__(context.owner)
        self._session = context.session
        self._scene = context.scene
        self._jobs = context.jobs
        self._services = context.services
        self._notifier = context.notifier
